"""The curve of cumulative differences, by the numbers that its artists hold."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from tests.plots.displays import page


def test_the_curve_of_cumulative_differences_has_the_extremes_of_ecce(rows, figure):
    drawn = plots.CumulativeDisplay.from_predictions(*rows, fig=figure)
    y, p = rows[0][np.argsort(rows[1])], np.sort(rows[1])
    assert drawn.curve_.get_ydata() == pytest.approx(np.concatenate([[0], np.cumsum(y - p)]) / 600)
    assert drawn.curve_.get_xdata() == pytest.approx(np.arange(601) / 600)
    found = cb.metrics.ecce(*rows)
    assert np.abs(drawn.extremes_.get_ydata()).max() == pytest.approx(found.mad)
    assert np.ptp(drawn.extremes_.get_ydata()) == pytest.approx(found.r)
    low, high = drawn.band_.get_paths()[0].vertices[:, 1].min(), drawn.band_.get_paths()[0].vertices[:, 1].max()
    assert (low, high) == pytest.approx((drawn.band.low[0], drawn.band.high[0]))


def test_a_thinned_curve_keeps_its_extremes(rng, figure):
    p = rng.random(50_000)
    drawn = plots.CumulativeDisplay.from_predictions(rng.random(50_000) < p, p, fig=figure)
    x, y = drawn.curve_.get_data()
    assert x.size <= 2_000
    share, curve, _ = drawn.points()
    assert (y.min(), y.max()) == (curve.min(), curve.max())
    assert np.abs(np.interp(share, x, y) - curve).max() < 2e-3 * np.sqrt(0.25)
    assert (x[0], x[-1]) == (0, 1)


def test_a_curve_without_a_test_is_plotted(rng, figure):
    drawn = plots.CumulativeDisplay.from_predictions([0, 1, 1], [0, 0, 1], fig=figure)
    assert drawn.test is None
    assert "p =" not in drawn.ax_.get_title(loc="left")
    weighted = plots.CumulativeDisplay.from_predictions(
        [0, 1, 1], [0.2, 0.5, 0.9], sample_weight=[0.5, 1, 2], fig=Figure()
    )
    assert weighted.test is None


def test_shares_of_rows_have_the_prediction_there_beside_them(rows):
    drawn = plots.CumulativeDisplay.from_predictions(*rows, fig=page())
    ordered = np.sort(rows[1])
    for tick, label in zip(drawn.ax_.get_xticks(), drawn.ax_.get_xticklabels(), strict=True):
        share, score = label.get_text().split("\n")
        assert share == f"{100 * tick:.0f} %"
        assert float(score) == pytest.approx(ordered[max(round(tick * 600) - 1, 0)], rel=0.06)
