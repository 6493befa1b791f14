"""Reports of every kind as a reader sees them: what they say first, and that phones, print and screen readers work."""

import re
from html import unescape

import numpy as np
import pytest
from scipy.stats import binomtest
from web_browser import DESK, ONE_WORKER, PHONE, browsed, check_accessible, check_width

import calibrant as cb
from tests.visual.report_cases import CASES

pytest.importorskip("jinja2", reason="Jinja2 is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")


from calibrant import report
from calibrant.kinds.words import without_empty_columns
from calibrant.report.advice import advice, verdict_sentence
from calibrant.report.tables import group_table, metric_table, words_of

pytestmark = ONE_WORKER


@pytest.fixture(scope="module")
def results():
    return {name: make(19) for name, make in CASES.items()}


@pytest.fixture(scope="module")
def pages(results):
    return {name: result.to_html() for name, result in results.items()}


def text_of(page):
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.split("<body>")[1]))).replace("\xa0", " ")


# What the first screen says


@pytest.mark.parametrize(
    ("name", "tone", "sentence"),
    [
        (
            "calibrated",
            "good",
            r"Calibrated: on average the odds are off by at most [\d.]+ %, and by at most a factor of 2 in every .*\.",
        ),
        (
            "rare",
            "bad",
            r"Miscalibrated: the model overestimates and is underconfident; .* a factor of [\d.]+, mostly .*\.",
        ),
        (
            "many_groups",
            "bad",
            r"6 of 300 groups are miscalibrated, 294 are inconclusive; over all rows the deviation is negligible: .*\.",
        ),
        ("multiclass", "bad", r"Miscalibrated: the model is overconfident; on average over classes .*\."),
        ("quantiles", "bad", r"Miscalibrated: the model is overconfident; the coverage error is about .*\."),
    ],
)
def test_the_headline_is_one_sentence_in_the_colour_of_the_verdict(pages, name, tone, sentence):
    shown = re.search(rf'<p class="headline {tone}-text">(.*?)</p>', pages[name])
    assert shown is not None
    assert re.fullmatch(sentence, shown[1].replace("\xa0", " "))


def test_the_first_screen_has_diagram_meaning_and_advice_before_the_metrics(results, pages):
    for name, page in pages.items():
        parts = ['class="headline', '<svg class="diagram"', ">What it means<", ">What to do<", ">Metrics<"]
        # Attributes of a figure have no fixed order.
        places = [page.replace("<svg ", '<svg class="diagram" ').index(part) for part in parts]
        assert places == sorted(places), name
        text = text_of(page)
        e = results[name]
        for sentence in words_of(e).meaning(e):
            assert sentence in text
        for action in advice(e, "m0"):
            assert action.lead in text


def test_the_sections_stand_in_the_order_of_their_use(pages):
    page = pages["many_groups"]
    headings = ["Metrics<", "Groups, worst first", ">Bins<", "Other significance levels and costs<", ">Method<"]
    places = [page.index(heading) for heading in headings]
    assert places == sorted(places)


def test_rare_events_have_counts_and_axes_of_their_size(results, pages):
    e = results["rare"]
    bins = e.details.reliability
    assert bins.partition.mean_score.max() < 0.2
    first, *_, total = words_of(e).meaning(e)
    found = re.fullmatch(
        r"The largest gap in events: among ([\d,]+) cases scored about ([\d.]+) %, "
        r"expect ([\d,]+) events \(95 % CI .*\), not ([\d,]+)\.",
        first,
    )
    cases, score, expected, predicted = (float(each.replace(",", "")) for each in found.groups())
    assert predicted == pytest.approx(cases * score / 100, rel=0.006)  # the score has three digits
    i = int(np.argmin(np.abs(bins.partition.mean_score - predicted / cases)))
    assert expected == round(cases * bins.partition.rate[i])
    assert min(expected, predicted) >= 10
    assert total.endswith(f"{e.table.size * e.mean_score:,.0f} events predicted, {e.table.positives:,} observed.")
    assert "≤ 0.0" in pages["rare"]  # the end of a logit axis


def test_the_advice_names_a_calibrator_and_its_gain(results):
    (action,) = advice(results["rare"], "m0")
    parts = results["rare"].details.decomposition
    assert action.lead == "Recalibrate with platt."  # 208 events
    assert f"from {parts.brier:.3g} to {parts.brier - parts.mcb:.3g} at best" in action.text
    assert "cb.Platt().fit" in action.code
    assert advice(results["multiclass"], "m0")[0].lead == "Recalibrate with softmax_temperature."
    recalibrate, groups = advice(results["quantiles"], "m0")
    assert recalibrate.lead == "Recalibrate with quantile."
    assert groups.lead == "Look at these groups."


