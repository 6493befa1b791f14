"""Diagrams, by the numbers that their artists hold."""

import hashlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy.stats import binomtest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from calibrant.plots._canvas import Axis
from tests.visual.layout import unreadable

DRAWN_FAST = {"n_resamples": 49}
# Options of each display besides the predictions, with few resamples.
DISPLAYS = {
    plots.TestBasedReliabilityDisplay: DRAWN_FAST,
    plots.ReliabilityDisplay: {"band": "both", **DRAWN_FAST},
    plots.BinningDisplay: {},
    plots.CumulativeDisplay: {},
    plots.DecompositionDisplay: DRAWN_FAST,
    plots.NullDisplay: DRAWN_FAST,
    plots.CostDisplay: DRAWN_FAST,
    plots.RocHullDisplay: {},
}
each_display = pytest.mark.parametrize("display", DISPLAYS, ids=lambda d: d.__name__)
SEVERAL = (plots.ReliabilityDisplay, plots.DecompositionDisplay, plots.CostDisplay)


@pytest.fixture
def rows(rng):
    """600 rows of an overconfident model."""
    p = rng.beta(2, 5, 600)
    return rng.random(600) < p**1.4, p


@pytest.fixture
def figure():
    return Figure(figsize=(8, 6), layout="constrained")


def page():
    return Figure(figsize=(8, 6), layout="constrained")


class Fitted:
    """A classifier as scikit-learn's are, that gives its features back as probabilities."""

    def __init__(self, classes=(0, 1)):
        self.classes_ = np.array(classes)

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def measured(display, table):
    """What `from_breakdown` takes."""
    return (cb.TCE() if display is plots.TestBasedReliabilityDisplay else cb.ECE())(table)


# What all have in common


@each_display
def test_predictions_estimators_and_breakdowns_give_the_same_plot(display, rows):
    y, p = rows
    options = DISPLAYS[display]
    figures = [Figure(figsize=(8, 6), layout="constrained") for _ in range(3)]
    one = display.from_predictions(y, p, fig=figures[0], **options)
    two = display.from_estimator(Fitted(), p[:, None], y, fig=figures[1], **options)
    same = dict(options)
    if display is plots.TestBasedReliabilityDisplay:
        same = {"null": cb.null(cb.TCE(), y, p, n_resamples=49, random_state=0)}
    if display is plots.NullDisplay:
        one = display.from_predictions(y, p, metric=cb.ECE(), fig=page(), **options)
        two = display.from_estimator(Fitted(), p[:, None], y, metric=cb.ECE(), fig=page(), **options)
    if display is plots.BinningDisplay:
        one = display.from_predictions(y, p, bins={"bins": cb.EqualWidth(10)}, fig=page())
        two = display.from_estimator(Fitted(), p[:, None], y, bins={"bins": cb.EqualWidth(10)}, fig=page())
    three = display.from_breakdown(measured(display, cb.ScoreTable.from_arrays(y, p)), fig=figures[2], **same)
    assert plots.svg(one) == plots.svg(two) == plots.svg(three) == plots.svg(one)


@each_display
def test_labels_of_any_kind_follow_the_estimators_classes(display, rows):
    y, p = rows
    words = np.where(y, "spam", "ham")
    one = display.from_estimator(Fitted(("ham", "spam")), p[:, None], words, fig=Figure(), **DISPLAYS[display])
    two = display.from_estimator(
        Fitted(("ham", "spam")), 1 - p[:, None], words, pos_label="ham", fig=Figure(), **DISPLAYS[display]
    )
    assert one.data().equals(display.from_predictions(y, p, fig=Figure(), **DISPLAYS[display]).data())
    assert two.alt_text() != one.alt_text() or display is plots.RocHullDisplay


@each_display
def test_global_state_is_unchanged(display, rows):
    before, figures = dict(mpl.rcParams), plt.get_fignums()
    drawn = display.from_predictions(*rows, fig=Figure(), **DISPLAYS[display])
    plots.svg(drawn)
    assert dict(mpl.rcParams) == before
    assert plt.get_fignums() == figures


@each_display
def test_without_a_place_pyplot_gives_a_figure(display, rows):
    drawn = display.from_predictions(*rows, **DISPLAYS[display])
    try:
        assert plt.figure(plt.get_fignums()[-1]) is drawn.figure_
    finally:
        plt.close("all")


@each_display
def test_a_display_is_plotted_into_axes_and_subfigures(display, rows):
    whole = Figure(figsize=(12, 6), layout="constrained")
    left, right = whole.subfigures(1, 2)
    ax = left.subplots()
    drawn = display.from_predictions(*rows, ax=ax, **DISPLAYS[display])
    first = drawn.data()
    again = drawn.plot(fig=right)
    assert again is drawn
    assert drawn.figure_ is right
    assert first.equals(drawn.data())
    # Axes that are given are used as they are, without outer panels, or replaced by all panels.
    assert len(left.axes) >= len(right.axes) or left.axes == [ax]
    with pytest.raises(cb.InputError, match="ax and fig must not be given together"):
        drawn.plot(ax=ax, fig=right)


@each_display
def test_figures_are_legible_at_several_sizes_and_in_dark_styles(display, rows):
    looks = (
        ((8, 6), "default", 10),
        ((6, 6.4), "dark_background", 10),
        ((11, 7), "ggplot", 10),
        ((8, 6.5), "default", 14),
    )
    for size, style, letters in looks:
        with mpl.rc_context(), plt.style.context([style, {"font.size": letters}]):
            drawn = display.from_predictions(*rows, fig=Figure(figsize=size, layout="constrained"), **DISPLAYS[display])
            assert unreadable(drawn.figure_) == []


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


@each_display
def test_a_figure_that_was_shown_or_saved_before_gives_the_same_file(display, rows):
    first = display.from_predictions(*rows, fig=Figure(), **DISPLAYS[display])
    shown = display.from_predictions(*rows, fig=Figure(), **DISPLAYS[display])
    shown.figure_.draw_without_rendering()
    assert len({plots.svg(first), plots.svg(first), plots.svg(shown)}) == 1


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


