"""Displays of calibration curves, displays in the user's own axes, and the axes of rare events."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cb
from calibrant import plots
from calibrant.inference import calibration_belt, calibration_curve
from tests.visual.layout import unreadable


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, 1500)
    return (rng.random(1500) < p**1.2).astype(int), p


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(1)
    p = expit(rng.normal(-5.5, 1.3, 20_000))
    return (rng.random(20_000) < p).astype(int), p


def page():
    return Figure(figsize=(6.4, 6.4), layout="constrained")


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_two_displays_in_the_same_axes_show_both_curves(rows):
    y, p = rows
    ax = page().add_subplot()
    ax.set_title("mine")
    first = plots.ReliabilityDisplay.from_predictions(y, p, name="forest", ax=ax)
    second = plots.ReliabilityDisplay.from_predictions(y, p**1.5, name="logistic", ax=ax)
    assert first.ax_ is ax
    assert second.ax_ is ax
    assert ax.figure.axes == [ax]
    assert ax.get_title() == "mine"
    assert legend_texts(ax) == ["forest", "logistic"]
    lines = [first.lines_["forest"], second.lines_["logistic"]]
    assert all(line in ax.lines for line in lines)
    assert lines[0].get_color() != lines[1].get_color()
    assert second.diagonal_ is first.diagonal_
    assert second.ax_sizes_ is None
    assert unreadable(ax.figure) == []


def test_a_second_display_adapts_to_the_scale_of_the_first(rare):
    y, p = rare
    ax = page().add_subplot()
    plots.ReliabilityDisplay.from_predictions(y, p, scale="log", ax=ax)
    plots.ReliabilityDisplay.from_predictions(y, p**0.5, ax=ax)
    assert ax.get_xscale() == ax.get_yscale() == "log"


@pytest.mark.parametrize("display", [plots.ReliabilityDisplay, plots.TestBasedReliabilityDisplay])
def test_axes_of_rare_events_are_logit_unless_a_scale_is_given(display, rare, rows):
    fast = {"n_resamples": 0} if display is plots.TestBasedReliabilityDisplay else {}
    y, p = rare
    assert display.from_predictions(y, p, fig=page(), **fast).ax_.get_yscale() == "logit"
    assert display.from_predictions(1 - y, 1 - p, fig=page(), **fast).ax_.get_yscale() == "logit"
    assert display.from_predictions(y, p, scale="linear", fig=page(), **fast).ax_.get_yscale() == "linear"
    assert display.from_predictions(y, p, ymax=0.1, fig=page(), **fast).ax_.get_yscale() == "linear"
    assert display.from_predictions(*rows, fig=page(), **fast).ax_.get_yscale() == "linear"


def test_bins_of_rare_events_divide_the_range_that_has_most_events(rare):
    """Ten bins of equal width leave most events in one bin; bins of equal information do not."""
    drawn = plots.ReliabilityDisplay.from_predictions(*rare, fig=page())
    (breakdown,) = drawn.breakdowns.values()
    share = breakdown.partition.k / breakdown.partition.k.sum()
    assert len(breakdown.partition) == 10
    assert share.max() < 0.2
    assert unreadable(drawn.figure_) == []
    wide = plots.ReliabilityDisplay.from_predictions(*rare, bins=cb.EqualWidth(10), fig=page())
    (breakdown,) = wide.breakdowns.values()
    assert (breakdown.partition.k / breakdown.partition.k.sum()).max() > 0.5


@pytest.mark.parametrize("method", ["spline", "local", "isotonic", "belt"])
def test_curves_draw_the_values_of_their_result(method, rows):
    fit = calibration_belt(*rows) if method == "belt" else calibration_curve(*rows, method=method)
    ax = page().add_subplot()
    drawn = fit.plot(ax=ax)
    assert drawn.ax_ is ax
    assert drawn.lines_["model"].get_ydata() == pytest.approx(fit.estimate)
    assert len(drawn.bands_["model"]) == len(fit.bands)
    frame = drawn.data()
    assert frame["estimate"].tolist() == fit.estimate.tolist()
    assert drawn.alt_text().startswith("Calibration curves: ")
    assert unreadable(ax.figure) == []


def test_methods_and_models_are_drawn_together(rows):
    y, p = rows
    methods = plots.CalibrationCurveDisplay.from_predictions(y, p, method=["spline", "isotonic", "belt"], fig=page())
    assert legend_texts(methods.ax_) == ["spline", "isotonic", "belt", "confidence bands"]
    models = plots.CalibrationCurveDisplay.from_predictions(y, {"a": p, "b": p**2}, fig=page())
    assert list(models.curves) == ["a", "b"]
    assert unreadable(models.figure_) == []
    with pytest.raises(cb.InputError, match="one method with several models"):
        plots.CalibrationCurveDisplay.from_predictions(y, {"a": p, "b": p}, method=["spline", "belt"], fig=page())
    with pytest.raises(cb.InputError, match="method must be one of"):
        plots.CalibrationCurveDisplay.from_predictions(y, p, method="loess", fig=page())


def test_curves_on_logit_axes(rare):
    y, p = rare
    drawn = plots.CalibrationCurveDisplay.from_predictions(y, expit(logit(p) + 0.3), scale="logit", fig=page())
    assert drawn.ax_.get_xscale() == "logit"
    assert unreadable(drawn.figure_) == []


def test_files_are_the_same_bytes_for_the_same_input(rows):
    files = [plots.svg(plots.CalibrationCurveDisplay.from_predictions(*rows, fig=page())) for _ in range(2)]
    files += [plots.svg(plots.DecisionCurveDisplay.from_predictions(*rows, fig=page())) for _ in range(2)]
    assert files[0] == files[1]
    assert files[2] == files[3]
