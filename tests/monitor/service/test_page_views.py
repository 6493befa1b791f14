"""What the pages of the service show, as plain data: the list of models, the page of a model, its periods."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest

import calibrant as cb
from calibrant import InputError

pytest.importorskip("starlette", reason="starlette is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("jinja2", reason="jinja2 is not installed")

from calibrant.monitor.model_queries import ModelSummary, read_summaries
from calibrant.monitor.service.page_views import (
    ModelRequest,
    PageLinks,
    Period,
    ResultCache,
    default_periods,
    model_view,
    overview_view,
    sparkline,
)
from calibrant.monitor.status import ConfidenceSequence

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
CACHE = ResultCache()  # figures of equal data are drawn once


def fill(store, model, *, days=40, change=None, rate=0.3, groups=("north", "south"), seed=0, **settings):
    """Observe 300 rows a day in one call; the odds of group south are 3 times larger from the day of the change on."""
    monitor, rng = cb.Monitor(store, model=model, **settings), np.random.default_rng(seed)
    day = np.repeat(np.arange(days), 300)
    p = rng.uniform(0.2 * rate, 1.8 * rate, day.size).round(3)
    group = rng.choice(list(groups), day.size)
    shift = np.where((group == "south") & (day >= (days if change is None else change)), 3.0, 1.0)
    y = rng.random(day.size) < p * shift / (1 - p + p * shift)
    monitor.observe(y, p, time=np.datetime64("2026-01-01") + day, group=group)
    return monitor


@pytest.fixture(scope="module")
def shifted(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("store") / "store.db", "shifted", change=20)


def summary(model="a", **changes):
    usual = {
        "version": "1", "window": "day", "n_rows": 100, "n_open_rows": 0, "n_windows": 3, "predicted": 0.2,
        "observed": 0.2, "log_e_value": 0.5, "threshold": 4.0, "evidence": (0.1, 0.3, 0.5), "last_window": START,
        "unlabelled": math.nan, "alarms": (), "n_acknowledged": 0, "silenced": None,
    }  # fmt: skip
    return ModelSummary(model=model, **{**usual, **changes})


# The summaries of a store


def test_summaries_agree_with_the_status_of_each_model(store):
    monitors = [
        fill(store, "calm", days=8),
        fill(store, "shifted", days=30, change=10),
        cb.Monitor(store, model="new"),
    ]
    monitors[0].predict(["a", "b", "c", "d"], [0.1, 0.2, 0.3, 0.4], time=START + 8 * DAY)
    monitors[0].outcome(["a"], [1])
    monitors[1].acknowledge(monitors[1].status().alarms[0], "known")
    monitors[1].observe([0, 1], [0.2, 0.4], time=START + 40 * DAY, version="2")
    found = {each.model: each for each in read_summaries(monitors[0].store)}
    assert list(found) == ["calm", "new", "shifted"]
    for monitor in monitors:
        status, own = monitor.status(), found[monitor.model]
        for name in ("version", "n_windows", "log_e_value", "threshold", "last_window", "n_open_rows"):
            assert getattr(own, name) == getattr(status, name), name
        for name in ("predicted", "observed", "unlabelled"):
            assert getattr(own, name) == pytest.approx(getattr(status, name), nan_ok=True)
        assert own.n_rows == status.n_rows - status.n_open_rows
        assert own.alarms == tuple(a.group for a in status.alarms if a.acknowledged is None)
        assert own.n_acknowledged == sum(a.acknowledged is not None for a in status.alarms)
        closed = [w.log_e_value for w in monitor.history().windows if w.closed]
        assert own.evidence == pytest.approx(closed[-60:])
    assert found["calm"].unlabelled == 0.75
    assert (found["new"].state, found["calm"].state) == ("no evidence", "no alarm")
    assert [each.model for each in read_summaries(monitors[0].store, ["calm"])] == ["calm"]


# The list of models


def test_models_with_alarms_come_first_and_other_orders_can_be_chosen():
    models = [
        summary("a", log_e_value=1.0),
        summary("B", alarms=(None, "x"), log_e_value=5.0, n_rows=7),
        summary("c", n_windows=0, evidence=(), last_window=None, log_e_value=0.0, unlabelled=0.5),
        summary("d", n_acknowledged=1, log_e_value=4.5, last_window=START + DAY),
    ]

    def order(sort):
        return [row["name"] for row in overview_view(models, PageLinks(), sort=sort)["rows"]]

    assert order("state") == ["B", "d", "a", "c"]
    assert order("name") == ["a", "B", "c", "d"]
    assert order("window")[0] == "d"
    assert order("window")[-1] == "c"
    assert order("rows")[-1] == "B"
    assert order("unlabelled")[0] == "c"
    assert order("<script>") == order("state")


def test_search_ignores_case_and_pages_have_50_models():
    models = [summary(f"Model {i:03}") for i in range(120)]
    view = overview_view(models, PageLinks(), sort="name", page=3)
    assert [row["name"] for row in view["rows"]] == [f"Model {i:03}" for i in range(100, 120)]
    assert [page["number"] for page in view["pages"]] == [1, 2, 3]
    assert overview_view(models, PageLinks(), page=99)["rows"] == overview_view(models, PageLinks(), page=3)["rows"]
    assert overview_view(models, PageLinks(), search="DEL 007")["n_found"] == 1
    assert overview_view(models, PageLinks(), search="nothing")["rows"] == []


def test_headline_counts_alarms():
    assert overview_view([], PageLinks())["headline"] == "No model is monitored"
    assert overview_view([summary()], PageLinks())["headline"] == "No alarm"
    many = [summary("a", alarms=(None,)), summary("b"), summary("c", n_acknowledged=1)]
    assert overview_view(many, PageLinks())["headline"] == "Alarm for 1 of 3 models"


def test_a_sparkline_shows_the_threshold_and_stays_within_its_frame():
    drawn = sparkline([0.0, -30.0, 2.0, 400.0], 4.0)
    points = [tuple(map(float, point.split(","))) for point in drawn["points"].split()]
    assert all(0 <= x <= drawn["width"] and 0 <= y <= drawn["height"] for x, y in points)
    assert points[2][1] > drawn["threshold"] > points[3][1]  # y points down
    assert sparkline([1.0], 4.0) is None


def test_links_keep_the_token_and_escape_names():
    links = PageLinks("/monitor", "cal_secret")
    assert links.model("a&b=..", since="") == "/monitor/model?name=a%26b%3D..&token=cal_secret"
    assert links.hidden(sort="name", version=None) == {"sort": "name", "token": "cal_secret"}
    assert PageLinks().overview() == "/"


# The page of a model


def test_the_page_of_a_model_shows_what_the_status_says(shifted):
    view, status = model_view(shifted, ModelRequest(), PageLinks(), CACHE), shifted.status()
    assert view["n_alarms"] == sum(a.acknowledged is None for a in status.alarms) > 0
    assert view["headline"].startswith("Alarm: ")
    assert [row["name"] for row in view["groups"]["rows"]] == [str(name) for name in status.groups]
    assert view["groups"]["rows"][0]["name"] == "south"
    assert view["tiles"][0]["value"] == f"{status.log_e_value:.2f}"
    assert {alarm["id"] for alarm in view["alarms"]} == {alarm.id for alarm in status.alarms}
    assert set(view["history"]["figures"]) == {"wide", "narrow"}


def test_the_advice_after_an_alarm_is_code_that_runs(shifted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    steps = model_view(shifted, ModelRequest(), PageLinks(), CACHE)["steps"]
    exec(steps["code"], {"cb": cb, "STORE": shifted.store.engine})
    fitted = cb.load(tmp_path / "calibrator.json")
    assert fitted(np.array([0.3]))[0] > 0.35  # the events became more likely


def test_default_periods_are_before_and_after_the_change(shifted):
    history = shifted.history()
    reference, period = default_periods(history)
    assert period.since == history.change_point.window
    assert reference.until <= period.since
    assert abs(period.since - (START + 20 * DAY)) <= 3 * DAY


def test_default_periods_without_an_alarm_are_the_last_quarter_and_the_rest(tmp_path):
    monitor = fill(tmp_path / "store.db", "calm", days=9)
    reference, period = default_periods(monitor.history())
    assert period == Period(START + 6 * DAY, None)
    assert reference == Period(None, START + 6 * DAY)
    few = fill(tmp_path / "store.db", "few", days=3)
    assert default_periods(few.history()) == (None, Period())


def test_chosen_periods_are_compared(shifted):
    chosen = ModelRequest(since="2026-01-25", until="2026-02-05", reference_until="2026-01-15")
    view = model_view(shifted, chosen, PageLinks(), CACHE)["periods"]
    assert [row["name"] for row in view["rows"]] == ["reference period", "period"]
    assert [row["rows"] for row in view["rows"]] == ["4,200", "3,300"]
    assert [row["verdict"] for row in view["rows"]][1] == "miscalibrated"
    assert view["values"] == {
        "since": "2026-01-25", "until": "2026-02-05", "reference_since": "", "reference_until": "2026-01-15"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"since": "yesterday"}, "since must hold times"),
        ({"since": "2026-02-01", "until": "2026-01-01"}, "since must lie before until"),
        ({"reference_since": "2031-01-01"}, "reference period: There must be at least one row"),
    ],
)
def test_a_bad_period_is_explained_and_the_rest_is_shown(shifted, chosen, message):
    view = model_view(shifted, ModelRequest(**chosen), PageLinks(), CACHE)
    assert any(message in error for error in view["periods"]["errors"])
    assert view["history"]["figures"]


def test_a_group_has_its_own_history_and_periods(shifted):
    view = model_view(shifted, ModelRequest(group='"south"'), PageLinks(), CACHE)
    assert view["history"]["group"] == "south"
    rows = [int(row["rows"].replace(",", "")) for row in view["periods"]["rows"]]
    assert sum(rows) < 0.6 * shifted.status().n_rows
    for key in ("south", '"west"', "{"):
        with pytest.raises(InputError, match="group must be"):
            model_view(shifted, ModelRequest(group=key), PageLinks(), CACHE)


def test_rare_events_have_logit_axes(tmp_path):
    rare, usual = (fill(tmp_path / "a.db", str(rate), days=2, rate=rate) for rate in (0.02, 0.5))
    drawn = [
        model_view(each, ModelRequest(), PageLinks(), CACHE)["periods"]["figures"]["wide"] for each in (rare, usual)
    ]
    assert "≤" in drawn[0]
    assert "≤" not in drawn[1]


def test_a_model_without_rows_has_a_page(tmp_path):
    monitor = cb.Monitor(tmp_path / "store.db", model="new")
    view = model_view(monitor, ModelRequest(), PageLinks(), CACHE)
    assert (view["headline"], view["n_alarms"]) == ("No window is closed", 0)
    assert view["history"]["figures"] == {}
    assert view["periods"]["errors"] == []


def test_figures_of_equal_data_are_drawn_once(shifted):
    cache = ResultCache()
    first, second = (model_view(shifted, ModelRequest(), PageLinks(), cache) for _ in range(2))
    assert first["history"]["figures"] is second["history"]["figures"]
    assert first["periods"]["figures"] is second["periods"]["figures"]


def test_the_cache_drops_what_was_not_used_for_longest():
    cache = ResultCache(2)
    for key in "aba":
        cache.put(key, key)
    cache.put("c", "c")
    assert [cache.peek(key) for key in "abc"] == ["a", None, "c"]
    assert cache.get("c", lambda: "other") == "c"


def test_the_table_of_a_group_is_that_of_its_rows(shifted):
    north, south = (shifted.table(group=name) for name in ("north", "south"))
    assert north + south == shifted.table()
    assert north.size == shifted.status().groups["north"].n_rows + sum(
        w.n_rows for w in shifted.history("north").windows if not w.closed
    )
    assert shifted.versions() == ["1"]


@pytest.fixture(scope="module")
def opposite(tmp_path_factory):
    """Return a monitor of two groups whose deviations cancel in all rows, and of a calibrated one."""
    monitor, rng = cb.Monitor(tmp_path_factory.mktemp("store") / "store.db", model="m"), np.random.default_rng(1)
    day, group = np.repeat(np.arange(30), 600), np.tile(["east", "north", "west"], 30 * 200)
    p = rng.uniform(0.3, 0.7, day.size).round(3)
    odds = p / (1 - p) * np.select([group == "east", group == "west"], [3.0, 1 / 3.0], 1.0)
    monitor.observe(rng.random(day.size) < odds / (1 + odds), p, time=np.datetime64("2026-01-01") + day, group=group)
    return monitor


def test_a_page_with_alarms_of_groups_only_advises_to_recalibrate_a_group(opposite, tmp_path, monkeypatch):
    status = opposite.status()
    assert {alarm.group for alarm in status.alarms} == {"east", "west"}
    view = model_view(opposite, ModelRequest(), PageLinks(), CACHE)
    assert view["headline"] == "Alarm: groups east and west"
    assert "Model m: no alarm of all rows" in view["history"]["figures"]["wide"]
    first = status.alarms[0].group
    assert view["steps"]["group"] == first
    assert f"group={first!r})" in view["steps"]["code"]
    monkeypatch.chdir(tmp_path)
    exec(view["steps"]["code"], {"cb": cb, "STORE": opposite.store.engine})
    assert (tmp_path / "calibrator.json").is_file()


def test_groups_whose_alarm_was_acknowledged_are_not_red(opposite):
    for alarm in opposite.status().alarms:
        if alarm.group == "east":
            opposite.acknowledge(alarm, "new price list")
    rows = {row["name"]: row for row in model_view(opposite, ModelRequest(), PageLinks(), CACHE)["groups"]["rows"]}
    assert {name: (row["state"], row["tone"]) for name, row in rows.items()} == {
        "east": ("acknowledged", "open"),
        "west": ("alarm", "bad"),
        "north": ("no alarm", "good"),
    }


@pytest.mark.parametrize(
    ("sequence", "words"),
    [
        (ConfidenceSequence(0.2, 0.15, 0.25), "+0.15 to +0.25"),
        (ConfidenceSequence(0.32, 0.15, 0.25), "no single shift fits"),
        (ConfidenceSequence(0.32, math.nan, math.nan), "no single shift fits"),
        (ConfidenceSequence(0.1, -math.inf, math.inf), "not known yet"),
        (ConfidenceSequence(math.nan, -math.inf, math.inf), "not known yet"),
    ],
)
def test_the_shift_of_groups_and_of_all_rows_has_the_same_words(shifted, sequence, words):
    status = shifted.status()
    groups = {name: replace(group, confidence_sequence=sequence) for name, group in status.groups.items()}
    monitor = SimpleNamespace(status=lambda version: replace(status, confidence_sequence=sequence, groups=groups))
    for name in ("model", "settings", "history", "versions", "table"):
        setattr(monitor, name, getattr(shifted, name))
    view = model_view(monitor, ModelRequest(), PageLinks(), CACHE)
    assert {row["shift"] for row in view["groups"]["rows"]} == {words}
    assert next(tile for tile in view["tiles"] if tile["label"].startswith("Shift"))["text"] == words