@each_display
def test_the_svg_is_well_formed_with_ids_that_occur_once_and_no_date(display, rows):
    text = plots.svg(display.from_predictions(*rows, fig=Figure(), **DISPLAYS[display]))
    ids = [element.get("id") for element in ET.fromstring(text).iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert not re.search(r"<dc:date>|20\d\d-\d\d-\d\d", text)
    assert len(text) < 200_000


@each_display
def test_data_is_a_frame_of_the_library_that_is_asked_for(display, rows):
    drawn = display.from_predictions(*rows, fig=Figure(), **DISPLAYS[display])
    for backend in ("pandas", "polars", "pyarrow"):
        module = pytest.importorskip(backend, reason=f"{backend} is not installed")
        frame = drawn.data(backend)
        assert isinstance(frame, module.Table if backend == "pyarrow" else module.DataFrame)
        assert len(frame) > 0


@each_display
def test_alt_text_is_one_sentence(display, rows):
    text = display.from_predictions(*rows, fig=Figure(), **DISPLAYS[display]).alt_text()
    assert re.fullmatch(r"[A-Z][^\n]*[^.]\.", text)
    assert not re.search(r"\bnan\b|None|inf\b", text)


@each_display
def test_bad_input_gets_an_input_error(display, rows):
    y, p = rows
    with pytest.raises(cb.InputError, match="must lie in \\[0, 1\\]|logits"):
        display.from_predictions(y, p * 7, fig=Figure(), **DISPLAYS[display])
    with pytest.raises(cb.InputError, match="y_prob is missing"):
        display.from_predictions(y, fig=Figure(), **DISPLAYS[display])
    with pytest.raises(cb.InputError, match="estimator must have predict_proba"):
        display.from_estimator(object(), p[:, None], y, fig=Figure())
    with pytest.raises(cb.InputError, match="breakdown must be a Breakdown"):
        display.from_breakdown(0.3, fig=Figure())
    with pytest.raises(cb.InputError, match="pos_label must be one of the classes"):
        display.from_estimator(Fitted(), p[:, None], y, pos_label="?", fig=Figure())


def test_several_classes_are_rejected_with_a_hint(rows):
    class Three(Fitted):
        def predict_proba(self, X):
            return np.column_stack([X[:, 0] / 2, X[:, 0] / 2, 1 - X[:, 0]])

    with pytest.raises(cb.InputError, match=r"of shape \(600, 3\).*top_label"):
        plots.ReliabilityDisplay.from_estimator(Three(), rows[1][:, None], rows[0], fig=Figure())


@pytest.mark.parametrize("display", SEVERAL)
def test_names_are_taken_as_they_are(display, rows):
    y, p = rows
    names = ["$x^{", "_hidden", "<b>&", "a b", "a-b", "Ω"]
    drawn = display.from_predictions(
        y, dict.fromkeys(names, p), fig=Figure(figsize=(9, 7), layout="constrained"), **DISPLAYS[display]
    )
    text = plots.svg(drawn)
    root = ET.fromstring(text)
    words = {"".join(element.itertext()).strip() for element in root.iter() if element.tag.endswith("text")}
    assert set(names) <= words
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("display", SEVERAL)
def test_several_models_come_as_predictions_tables_estimators_or_breakdowns(display, rows):
    y, p = rows
    both = {"one": p, "two": p**2}
    options = DISPLAYS[display]
    tables = {name: cb.ScoreTable.from_arrays(y, column) for name, column in both.items()}
    frames = [
        display.from_predictions(y, both, fig=Figure(), **options).data(),
        display.from_predictions(tables, fig=Figure(), **options).data(),
        display.from_estimator(dict.fromkeys(both, Fitted()), p[:, None], y, fig=Figure(), **options).data(),
        display.from_breakdown({n: cb.ECE()(t) for n, t in tables.items()}, fig=Figure(), **options).data(),
    ]
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[3])
    assert frames[0]["model"].unique().tolist() == frames[2]["model"].unique().tolist() == ["one", "two"]
    with pytest.raises(cb.InputError, match="y_prob must be omitted with tables"):
        display.from_predictions(tables, p, fig=Figure())
    for nothing in ({}, {"y_prob": {}}):
        with pytest.raises(cb.InputError, match="predictions of at least one model"):
            display.from_predictions({} if not nothing else y, fig=Figure(), **nothing)
    with pytest.raises(cb.InputError, match="at least one result; got an empty mapping"):
        display.from_breakdown({}, fig=Figure())


# The test-based diagram


def extents(patch):
    vertices = patch.get_path().vertices
    return vertices.min(axis=0), vertices.max(axis=0)


def number(artist):
    return int(re.search(r"-bin-(\d+)-", artist.get_gid())[1])


@pytest.fixture
def tested(rows, figure):
    return plots.TestBasedReliabilityDisplay.from_predictions(*rows, fig=figure, n_resamples=49)


def test_bars_are_sizes_and_rejected_rows(tested):
    b = tested.breakdown.per_bin
    accepted = {number(bar): extents(bar) for bar in tested.accepted_sizes_}
    rejected = {number(bar): extents(bar) for bar in tested.rejected_sizes_}
    assert sorted(rejected) == np.flatnonzero(b["rejected"]).tolist()
    assert sorted(accepted) == np.flatnonzero(b["rejected"] < b["n"]).tolist()
    for i in range(len(b["n"])):
        if i in rejected:
            assert (rejected[i][0][1], rejected[i][1][1]) == (0, b["rejected"][i])
        if i in accepted:
            assert (accepted[i][0][1], accepted[i][1][1]) == (b["rejected"][i], b["n"][i])
    assert [text.get_text() for text in tested.ax_sizes_.texts] == [f"{share:.0f} %" for share in b["loss"]]


def test_lines_are_rates_with_exact_intervals(tested):
    p = tested.breakdown.partition
    assert [number(rate) for rate in tested.rates_] == list(range(len(p)))
    for i, (rate, whisker) in enumerate(zip(tested.rates_, tested.intervals_, strict=True)):
        assert rate.get_path().vertices[:, 1] == pytest.approx([p.rate[i]] * 2)
        expected = binomtest(int(p.k[i]), int(p.n[i])).proportion_ci()
        low, high = extents(whisker)
        assert (low[1], high[1]) == pytest.approx((expected.low, expected.high))


def test_violins_reach_from_the_lowest_to_the_highest_prediction_of_their_bin(tested):
    p = tested.breakdown.partition
    for i in range(len(p)):
        parts = [v for v in (*tested.accepted_violins_, *tested.rejected_violins_) if number(v) == i]
        low = min(extents(v)[0][1] for v in parts)
        high = max(extents(v)[1][1] for v in parts)
        assert (low, high) == pytest.approx((p.min_score[i], p.max_score[i]))
        left, right = min(extents(v)[0][0] for v in parts), max(extents(v)[1][0] for v in parts)
        assert (i - left, right - i) == pytest.approx((0.42, 0.42))


def test_violins_are_red_where_the_exact_test_rejects(tested):
    p = tested.breakdown.partition
    assert tested.rejected_violins_
    for violins, rejects in ((tested.accepted_violins_, False), (tested.rejected_violins_, True)):
        for violin in violins:
            i = number(violin)
            heights = np.unique(violin.get_path().vertices[:, 1])
            for height in heights[1:-1]:  # the ends are half way to what is not
                found = binomtest(int(p.k[i]), int(p.n[i]), float(height)).pvalue <= 0.05
                border = min(abs(height - h) for h in (*heights[:2], *heights[-2:]))
                assert found == rejects or border < 0.02


def test_a_violin_is_the_distribution_of_its_rows(figure, rng):
    """Two groups of predictions in one bin make a violin with two bellies, as wide as they are many."""
    p = np.concatenate([rng.normal(0.3, 0.01, 3000), rng.normal(0.6, 0.01, 1000)])
    y = rng.random(4000) < 0.4
    gce = cb.TCE(bins=cb.Edges([0, 1]))
    drawn = plots.TestBasedReliabilityDisplay.from_breakdown(gce(y, p), fig=figure)
    vertices = np.concatenate([v.get_path().vertices for v in (*drawn.accepted_violins_, *drawn.rejected_violins_)])

    def near(at):
        return vertices[np.abs(vertices[:, 1] - at) < 0.02, 0].max()

    assert near(0.6) / near(0.3) == pytest.approx(1 / 3, abs=0.06)
    assert near(0.45) < 0.02


