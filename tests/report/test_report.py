"""The report: the same page for the same rows, shown by a real browser without a network; nothing breaks out of it."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hostile_names import ACTS, HOSTILE
from web_browser import ONE_WORKER, browsed, check_accessible

import calibrant as cb
from calibrant._support.formatting import format_percent, percent_digits

pytest.importorskip("jinja2", reason="Jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")
evaluations_page = pytest.importorskip("calibrant.report").evaluations_page
sliders = pytest.importorskip("calibrant.report.page").sliders
joint_metrics = pytest.importorskip("calibrant.report.tables").joint_metrics
words_of = pytest.importorskip("calibrant.report.tables").words_of
sensitivity = pytest.importorskip("calibrant.kinds.binary.details")

pytestmark = ONE_WORKER


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
    return evaluations_page(found, title="A report", inputs=[{"file": "a.csv", "bytes": 5, "sha256": "0" * 64}])


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
    again = evaluations_page(found, title="A report", inputs=[{"file": "a.csv", "bytes": 5, "sha256": "0" * 64}])
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
        y, p, metrics={"TCE": cb.TCE(alpha=0.001), "ACE": cb.metrics.ACE()}, confidence_level=0.8, n_resamples=49
    )
    shown = sliders({"p": result})
    assert len(sensitivity.ALPHAS) == 60
    assert shown["alpha"] == 0.001
    assert shown["models"]["p"]["tce"][shown["alphas"].index(0.001)] == pytest.approx(result["TCE"].value)
    (table,) = words_of(result).tables(result, "m0")
    low, high = cb.TCE(alpha=0.001)(y, p).rate_interval(0.8)
    assert table.cells[0][4] == "80 % CI"
    expected = [f"{percent_digits(a)} to {format_percent(b)}" for a, b in zip(low, high, strict=True)]
    assert [row[4] for row in table.cells[1:]] == expected


def test_scores_with_other_metrics_have_the_correct_headings():
    y, scores, _ = rows(size=500)
    p = scores["model 0"]
    weighted = cb.evaluate(y, p, sample_weight=np.linspace(0.5, 1.5, 500), n_resamples=49)
    header, *lines = joint_metrics({"a": cb.evaluate(y, p, n_resamples=49), "b": weighted}).cells
    assert [len(line) for line in lines] == [7, 7]
    assert lines[1][header.index("Brier")] == weighted["Brier"].cells()[0]


def test_groups_that_are_days_are_plotted_over_time(page):
    assert "Over time" not in page
    y, scores, group = rows(groups=4)
    days = np.datetime64("2026-11-01") + group
    page = cb.evaluate(y, scores["model 0"], by=days, n_resamples=49).to_html()
    assert "Over time: " in page
    assert page.count("<svg") == 6  # bias beside ACE
    assert "2026-11-04" in page
    assert "T00:00" not in page


@pytest.mark.parametrize(
    ("headline", "tone", "table"),
    [
        ("Calibrated: on average", "good", cb.ScoreTable.from_counts([0.3, 0.7], [50000, 50000], [15000, 35000])),
        ("Negligible deviation: on average", "good", cb.ScoreTable.from_counts([0.5], [10**6], [503000])),
        ("Inconclusive: on average", "open", cb.ScoreTable.from_counts([0.5], [10], [5])),
        (
            "Miscalibrated: the model overestimates",
            "bad",
            cb.ScoreTable.from_counts([0.3, 0.7], [5000] * 2, [500, 2000]),
        ),
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
    assert "nan" not in words(page)


@pytest.mark.parametrize("error", [0.0, 3.0], ids=["predictions equal outcomes", "a constant error"])
def test_a_statistic_that_cannot_be_computed_is_a_dash(error):
    y = np.random.default_rng(0).normal(size=60)
    page = cb.evaluate(y, cb.Point(y + error), n_resamples=19).to_html()
    assert "<bdi>slope</bdi></td><td>\u2013</td>" in page
    assert "nan" not in words(page)


def words(page):
    return re.sub(r"<[^>]*>", " ", page.split("<body>")[1].split("<script")[0]).lower().split()


def test_the_file_is_written_atomically(tmp_path):
    rng = np.random.default_rng(1)
    y = rng.normal(size=200)
    compared = cb.compare(y, {name: cb.Point(y + rng.normal(size=200)) for name in "ab"}, n_resamples=19)
    path = tmp_path / "r.html"
    assert compared.to_html(path) is path
    page = compared.to_html()
    assert path.read_text(encoding="utf-8") == page
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
    assert compared.verdict[1:] in page


# In a browser


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
        breakdown = cb.TCE(alpha=alpha, bins=cb.bins.PAVABC(sizes="grades"))(table)
        assert tab.locator("#m0-tce").inner_text() == f"{breakdown.value:.2f} %"
        shares = 100 * breakdown.per_bin["rejected"] / breakdown.per_bin["n"]
        cells = tab.locator("#m0-bins tbody td:last-child").all_inner_texts()
        assert cells == [f"{share:.1f} %" for share in shares]
        assert float(tab.locator("#alpha-value").inner_text().removeprefix("alpha = ")) == pytest.approx(
            alpha, rel=5e-3
        )
    for place in (0, 20, 40):
        ratio = sensitivity.RATIOS[place]
        tab.locator("#ratio").evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input')) }", place)
        value = cb.metrics.ecc(table, cost=cb.costs.LinearCost(over=1, under=ratio))
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
    assert tab.locator(".first li").first.is_visible()
    assert tab.locator("table").count() >= 6
    assert tab.locator("#alpha").is_hidden()
    first = next(iter(found.values()))
    assert tab.locator("#m0-tce").inner_text() == f"{first['TCE'].value:.2f} %"


@browsed
def test_hostile_names_are_escaped(opened, page):
    assert len(HOSTILE) == 50
    (one,) = evaluations(models=1, groups=50, size=4000, labels=HOSTILE).values()
    found = {HOSTILE[0]: one, HOSTILE[1]: one}
    inputs = [{"file": name, "bytes": 1, "sha256": "0" * 64} for name in HOSTILE]
    tab = opened(evaluations_page(found, title=HOSTILE[0], inputs=inputs))
    assert tab.evaluate("window.pwned") is None
    assert tab.complaints == []
    assert len(tab.requests) == 1
    count = "[...document.querySelectorAll('script, img, iframe, object, embed, base, form, link, meta')].length"
    assert tab.evaluate(count) == opened(page).evaluate(count)
    cells = tab.locator("#m0 table td.text").all_inner_texts()
    assert f"<img src=x onerror={ACTS}>" in [cell.strip() for cell in cells]


@browsed
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_problem(opened, page, scheme):
    check_accessible(opened(page, color_scheme=scheme))


@browsed
def test_pages_of_points_and_quantiles_show_their_figures(opened):
    rng = np.random.default_rng(0)
    mean = rng.normal(10, 3, 800)
    y = mean + rng.normal(size=800)
    for forecast in (cb.Point(mean), cb.Quantiles([0.05, 0.5, 0.95], mean[:, None] + [-1.6, 0.0, 1.6])):
        tab = opened(cb.evaluate(y, forecast, n_resamples=19).to_html())
        assert tab.complaints == []
        assert not [url for url in tab.requests if not url.startswith(("file:", "data:"))]
