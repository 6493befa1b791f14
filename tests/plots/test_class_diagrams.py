"""Diagrams of class probabilities and predicted classes, by the numbers that their artists hold."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("pandas", reason="pandas is not installed")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import calibrant as cb
from calibrant import plots
from calibrant._support.errors import InputError
from tests.kinds.cases import draw, each_kind
from tests.visual.layout import unreadable

FAST = {"n_resamples": 19, "progress": False}


def make(n_classes, kind, *, groups=False, names=None):
    rng = np.random.default_rng(n_classes)
    true = rng.dirichlet(np.full(n_classes, 0.5), 1500)
    code = (true.cumsum(axis=1) < rng.random((1500, 1))).sum(axis=1).clip(0, n_classes - 1)
    predicted = true**1.6 * np.where(np.arange(n_classes) == 0, 2.0, 1.0)
    predicted /= predicted.sum(axis=1, keepdims=True)
    names = np.array(names or [f"kind {i}" for i in range(n_classes)], dtype=object)
    by = rng.choice(["a", "b"], 1500) if groups else None
    if kind == "multiclass":
        return cb.evaluate(names[code], predicted, classes=list(names), by=by, **FAST)
    return cb.evaluate(names[code], cb.Labels(names[predicted.argmax(axis=1)]), by=by, **FAST)


LONG = [f"a long name of a class, number {i} of twelve $x^2$" for i in range(12)]
RESULTS = {
    "multiclass, 3 classes": make(3, "multiclass", groups=True),
    "multiclass, 12 classes": make(12, "multiclass", names=LONG),
    "labels, 3 classes": make(3, "labels", groups=True),
    "labels, 25 classes": make(25, "labels"),
}
PROBABILITIES = [result for name, result in RESULTS.items() if name.startswith("multiclass")]


def page(width=12.0, height=9.0):
    return Figure(figsize=(width, height), layout="constrained")


def displays(result):
    found = [plots.ProportionDisplay]
    return [plots.ClasswiseDisplay, *found] if result.kind == "multiclass" else found


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_displays_of_classes_keep_the_conventions(result):
    for display in displays(result):
        drawn = display.from_evaluation(result, fig=page())
        text = plots.svg(drawn)
        ids = [element.get("id") for element in ET.fromstring(text).iter() if element.get("id")]
        assert len(ids) == len(set(ids))
        assert plots.svg(display.from_evaluation(result, fig=page())) == text
        assert repr(drawn).startswith(f"{display.__name__}(")
        assert len(repr(drawn)) <= 130
        assert re.fullmatch(r"[A-Z][^\n]*[^.]\.", drawn.alt_text())
        assert not re.search(r"\bnan\b|None|inf\b", drawn.alt_text())
        left, right = page(24).subfigures(1, 2)
        assert display.from_evaluation(result, ax=left.subplots()).data().equals(drawn.data())
        assert drawn.plot(fig=right).figure_ is right


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_overviews_of_classes_are_legible(result):
    drawn = result.plot()
    plt.close(drawn.figure_)
    assert unreadable(drawn.figure_) == []
    assert (drawn.classes is not None) == (result.kind == "multiclass")
    assert drawn.proportions is not None
    assert (drawn.groups is not None) == bool(result.groups)
    assert drawn.reliability is None
    assert drawn.proportions.alt_text() in drawn.alt_text()


@pytest.mark.parametrize("result", PROBABILITIES)
def test_points_and_intervals_are_those_of_the_stored_breakdowns(result):
    drawn = plots.ClasswiseDisplay.from_evaluation(result, fig=page())
    stored = {"top label": result.breakdowns["top-label ACE"]}
    stored |= {name: each for name, each in result.breakdowns.items() if name.startswith("class ")}
    assert len(stored) == 1 + min(len(result.details.labels), 11)
    stored = dict(list(stored.items())[:10])  # the top label and nine classes are drawn
    assert list(drawn.points_) == list(stored)
    for name, breakdown in stored.items():
        x, y = drawn.points_[name].get_data()
        assert np.array_equal(x, breakdown.partition.mean_score)
        assert np.array_equal(y, breakdown.partition.rate)
        ends = np.array([artist.get_path().vertices[:, 1] for artist in drawn.intervals_[name]])
        assert np.array_equal(ends.T, breakdown.rate_interval(result.settings.confidence_level))
        low, high = drawn.axes_[name].get_ylim()
        assert low <= ends.min()
        assert ends.max() <= high
    adjusted = {f"class {result.details.labels[c.label]}": c.adjusted_pvalue for c in result.details.classes}
    assert drawn.pvalues == {name: adjusted[name] for name in stored if name != "top label"}


def test_more_classes_are_drawn_in_columns_and_the_rest_is_counted():
    result = PROBABILITIES[1]
    drawn = plots.ClasswiseDisplay.of(result, most=11).plot(fig=page())
    assert len(drawn.axes_) == 12
    shown = [text.get_text() for text in drawn.axes_["top label"].texts]
    assert "95 % CI; 11 of 12 classes" in shown


@pytest.mark.parametrize("result", PROBABILITIES)
def test_shares_of_class_probabilities_are_the_stored_ones(result):
    drawn = plots.ProportionDisplay.from_evaluation(result, fig=page())
    stored = {result.details.labels[c.label]: c for c in result.details.classes}
    for i, each in enumerate(drawn.classes):
        c = stored[each.name]
        assert drawn.predicted_[i].get_xdata() == [100 * c.predicted]
        assert drawn.observed_[i].get_xdata() == [100 * c.observed]
        assert drawn.points_[i].get_xdata() == [c.log_odds_error]
        assert each.significant == (c.adjusted_pvalue <= result.settings.alpha)
    assert drawn.data()["adjusted_pvalue"].is_monotonic_increasing


@pytest.mark.parametrize("name", ["labels, 3 classes", "labels, 25 classes"])
def test_shares_and_differences_of_predicted_classes_are_the_stored_ones(name):
    result = RESULTS[name]
    drawn = plots.ProportionDisplay.from_evaluation(result, fig=page())
    stored = {c.label: c for c in result.details.classes}
    assert len(drawn.classes) == min(len(stored), 20)
    for i, each in enumerate(drawn.classes):
        c = stored[each.name]
        assert drawn.predicted_[i].get_xdata() == [100 * c.predicted]
        assert drawn.observed_[i].get_xdata() == [100 * c.actual]
        assert drawn.points_[i].get_xdata() == [100 * c.difference]
        assert drawn.intervals_[i].get_path().vertices[:, 0].tolist() == [100 * c.low, 100 * c.high]
    assert drawn.data()["adjusted_pvalue"].is_monotonic_increasing
    assert len(drawn.ax_.get_title(loc="left")) > 0


def test_displays_of_classes_refuse_other_kinds():
    binary = cb.evaluate([0, 1] * 50, np.linspace(0.1, 0.9, 100), **FAST)
    with pytest.raises(InputError, match=r"must be of kind 'multiclass'; got 'binary'"):
        plots.ClasswiseDisplay.from_evaluation(binary)
    with pytest.raises(InputError, match=r"must be of kind 'multiclass' or 'ordinal' or 'labels'; got 'binary'"):
        plots.ProportionDisplay.from_evaluation(binary)


@each_kind
def test_diagrams_of_classes_in_the_figure_of_a_kind_can_be_drawn_alone(kind):
    y, _, wrong, make = draw(kind, 300)
    result = cb.evaluate(y, make(wrong), **FAST)
    drawn = result.plot(fig=page())
    for panel, display in ((drawn.proportions, plots.ProportionDisplay), (drawn.classes, plots.ClasswiseDisplay)):
        if panel is None:
            with pytest.raises(InputError, match=f"evaluation must be of kind .*; got '{kind}'"):
                display.from_evaluation(result)
        else:
            assert display.from_evaluation(result, fig=page()).data().equals(panel.data())


def test_classes_that_print_alike_are_told_apart():
    y_true = np.array([1, "1", 2] * 60, dtype=object)
    y_pred = np.array([1, 1, 2] * 60, dtype=object)
    found = cb.evaluate(y_true, cb.Labels(y_pred))
    drawn = plots.ProportionDisplay.from_evaluation(found, fig=Figure())
    assert sorted(drawn.data()["class"]) == ["'1'", "1", "2"]
    assert {"difference of 1", "difference of '1'", "difference of 2"} <= set(found.metrics)