def test_the_histogram_counts_every_row(tested):
    assert sum(extents(bar)[1][0] for bar in tested.histogram_) == 600
    edges = np.linspace(0, tested.ax_.get_ylim()[1] / 1.025, 41)
    expected = np.histogram(tested.breakdown.partition.table.score, edges)[0]
    assert sorted(extents(bar)[1][0] for bar in tested.histogram_) == sorted(expected[expected > 0])


def test_the_headline_has_the_value_and_its_null_range(tested):
    found = cb.null(cb.TCE(), tested.breakdown.partition.table, n_resamples=49, random_state=0)
    title = tested.ax_.get_title(loc="left").replace("\N{NO-BREAK SPACE}", " ")
    assert f"TCE = {tested.breakdown.value:.1f} %" in title
    assert f"{found.low:.1f} to {found.high:.1f} %" in title


def test_without_resamples_the_headline_is_only_the_value(rows, figure):
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=figure)
    assert drawn.null is None
    assert drawn.ax_.get_title(loc="left") == f"TCE = {drawn.breakdown.value:.1f}\N{NO-BREAK SPACE}%"
    assert "expected if calibrated" not in drawn.alt_text()


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


def test_rare_events_fill_their_axes(rng):
    """With 0.1 % events the points use most of both axes, not a corner of them."""
    z = rng.normal(-8, 1.5, 50_000)
    truth = 1 / (1 + np.exp(-z))
    display = plots.ReliabilityDisplay.from_predictions(rng.random(z.size) < truth, truth, fig=page())
    low, high = (np.log(end / (1 - end)) for end in display.ax_.get_xlim())
    assert display.ax_.get_xlim()[1] < 0.2
    scores = display.breakdowns["model"].partition.mean_score
    logits = np.log(scores / (1 - scores))
    assert logits.max() - logits.min() > 0.35 * (high - low)


def test_percentages_above_bars_are_drawn_where_they_fit(rows):
    wide, narrow = Figure(figsize=(12, 7)), Figure(figsize=(4, 4))
    texts = [
        plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=fig).ax_sizes_.texts
        for fig in (wide, narrow)
    ]
    assert texts[0]
    assert not texts[1]


@pytest.mark.parametrize("scale", ["log", "logit"])
def test_a_log_axis_clips_values_beyond_its_ends_and_labels_them(scale, figure, rng):
    p = np.concatenate([np.zeros(200), rng.lognormal(-7, 1, 4000).clip(0, 0.5), np.ones(50)])
    y = rng.random(p.size) < p
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(y, p, scale=scale, n_resamples=0, fig=figure)
    low, high = drawn.ax_.get_ylim()
    assert low > 0
    assert (high < 1) == (scale == "logit")
    heights = np.concatenate([v.get_path().vertices[:, 1] for v in (*drawn.rates_, *drawn.accepted_violins_)])
    assert low < heights.min()
    assert heights.max() < high
    figure.canvas.draw()
    labels = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    assert labels[0].startswith("≤ ")
    assert labels[-1].startswith("≥ ") == (scale == "logit")
    assert sum(extents(bar)[1][0] for bar in drawn.histogram_) == p.size


def test_a_user_limit_cuts_the_axis_and_marks_values_beyond(rows, figure):
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*rows, ymax=0.3, n_resamples=0, fig=figure)
    b = drawn.breakdown.per_bin
    assert drawn.ax_.get_ylim()[1] == pytest.approx(0.3075)
    marked = drawn.beyond_[0].get_xdata()
    assert marked.tolist() == np.flatnonzero(np.maximum(b["max_score"], b["rate"]) > 0.3).tolist()
    assert sum(extents(bar)[1][0] for bar in drawn.histogram_) == (rows[1] <= 0.3).sum()
    assert [r.get_path().vertices[0, 1] for r in drawn.rates_] == pytest.approx(b["rate"])


@pytest.mark.parametrize(("name", "value"), [("scale", "sqrt"), ("ymax", 0), ("ymax", 1.5), ("ymax", -1)])
def test_an_axis_that_makes_no_sense_is_rejected(name, value, rows):
    with pytest.raises(cb.InputError, match=f"{name} must"):
        plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=Figure(), **{name: value})


def test_a_loss_that_is_not_a_test_is_rejected(rows):
    with pytest.raises(cb.InputError, match=r"whose loss tests scores, such as TCE; got ECE.*cb\.TCE"):
        plots.TestBasedReliabilityDisplay.from_breakdown(cb.ECE()(*rows), fig=Figure())


def test_other_tests_and_weights_are_plotted(rows, rng, figure):
    y, p = rows
    metric = cb.TCE(test=cb.significance.score)
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(
        y, p, sample_weight=rng.exponential(size=600), metric=metric, n_resamples=9, fig=figure
    )
    assert drawn.ax_sizes_.get_ylabel() == "weight"
    assert drawn.data()["rejected"].sum() > 0


@pytest.mark.parametrize("count", [60, 61, 200, 201, 1000])
def test_many_bins_make_small_files(count, rng):
    p = rng.random(40_000)
    breakdown = cb.TCE(bins=cb.Quantile(count))(rng.random(40_000) < p**1.2, p)
    drawn = plots.TestBasedReliabilityDisplay.from_breakdown(
        breakdown, fig=Figure(figsize=(8, 5.6), layout="constrained")
    )
    assert len(plots.svg(drawn)) < 200_000
    assert len(drawn.rates_) == (count if count <= 200 else 1)
    assert len(drawn.data()) == count


def test_the_number_of_rows_does_not_change_the_size_of_a_file(rng):
    sizes = []
    for n in (2_000, 200_000):
        p = rng.random(n)
        breakdown = cb.TCE(bins=cb.Quantile(12))(rng.random(n) < p, p)
        sizes.append(len(plots.svg(plots.TestBasedReliabilityDisplay.from_breakdown(breakdown, fig=Figure()))))
    assert max(sizes) < 70_000
    assert max(sizes) / min(sizes) < 1.3


# The standard diagram


def test_points_lie_at_mean_prediction_and_rate(rows, figure):
    drawn = plots.ReliabilityDisplay.from_predictions(*rows, bins=cb.Quantile(7), fig=figure)
    p = drawn.breakdowns["model"].partition
    assert np.array([point.get_xydata()[0] for point in drawn.points_["model"]]) == pytest.approx(
        np.column_stack([p.mean_score, p.rate])
    )
    assert [extents(bar)[1][1] for bar in drawn.sizes_["model"]] == p.n.tolist()
    for i, (whisker, span) in enumerate(zip(drawn.intervals_["model"], drawn.spans_["model"], strict=True)):
        expected = binomtest(int(p.k[i]), int(p.n[i])).proportion_ci()
        assert whisker.get_path().vertices[:, 1] == pytest.approx([expected.low, expected.high])
        assert span.get_path().vertices[:, 0] == pytest.approx([p.min_score[i], p.max_score[i]])


