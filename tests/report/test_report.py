"""The report: the same page for the same rows, shown by a real browser without a network; nothing breaks out of it."""

import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hostile_names import ACTS, HOSTILE

import calibrant as cb

pytest.importorskip("jinja2", reason="Jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")
write_evaluations = pytest.importorskip("calibrant.report").write_evaluations
summary = pytest.importorskip("calibrant.report.summary")
sensitivity = pytest.importorskip("calibrant.evaluation.sensitivity")

LARGEST = 1_500_000
ROOT = Path(__file__).parents[2]


def rows(models=2, groups=3, size=3000):
    rng = np.random.default_rng(0)
    q = rng.random(size)
    y = (rng.random(size) < q).astype(int)
    names = [f"model {i}" for i in range(models)]
    return y, {name: q ** (1 + 0.3 * i) for i, name in enumerate(names)}, rng.integers(0, groups, size)


def evaluations(models=2, groups=3, size=3000, labels=None):
    y, scores, group = rows(models, groups, size)
    by = group if labels is None else np.array(labels, dtype=object)[group]
    return {name: cb.evaluate(y, p, by=by, n_resamples=49) for name, p in scores.items()}


@pytest.fixture(scope="module")
def found():
    return evaluations()


@pytest.fixture(scope="module")
def page(found):
    return write_evaluations(found, title="A report", inputs=[{"file": "a.csv", "bytes": 5, "sha256": "0" * 64}])


class Elements(HTMLParser):
    """All elements of a page with their attributes."""

    def __init__(self, text):
        super().__init__()
        self.all = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.all.append((tag, dict(attrs)))


# What is in it


def test_the_same_rows_give_the_same_bytes(page, found):
    again = write_evaluations(found, title="A report", inputs=[{"file": "a.csv", "bytes": 5, "sha256": "0" * 64}])
    assert again == page


