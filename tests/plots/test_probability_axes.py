"""Axes of probabilities: their ends and ticks, and scores that no axis can hold."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

from calibrant import plots
from calibrant.plots.probability_axes import Axis
from tests.plots.displays import page


@pytest.mark.parametrize(
    ("values", "ends", "between"),
    [
        ([3e-5, 0.04], (2e-5, 0.05), {0.0001, 0.001, 0.01}),
        ([0.96, 0.9997], (0.95, 0.9998), {0.99, 0.999}),
        ([0.02, 0.3], (0.01, 0.5), {0.1}),
        ([0.0, 1.0], (0.1, 0.9), {0.5}),
    ],
)
def test_a_logit_axis_fits_its_values(values, ends, between):
    axis = Axis.fitting("logit", [values])
    assert (axis.low, axis.high) == pytest.approx(ends)
    ticks = axis._ticks(0.07)
    assert ticks == sorted(ticks)
    assert all(np.isclose(ticks, tick, rtol=1e-9).any() for tick in between)


@pytest.mark.parametrize("scale", ["log", "logit"])
def test_tiny_scores_have_a_place_on_every_axis(scale):
    y, p = [0, 0, 1, 0, 1, 1], np.array([5e-324, 1e-310, 1e-9, 0.2, 0.5, 1 - 1e-16])
    bins = plots.BinningDisplay.from_predictions(y, p, scale=scale, fig=page())
    tested = plots.TestBasedReliabilityDisplay.from_predictions(y, p, scale=scale, n_resamples=0, fig=page())
    for drawn, ax, artists in (
        (bins, bins.ax_rates_["PAVA"], bins.rates_["PAVA"]),
        (tested, tested.ax_, tested.rates_),
    ):
        ET.fromstring(plots.svg(drawn))
        heights = np.concatenate([artist.get_path().vertices[:, 1] for artist in artists])
        low, high = ax.get_ylim()
        assert (low > 0) & (low <= heights.min())
        assert heights.max() <= high
