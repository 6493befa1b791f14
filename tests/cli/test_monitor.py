"""`calibrant monitor`."""

import json
import re
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

for library in ("click", "rich", "duckdb", "pyarrow", "sqlalchemy"):
    pytest.importorskip(library, reason=f"{library} is not installed")

import calibrant as cb  # noqa: E402
from calibrant.monitor.store import Store  # noqa: E402

STORE = ("--store", "monitor.db")
ROWS = ("-y", "y", "-p", "p", "--time", "at")


def rows(days, shift=0.0, n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.6, days * n).round(2)
    odds = p / (1 - p) * np.exp(shift)
    y = (rng.random(p.size) < odds / (1 + odds)).astype(int)
    start = datetime(2026, 1, 1, 12, tzinfo=UTC)
    return {
        "y": y,
        "p": p,
        "at": [start + timedelta(days=i // n) for i in range(p.size)],
        "g": ["a", "b"] * (p.size // 2),
    }


def write_csv(name, columns):
    cells = zip(columns["y"], columns["p"], (at.isoformat() for at in columns["at"]), columns["g"], strict=True)
    Path(name).write_text("\n".join(["y,p,at,g", *(",".join(map(str, row)) for row in cells)]) + "\n")


def test_observe_stores_rows_once_and_exits_1_on_an_alarm(here, call):
    write_csv("calm.csv", rows(5))
    write_csv("bad.csv", rows(25, shift=1.0))
    text = call("monitor", "observe", "calm.csv", *STORE, *ROWS, "--batch", "1", "--model", "calm", "--group", "g")
    assert text == "2,000 rows stored; 4 windows closed\n"
    text = call("monitor", "observe", "calm.csv", *STORE, *ROWS, "--batch", "1", "--model", "calm", "--group", "g")
    assert text == "batch '1' was stored before; nothing was stored\n"
    text = call("monitor", "observe", "bad.csv", *STORE, *ROWS, code=1)
    assert "ALARM: all rows" in text
    assert cb.Monitor("monitor.db", model="calm").status().n_rows == 2000


def test_csv_and_parquet_files_give_the_same_windows(here, call):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = rows(4)
    write_csv("rows.csv", columns)
    pq.write_table(pa.table(columns), "rows.parquet")
    naive = [at.replace(tzinfo=None) for at in columns["at"]]
    pq.write_table(pa.table({**columns, "at": naive}), "naive.parquet")
    call("monitor", "observe", "rows.csv", *STORE, *ROWS, "--model", "csv")
    call("monitor", "observe", "rows.parquet", *STORE, *ROWS, "--model", "parquet")
    call("monitor", "observe", "naive.parquet", *STORE, *ROWS, "--model", "naive")
    found = [cb.Monitor("monitor.db", model=name).history().windows for name in ("csv", "parquet", "naive")]
    assert found[0] == found[1] == found[2]
    assert [w.n_rows for w in found[0]] == [400] * 4


@pytest.mark.parametrize("first", ["rows.csv", "rows.parquet"])
def test_groups_of_another_type_than_those_stored_are_refused(here, call, first):
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {**rows(1, n=4), "g": [0, 1, 0, 1]}
    write_csv("rows.csv", columns)
    pq.write_table(pa.table(columns), "rows.parquet")
    other = "rows.parquet" if first == "rows.csv" else "rows.csv"
    need = "text, as .* got a number, 0" if first == "rows.csv" else "numbers, as .* got text, '0'"
    for by in (("--group", "g"), ("--group", "g", "--group", "y")):
        name = ("--model", f"{len(by)}")
        for _ in range(2):
            call("monitor", "observe", first, *STORE, *ROWS, *by, *name)
        assert re.search(
            f"--group must hold {need}", call("monitor", "observe", other, *STORE, *ROWS, *by, *name, code=2)
        )
        assert cb.Monitor("monitor.db", model=name[1]).status().n_rows == 8


def test_status_exits_1_on_an_alarm_and_writes_json_and_junit(here, call):
    write_csv("calm.csv", rows(5))
    write_csv("bad.csv", rows(25, shift=1.0))
    call("monitor", "observe", "calm.csv", *STORE, *ROWS, "--model", "calm")
    assert call("monitor", "status", *STORE).startswith("Status: no alarm for model 'calm'\n")
    call("monitor", "observe", "bad.csv", *STORE, *ROWS, "--model", "bad", "--group", "g", code=1)
    assert "Status: alarm for model 'bad' (all rows" in call("monitor", "status", *STORE, code=1)
    call("monitor", "status", *STORE, "--model", "calm")
    result = json.loads(call("monitor", "status", *STORE, "--format", "json", code=1))
    assert (result["alarm"], sorted(result["models"])) == (True, ["bad", "calm"])
    assert result["models"]["bad"]["alarms"][0]["group"] is None
    suite = ElementTree.fromstring(call("monitor", "status", *STORE, "--format", "junit", code=1)).find("testsuite")
    assert suite.get("name") == "calibrant monitor"
    cases = {case.get("classname"): case.find("failure") is None for case in suite}
    assert cases["calibrant.calm"]
    assert not cases["calibrant.bad"]
    assert set(cases) == {"calibrant.calm", "calibrant.bad", "calibrant.bad, group = a", "calibrant.bad, group = b"}


def test_history_report_and_export(here, call):
    write_csv("calm.csv", rows(3))
    call("monitor", "observe", "calm.csv", *STORE, *ROWS, "--group", "g")
    assert call("monitor", "history", *STORE).startswith("History: 3 windows\n  window")
    numbered = rows(2)
    write_csv("numbered.csv", {**numbered, "g": [7, 8] * 400})
    call("monitor", "observe", "numbered.csv", *STORE, *ROWS, "--group", "g", "--model", "numbered")
    assert "History: 2 windows" in call("monitor", "history", *STORE, "--model", "numbered", "--group", "7")
    found = json.loads(call("monitor", "history", *STORE, "--group", "a", "--format", "json"))
    assert [window["n_rows"] for window in found["windows"]] == [200] * 3
    call("monitor", "report", *STORE, "--html", "page.html")
    assert "Status: no alarm" in Path("page.html").read_text()
    assert "exists already. Pass --force" in call("monitor", "report", *STORE, "--html", "page.html", code=2)
    assert "tables.parquet" in call("monitor", "export", *STORE, "--folder", "out")
    assert "--folder must be a new or empty folder" in call("monitor", "export", *STORE, "--folder", "out", code=2)


def test_history_finds_groups_by_their_text_or_their_json(here, call):
    monitor = cb.Monitor("monitor.db")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for group, n in ((3, 10), ("3", 20), (4, 30), ("north", 40)):
        monitor.observe([0, 1] * (n // 2), [0.2] * n, time=start, group=group)
    monitor.observe([0, 1] * 25, [0.2] * 50, time=start, group={"land": ["n"] * 50, "year": [5] * 50})

    def size(group):
        found = json.loads(call("monitor", "history", *STORE, "--group", group, "--format", "json"))
        return found["windows"][0]["n_rows"]

    assert {group: size(group) for group in ("3", '"3"', "4", "north", '"north"', '["n", 5]', "('n', 5)")} == {
        "3": 10,
        '"3"': 20,
        "4": 30,
        "north": 40,
        '"north"': 40,
        '["n", 5]': 50,
        "('n', 5)": 50,
    }
    text = call("monitor", "history", *STORE, "--group", "5", code=2)
    assert "--group must be a label of the model" in text


def test_status_of_a_version(here, call):
    monitor = cb.Monitor("monitor.db")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for version, n in (("a", 10), ("b", 20)):
        monitor.observe([0, 1] * (n // 2), [0.2] * n, time=start, version=version)
    for version, n in (("a", 10), ("b", 20)):
        found = call("monitor", "status", *STORE, "--model", "default", "--version", version, "--format", "json")
        assert json.loads(found)["models"]["default"]["n_rows"] == n
    text = call("monitor", "status", *STORE, "--version", "a", code=2)
    assert "--model must be given with --version" in text


def test_history_of_a_class(here, call):
    monitor = cb.Monitor("monitor.db", classes=["cat", "dog"])
    monitor.observe(["cat", "dog"], [[0.6, 0.4], [0.3, 0.7]], time=datetime(2026, 1, 1, tzinfo=UTC))
    found = json.loads(call("monitor", "history", *STORE, "--event", "dog", "--format", "json"))
    assert (found["event"], found["windows"][0]["predicted"]) == ("dog", 0.55)


def test_settings_are_those_of_the_first_rows(here, call):
    write_csv("calm.csv", rows(3))
    options = (
        "--window",
        "week",
        "--maturity",
        "2d",
        "--alpha",
        "0.01",
        "--dependence",
        "any",
        "--resolution",
        "2**-8",
    )
    call("monitor", "observe", "calm.csv", *STORE, *ROWS, *options)
    settings = cb.Monitor("monitor.db").settings
    assert (settings.window, settings.alpha, settings.dependence) == ("week", 0.01, "any")
    assert (settings.maturity, settings.resolution) == (2 * 86_400_000_000, 2**-8)
    call("monitor", "observe", "calm.csv", *STORE, *ROWS)
    text = call("monitor", "observe", "calm.csv", *STORE, *ROWS, "--alpha", "0.05", code=2)
    assert "--alpha must be 0.01, the value stored for model 'default'; got 0.05" in text
    call("monitor", "observe", "calm.csv", *STORE, *ROWS, "--model", "rows", "--window", "100")
    assert cb.Monitor("monitor.db", model="rows").status().n_windows == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("status", "--store", "none.db"), "There is no store 'none.db'. `calibrant monitor observe` creates one."),
        (("status", *STORE, "--model", "x"), "--model must be a model of the store, which has 'default'; got 'x'"),
        (("history", *STORE, "--event", "x"), "--event must be a label of the model: it has none; got 'x'"),
        (("silence", *STORE, "--end", "9" * 20), "must be an active silence of the model, which has none; got 9999"),
        (("history", *STORE, "--group", "x"), '--group must be a label of the model: "a", "b"; got \'x\''),
        (("observe", "calm.csv", *STORE, *ROWS, "-p", "y"), "--score must be given once"),
        (("observe", "calm.csv", *STORE, *ROWS, "-w", "p"), "must have no weights or frequencies"),
        (("observe", "calm.csv", *STORE, "-y", "y", "-p", "p", "--time", "g"), "time must hold times; row 0 is 'a'"),
        (("observe", "calm.csv", *STORE, "-y", "y", "-p", "p"), "Missing option '--time'"),
        (("observe", "calm.csv", *STORE, *ROWS, "--maturity", "soon"), "'soon' is not a duration, such as 36h or 2d"),
        (("observe", "calm.csv", *STORE, *ROWS, "--window", "month", "--model", "m"), "--window must be 'hour'"),
        (("status", "--store", "calm.csv"), "is not a SQLite database"),
    ],
)
def test_bad_input_exits_2(here, call, arguments, message):
    write_csv("calm.csv", rows(2))
    call("monitor", "observe", "calm.csv", *STORE, *ROWS, "--group", "g")
    assert message in call("monitor", *arguments, code=2)
    assert cb.Monitor("monitor.db").status().n_rows == 800


@pytest.mark.parametrize(
    "edit", ["models SET settings = '{}x'", "versions SET horizon = -257432428800000000"], ids=["settings", "horizon"]
)
def test_a_damaged_model_is_named_and_can_be_deleted(here, call, edit):
    for model in ("good", "bad"):
        cb.Monitor("monitor.db", model=model).observe([0, 1], [0.2, 0.8], time="2026-01-05")
    with sqlite3.connect("monitor.db") as connection:
        key = "name" if edit.startswith("models") else "model_id"
        connection.execute(f"UPDATE calibrant_{edit} WHERE {key} IN ('bad', 2)")
    connection.close()
    assert "Model 'bad' cannot be read; --model shows the others. The store is damaged: " in call(
        "monitor", "status", *STORE, code=2
    )
    call("monitor", "status", *STORE, "--model", "good")
    call("monitor", "delete", *STORE, "--model", "bad", "--yes")
    assert call("monitor", "status", *STORE).startswith("Status: no alarm for model 'good'")


def test_reading_creates_no_store(here, call):
    for command in ("status", "history"):
        for store in ("monitor.db", "sqlite:///monitor.db", f"sqlite:///{Path('monitor.db').absolute()}"):
            assert "There is no store 'monitor.db'" in call("monitor", command, "--store", store, code=2)
    assert not Path("monitor.db").exists()


def test_a_store_without_models_is_named_so(here, call):
    Store("monitor.db")
    assert "The store has no model. `calibrant monitor observe`" in call("monitor", "status", *STORE, code=2)