def test_the_line_breaks_at_bins_without_rows(figure):
    p = np.repeat([0.05, 0.15, 0.55, 0.95], 50)
    drawn = plots.ReliabilityDisplay.from_predictions(np.arange(200) % 2, p, fig=figure)
    x, y = drawn.lines_["model"].get_data()
    assert x == pytest.approx([0.05, 0.15, np.nan, 0.55, np.nan, 0.95], nan_ok=True)
    assert y == pytest.approx([0.5, 0.5, np.nan, 0.5, np.nan, 0.5], nan_ok=True)
    assert len(drawn.sizes_["model"]) == 4


def test_bins_of_few_rows_are_hollow(figure):
    p = np.repeat([0.05, 0.15, 0.25], [29, 30, 31])
    drawn = plots.ReliabilityDisplay.from_predictions(np.arange(90) % 2, p, fig=figure)
    solid = [point.get_markerfacecolor() == point.get_markeredgecolor() for point in drawn.points_["model"]]
    assert solid == [False, True, True]
    assert drawn.data()["small"].tolist() == [True, False, False]
    labels = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    assert "fewer than 30 rows" in labels


def test_bars_of_the_consistency_band_are_those_of_the_simulation(rows, figure):
    drawn = plots.ReliabilityDisplay.from_predictions(*rows, band="consistency", n_resamples=99, fig=figure)
    from calibrant.inference.bands import consistency_band

    band = consistency_band(drawn.breakdowns["model"], n_resamples=99)
    ends = np.array([bar.get_path().vertices[:, 1] for bar in drawn.bands_["model"]])
    assert ends == pytest.approx(np.column_stack([band.low, band.high]))
    assert not drawn.intervals_
    assert {"band_low", "band_high"} <= set(drawn.data().columns)


def test_a_band_that_does_not_exist_is_rejected(rows):
    with pytest.raises(cb.InputError, match="band must be 'confidence'"):
        plots.ReliabilityDisplay.from_predictions(*rows, band="both of them", fig=Figure())


def test_models_keep_their_own_bins_colours_and_marks(rows, figure):
    y, p = rows
    drawn = plots.ReliabilityDisplay.from_predictions(y, {"a": p, "b": p**2, "c": np.sqrt(p)}, fig=figure)
    lines = list(drawn.lines_.values())
    assert len({line.get_color() for line in lines}) == len({str(line._dash_pattern) for line in lines}) == 3
    assert len({points[0].get_marker() for points in drawn.points_.values()}) == 3
    assert drawn.data().groupby("model")["n"].sum().tolist() == [600] * 3


def test_bins_beyond_an_axis_that_the_user_ends_are_counted(rows, figure):
    drawn = plots.ReliabilityDisplay.from_predictions(*rows, ymax=0.2, fig=figure)
    p = drawn.breakdowns["model"].partition
    beyond = int((np.maximum(p.rate, p.mean_score) > 0.2).sum())
    assert f"{beyond} bins beyond 0.2 not shown" in drawn.ax_.get_title(loc="left").replace("\n", " ")


# The others


def test_kinds_of_bins_have_their_sizes_edges_rates_and_errors(rows, figure):
    drawn = plots.BinningDisplay.from_predictions(*rows, fig=figure)
    assert list(drawn.partitions) == ["PAVA", "PAVA-BC", "10 quantiles"]
    frame = drawn.data()
    for name, p in drawn.partitions.items():
        assert [extents(bar)[1][1] for bar in drawn.sizes_[name]] == p.n.tolist()
        assert [rate.get_path().vertices[0, 1] for rate in drawn.rates_[name]] == pytest.approx(p.rate)
        for edges in drawn.boundaries_[name]:
            assert [segment[0, 0] for segment in edges.get_segments()] == pytest.approx(p.lower[1:])
        own = frame[frame["bins"] == name]
        assert set(own["total_error"]) == {cb.metrics.total_error(p)}
        assert set(own["mean_within_error"]) == {cb.metrics.mean_within_error(p)}
        falls = [False, *(p.rate[1:] < p.rate[:-1])]
        assert own["falls"].tolist() == falls
        assert drawn.violations_[name].get_ydata() == pytest.approx(p.rate[np.array(falls)])
        assert f"{cb.metrics.total_error(p):.4f}" in drawn.ax_rates_[name].get_title(loc="left")
    assert not frame[frame["bins"] == "PAVA"]["falls"].any()


def test_bins_and_axes_can_be_chosen(rows, figure):
    kinds = {"halves": cb.EqualWidth(2), "my own": cb.Edges([0, 0.25, 1])}
    drawn = plots.BinningDisplay.from_predictions(*rows, bins=kinds, xmax=0.4, fig=figure)
    assert drawn.ax_rates_["halves"].get_xlim()[1] == pytest.approx(0.41)
    assert [bar.get_gid() for bar in drawn.sizes_["halves"]] == ["binning-halves-bin-0-size"]  # the other is beyond
    assert len(drawn.sizes_["my own"]) == 2


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


def test_points_of_a_decomposition_lie_on_the_line_of_their_score(rows, figure):
    y, p = rows
    drawn = plots.DecompositionDisplay.from_predictions(y, {"a": p, "b": p**2}, n_resamples=99, fig=figure)
    for name, column in (("a", p), ("b", p**2)):
        parts = cb.corp_decomposition(y, column)
        assert drawn.points_[name].get_xydata()[0] == pytest.approx([parts.mcb, parts.dsc])
        cross = drawn.crosses_[name][0].get_path().vertices
        found = cb.interval(cb.METRICS["mcb"](), y, column, n_resamples=99, random_state=0)
        assert cross[:2, 0] == pytest.approx([found.low, found.high])
        assert cross[2, 1] < parts.dsc < cross[3, 1]
    unc = cb.corp_decomposition(y, p).unc
    labels = [float(text.get_text()) for text in drawn.ax_.texts if re.fullmatch(r"-?[\d.]+", text.get_text())]
    scores = [unc + line.get_xdata()[0] - line.get_ydata()[0] for line in drawn.isolines_]
    assert all(min(abs(score - label) for score in scores) < 1e-9 for label in labels)


def test_models_of_different_rows_show_no_common_uncertainty(rows, figure):
    y, p = rows
    tables = {"a": cb.ScoreTable.from_arrays(y, p), "b": cb.ScoreTable.from_arrays(y[:300], p[:300])}
    drawn = plots.DecompositionDisplay.from_predictions(tables, n_resamples=0, fig=figure)
    assert any("minus uncertainty" in text.get_text() for text in drawn.ax_.texts)


def test_the_bars_of_a_null_count_every_replicate(rows, figure):
    found = cb.null(cb.ECE(), *rows, n_resamples=199, random_state=1)
    drawn = plots.NullDisplay.from_null(found, fig=figure)
    values, edges, _ = drawn.histogram_.get_data()
    assert values.sum() == 199
    assert (edges[0], edges[-1]) == (found.replicates.min(), found.replicates.max())
    assert drawn.value_.get_xdata()[0] == found.value
    assert drawn.expected_.get_xdata()[0] == found.expected
    assert (drawn.band_.get_x(), drawn.band_.get_x() + drawn.band_.get_width()) == pytest.approx(
        (found.low, found.high)
    )


def test_the_null_of_a_metric_value_is_that_of_its_metric(rows, figure):
    reading = cb.METRICS["brier"]()(*rows)
    drawn = plots.NullDisplay.from_breakdown(reading, n_resamples=49, fig=figure)
    assert drawn.null.metric == "brier"
    assert drawn.null.value == reading.value


