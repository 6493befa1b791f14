"""The pages of the service in a real browser: live updates, hostile names, accessibility, phones, print."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hostile_names import HOSTILE, HOSTILE_MODELS
from web_browser import ONE_WORKER, PHONE, browsed, check_accessible, check_width

import calibrant as cb

for library in ("starlette", "uvicorn", "matplotlib", "jinja2"):
    pytest.importorskip(library, reason=f"{library} is not installed")


pytestmark = [browsed, ONE_WORKER]

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
LIVE = "() => document.getElementById('live-text').textContent.startsWith('Live')"


def rows(day, shift, seed=0, n=300):
    """Return outcomes, scores and groups of a day; the odds of events are `shift` times those of the scores."""
    rng = np.random.default_rng([seed, day])
    p = rng.uniform(0.05, 0.5, n).round(3)
    return (rng.random(n) < p * shift / (1 - p + p * shift)).astype(int), p, rng.choice(["north", "south"], n)


def observe(monitor, days, shift=1.0):
    for day in days:
        y, p, group = rows(day, shift)
        monitor.observe(y, p, time=START + day * DAY, group=group)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a store with an alarm, a calm model, a model that will raise an alarm, and hostile names."""
    path = str(tmp_path_factory.mktemp("service") / "store.db")
    shifted = cb.Monitor(path, model="shifted")
    observe(shifted, range(15))
    observe(shifted, range(15, 30), 2.2)
    observe(cb.Monitor(path, model="calm"), range(12))
    observe(cb.Monitor(path, model="live"), range(8))
    for name in HOSTILE_MODELS:
        cb.Monitor(path, model=name)
    groups = cb.Monitor(path, model=HOSTILE_MODELS[0])
    for day in range(3):
        labels = np.repeat(np.array(HOSTILE, dtype=object), 4)
        groups.observe([0, 1, 0, 1] * 50, [0.4, 0.6, 0.3, 0.7] * 50, time=START + day * DAY, group=labels)
    return path


@pytest.fixture(scope="module")
def served(store, run_service):
    """Serve the store on a free port."""
    with run_service(store) as found:
        yield found


@pytest.fixture(scope="module")
def address(served):
    return served.url


@pytest.fixture
def opened(open_tab, address):
    """Open a page of the service."""
    return lambda path="/", **options: open_tab(address + path, **options)


def test_the_list_shows_each_model_with_its_state(opened):
    tab = opened("/?q=shifted")
    assert tab.locator("tbody tr").count() == 1
    assert "alarm" in tab.locator("tbody tr").inner_text()
    assert tab.locator("tbody svg.spark").count() == 1
    tab.locator("#q").fill("calm")
    tab.get_by_role("button", name="Find").click()
    assert tab.locator("tbody td.model").all_inner_texts() == ["calm"]
    tab.locator("tbody a").click()
    assert tab.locator("h1").inner_text().startswith("calm")
    assert tab.locator(".headline").inner_text() == "No alarm"
    assert tab.complaints == []


def test_the_page_of_a_model_shows_figures_alarms_and_groups(opened, store):
    tab = opened("/model?name=shifted", viewport={"width": 1280, "height": 900})
    status = cb.Monitor(store, model="shifted").status()
    assert tab.locator(".wide-figure svg.diagram:visible").count() == 2
    assert tab.locator(".narrow-figure svg.diagram:visible").count() == 0
    assert tab.locator(".alarms li").count() == len(status.alarms)
    assert tab.locator("#group-table td.model").all_inner_texts() == [str(name) for name in status.groups]
    assert f"{status.change_point.window:%Y-%m-%d}" in tab.locator("#steps").inner_text()
    assert tab.locator(".number").first.inner_text() == f"{status.log_e_value:.2f}"
    assert tab.complaints == []


def test_a_period_can_be_chosen(opened):
    tab = opened("/model?name=shifted")
    tab.locator(".periods input[name=since]").fill("2026-01-20")
    tab.locator(".periods input[name=until]").fill("2026-01-24")
    tab.get_by_role("button", name="Show").click()
    assert "1,200" in tab.locator("#reliability").inner_text()
    tab.locator(".periods input[name=until]").fill("2025-01-24")
    tab.get_by_role("button", name="Show").click()
    assert "since must lie before until" in tab.locator("#reliability [role=alert]").inner_text()


def test_rows_and_an_alarm_appear_without_a_reload(opened, store, address):
    tab, listed = opened("/model?name=live"), opened("/?q=live")
    tab.wait_for_function(LIVE)
    tab.evaluate("window.same = true")
    listed.evaluate("window.same = true")
    client = cb.MonitorClient(address, model="live")
    before = tab.locator("#numbers").inner_text()
    observe(client, [8])
    tab.wait_for_function("(text) => document.getElementById('numbers').innerText !== text", arg=before, timeout=90_000)
    assert f"{client.status()['log_e_value']:.2f}" in tab.locator("#numbers").inner_text()
    assert tab.locator("#steps").is_hidden()
    observe(client, range(9, 30), 3.0)
    assert client.status()["alarm"]
    for page in (tab, listed):
        page.wait_for_function(
            "() => document.querySelector('.headline').textContent.startsWith('Alarm')", timeout=90_000
        )
        assert page.evaluate("window.same") is True
        assert page.complaints == []
    tab.wait_for_selector("#steps")
    assert tab.title().startswith("(")
    assert tab.locator("#announce").inner_text().startswith("Alarm")
    assert "alarm" in listed.locator("tbody tr .tag").inner_text()