def test_the_page_needs_no_other_file(page):
    elements = Elements(page).all
    assert not [tag for tag, _ in elements if tag in ("link", "img", "iframe", "object", "embed", "base", "form")]
    links = [v for _, a in elements for k, v in a.items() if k in ("href", "src", "xlink:href", "action")]
    assert all(link.startswith("#") for link in links)
    ids = [a["id"] for _, a in elements if "id" in a]
    assert len(set(ids)) == len(ids)
    assert all(link[1:] in ids for link in links)
    assert all(name in ids for name in re.findall(r"url\(#([^)]+)\)", page))
    assert not [tag for tag, a in elements if "style" in a or any(name.startswith("on") for name in a)]
    policy = next(a["content"] for tag, a in elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_the_report_contains_every_value_of_the_evaluation(page, found):
    text = re.sub(r"<[^>]*>", " ", page)
    for evaluation in found.values():
        assert evaluation.verdict in text
        for metric in evaluation.metrics.values():
            for cell in metric.cells():
                assert cell in text
        for group in evaluation.groups.values():
            assert group.verdict in text


def test_the_page_has_the_level_and_the_intervals_that_were_asked_for():
    y, scores, _ = rows()
    p = scores["model 1"]
    result = cb.evaluate(
        y, p, metrics={"TCE": cb.TCE(alpha=0.001), "ACE": cb.ACE()}, confidence_level=0.8, n_resamples=49
    )
    shown = summary.summarize({"p": result})
    assert len(sensitivity.ALPHAS) == 60
    assert shown["alpha"] == 0.001
    tested = shown["models"][0]["tested"]
    assert tested["values"][shown["alphas"].index(0.001)] == pytest.approx(result["TCE"].value)
    low, high = cb.TCE(alpha=0.001)(y, p).rate_interval(0.8)
    assert [(row["low"], row["high"]) for row in tested["bins"]] == list(zip(low, high, strict=True))


def test_scores_with_other_metrics_have_the_correct_headings():
    y, scores, _ = rows(size=500)
    p = scores["model 0"]
    weighted = cb.evaluate(y, p, sample_weight=np.linspace(0.5, 1.5, 500), n_resamples=49)
    page = write_evaluations({"a": cb.evaluate(y, p, n_resamples=49), "b": weighted}, title="t")
    table = page.split('aria-label="Metrics of all scores"')[1].split("</table>")[0]
    assert [row.count("<td") for row in table.split("<tr>")[2:]] == [8, 8]


def test_groups_that_are_days_are_plotted_over_time():
    y, scores, group = rows(groups=4)
    days = np.datetime64("2026-11-01") + group
    page = cb.evaluate(y, scores["model 0"], by=days, n_resamples=49).to_html()
    assert "Over time, by" in page
    assert page.count("<svg") == 6  # bias beside ACE
    assert "2026-11-04" in page
    assert "T00:00" not in page
    assert "Over time" not in write_evaluations(evaluations(models=1), title="t")


@pytest.mark.parametrize(
    ("headline", "tone", "table"),
    [
        ("Calibrated.", "good", cb.ScoreTable.from_counts([0.3, 0.7], [50000, 50000], [15000, 35000])),
        ("Negligible.", "good", cb.ScoreTable.from_counts([0.5], [10**6], [503000])),
        ("Inconclusive.", "open", cb.ScoreTable.from_counts([0.5], [10], [5])),
        ("Miscalibrated (overestimates", "bad", cb.ScoreTable.from_counts([0.3, 0.7], [5000] * 2, [500, 2000])),
    ],
)
def test_the_headline_is_the_verdict_in_its_colour(headline, tone, table):
    page = cb.evaluate(table, n_resamples=99).to_html()
    shown = re.search(rf'<p[^>]*class="[^"]*{tone}-text[^"]*"[^>]*>(.*?)</p>', page, re.DOTALL)
    assert shown is not None
    assert shown[1].strip().startswith(headline)


@pytest.mark.parametrize(
    "table",
    [
        cb.ScoreTable.from_counts([0.5], [1], [1]),
        cb.ScoreTable.from_counts([0.0, 1.0], [5, 5], [0, 5]),
        cb.ScoreTable.from_counts([0.2], [100], [0]),
        cb.ScoreTable.from_arrays([0, 1, 1, 0] * 20, np.linspace(0, 1, 80), sample_weight=np.linspace(0.1, 2, 80)),
        cb.ScoreTable.from_counts([1e-9, 1e-7], [10**6, 10**6], [0, 1]),
    ],
    ids=["one row", "hard labels", "no event", "importance weights", "rare"],
)
def test_hard_cases_have_a_page_too(table):
    page = cb.evaluate(table, n_resamples=49).to_html()
    assert "</html>" in page
    assert "nan" not in re.sub(r"<[^>]*>", " ", page.split("<body>")[1].split("<script")[0]).lower().split()


def test_five_models_and_fifty_groups_stay_small():
    (one,) = evaluations(models=1, groups=50, size=20000).values()
    page = write_evaluations({f"model {i}": one for i in range(5)}, title="t")
    assert len(page.encode()) < LARGEST


def test_the_file_is_written_atomically(found, tmp_path):
    evaluation = next(iter(found.values()))
    page = evaluation.to_html(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == page
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
    y, scores, _ = rows()
    compared = cb.compare(y, scores, n_resamples=49)
    assert compared.verdict[1:] in compared.to_html(tmp_path / "c.html")


# In a browser


def _why_no_browser():
    import importlib.util

    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    return None if shutil.which("chromium") else "no Chromium was found"


needs_browser = [
    pytest.mark.skipif(_why_no_browser() is not None, reason=str(_why_no_browser())),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a page with the network off; what it complains of and asks for is in `complaints` and `requests`."""
    contexts = []

    def open_(text, *, script=True, **options):
        (tmp_path / "report.html").write_text(text, encoding="utf-8")
        context = browser.new_context(java_script_enabled=script, offline=True, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.complaints, tab.requests = [], []
        tab.on("console", lambda message: tab.complaints.append(message.text))
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.on("request", lambda request: tab.requests.append(request.url))
        tab.on("dialog", lambda dialog: (tab.complaints.append("dialog"), dialog.dismiss()))
        tab.goto((tmp_path / "report.html").as_uri())
        return tab

    yield open_
    for context in contexts:
        context.close()


def browsed(test):
    for mark in needs_browser:
        test = mark(test)
    return test


@browsed
def test_a_browser_logs_no_error_and_makes_no_request(opened, page):
    tab = opened(page)
    assert tab.title() == "A report"
    assert tab.complaints == []
    assert len(tab.requests) == 1  # the file itself


@browsed
def test_bins_have_tooltips_for_mouse_and_keyboard(opened, page):
    tab = opened(page, viewport={"width": 1200, "height": 900})
    tip = tab.locator("#tip")
    assert tip.is_hidden()
    shape = tab.locator("#m0-tested-test-based-bin-0-size").first
    shape.scroll_into_view_if_needed()
    shape.hover()
    assert re.search(
        r"scores .* rows, .* events.*observed .* %.*predicted .* % on average.*rejected", tip.inner_text(), re.S
    )
    tab.mouse.move(2, 2)
    assert tip.is_hidden()
    tab.locator("#m0-tested-test-based-bin-0-rate").focus()
    assert tip.is_visible()
    before = tip.inner_text()
    tab.keyboard.press("ArrowRight")
    assert tip.is_visible()
    assert tip.inner_text() != before
    tab.keyboard.press("Escape")
    assert tip.is_hidden()
    assert tab.complaints == []


@browsed
def test_sliders_show_the_values_of_the_library(opened, page, found):
    tab = opened(page)
    table = next(iter(found.values())).table
    for place in (0, 17, 59):
        alpha = sensitivity.ALPHAS[place]
        tab.locator("#alpha").evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input')) }", place)
        breakdown = cb.TCE(alpha=alpha)(table)
        assert tab.locator("#m0-tce").inner_text() == f"{breakdown.value:.2f} %"
        shares = 100 * breakdown.per_bin["rejected"] / breakdown.per_bin["n"]
        assert tab.locator("#m0-bins .rejected").all_inner_texts() == [f"{share:.1f} %" for share in shares]
        assert float(tab.locator("#alpha-value").inner_text().removeprefix("alpha = ")) == pytest.approx(
            alpha, rel=5e-3
        )
    for place in (0, 20, 40):
        ratio = sensitivity.RATIOS[place]
        tab.locator("#ratio").evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input')) }", place)
        value = cb.ecc(table, cost=cb.LinearCost(over=1, under=ratio))
        assert float(tab.locator("#m0-cost").inner_text()) == pytest.approx(value, rel=1e-3)
    assert tab.complaints == []


@browsed
def test_report_tables_sort_numerically(opened, page):
    tab = opened(page)
    heading = tab.locator("#m0-bins thead th").nth(1)
    for order in (1, -1):
        heading.locator("button").click()
        numbers = [
            int(text.replace(",", "")) for text in tab.locator("#m0-bins tbody td:nth-child(2)").all_inner_texts()
        ]
        assert numbers == sorted(numbers, reverse=order < 0)
    assert heading.get_attribute("aria-sort") == "descending"


@browsed
def test_the_page_works_without_scripts(opened, page, found):
    tab = opened(page, script=False)
    assert tab.locator("svg.diagram").count() >= 9
    assert all(box["width"] > 200 for box in (tab.locator("svg.diagram").nth(i).bounding_box() for i in range(3)))
    assert tab.locator("table").count() >= 6
    assert tab.locator("#alpha").is_hidden()
    first = next(iter(found.values()))
    assert tab.locator("#m0-tce").inner_text() == f"{first['TCE'].value:.2f} %"


@browsed
def test_hostile_names_are_escaped(opened):
    assert len(HOSTILE) == 50
    (one,) = evaluations(models=1, groups=50, size=4000, labels=HOSTILE).values()
    found = {HOSTILE[0]: one, HOSTILE[1]: one}
    inputs = [{"file": name, "bytes": 1, "sha256": "0" * 64} for name in HOSTILE]
    page = write_evaluations(found, title=HOSTILE[0], inputs=inputs)
    plain = write_evaluations({"a": one, "b": one}, title="t")
    tab = opened(page)
    assert tab.evaluate("window.pwned") is None
    assert tab.complaints == []
    assert len(tab.requests) == 1
    count = "[...document.querySelectorAll('script, img, iframe, object, embed, base, form, link, meta')].length"
    assert tab.evaluate(count) == opened(plain).evaluate(count)
    cells = tab.locator("#m0 table td.text").all_inner_texts()
    assert f"<img src=x onerror={ACTS}>" in [cell.strip() for cell in cells]


@browsed
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_problem(opened, page, scheme):
    folder = Path(os.environ.get("CALIBRANT_NODE_MODULES", ROOT / "build" / "npm" / "node_modules"))
    axe = folder / "axe-core" / "axe.min.js"
    if not axe.is_file():
        pytest.skip("axe-core is not installed (npm)")
    tab = opened(page, color_scheme=scheme)
    tab.context.set_offline(True)
    client = tab.context.new_cdp_session(tab)
    client.send("Page.setBypassCSP", {"enabled": True})
    tab.reload()
    tab.add_script_tag(content=axe.read_text(encoding="utf-8"))
    violations = tab.evaluate("axe.run().then(r => r.violations)")
    serious = [v for v in violations if v["impact"] in ("serious", "critical")]
    assert not serious, json.dumps([(v["id"], v["nodes"][0]["html"][:200], v["help"]) for v in serious], indent=1)


@browsed
def test_pages_of_points_and_quantiles_show_their_figures(opened):
    rng = np.random.default_rng(0)
    mean = rng.normal(10, 3, 800)
    y = mean + rng.normal(size=800)
    for forecast in (cb.Point(mean), cb.Quantiles([0.05, 0.5, 0.95], mean[:, None] + [-1.6, 0.0, 1.6])):
        tab = opened(cb.evaluate(y, forecast, n_resamples=19).to_html())
        assert tab.complaints == []
        assert not [url for url in tab.requests if not url.startswith(("file:", "data:"))]