def test_the_cost_at_every_ratio_is_ecc(rows, figure):
    y, p = rows
    drawn = plots.CostDisplay.from_predictions(
        y, p, ratios=[0.1, 1, 7], n_resamples=99, bins=cb.Quantile(8), fig=figure
    )
    frame = drawn.data()
    for i, ratio in enumerate((0.1, 1, 7)):
        cost = cb.LinearCost(over=2 / (1 + ratio), under=2 * ratio / (1 + ratio))
        metric = cb.ECC(cost, bins=cb.Quantile(8))
        assert drawn.lines_["model"].get_ydata()[i] == pytest.approx(metric(y, p).value)
        found = cb.interval(metric, y, p, n_resamples=99, random_state=0)
        assert (frame["low"][i], frame["high"][i]) == pytest.approx((found.low, found.high))
    assert drawn.lines_["model"].get_ydata()[1] == pytest.approx(cb.ace(y, p, n_bins=8))


@pytest.mark.parametrize("ratios", [[], [0], [-1, 1], [float("inf")], [[1]]])
def test_ratios_that_are_none_are_rejected(ratios, rows):
    with pytest.raises(cb.InputError, match="ratios must be positive"):
        plots.CostDisplay.from_predictions(*rows, ratios=ratios, fig=Figure())


def test_the_hull_has_the_bins_of_pava_as_its_segments(rows, figure):
    y, p = rows
    drawn = plots.RocHullDisplay.from_predictions(y, p, fig=figure)
    bins = cb.PAVA()(cb.ScoreTable.from_arrays(y, p))
    assert [number(s) for s in drawn.segments_] == list(range(len(bins)))
    events, others = y.sum(), (~y).sum()
    for i, segment in enumerate(drawn.segments_):
        (x0, y0), (x1, y1) = segment.get_path().vertices
        assert x1 - x0 == pytest.approx((bins.n[i] - bins.k[i]) / others)
        assert y1 - y0 == pytest.approx(bins.k[i] / events)
    rates = drawn.data()["rate"].to_numpy()
    assert (np.diff(rates) > 0).all()


def test_the_roc_curve_is_scikit_learns(rows, figure):
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    drawn = plots.RocHullDisplay.from_predictions(*rows, fig=figure)
    x, y, _ = metrics.roc_curve(*rows, drop_intermediate=False)
    assert drawn.curve_.get_xdata() == pytest.approx(x)
    assert drawn.curve_.get_ydata() == pytest.approx(y)
    assert drawn.auc == pytest.approx(metrics.auc(x, y))
    assert drawn.hull_auc == pytest.approx(metrics.roc_auc_score(rows[0], _recalibrated(*rows)))


def _recalibrated(y, p):
    from sklearn.isotonic import IsotonicRegression

    return IsotonicRegression().fit_transform(p, y)


def test_concavities_are_where_the_curve_sags(figure):
    """Perfectly ranked rows have none; one swapped pair makes one."""
    drawn = plots.RocHullDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], fig=figure)
    assert drawn.concavities_ == []
    assert drawn.data()["depth"].max() == 0
    swapped = plots.RocHullDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9], fig=Figure())
    assert [c.get_gid() for c in swapped.concavities_] == ["roc-hull-bin-1-concavity"]
    assert swapped.data()["depth"].tolist() == pytest.approx([0, np.sqrt(0.125), 0])


def test_a_thinned_roc_curve_stays_close_and_touches_the_hull(rng, figure):
    p = rng.random(30_000)
    y = rng.random(30_000) < p
    drawn = plots.RocHullDisplay.from_predictions(y, p, fig=figure)
    x, tpr = drawn.curve_.get_data()
    assert x.size < 2_000
    full_x, full_y = drawn._rates(drawn.table.n, drawn.table.k)
    assert np.abs(np.interp(full_x + full_y, x + tpr, tpr) - full_y).max() < 0.002
    corners = {tuple(c) for c in drawn.corners_.get_xydata().round(12)}
    assert corners <= {tuple(c) for c in drawn.curve_.get_xydata().round(12)}


def test_one_class_has_no_roc_curve():
    with pytest.raises(cb.InputError, match="A ROC curve needs rows with and without the event"):
        plots.RocHullDisplay.from_predictions([0, 0], [0.1, 0.2], fig=Figure())


# Groups and overviews


@pytest.fixture
def evaluation(rng):
    p = rng.beta(2, 5, 3000)
    group = rng.choice(["north", "south", "$east"], 3000)
    y = rng.random(3000) < np.where(group == "south", p**1.6, p)
    return cb.evaluate(y, p, by=group, n_resamples=99)


@pytest.mark.parametrize("along", ["x", "y"])
def test_groups_have_values_intervals_and_nulls(evaluation, along, figure):
    drawn = plots.GroupDisplay.from_evaluation(evaluation, along=along, fig=figure)
    across = 1 if along == "x" else 0
    for i, (name, group) in enumerate(evaluation.groups.items()):
        line = group["log-odds error"]
        place = drawn.points_[i].get_xydata()[0]
        assert (place[across], place[1 - across]) == (line.value, i)
        assert drawn.intervals_[i].get_path().vertices[:, across] == pytest.approx(
            [line.interval.low, line.interval.high]
        )
        low, high = extents(drawn.bands_[i])
        assert (low[across], high[across]) == pytest.approx((line.null.low, line.null.high))
        filled = drawn.points_[i].get_markerfacecolor() == drawn.points_[i].get_markeredgecolor()
        assert filled == group.is_significant == (name == "south")
    assert drawn.data()["omnibus_pvalue"].tolist() == [group.pvalue for group in evaluation.groups.values()]
    assert unreadable(figure) == []
    assert "south" in drawn.alt_text()


def test_groups_come_from_predictions_estimators_and_breakdowns(rng):
    p = rng.beta(2, 5, 800)
    y, week = rng.random(800) < p, np.repeat([1, 2], 400)
    options = {"n_resamples": 49, "fig": Figure()}
    one = plots.GroupDisplay.from_predictions(y, p, by=week, **options)
    two = plots.GroupDisplay.from_estimator(Fitted(), p[:, None], y, by=week, **options)
    assert one.data().equals(two.data())
    assert one.points_[1].get_xdata()[0] == 1  # numbers run along x
    three = plots.GroupDisplay.from_breakdown({w: cb.ECE()(y[week == w], p[week == w]) for w in (1, 2)}, **options)
    assert three.metric == "ECE"
    assert three.data()["value"].tolist() == [cb.ece(y[week == w], p[week == w]) for w in (1, 2)]


def test_missing_groups_are_rejected(evaluation, rows):
    with pytest.raises(cb.InputError, match="evaluation must have groups"):
        plots.GroupDisplay.from_predictions(*rows, n_resamples=49, fig=Figure())
    with pytest.raises(cb.InputError, match="metric must be one of log-odds error, bias, ECE"):
        plots.GroupDisplay.from_evaluation(evaluation, metric="nonsense", fig=Figure())
    with pytest.raises(cb.InputError, match="along must be"):
        plots.GroupDisplay.from_evaluation(evaluation, along="z", fig=Figure())
    with pytest.raises(cb.InputError, match="a mapping of group to Breakdown"):
        plots.GroupDisplay.from_breakdown(cb.ECE()(*rows), fig=Figure())


