"""The cost curve, by the numbers that its artists hold."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from tests.plots.displays import page
from tests.visual.layout import unreadable


def test_the_cost_at_every_ratio_is_ecc(rows, figure):
    y, p = rows
    drawn = plots.CostDisplay.from_predictions(
        y, p, ratios=[0.1, 1, 7], n_resamples=99, bins=cb.bins.EqualSize(8), fig=figure
    )
    frame = drawn.data()
    for i, ratio in enumerate((0.1, 1, 7)):
        cost = cb.costs.LinearCost(over=2 / (1 + ratio), under=2 * ratio / (1 + ratio))
        metric = cb.metrics.ECC(cost, bins=cb.bins.EqualSize(8))
        assert drawn.lines_["model"].get_ydata()[i] == pytest.approx(metric(y, p).value)
        found = cb.interval(metric, y, p, n_resamples=99, random_state=0)
        assert (frame["low"][i], frame["high"][i]) == pytest.approx((found.low, found.high))
    assert drawn.lines_["model"].get_ydata()[1] == pytest.approx(cb.metrics.ace(y, p, n_bins=8))


@pytest.mark.parametrize("ratios", [[], [0], [-1, 1], [float("inf")], [[1]]])
def test_ratios_that_are_none_are_rejected(ratios, rows):
    with pytest.raises(cb.InputError, match="ratios must be positive"):
        plots.CostDisplay.from_predictions(*rows, ratios=ratios, fig=Figure())


@pytest.mark.parametrize("ratios", [[0.05, 20], [200, 500], [1e-4, 1e4], [3.1, 3.2], [7]])
def test_ratios_are_written_as_they_are(ratios, rows):
    drawn = plots.CostDisplay.from_predictions(*rows, ratios=ratios, n_resamples=0, fig=page())
    for tick, label in zip(drawn.ax_.get_xticks(), drawn.ax_.get_xticklabels(), strict=True):
        low, high = (float(part) for part in label.get_text().split(" : "))
        assert low / high == pytest.approx(tick, rel=1e-4)
    assert unreadable(drawn.figure_) == []
    assert len(drawn.ax_.lines) == (2 if min(ratios) < 1 < max(ratios) else 1)


def test_the_cheapest_model_is_named(rows):
    y, p = rows
    flat = np.full(600, y.mean())
    both = plots.CostDisplay.from_predictions(y, {"flat": flat, "high": np.sqrt(p)}, n_resamples=0, fig=page())
    assert "lowest for flat at both ends" in both.alt_text()
    sides = plots.CostDisplay.from_predictions(y, {"low": p**3, "high": np.sqrt(p)}, n_resamples=0, fig=page())
    assert "lowest for low, then for high" in sides.alt_text()


def test_ratios_are_plotted_in_order(rows):
    drawn = plots.CostDisplay.from_predictions(*rows, ratios=[5, 0.2, 1], n_resamples=0, fig=page())
    assert drawn.lines_["model"].get_xdata().tolist() == [0.2, 1, 5]
