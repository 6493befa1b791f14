"""The report of audits: readable on wide and narrow screens and in the dark; hostile names stay text."""

import re

import numpy as np
import pytest
from web_browser import DESK, ONE_WORKER, PHONE, browsed, check_width

import calibrant as cb

pytest.importorskip("jinja2", reason="Jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

pytestmark = ONE_WORKER
ACTS = "window.pwned=1"
HOSTILE = (
    f"<script>{ACTS}</script>",
    f"<img src=x onerror={ACTS}>",
    f'"><svg onload={ACTS}>',
    "'; DROP TABLE rows; --",
    "\x1b[2J",
    "\u202eevil",
    "$x^2$ {{ 7 * 7 }}",
    "a\nb",
)


def hostile_audit():
    rng = np.random.default_rng(0)
    n = 8_000
    x = np.array(HOSTILE, dtype=object)[rng.integers(0, len(HOSTILE), n)]
    p = rng.uniform(0.3, 0.7, n)
    y = rng.random(n) < p + np.where(np.isin(x, HOSTILE[:4]), 0.2, -0.2)
    return y, p, cb.audit(y, p, {f"name {HOSTILE[1]}": x, "plain": rng.normal(size=n)}, n_resamples=19)


@pytest.fixture(scope="module")
def pages():
    y, p, audit = hostile_audit()
    assert len(audit.segments) > 4
    evaluated = cb.evaluate(y, p, n_resamples=49)
    proba = np.column_stack([1 - p, p])
    classes = cb.evaluate(y.astype(int), proba, n_resamples=19)
    top = cb.audit(y.astype(int), proba, {"plain": p}, n_resamples=19)
    return {
        "audit": audit.to_html(title="Audit"),
        "evaluation": evaluated.to_html(audit=audit),
        "classes": classes.to_html(audit=top),
    }


def test_the_page_has_table_figures_and_sql(pages, tmp_path):
    page = pages["audit"]
    assert "<script>window" not in page
    assert "Rules as SQL" in page
    assert page.count("<svg") == 2
    assert "Multicalibration error" in page
    assert "Audit of segments" in pages["evaluation"]
    assert "Audit of segments" in pages["classes"]
    _, _, audit = hostile_audit()
    path = str(tmp_path / "a.html")
    assert audit.to_html(path, title="Audit") == path
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page


def test_an_audit_without_segments_has_a_page():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.3, 0.7, 1_000)
    page = cb.audit(rng.random(1_000) < p, p, {"x": rng.normal(size=1_000)}, n_resamples=19).to_html()
    assert "No miscalibrated segment shown" in page
    assert "<svg" not in page


@browsed
@pytest.mark.parametrize("options", [DESK, PHONE, {**DESK, "color_scheme": "dark"}], ids=["desk", "phone", "dark"])
def test_hostile_names_are_inert_in_a_browser(pages, opened, options):
    for name, page in pages.items():
        tab = opened(page, **options)
        assert tab.evaluate("window.pwned") is None
        assert (tab.complaints, len(tab.requests)) == ([], 1), name
        check_width(tab, options["viewport"]["width"])
        text = tab.locator("main").inner_text()
        if name != "classes":
            assert "<script>window.pwned=1</script>" in text
            assert not re.search("[\x1b\u202e]", text)


@pytest.fixture(scope="module")
def evaluated_rows():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.3, 0.7, 1_000)
    y = (rng.random(1_000) < p).astype(int)
    return y, p, {"a": rng.integers(0, 3, 1_000)}, cb.evaluate(y, p, n_resamples=19)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda y, p: (y[:900], p[:900]), "number of rows: 900 in the audit, 1000 here"),
        (lambda y, p: (y, p**2), "mean forecast: 0.2"),
        (lambda y, p: (1 - y, p), "mean outcome: 0."),
        (lambda y, p: (y.astype(float), cb.Point(p)), "kind: point in the audit, binary here"),
    ],
)
def test_an_audit_of_other_rows_is_refused(evaluated_rows, change, words):
    y, p, features, evaluated = evaluated_rows
    y, p = change(y, p)
    other = cb.audit(y, p, {"a": features["a"][: len(y)]}, n_resamples=0)
    with pytest.raises(cb.InputError, match=words) as raised:
        evaluated.to_html(audit=other)
    assert raised.value.argument == "audit"
    with pytest.raises(cb.InputError, match="audit must be an Audit"):
        evaluated.to_html(audit=evaluated)


@pytest.mark.parametrize("option", ["sample_weight", "frequency"])
def test_weighted_audits_of_the_same_rows_are_accepted(evaluated_rows, option):
    y, p, features, _ = evaluated_rows
    weight = {option: np.arange(1_000) % 4}
    found = cb.audit(y, p, features, n_resamples=0, **weight)
    assert "Audit of segments" in cb.evaluate(y, p, n_resamples=19, **weight).to_html(audit=found)


def test_audits_of_means_belong_to_evaluations_of_numbers(evaluated_rows):
    y, p, features, _ = evaluated_rows
    point = cb.Point(p)
    found = cb.audit(y.astype(float), point, features, n_resamples=0)
    assert "Audit of segments" in cb.evaluate(y.astype(float), point, n_resamples=19).to_html(audit=found)
    spread = cb.Gaussian(p, np.full(p.size, 0.5))
    assert "Audit of segments" in cb.evaluate(y.astype(float), spread, n_resamples=19).to_html(audit=found)
