"""Reports: the code that each kind recommends, and the tables and figures of classes, whose names are escaped."""

import re
import warnings
from html import escape
from types import SimpleNamespace

import numpy as np
import pytest

import calibrant as cb
from calibrant._support.formatting import format_percent

pytest.importorskip("jinja2", reason="Jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from calibrant.calibrators import registry
from calibrant.kinds.base import kind_of
from calibrant.kinds.columns import columns_of
from calibrant.report.tables import words_of
from calibrant.results.sentences import directions_text
from tests.kinds.cases import draw, each_kind

NAMES = ["<script>window.pwned=1</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }} & $x^2$"]


def make(kind, names, size=900):
    rng = np.random.default_rng(5)
    count = len(names)
    true = rng.dirichlet(np.full(count, 0.5), size)
    code = (true.cumsum(axis=1) < rng.random((size, 1))).sum(axis=1).clip(0, count - 1)
    predicted = true**2 * np.where(np.arange(count) == 0, 3.0, 1.0)
    predicted /= predicted.sum(axis=1, keepdims=True)
    names = np.array(names, dtype=object)
    if kind == "multiclass":
        return cb.evaluate(names[code], predicted, classes=list(names), n_resamples=19, progress=False)
    return cb.evaluate(names[code], cb.Labels(names[predicted.argmax(axis=1)]), progress=False)


@pytest.mark.parametrize("kind", ["multiclass", "labels"])
def test_hostile_class_names_are_escaped(kind):
    page = make(kind, NAMES).to_html()
    assert "<script>window" not in page
    assert "<img" not in page
    for name in NAMES:
        assert escape(name).replace("&quot;", "&#34;") in page
    assert len(re.findall(r"<svg[^>]*class=\"diagram\"", page)) == (3 if kind == "multiclass" else 1)
    assert page == make(kind, NAMES).to_html()


def test_the_table_of_classes_has_the_stored_results():
    result = make("multiclass", NAMES)
    table, *_ = words_of(result).tables(result, "m0")
    assert table.heading == "Classes"
    cells = table.cells
    stored = {result.details.labels[c.label]: c for c in result.details.classes}
    assert {row[0] for row in cells[1:]} == set(NAMES)
    for row in cells[1:]:
        c = stored[row[0]]
        assert row[1] == f"{c.n:,.6g}"
        assert row[2:4] == [format_percent(c.predicted), format_percent(c.observed)]
        assert row[4:6] == [f"{c.log_odds_error:.2f}", f"{c.low:.2f} to {c.high:.2f}"]
        assert row[7] == c.direction(result.settings.alpha)
    pvalues = [stored[row[0]].adjusted_pvalue for row in cells[1:]]
    assert pvalues == sorted(pvalues)
    assert any(row[7] == "overestimates" for row in cells[1:])


def test_the_table_of_predicted_classes_has_the_stored_differences():
    result = make("labels", NAMES)
    (table,) = words_of(result).tables(result, "m0")
    assert table.heading == "Classes"
    cells = table.cells
    stored = {c.label: c for c in result.details.classes}
    for row in cells[1:]:
        c = stored[row[0]]
        assert row[1:3] == [format_percent(c.predicted), format_percent(c.actual)]
        assert row[3] == f"{100 * c.difference:+.2f}"
    over = [row[0] for row in cells[1:] if row[6] == "overestimates"]
    assert sorted(over) == sorted(
        c.label for c in result.details.classes if c.is_shown(result.settings.alpha) and c.side == "overestimates"
    )
    assert over


def test_confused_classes_are_listed():
    rng = np.random.default_rng(0)
    predicted = np.tile([0.8, 0.1, 0.1], (900, 1))
    y = np.where(rng.random(900) < 0.6, "a", np.where(rng.random(900) < 0.8, "b", "c"))
    result = cb.evaluate(y, predicted, classes=["a", "b", "c"], n_resamples=19, progress=False)
    _, pairs = words_of(result).tables(result, "m0")
    assert pairs.heading == "Confused classes"
    assert pairs.cells[1][:2] == ["b", "a"]
    assert "Confused classes" in result.to_html()


def test_long_tables_of_classes_are_cut():
    result = make("labels", [f"c{i:02}" for i in range(60)], size=3000)
    (table,) = words_of(result).tables(result, "m0")
    assert table.heading == "Classes: the 50 most significant of 60"
    assert len(table.cells) == 51


def recommended(kind):
    """Return the recommendations for samples of a kind that deviate in several ways, by their code."""
    rng = np.random.default_rng(0)
    y, right, wrong, make = draw(kind, 4_000)
    samples = [(y[:60], make(wrong[:60])), (y, make(wrong))]
    if kind == "binary":
        samples.append((rng.random(4_000) < right + 0.1 * np.cos(8 * np.pi * right), right))
    if kind == "multiclass":
        samples += [(np.where(rng.random(n) < 0.3, 0, y[:n]), right[:n]) for n in (400, 4_000)]
    if kind == "point":
        samples.append((y + 0.5 * (right - right.mean()) ** 2 - 0.5 * right.var(), make(right)))
    if kind == "distribution":
        samples.append((y, cb.Quantiles([0.1, 0.5, 0.9], right[:, None] + [-0.5, 0.0, 0.5])))
    words, found = kind_of(kind).words.WORDS, {}
    for outcomes, forecast in samples:
        result = cb.evaluate(outcomes, forecast, n_resamples=19)
        action = words.recalibrate(result, "rows.csv")
        found[action.code] = action.lead, outcomes, forecast
    return found


CALIBRATORS = {
    "binary": ["platt", "beta", "isotonic"],
    "multiclass": ["vector", "softmax_temperature", "dirichlet"],
    "ordinal": ["cumulative"],
    "labels": [],
    "point": ["linear", "isotonic"],
    "distribution": ["pit", "quantile"],
}


@each_kind
def test_the_recommended_code_runs_without_warnings(kind):
    found = recommended(kind)
    leads = {lead for lead, *_ in found.values()}
    assert leads >= {f"Recalibrate with {name}." for name in CALIBRATORS[kind]}
    proba = draw("multiclass", 4_000).right
    for code, (_, y, forecast) in found.items():
        line = code.partition("\n")[0]
        assert line.startswith("cb.")
        names = dict.fromkeys(("scores", "predictions", "probabilities"), getattr(forecast, "y_pred", forecast))
        if kind in ("labels", "ordinal"):
            names["probabilities"] = proba[: len(y)]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = eval(line, {"cb": cb, "outcomes": y, "labels": y, "forecasts": forecast, **names})
        assert hasattr(fitted, "fit")


@each_kind
def test_reports_recommend_methods_of_the_command_line_by_their_class(kind):
    fit = columns_of(kind).fit
    if fit is None:
        pytest.skip("the command line has no calibrator of this kind")
    pattern = "Recalibrate with (.*)[.]"
    advice = {re.fullmatch(pattern, lead)[1]: code for code, (lead, *_) in recommended(kind).items()}
    assert set(advice) <= set(fit.methods)
    assert len(advice) > 1 or set(advice) == {fit.methods[0]}  # advice that no data change is the default method
    for method, code in advice.items():
        assert f".{getattr(registry, fit.registry)[method].__name__}(" in code


def test_a_direction_without_words_is_stated_as_it_is():
    e = SimpleNamespace(direction="overestimates, local, late", details=SimpleNamespace(directions={}))
    assert directions_text(e) == "overestimates and late"
    e.details.directions = {"late": "is too late"}
    assert directions_text(e) == "overestimates and is too late"
    e.direction = "local"
    assert directions_text(e) == ""


@each_kind
def test_the_directions_of_each_kind_have_words(kind):
    y, _, wrong, make = draw(kind)
    result = cb.evaluate(y, make(wrong), n_resamples=19)
    assert result.verdict == "miscalibrated"
    assert all(each in directions_text(result) for each in result.direction.split(", "))