def test_an_evaluation_plots(evaluation):
    drawn = evaluation.plot(fig=Figure(figsize=(12, 9.6), layout="constrained"))
    assert drawn.reliability.breakdown.value == evaluation["TCE"].value
    assert drawn.reliability.null is evaluation["TCE"].null
    assert drawn.null.null is evaluation["ACE"].null
    assert drawn.groups.metric == "ACE"
    assert unreadable(drawn.figure_) == []
    assert len(drawn.data()) == len(evaluation.to_frame())
    assert evaluation.verdict in drawn.alt_text()
    ids = [e.get("id") for e in ET.fromstring(plots.svg(drawn)).iter() if e.get("id")]
    assert len(ids) == len(set(ids))


def test_an_evaluation_without_tce_or_with_weights_plots(rows, rng):
    plain = cb.evaluate(*rows, metrics={"ECE": cb.ECE()}, n_resamples=49).plot(fig=Figure())
    assert isinstance(plain.reliability, plots.TestBasedReliabilityDisplay)
    assert plain.null.null.metric == "ECE"
    weighted = cb.evaluate(*rows, sample_weight=rng.exponential(size=600), n_resamples=49)
    drawn = weighted.plot(fig=Figure()).reliability
    assert isinstance(drawn, plots.TestBasedReliabilityDisplay)
    assert drawn.ax_sizes_.get_ylabel() == "weight"


def test_a_comparison_plots(rows):
    y, p = rows
    compared = cb.compare(y, {"old": p**2, "new": p, "$": p**3}, n_resamples=99)
    drawn = compared.plot(fig=Figure(figsize=(12, 7), layout="constrained"))
    deciding = [d for d in compared.differences if d.metric == compared.decides]
    assert [point.get_xdata()[0] for point in drawn.differences_] == [d.value for d in deciding]
    filled = [point.get_markerfacecolor() == point.get_markeredgecolor() for point in drawn.differences_]
    assert filled == [compared.adjusted[d.model] <= 0.05 for d in deciding]
    assert list(drawn.reliability.breakdowns) == ["old", "new", "$"]
    assert unreadable(drawn.figure_) == []


# Files


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


def test_without_matplotlib_the_message_names_the_extra():
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import calibrant as cb\n"
        "cb.plots\n"
        "try: cb.plots.ReliabilityDisplay\n"
        "except ModuleNotFoundError as error: print(error)\n"
        "try: cb.evaluate([0, 1, 1], [0.1, 0.5, 0.9], n_resamples=49).plot()\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ['Diagrams need matplotlib: pip install "calibrant[plot]".'] * 2


def test_a_missing_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'PieChart'"):
        _ = plots.PieChart
    assert {*plots.__all__} <= {*dir(plots)}


# What a reviewer found


@pytest.mark.parametrize("scale", ["linear", "log", "logit"])
def test_rejected_predictions_beyond_the_axis_are_red_at_its_end(scale):
    p = np.r_[np.full(5, 1e-6), np.full(995, 0.01)]
    y = np.zeros(1000)
    y[100:108] = 1
    breakdown = cb.TCE(bins=cb.Edges([0, 1]))(y, p)
    assert breakdown.per_bin["rejected"].tolist() == [5]
    drawn = plots.TestBasedReliabilityDisplay.from_breakdown(breakdown, scale=scale, fig=page())
    assert len(drawn.rejected_violins_) == 1
    assert extents(drawn.rejected_violins_[0])[0][1] == min(extents(v)[0][1] for v in drawn.rejected_violins_)