def test_the_advice_on_groups_names_the_worst(results):
    e = results["many_groups"]
    look, differ, collect = advice(e, "m0")
    assert "Shrunken estimates of groups" in differ.text
    worst = [str(name) for name, group in e.worst_first.items() if group.verdict == "miscalibrated"]
    assert look.text.startswith(f"{worst[0]} (")
    assert "; and 3 more." in look.text
    assert "294 of 300 groups are inconclusive" in collect.text
    sentence = words_of(e).meaning(e)[0]
    found = re.fullmatch(
        rf"The worst group: among 1,000 cases of {worst[0]}, scored [\d.]+ % on average, "
        r"expect (\d+) events \(95 % CI (\d+) to (\d+)\), not \d+\.",
        sentence,
    )
    expected, low, high = map(int, found.groups())
    group = e.groups[worst[0]]
    exact = binomtest(group.table.positives, group.n_rows).proportion_ci(0.95, "exact")
    assert (expected, low, high) == tuple(round(1000 * x) for x in (group.event_rate, exact.low, exact.high))


def test_the_first_figure_shows_miscalibrated_groups(pages):
    """All rows together lie on the diagonal; the headline is about groups, so the figure shows them."""
    assert pages["many_groups"].count('id="m0-reliability-reliability-groups"') == 1
    assert "miscalibrated groups (6)" in text_of(pages["many_groups"])
    assert "reliability-groups" not in pages["calibrated"]


def test_an_example_is_chosen_where_no_deviation_is_shown(results):
    e = results["calibrated"]
    first, second, _ = words_of(e).meaning(e)
    assert re.fullmatch(
        r"An example: among 1,000 cases scored about .* events \(95 % CI .*\); \d+ are predicted\.", first
    )
    assert second.startswith("The highest scores: among ")


def test_groups_of_distributions_show_their_coverage(results):
    header, *rows = group_table(results["quantiles"], "m0").cells
    column = header.index("coverage of 90 % intervals")
    groups = results["quantiles"].worst_first.values()
    values = [group["coverage of 90 % intervals"].cells()[0] for group in groups]
    assert [row[column].split(" (")[0] for row in rows] == values


def test_columns_without_any_text_are_left_out(results):
    assert "direction" not in metric_table(results["calibrated"]).cells[0]
    assert "direction" in metric_table(results["rare"]).cells[0]
    assert "adjusted p" not in metric_table(results["quantiles"]).cells[0]
    assert without_empty_columns([["a", "b"], ["1", ""], ["", ""]]) == [["a"], ["1"], [""]]


def test_few_rows_ask_for_more():
    e = cb.evaluate(cb.ScoreTable.from_counts([0.3, 0.7], [50, 50], [16, 34]), n_resamples=19)
    assert e.verdict == "inconclusive"
    (action,) = advice(e, "m0")
    assert action.lead == "Collect more rows."
    assert re.search(r"About [\d,]+ more rows", action.text)
    assert verdict_sentence(e).startswith("Inconclusive: on average the odds may be off by up to ")


def test_points_and_predicted_classes_have_a_first_screen():
    rng = np.random.default_rng(12)
    mean = rng.normal(50, 12, 2000)
    point = cb.evaluate(mean + rng.normal(size=2000), cb.Point(0.8 * mean + 14), n_resamples=19)
    (action,) = advice(point, "m0")
    assert action.lead == "Recalibrate with linear."
    assert re.match(
        r"Where the prediction is about [\d.]+, expect [\d.]+ on average \(95 % CI", words_of(point).meaning(point)[0]
    )
    y = rng.choice(["a", "b"], 2000)
    labels = cb.evaluate(y, cb.Labels(np.where(rng.random(2000) < 0.2, "a", y)))
    (action,) = advice(labels, "m0")
    assert action.lead == "Adjust the rule that chooses the class."
    assert re.match(
        r"Among 1,000 cases, class . is predicted \d+ times and occurs \d+ times\.", words_of(labels).meaning(labels)[0]
    )


