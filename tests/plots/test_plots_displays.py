"""What all displays of binary scores have in common: sources, places, files, data, alt text, errors."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from tests.plots.displays import DISPLAYS, SEVERAL, Fitted, each_display, page
from tests.visual.layout import unreadable

PANEL_TCE = cb.TCE(bins=cb.bins.PAVABC(sizes="grades"))


def measured(display, table):
    """What `from_breakdown` takes."""
    return (PANEL_TCE if display is plots.TestBasedReliabilityDisplay else cb.ECE())(table)


@each_display
def test_predictions_estimators_and_breakdowns_give_the_same_plot(display, rows):
    y, p = rows
    options = DISPLAYS[display]
    figures = [Figure(figsize=(8, 6), layout="constrained") for _ in range(3)]
    one = display.from_predictions(y, p, fig=figures[0], **options)
    estimator = {"model": Fitted()} if display._takes_several else Fitted()
    two = display.from_estimator(estimator, p[:, None], y, fig=figures[1], **options)
    same = dict(options)
    if display is plots.TestBasedReliabilityDisplay:
        same = {"null": cb.null(PANEL_TCE, y, p, n_resamples=49, random_state=0)}
    if display is plots.NullDisplay:
        one = display.from_predictions(y, p, metric=cb.ECE(), fig=page(), **options)
        two = display.from_estimator(Fitted(), p[:, None], y, metric=cb.ECE(), fig=page(), **options)
    if display is plots.BinningDisplay:
        one = display.from_predictions(y, p, bins={"bins": cb.bins.EqualWidth(10)}, fig=page())
        two = display.from_estimator(Fitted(), p[:, None], y, bins={"bins": cb.bins.EqualWidth(10)}, fig=page())
    three = display.from_breakdown(measured(display, cb.ScoreTable.from_arrays(y, p)), fig=figures[2], **same)
    assert plots.svg(one) == plots.svg(two) == plots.svg(three) == plots.svg(one)


def test_one_estimator_has_the_name_of_its_class(rows):
    y, p = rows
    for options, name in (({}, "Fitted"), ({"name": "nightly"}, "nightly")):
        drawn = plots.ReliabilityDisplay.from_estimator(Fitted(), p[:, None], y, fig=page(), **options)
        assert list(drawn.lines_) == [name]
        assert name in drawn.alt_text()
    assert list(plots.CostDisplay.from_estimator(Fitted(), p[:, None], y, n_resamples=0, fig=page()).lines_) == [
        "Fitted"
    ]


@each_display
def test_labels_of_any_kind_follow_the_estimators_classes(display, rows):
    y, p = rows
    words = np.where(y, "spam", "ham")
    one = display.from_estimator(Fitted(("ham", "spam")), p[:, None], words, fig=Figure(), **DISPLAYS[display])
    two = display.from_estimator(
        Fitted(("ham", "spam")), 1 - p[:, None], words, pos_label="ham", fig=Figure(), **DISPLAYS[display]
    )
    scores = {"Fitted": p} if display._takes_several else p
    assert one.data().equals(display.from_predictions(y, scores, fig=Figure(), **DISPLAYS[display]).data())
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


@each_display
def test_a_figure_that_was_shown_or_saved_before_gives_the_same_file(display, rows):
    first = display.from_predictions(*rows, fig=Figure(), **DISPLAYS[display])
    shown = display.from_predictions(*rows, fig=Figure(), **DISPLAYS[display])
    shown.figure_.draw_without_rendering()
    assert len({plots.svg(first), plots.svg(first), plots.svg(shown)}) == 1


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


def test_without_matplotlib_the_message_names_the_extra():
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import calibrant as cb\n"
        "cb.plots\n"
        "try: cb.plots.ReliabilityDisplay.from_predictions\n"
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
    costly = cb.metrics.ECC(cb.costs.PowerCost(2, over=1, under=1), bins=cb.bins.EqualSize(5))(y, p)
    drawn = plots.CostDisplay.from_breakdown(costly, ratios=[1.0], n_resamples=0, fig=page())
    assert drawn.values("model")[0] == pytest.approx(costly.value)
    own = cb.metrics.ECC(lambda p, a: abs(p - a))(y, p)
    with pytest.raises(cb.InputError, match="cost must have the unit costs over and under"):
        plots.CostDisplay.from_breakdown(own, fig=page())
    with pytest.raises(cb.InputError, match="breakdown must be a Breakdown"):
        plots.NullDisplay.from_breakdown(half[0], fig=page())


def test_weights_are_not_called_rows(rows, rng):
    y, p = rows
    w = rng.exponential(size=600)
    drawn = plots.ReliabilityDisplay.from_predictions(
        y, p, sample_weight=w / w.sum(), bins=cb.bins.EqualSize(5), fig=page()
    )
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


@pytest.mark.parametrize("display", SEVERAL)
def test_names_that_are_equal_as_text_are_rejected(display, rows):
    y, p = rows
    with pytest.raises(cb.InputError, match="names must be unique; got '1'"):
        display.from_predictions(y, {1: p, "1": p**2}, fig=page())


def test_names_given_by_users_are_not_interpreted(rows):
    y, p = rows
    odd = cb.GCE(cb.bins.EqualSize(3), cb.losses.absolute_gap, cb.norms.sup, name="gap $x^{$")
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


@each_display
def test_axes_of_other_kinds_are_rejected(display, rows):
    ax = Figure().add_subplot(projection="polar")
    with pytest.raises(cb.InputError, match="ax must be rectilinear axes; got polar"):
        display.from_predictions(*rows, ax=ax, **DISPLAYS[display])


def test_long_names_are_shortened(rows):
    y, p = rows
    names = ["RandomForest(n_estimators=500, max_depth=7)", "LogisticRegression(C=0.01, penalty=l1)", "third"]
    drawn = plots.ReliabilityDisplay.from_predictions(y, dict.fromkeys(names, p), fig=page())
    assert unreadable(drawn.figure_) == []
    compared = cb.compare(y, {n: p ** (1 + i) for i, n in enumerate(names)}, n_resamples=49)
    assert unreadable(compared.plot(fig=Figure(figsize=(12, 7))).figure_) == []


def test_alt_texts_of_single_bins_and_perfect_fits():
    one = plots.BinningDisplay.from_predictions([1], [0.5], bins={"one": cb.bins.EqualWidth(1)}, fig=page())
    assert "in 1 way: one, 1 bin of 1 rows, total error" in one.alt_text()
    right = plots.ReliabilityDisplay.from_predictions([0, 1, 0, 1], [0.5] * 4, fig=page())
    assert "no deviation of event rates from predictions" in right.alt_text()
    calm = plots.TestBasedReliabilityDisplay.from_predictions([0, 1], [0.4, 0.6], n_resamples=0, fig=page())
    assert calm.alt_text().endswith("0.0 % of predictions are rejected.")


def test_common_mistakes_have_clear_errors(rows):
    y, p = rows
    with pytest.raises(cb.InputError, match=r"bins must be a kind of bins; got 10.*EqualWidth\(10\)"):
        plots.ReliabilityDisplay.from_predictions(y, p, bins=10, fig=page())
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_bins'"):
        plots.ReliabilityDisplay.from_predictions(y, p, n_bins=10, fig=page())
    with pytest.raises(cb.InputError, match="y_prob must be one column of predictions; got a mapping"):
        plots.CumulativeDisplay.from_predictions(y, {"a": p}, fig=page())
    with pytest.raises(cb.InputError, match="Pass by="):
        plots.GroupDisplay.from_predictions(y, p, n_resamples=49, fig=page())
    one, two = (
        plots.CostDisplay.from_predictions(y, p, cost=cost, n_resamples=0, fig=page()).data()
        for cost in (
            cb.costs.PowerCost(2, over=1, under=20),
            lambda over, under: cb.costs.PowerCost(2, over=over, under=under),
        )
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