@pytest.mark.parametrize("size", [600, 30_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_concavities_are_the_gain_of_the_hull(size, weighted, rng):
    p = rng.random(size)
    y = rng.random(size) < p
    rows = {"sample_weight": rng.exponential(size=size)} if weighted else {}
    drawn = plots.RocHullDisplay.from_predictions(y, p, fig=page(), **rows)
    area = 0.0
    for patch in drawn.concavities_:
        x, height = patch.get_path().vertices.T
        area += abs(np.sum(x[:-1] * height[1:] - x[1:] * height[:-1])) / 2
    slack = 1e-9 if size < 1000 else 2e-5  # a curve of many points is thinned
    assert area == pytest.approx(drawn.hull_auc - drawn.auc, abs=slack)


def test_groups_are_marked_by_the_omnibus_test_and_the_legend_names_it(rng):
    p = rng.uniform(0.05, 0.95, 3000)
    y = rng.random(3000) < 0.5 + (p - 0.5) * 0.4  # overconfident, without bias
    drawn = plots.GroupDisplay.from_predictions(y, p, by=np.arange(3000) % 3, metric="bias", n_resamples=99, fig=page())
    assert drawn.data()["significant"].all()
    assert "omnibus test" in drawn.alt_text()
    assert "significant (omnibus test)" in [text.get_text() for text in drawn.ax_.get_legend().get_texts()]


def test_infinite_values_are_marked_at_the_end_of_the_axis(rng):
    p = np.r_[0.0, rng.uniform(0.1, 0.9, 299)]
    y = np.r_[True, rng.random(299) < p[1:]]
    log_loss = cb.METRICS["log_loss"]()
    drawn = plots.NullDisplay.from_predictions(y, p, metric=log_loss, n_resamples=49, fig=page())
    assert drawn.value_.get_marker() == ">"
    assert "inf" in drawn.ax_.get_title(loc="left")
    groups = plots.GroupDisplay.from_predictions(
        y, p, by=np.arange(300) // 150, metrics={"log_loss": log_loss}, metric="log_loss", n_resamples=49, fig=page()
    )
    assert [point.get_marker() for point in groups.points_] == ["^", "o"]
    assert groups.points_[0].get_ydata()[0] == groups.ax_.get_ylim()[1]


def test_plots_show_the_measured_values(rows):
    y, p = rows
    half = [cb.ScoreTable.from_arrays(y[i::2], p[i::2]) for i in range(2)]
    brier = cb.METRICS["brier"]()
    groups = plots.GroupDisplay.from_breakdown({"a": brier(half[0]), "b": brier(half[1])}, n_resamples=49, fig=page())
    assert groups.data()["value"].tolist() == [brier.value(table) for table in half]
    with pytest.raises(cb.InputError, match="one metric with equal settings; got ECE, TCE"):
        plots.GroupDisplay.from_breakdown({"a": cb.ECE()(half[0]), "b": cb.TCE()(half[1])}, fig=page())
    costly = cb.ECC(cb.PowerCost(2, over=1, under=1), bins=cb.Quantile(5))(y, p)
    drawn = plots.CostDisplay.from_breakdown(costly, ratios=[1.0], n_resamples=0, fig=page())
    assert drawn.values("model")[0] == pytest.approx(costly.value)
    own = cb.ECC(lambda p, a: abs(p - a))(y, p)
    with pytest.raises(cb.InputError, match="cost must have the unit costs over and under"):
        plots.CostDisplay.from_breakdown(own, fig=page())
    with pytest.raises(cb.InputError, match="breakdown must be a Breakdown"):
        plots.NullDisplay.from_breakdown(half[0], fig=page())


def test_weights_are_not_called_rows(rows, rng):
    y, p = rows
    w = rng.exponential(size=600)
    drawn = plots.ReliabilityDisplay.from_predictions(y, p, sample_weight=w / w.sum(), bins=cb.Quantile(5), fig=page())
    assert not drawn.data()["small"].any()
    few = plots.ReliabilityDisplay.from_predictions(y[:20], p[:20], sample_weight=w[:20] * 1000.5, fig=page())
    assert few.data()["small"].all()
    assert "fewer than 30 effective rows" in [t.get_text() for t in few.ax_.get_legend().get_texts()]
    assert "weight" in plots.BinningDisplay.from_predictions(y, p, sample_weight=w, fig=page()).alt_text()


def test_plotting_twice_gives_the_same_figure(rows):
    drawn = plots.ReliabilityDisplay.from_predictions(
        *rows, band="consistency", scale="log", n_resamples=49, fig=page()
    )
    first = plots.svg(drawn)
    assert plots.svg(drawn.plot(fig=page())) == first
    assert "rate_low" not in drawn.data().columns
    assert "interval" not in drawn.alt_text()
    assert "95 % null range" in drawn.alt_text()
    tested = plots.TestBasedReliabilityDisplay.from_predictions(
        *rows, n_resamples=0, scale="logit", ymax=0.4, fig=page()
    )
    first = plots.svg(tested)
    assert plots.svg(tested.plot(fig=page())) == first
    assert plots.svg(tested.plot(fig=page(), scale="linear")) != first
    with pytest.raises(cb.InputError, match="ymax must lie in"):
        tested.plot(fig=page(), ymax=0)


def test_seven_models_have_seven_looks(rows):
    y, p = rows
    drawn = plots.ReliabilityDisplay.from_predictions(y, {str(i): p ** (1 + i / 9) for i in range(7)}, fig=page())
    looks = {
        (drawn.lines_[n].get_color(), str(drawn.lines_[n]._dash_pattern), drawn.points_[n][0].get_marker())
        for n in drawn.lines_
    }
    assert len(looks) == 7


@pytest.mark.parametrize("display", SEVERAL)
def test_names_that_are_equal_as_text_are_rejected(display, rows):
    y, p = rows
    with pytest.raises(cb.InputError, match="names must be unique; got '1'"):
        display.from_predictions(y, {1: p, "1": p**2}, fig=page())


def test_two_displays_in_one_figure_have_ids_of_their_own(rows):
    whole = Figure(figsize=(12, 6), layout="constrained")
    left, right = whole.subfigures(1, 2)
    one = plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=left)
    plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=right)
    ids = [e.get("id") for e in ET.fromstring(plots.svg(one)).iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    assert {"test-based-bin-0-rate", "test-based-bin-0-rate-2"} <= set(ids)


def test_the_share_that_is_rejected_is_that_of_rows_whatever_the_norm(rows):
    gce = cb.GCE(cb.Quantile(5), cb.losses.RejectionRate(), cb.norms.sup, name="worst")
    drawn = plots.TestBasedReliabilityDisplay.from_breakdown(gce(*rows), fig=page())
    share = 100 * drawn.data()["rejected"].sum() / 600
    assert drawn.breakdown.value > share
    assert f"{share:.1f} % of predictions are rejected" in drawn.alt_text()


def test_a_cut_histogram_does_not_claim_all_rows(rows):
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*rows, ymax=0.2, n_resamples=0, fig=page())
    assert drawn.ax_histogram_.get_ylabel() == "rows up to 0.2"
    assert plots.ReliabilityDisplay.from_predictions(*rows, fig=page()).ax_histogram_.get_ylabel() == "all rows"


def test_threads_leave_nothing_behind(rows):
    from concurrent.futures import ThreadPoolExecutor

    before = dict(mpl.rcParams)
    displays = [plots.CumulativeDisplay.from_predictions(*rows, fig=page()) for _ in range(12)]
    with ThreadPoolExecutor(6) as pool:
        texts = set(pool.map(plots.svg, displays))
    assert len(texts) == 1
    assert dict(mpl.rcParams) == before


def test_names_given_by_users_are_not_interpreted(rows):
    y, p = rows
    odd = cb.GCE(cb.Quantile(3), cb.losses.absolute_gap, cb.norms.sup, name="gap $x^{$")
    ET.fromstring(plots.svg(plots.NullDisplay.from_predictions(y, p, metric=odd, n_resamples=19, fig=page())))
    names = ["a\x08", "b\ud800", 'x="0.123456"', "two\nlines"]
    drawn = plots.CostDisplay.from_predictions(y, dict.fromkeys(names, p), n_resamples=0, fig=page())
    words = {"".join(e.itertext()).strip() for e in ET.fromstring(plots.svg(drawn)).iter() if e.tag.endswith("text")}
    assert {'x="0.123456"', r"two\nlines"} <= words


def test_estimators_that_cannot_be_drawn_raise_input_errors(rows):
    y, p = rows

    class OneClass(Fitted):
        def __init__(self):
            self.classes_ = np.array([0])

        def predict_proba(self, X):
            return np.ones((len(X), 1))

    with pytest.raises(cb.InputError, match=r"two classes; got probabilities of shape \(600, 1\)"):
        plots.CumulativeDisplay.from_estimator(OneClass(), p[:, None], y, fig=page())
    with pytest.raises(cb.InputError, match="a mapping with at least one; got a mapping of 0"):
        plots.ReliabilityDisplay.from_estimator({}, p[:, None], y, fig=page())
    with pytest.raises(cb.InputError, match="one estimator; got a mapping of 1"):
        plots.CumulativeDisplay.from_estimator({"a": Fitted()}, p[:, None], y, fig=page())


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


def test_a_band_of_some_models_leaves_the_others_empty(rows):
    from calibrant.inference.bands import consistency_band

    y, p = rows
    both = {"a": cb.ECE()(y, p), "b": cb.ECE()(y, p**2)}
    band = consistency_band(both["a"], n_resamples=49, confidence_level=0.5)
    drawn = plots.ReliabilityDisplay(both, {"a": band}).plot(fig=page())
    frame = drawn.data()
    assert frame[frame["model"] == "b"]["band_low"].isna().all()
    assert "50 % null range" in [text.get_text() for text in drawn.ax_.get_legend().get_texts()]


@each_display
def test_axes_of_other_kinds_are_rejected(display, rows):
    ax = Figure().add_subplot(projection="polar")
    with pytest.raises(cb.InputError, match="ax must be rectilinear axes; got polar"):
        display.from_predictions(*rows, ax=ax, **DISPLAYS[display])


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


def test_too_many_bins_are_rejected(rng):
    p = rng.random(3000)
    with pytest.raises(cb.InputError, match=r"at most 1,000 bins; got 1,001"):
        plots.TestBasedReliabilityDisplay.from_breakdown(
            cb.TCE(bins=cb.Quantile(1001))(rng.random(3000) < p, p), fig=page()
        )