def test_a_report_shows_the_monitor(tmp_path):
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    monitor = cb.Monitor(tmp_path / "store.db", model="churn")
    rng = np.random.default_rng(13)
    for day in range(1, 4):
        p = rng.uniform(0.1, 0.6, 300)
        monitor.observe((rng.random(300) < p).astype(int), p, time=f"2026-01-{day:02d}")
    page = monitor.evaluate(n_resamples=19).to_html(monitor=monitor)
    assert page.index(">Bins<") < page.index(">Monitoring<") < page.index("Other significance levels and costs<")
    assert monitor.status().headline in text_of(page)
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids))


def test_five_models_and_300_groups_stay_small(results, pages):
    e = results["many_groups"]
    one, two = len(pages["many_groups"].encode()), len(report.evaluations_page({"a": e, "b": e}, title="t").encode())
    assert one + 4 * (two - one) < 2_000_000  # each model adds the same parts


# In a browser


REPORTS = ["calibrated", "rare", "many_groups", "multiclass", "quantiles"]


@browsed
@pytest.mark.parametrize("name", REPORTS)
def test_a_phone_shows_a_report_within_its_width(opened, pages, name):
    tab = opened(pages[name], **PHONE)
    assert tab.evaluate("document.documentElement.scrollHeight") < 12_000
    assert tab.locator(".headline").bounding_box()["y"] < 200
    assert tab.locator("svg.diagram").first.bounding_box()["y"] < 844
    check_width(tab)
    assert tab.complaints == []


@browsed
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", REPORTS)
def test_axe_finds_no_serious_problem_in_a_report(opened, pages, name, scheme):
    tab = opened(pages[name], color_scheme=scheme, **(PHONE if scheme == "dark" else DESK))
    check_accessible(tab)


@browsed
def test_a_desktop_shows_diagram_meaning_and_advice_at_once(opened, pages):
    for name, page in pages.items():
        tab = opened(page, **DESK)
        for part in (".headline", ".first svg.diagram", "#m0-meaning", "#m0-advice"):
            assert tab.locator(part).first.bounding_box()["y"] < 900, (name, part)
        assert tab.evaluate("document.documentElement.scrollHeight") < 7_000


@browsed
def test_groups_are_searched_paged_and_sorted(opened, pages, results):
    tab = opened(pages["many_groups"], **DESK)
    names = tab.locator("#m0-group-table tbody tr:visible td:first-child")
    worst = [str(name) for name in results["many_groups"].worst_first]
    assert names.all_inner_texts() == worst[:10]
    tab.get_by_role("button", name="Next").click()
    assert names.all_inner_texts() == worst[10:20]
    assert "11 to 20 of 300" in tab.locator(".search").inner_text()
    tab.get_by_label("Find a group").fill("STORE 15")
    assert sorted(names.all_inner_texts()) == [f"store 15{i}" for i in range(10)]
    tab.get_by_label("Find a group").fill("")
    rows = tab.locator("#m0-group-table thead th").nth(1)
    for reverse in (False, True):
        rows.locator("button").click()
        shown = [
            int(text) for text in tab.locator("#m0-group-table tbody tr:visible td:nth-child(2)").all_inner_texts()
        ]
        sizes = sorted((group.n_rows for group in results["many_groups"].groups.values()), reverse=reverse)
        assert shown == sizes[:10]
    tab.get_by_label("Find a group").fill("no such store")
    assert "no group found" in tab.locator(".search").inner_text()
    assert tab.complaints == []


@browsed
def test_groups_stay_readable_without_scripts(opened, pages):
    tab = opened(pages["many_groups"], script=False, **DESK)
    assert tab.locator("#m0-group-table tbody tr").count() == 300
    assert tab.evaluate("document.documentElement.scrollHeight") < 7_000


@browsed
def test_print_has_no_controls_and_white_paper(opened, pages):
    tab = opened(pages["many_groups"], color_scheme="dark", **DESK)
    tab.emulate_media(media="print")
    assert tab.locator("input:visible, .search:visible, #alpha:visible, #sliders:visible").count() == 0
    assert tab.locator(".printed:visible").all_inner_texts() == ["Printed: groups 1 to 10 of 300."]
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate(
        "[...document.querySelectorAll('svg.diagram')].every((e) => e.getBoundingClientRect().width < 1280)"
    )


def test_commands_of_the_advice_name_the_rows_that_are_known(results):
    (action,) = advice(results["rare"], "m0")
    assert "calibrant fit rows.csv --label outcome --score score \\\n  --method" in action.code
    (action,) = advice(results["rare"], "m0", "loans.parquet --label default --score pd")
    assert "calibrant fit loans.parquet --label default --score pd \\\n  --method" in action.code