def test_an_alarm_is_acknowledged_and_a_model_silenced_on_the_page(opened, store, address):
    observe(cb.Monitor(store, model="known"), range(20), 4.0)
    tab = opened("/model?name=known")
    tab.wait_for_function(LIVE)
    for form in ("Silence notifications", "Acknowledge"):
        part = tab.locator("details.act").filter(has_text=form).last
        part.locator("summary").click()
        part.locator("input[name=reason]").fill("a <b>known</b> change")
        if form == "Silence notifications":
            part.locator("input[name=until]").fill("2090-01-01T12:00")
        part.locator("button").click()
        tab.wait_for_selector(f"#alarms :text('{'silenced' if form.startswith('Silence') else 'acknowledged'}')")
    status = cb.MonitorClient(address, model="known").status()
    assert [alarm["reason"] for alarm in status["alarms"] if alarm["acknowledged"]] == ["a <b>known</b> change"]
    assert "No notifications until 2090-01-01 12:00" in tab.locator("#alarms").inner_text()
    assert tab.locator("#alarms b").count() == 0
    assert tab.complaints == []


def test_a_form_that_is_filled_in_is_not_replaced(opened, store):
    tab = opened("/model?name=shifted")
    tab.wait_for_function(LIVE)
    tab.locator(".alarms summary").first.click()
    tab.locator(".alarms input[name=reason]").first.fill("a reason that takes long to")
    before = tab.locator("#numbers").inner_text()
    observe(cb.Monitor(store, model="shifted"), [30], 2.2)
    tab.wait_for_function("(text) => document.getElementById('numbers').innerText !== text", arg=before, timeout=90_000)
    assert tab.locator(".alarms input[name=reason]").first.input_value() == "a reason that takes long to"


def test_pages_work_without_scripts(opened):
    tab = opened("/model?name=shifted", script=False, viewport={"width": 1280, "height": 900})
    assert tab.locator("svg.diagram:visible").count() == 2
    assert tab.locator("form button:visible").all_inner_texts() == ["Show"]
    assert "Reload the page to update it" in tab.locator("noscript").inner_text()


def test_hostile_names_are_inert(opened, address):
    from urllib.parse import quote

    elements = "script, img, iframe, object, embed, base, link, meta, video, math, textarea"
    count = f"document.querySelectorAll('{elements}').length"
    usual = opened("/").evaluate(count)
    tab = opened("/model?name=" + quote(HOSTILE_MODELS[0], safe=""))
    assert tab.locator("#group-table td.model").count() == 50
    shown = {text.strip() for text in tab.locator("#group-table td.model bdi").all_text_contents()}
    assert shown == {name.replace("\r", "\n").strip() for name in HOSTILE}  # HTML has one kind of line end
    listed = []
    for page in (1, 2):
        tab.goto(f"{address}/?sort=name&page={page}")
        listed += tab.locator("tbody td.model bdi").all_text_contents()
        assert tab.evaluate(count) == usual
    assert set(HOSTILE_MODELS) <= set(listed)
    for name in HOSTILE_MODELS:
        tab.goto(f"{address}/model?name=" + quote(name, safe=""), wait_until="domcontentloaded")
        assert tab.locator("h1 bdi").first.text_content() == name
        assert tab.evaluate(count) == usual
        assert tab.evaluate("window.pwned") is None
    for name in HOSTILE_MODELS[::5]:
        tab.goto(f"{address}/?q=" + quote(name, safe=""))
        assert tab.locator("#q").input_value() == name
        assert tab.evaluate("window.pwned") is None
    assert tab.complaints == []
    assert all(url.startswith(address) for url in tab.requests)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", "/model?name=shifted", "/model?name=nothing", "/?q=nothing"])
def test_axe_finds_no_serious_problem_in_pages(opened, path, scheme):
    check_accessible(opened(path, color_scheme=scheme, reduced_motion="reduce"))


@pytest.mark.parametrize("path", ["/", "/?sort=name&page=2", "/model?name=shifted", "/model?name=" + "W" * 500])
def test_a_phone_shows_everything_within_its_width(opened, path):
    tab = opened(path, **PHONE)
    check_width(tab)
    if "shifted" in path:
        assert tab.locator(".narrow-figure svg.diagram:visible").count() == 2
        assert tab.locator(".wide-figure svg.diagram:visible").count() == 0


def test_print_has_wide_figures_and_no_controls(opened):
    tab = opened("/model?name=shifted", **PHONE)
    tab.emulate_media(media="print", color_scheme="dark")
    assert tab.locator(".wide-figure svg.diagram:visible").count() == 2
    assert tab.locator("form:visible, .bar:visible").count() == 0
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_nothing_moves_where_motion_is_reduced(opened):
    shown = {}
    for motion in ("reduce", "no-preference"):
        tab = opened("/", reduced_motion=motion)
        tab.evaluate("document.getElementById('models').classList.add('changed')")
        shown[motion] = tab.evaluate("getComputedStyle(document.getElementById('models')).animationName")
    assert shown == {"reduce": "none", "no-preference": "changed"}
