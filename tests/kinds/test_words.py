"""The report of class probabilities and predicted classes: tables and figures of stored results, names escaped."""

import re
from html import escape

import numpy as np
import pytest

import calibrant as cb
from calibrant._support.formatting import format_percent

pytest.importorskip("jinja2", reason="Jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from calibrant.report.tables import words_of

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
