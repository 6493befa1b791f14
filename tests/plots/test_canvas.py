"""Colours are distinguishable with each kind of colour blindness and in greyscale; shortened names stay distinct."""

from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from matplotlib.colors import to_rgb

from calibrant.plots import canvas

# Machado, Oliveira and Fernandes (2009), Table 1: linear RGB seen with no red, no green and no blue cones.
SEEN = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    "full sight": np.eye(3).tolist(),
}
# Colours that meet in one diagram and mean different things, on paper and on black.
MEANINGS = (canvas.ACCEPTED, canvas.REJECTED, canvas.EVENT)
ON_DARK = (canvas.ACCEPTED, canvas.REJECTED, canvas.EVENT_ON_DARK)


def linear(colour):
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of linear RGB under D65."""
    to_xyz = np.array(
        [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    )
    t = to_xyz @ rgb / np.array([0.95047, 1.0, 1.08883])
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def seen(colour, sight):
    return lab(np.clip(np.array(SEEN[sight]) @ linear(colour), 0, 1))


def lightness(colour):
    return lab(linear(colour))[0]


@pytest.mark.parametrize("sight", SEEN)
@pytest.mark.parametrize("pair", [*combinations((*MEANINGS, "white"), 2), *combinations((*ON_DARK, "black"), 2)])
def test_meanings_are_distinguishable(pair, sight):
    """A distance of 2 is just noticeable side by side; 20 is another colour at a glance."""
    assert np.linalg.norm(seen(pair[0], sight) - seen(pair[1], sight)) > 20


@pytest.mark.parametrize("pair", list(combinations((*MEANINGS, "white"), 2)))
def test_meanings_are_distinguishable_in_grey(pair):
    assert abs(lightness(pair[0]) - lightness(pair[1])) > 12


@pytest.mark.parametrize("sight", SEEN)
@pytest.mark.parametrize("pair", list(combinations(canvas.MODELS[:4], 2)))
def test_four_models_are_distinguishable(pair, sight):
    assert np.linalg.norm(seen(pair[0], sight) - seen(pair[1], sight)) > 15


def test_no_two_models_look_alike():
    """In grey colours are not enough; marks and dashes are, and they do not come round with the colours."""
    looks = [(i % len(canvas.MARKERS), i % len(canvas.DASHES)) for i in range(30)]
    assert len(set(looks)) == 30
    assert len(set(canvas.MARKERS)) == len(canvas.MARKERS)
    assert len(set(map(str, canvas.DASHES))) == len(canvas.DASHES)


def test_neutral_colours_follow_the_style():
    import matplotlib as mpl

    with mpl.rc_context({"text.color": "white", "axes.facecolor": "black"}):
        assert canvas.blend(0.25) == (0.25, 0.25, 0.25)
    with mpl.rc_context({"text.color": "black", "axes.facecolor": "none"}):
        assert canvas.blend(0.25) == (0.75, 0.75, 0.75)


def test_a_cycle_of_the_user_colours_the_models():
    import matplotlib as mpl
    from matplotlib import cycler

    assert canvas.model_colours(7) == [*canvas.MODELS, canvas.MODELS[0]]
    with mpl.rc_context({"axes.prop_cycle": cycler(color=["red", "lime"])}):
        assert canvas.model_colours(3) == ["red", "lime", "red"]
    with mpl.rc_context({"axes.prop_cycle": cycler(linestyle=["-", "--"])}):
        assert canvas.model_colours(1) == [canvas.MODELS[0]]


def test_shortened_names_stay_distinct():
    names = [f"a long name of a class, number {i} of twelve $x^2$" for i in range(12)]
    assert canvas.shorten_distinct(["a", "b"], 10) == ["a", "b"]
    short = canvas.shorten_distinct(names, 14)
    assert len(set(short)) == len(names)
    assert max(map(len, short)) <= 14