def test_edges_are_labelled_between_their_bins(rng):
    p = np.r_[rng.uniform(0, 0.2, 300), rng.uniform(0.5, 0.6, 100)]
    breakdown = cb.TCE(bins=cb.EqualWidth(10))(rng.random(400) < p, p)
    drawn = plots.TestBasedReliabilityDisplay.from_breakdown(breakdown, fig=page())
    found = {
        float(t): label.get_text()
        for t, label in zip(drawn.ax_sizes_.get_xticks(), drawn.ax_sizes_.get_xticklabels(), strict=True)
    }
    assert found == {-0.5: "0", 0.5: "0.1", 1.5: "0.2 … 0.5", 2.5: "0.6"}


def test_shares_of_rows_have_the_prediction_there_beside_them(rows):
    drawn = plots.CumulativeDisplay.from_predictions(*rows, fig=page())
    ordered = np.sort(rows[1])
    for tick, label in zip(drawn.ax_.get_xticks(), drawn.ax_.get_xticklabels(), strict=True):
        share, score = label.get_text().split("\n")
        assert share == f"{100 * tick:.0f} %"
        assert float(score) == pytest.approx(ordered[max(round(tick * 600) - 1, 0)], rel=0.06)


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


def test_groups_have_their_rows_and_p_values_beside_them(evaluation):
    drawn = plots.GroupDisplay.from_evaluation(evaluation, fig=page())
    texts = [text.get_text() for text in drawn.ax_.texts]
    for text, group in zip(texts, evaluation.groups.values(), strict=True):
        rows, p = re.fullmatch(r"([\d,]+) rows, p = ([\d.e-]+)", text).groups()
        assert int(rows.replace(",", "")) == group.table.size
        assert float(p) == pytest.approx(group.pvalue, abs=6e-4)


def test_days_lie_in_order_and_at_their_place(rng):
    p = rng.random(900)
    y = rng.random(900) < p
    days = [np.datetime64(d) for d in ("2026-03-01", "2026-01-01", "2026-01-11")]
    tables = {d: cb.ScoreTable.from_arrays(y[i::3], p[i::3]) for i, d in enumerate(days)}
    drawn = plots.GroupDisplay.from_predictions(tables, n_resamples=49, fig=page())
    assert [point.get_xdata()[0] for point in drawn.points_] == pytest.approx([0, 1, 5.9])
    assert drawn.data()["group"].tolist() == ["2026-01-01", "2026-01-11", "2026-03-01"]
    assert drawn.points_[2].get_ydata()[0] == cb.log_odds_error(tables[days[0]])


def test_the_display_of_groups_keeps_the_common_rules(evaluation):
    drawn = plots.GroupDisplay.from_evaluation(evaluation, fig=page())
    text = plots.svg(drawn)
    assert text == plots.svg(plots.GroupDisplay.from_evaluation(evaluation, fig=page()))
    ids = [e.get("id") for e in ET.fromstring(text).iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    assert re.fullmatch(r"[A-Z][^\n]*[^.]\.", drawn.alt_text())


def test_differences_of_models_have_their_intervals(rows):
    y, p = rows
    compared = cb.compare(y, {"old": p**2, "new": p}, n_resamples=49)
    drawn = compared.plot(fig=Figure(figsize=(12, 7)))
    (interval,) = [a for a in drawn.ax_differences_.findobj() if str(a.get_gid()).startswith("difference-new-interval")]
    (found,) = [d for d in compared.differences if d.metric == compared.decides]
    assert interval.get_path().vertices[:, 0] == pytest.approx([found.low, found.high])
    assert f"new {found.value:+.4f}" in drawn.alt_text()


def test_long_names_are_shortened(rows):
    y, p = rows
    names = ["RandomForest(n_estimators=500, max_depth=7)", "LogisticRegression(C=0.01, penalty=l1)", "third"]
    drawn = plots.ReliabilityDisplay.from_predictions(y, dict.fromkeys(names, p), fig=page())
    assert unreadable(drawn.figure_) == []
    compared = cb.compare(y, {n: p ** (1 + i) for i, n in enumerate(names)}, n_resamples=49)
    assert unreadable(compared.plot(fig=Figure(figsize=(12, 7))).figure_) == []


def test_alt_texts_of_single_bins_and_perfect_fits():
    one = plots.BinningDisplay.from_predictions([1], [0.5], bins={"one": cb.EqualWidth(1)}, fig=page())
    assert "in 1 way: one, 1 bin of 1 rows, total error" in one.alt_text()
    right = plots.ReliabilityDisplay.from_predictions([0, 1, 0, 1], [0.5] * 4, fig=page())
    assert "no deviation of event rates from predictions" in right.alt_text()
    calm = plots.TestBasedReliabilityDisplay.from_predictions([0, 1], [0.4, 0.6], n_resamples=0, fig=page())
    assert calm.alt_text().endswith("0.0 % of predictions are rejected.")


def test_common_mistakes_have_clear_errors(rows):
    y, p = rows
    with pytest.raises(cb.InputError, match=r"bins must be a kind of bins; got 10.*EqualWidth\(10\)"):
        plots.ReliabilityDisplay.from_predictions(y, p, bins=10, fig=page())
    with pytest.raises(TypeError, match="has no argument 'n_bins'"):
        plots.ReliabilityDisplay.from_predictions(y, p, n_bins=10, fig=page())
    with pytest.raises(cb.InputError, match="y_prob must be one column of predictions; got a mapping"):
        plots.CumulativeDisplay.from_predictions(y, {"a": p}, fig=page())
    with pytest.raises(cb.InputError, match="Pass by="):
        plots.GroupDisplay.from_predictions(y, p, n_resamples=49, fig=page())
    one, two = (
        plots.CostDisplay.from_predictions(y, p, cost=cost, n_resamples=0, fig=page()).data()
        for cost in (cb.PowerCost(2, over=1, under=20), lambda over, under: cb.PowerCost(2, over=over, under=under))
    )
    assert one.equals(two)


def is_short(display):
    text = repr(display)
    return text.startswith(f"{type(display).__name__}(") and len(text) <= 130 and "\n" not in text


@each_display
def test_reprs_are_short(display, rows):
    assert is_short(display.from_predictions(*rows, **DISPLAYS[display], fig=page()))


def test_reprs_of_groups_evaluations_and_comparisons_are_short(rows):
    y, p = rows
    evaluation = cb.evaluate(y, p, by=np.arange(600) // 300, n_resamples=49)
    assert is_short(plots.GroupDisplay.from_evaluation(evaluation, fig=page()))
    assert is_short(evaluation.plot(fig=page()))
    assert is_short(cb.compare(y, {"old": p, "new": p**1.4}, n_resamples=49).plot(fig=page()))


def test_the_repr_of_a_display_has_the_value_rounded(rows):
    drawn = plots.TestBasedReliabilityDisplay.from_predictions(*rows, n_resamples=0, fig=page())
    bins = len(drawn.breakdown.partition)
    assert repr(drawn) == f"TestBasedReliabilityDisplay(TCE = {drawn.breakdown.value:.1f} %, 600 rows, {bins} bins)"


def test_the_repr_of_many_models_names_three(rows):
    y, p = rows
    drawn = plots.ReliabilityDisplay.from_predictions(y, dict.fromkeys("abcde", p), band=None, fig=page())
    assert repr(drawn).startswith("ReliabilityDisplay(a: ")
    assert repr(drawn).endswith("; and 2 more)")
