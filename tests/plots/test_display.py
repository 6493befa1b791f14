"""Figures as files, and what drawing leaves unchanged."""

import hashlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

import matplotlib as mpl
from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from tests.plots.displays import DISPLAYS, page


# One function writes the files of all displays; the next test compares the SVG of each display.
@pytest.mark.parametrize("display", [plots.TestBasedReliabilityDisplay, plots.NullDisplay])
def test_files_are_the_same_bytes_for_the_same_input(display, rows, tmp_path):
    digests, kinds = [], ("svg", "png", "pdf")
    for i in range(2):
        drawn = display.from_predictions(*rows, fig=Figure(), **DISPLAYS[display])
        for kind in kinds:
            plots.save(drawn, tmp_path / f"{i}.{kind}")
        digests.append([hashlib.sha256((tmp_path / f"{i}.{kind}").read_bytes()).digest() for kind in kinds])
    assert digests[0] == digests[1]


def test_axes_that_the_user_placed_stay_there(rows):
    drawn = plots.CumulativeDisplay.from_predictions(*rows, fig=page())
    (ax,) = drawn.figure_.axes
    ax.set_position([0.3, 0.3, 0.4, 0.5])
    plots.svg(drawn)
    assert ax.get_position().bounds == pytest.approx((0.3, 0.3, 0.4, 0.5))


def test_files_are_the_same_bytes_in_another_process(rows):
    script = (
        "import numpy as np, calibrant as cb\n"
        "from matplotlib.figure import Figure\n"
        "p = np.linspace(0.01, 0.9, 400); y = np.arange(400) % 3 == 0\n"
        "d = cb.plots.TestBasedReliabilityDisplay.from_predictions(y, p, n_resamples=19, fig=Figure())\n"
        "print(cb.plots.svg(d))"
    )
    texts = {subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(texts) == 1


def test_a_display_without_a_figure_cannot_be_saved(rows):
    display = plots.ReliabilityDisplay({"model": cb.ECE()(*rows)})
    with pytest.raises(cb.InputError, match="display must be drawn"):
        plots.svg(display)


def test_short_paths_stay_within_a_hundredth_of_a_point(rows):
    import io

    drawn = plots.ReliabilityDisplay.from_predictions(*rows, fig=Figure())
    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "calibrant", "svg.fonttype": "none"}):
        drawn.figure_.savefig(stream, format="svg")
    paths = [re.findall(r' d="([^"]*)"', text) for text in (stream.getvalue(), plots.svg(drawn))]
    assert len(paths[0]) == len(paths[1])
    for long, short in zip(*paths, strict=True):
        exact, rounded = ([float(v) for v in re.findall(r"-?\d+\.?\d*", text)] for text in (long, short))
        assert exact == pytest.approx(rounded, abs=0.011)


def test_two_displays_in_one_figure_have_ids_of_their_own(rows):
    whole = Figure(figsize=(12, 6), layout="constrained")
    left, right = whole.subfigures(1, 2)
    one = plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=left)
    plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=right)
    ids = [e.get("id") for e in ET.fromstring(plots.svg(one)).iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    assert {"test-based-bin-0-rate", "test-based-bin-0-rate-2"} <= set(ids)


def test_threads_leave_nothing_behind(rows):
    from concurrent.futures import ThreadPoolExecutor

    before = dict(mpl.rcParams)
    displays = [plots.CumulativeDisplay.from_predictions(*rows, fig=page()) for _ in range(12)]
    with ThreadPoolExecutor(6) as pool:
        texts = set(pool.map(plots.svg, displays))
    assert len(texts) == 1
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("scale", ["linear", "log", "logit"])
def test_a_display_can_be_pickled(scale, rows):
    import pickle

    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, scale=scale, fig=page())
    again = pickle.loads(pickle.dumps(drawn))
    assert plots.svg(again) == plots.svg(drawn)


def test_the_suffix_selects_the_file_format(rows, tmp_path):
    drawn = plots.CumulativeDisplay.from_predictions(*rows, fig=page())
    plots.save(drawn, tmp_path / "a.SVG")
    assert (tmp_path / "a.SVG").read_text(encoding="utf-8") == plots.svg(drawn)
    for name in ("a.gif", "a"):
        with pytest.raises(cb.InputError, match=r"must end in \.svg, \.png or \.pdf"):
            plots.save(drawn, tmp_path / name)
