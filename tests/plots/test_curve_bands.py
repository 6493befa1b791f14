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


@pytest.fixture(scope="module")
def fraud():
    """Half a percent of events, nearly all at scores of the last twentieth of the rows."""
    rng = np.random.default_rng(1)
    p = expit(rng.normal(-8, 2.2, 40_000))
    return (rng.random(40_000) < p).astype(int), p


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
    wide = plots.ReliabilityDisplay.from_predictions(*rare, bins=cb.bins.EqualWidth(10), fig=page())
    (breakdown,) = wide.breakdowns.values()
    assert (breakdown.partition.k / breakdown.partition.k.sum()).max() > 0.5


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_end_bin_of_rare_events_is_drawn_in_parts(fraud, flipped, weighted):
    """Bins of the paper have at least a twentieth of the rows: nearly all events are in one of them."""
    y, p = (1 - fraud[0], 1 - fraud[1]) if flipped else fraud
    weight = np.random.default_rng(2).uniform(0.5, 1.5, y.size) if weighted else None
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(
        y, p, metric=cb.TCE(), sample_weight=weight, n_resamples=0, fig=page()
    )
    frame, cells = drawn.data(), drawn.breakdown.per_bin
    split = frame[frame["bin"] == (0 if flipped else len(cells["n"]) - 1)]
    assert len(split) == len(frame) - len(cells["n"]) + 1 == 5
    assert split["part"].tolist() == [0, 1, 2, 3, 4]
    rare_outcome = split["n"] - split["k"] if flipped else split["k"]
    assert rare_outcome.max() < 0.4 * rare_outcome.sum()
    for column in ("n", "k", "rejected"):
        assert frame.groupby("bin")[column].sum().to_numpy() == pytest.approx(cells[column])
    assert (frame["lower"].to_numpy()[1:] == frame["upper"].to_numpy()[:-1]).all()
    edges = split["lower"].iloc[0], split["upper"].iloc[-1]
    assert edges == (cells["lower"][split["bin"].iloc[0]], cells["upper"][split["bin"].iloc[0]])
    whole = drawn.whole_rate_.get_ydata()[0]
    assert whole == pytest.approx(cells["rate"][split["bin"].iloc[0]])
    assert f"one bin in {len(split)} parts" in legend_texts(drawn.ax_)
    assert unreadable(drawn.figure_) == []


def test_rejected_scores_of_parts_are_those_of_the_whole_bin(fraud):
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*fraud, metric=cb.TCE(), n_resamples=0, fig=page())
    whole, parts = drawn.breakdown.partition, drawn.drawn.partition
    score, last = whole.table.score, len(whole) - 1
    decided = drawn.breakdown.definition.loss.rejects(whole, whole.labels, score)
    rows = [int(whole.table.n[(parts.labels == i) & decided].sum()) for i in drawn.drawn.split]
    assert drawn.drawn.rejected[drawn.drawn.split].tolist() == rows
    assert sum(rows) == drawn.breakdown.per_bin["rejected"][last]


def test_bins_of_common_events_are_not_split(rows):
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=page())
    assert drawn.drawn.split.size == 0
    assert drawn.whole_rate_ is None
    assert drawn.data()["bin"].tolist() == list(range(len(drawn.breakdown.partition)))


def test_the_test_based_diagram_uses_given_axes(fraud):
    ax = page().add_subplot()
    ax.set_title("mine")
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*fraud, n_resamples=0, ax=ax)
    assert drawn.ax_ is ax
    assert ax.figure.axes == [ax]
    assert ax.get_title() == "mine"
    assert (drawn.ax_sizes_, drawn.ax_histogram_) == (None, None)
    assert "event rate, 95 % CI" in legend_texts(ax)
    assert ax.get_xlabel() == "bins and their edges"
    assert unreadable(ax.figure) == []
    other = page()
    panels = drawn.plot_panels(other.add_subplot())
    assert len(other.axes) == 4
    assert panels.ax_sizes_ is not None


@pytest.mark.parametrize("method", ["spline", "isotonic", "belt"])
def test_curves_of_rare_events_have_logit_axes_unless_a_scale_is_given(method, rare, rows):
    y, p = rare
    fit = calibration_belt(y, p) if method == "belt" else calibration_curve(y, p, method=method)
    assert fit.plot(fig=page()).ax_.get_xscale() == "logit"
    assert fit.plot(fig=page(), scale="linear").ax_.get_xscale() == "linear"
    common = plots.CalibrationCurveDisplay.from_predictions(*rows, method=method, fig=page())
    assert common.ax_.get_yscale() == "linear"


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


def test_two_curves_on_one_axes_differ_and_are_both_named():
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    p = rng.random(600)
    y = rng.random(600) < p
    figure, ax = plt.subplots()
    first = plots.CalibrationCurveDisplay.from_predictions(y, p, name="A", ax=ax)
    second = plots.CalibrationCurveDisplay.from_predictions(y, p**1.5, name="B", ax=ax)
    assert first.lines_["A"].get_color() != second.lines_["B"].get_color()
    assert first.lines_["A"].get_gid() != second.lines_["B"].get_gid()
    texts = [text.get_text() for legend in figure.findobj(plt.matplotlib.legend.Legend) for text in legend.get_texts()]
    assert {"A", "B"} <= set(texts)
    plt.close(figure)


def test_the_isotonic_band_is_drawn_in_steps():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    curve = calibration_curve(rng.random(300) < p, p, method="isotonic")
    (band,) = plots.CalibrationCurveDisplay({"model": curve}).plot().bands_["model"]
    corners = band.get_paths()[0].vertices
    middle = (curve.score[20] + curve.score[21]) / 2
    between = corners[(corners[:, 0] >= curve.score[20]) & (corners[:, 0] <= curve.score[21])]
    assert between[:, 1].max() >= curve.high[21]
    assert between[:, 1].min() <= curve.low[20]
    assert curve.score[20] < middle < curve.score[21]
