"""Values of the store that were edited by hand: each read raises a StoreError or gives a result."""

import contextlib
import math
import re
import shutil
import sqlite3
from datetime import timedelta

import pytest
import sqlalchemy as sa

import calibrant as cb
from calibrant import InputError
from calibrant.inference import EProcess
from calibrant.inference.sequential.e_processes import Evidence
from calibrant.monitor import schema
from calibrant.monitor.alarm_log import list_silences, silence_model
from calibrant.monitor.model_queries import latest_versions, read_states, read_summaries
from calibrant.monitor.model_settings import ModelSettings
from calibrant.monitor.schema import RULES, StoredValue, StoreError
from calibrant.monitor.store import Store, read_audit, record_audit

tokens = pytest.importorskip("calibrant.monitor.service.access_tokens", reason="Starlette is not installed")
outboxes = pytest.importorskip("calibrant.monitor.service.outbox", reason="Starlette is not installed")
notifications = pytest.importorskip("calibrant.monitor.service.notifications", reason="Starlette is not installed")

COLUMNS = [
    (table, column)
    for table in schema.metadata.sorted_tables
    for column in table.columns
    if isinstance(column.type, StoredValue)
]
HOSTILE = ["x", "[[]]", "{", "", -1, 7, 2**62, 1.5, math.inf, 1e308, b"\x00\xff"]


class Channel:
    """The name of a receiver of alarms."""

    name, models = "hook", None


def fill(address):
    """Store a model with versions, groups, windows, predictions, an alarm, a silence, a token and a delivery."""
    monitor = cb.Monitor(address, model="m", dependence="independent")
    for day in range(1, 8):
        monitor.observe([1, 0] * 30, [0.01] * 60, time=f"2026-01-0{day}", group="g", batch=f"b{day}")
    monitor.predict(["a", "b"], [0.2, 0.7], time="2026-01-07", group="g")
    monitor.observe([1, 0] * 5, [0.5] * 10, time="2026-01-08", version="2")
    classes = cb.Monitor(address, model="c", classes=["x", "y"])
    for day in (1, 2):
        classes.observe(["x", "y"] * 5, [[0.6, 0.4]] * 10, time=f"2026-01-0{day}")
    store = monitor.store
    silence_model(store, "m", "8000-01-01", "holiday", "me")
    record_audit(store, "me", "fill", "m", rows=60)
    secret, _ = tokens.TokenBook(store).create("t", "read", ["m"], timedelta(days=9))
    outboxes.Outbox(store).register([Channel])
    with store.write() as connection:
        entry = connection.execute(sa.select(schema.outbox.c.id)).scalars().first()
        values = {"outbox_id": entry, "channel": "hook", "state": "waiting", "next_attempt": 0}
        connection.execute(schema.deliveries.delete())
        connection.execute(schema.silences.update().values(until=1))
        connection.execute(schema.deliveries.insert().values(**values))
    return secret


def reads(address, secret):
    """Return each way to read a store, as a function."""
    store = address if isinstance(address, Store) else Store(address)
    found = [
        lambda: read_summaries(store),
        lambda: read_states(store),
        lambda: list_silences(store, "m"),
        lambda: read_audit(store, 0, 10),
        lambda: tokens.TokenBook(store).list(),
        lambda: tokens.TokenBook(store).verify(secret),
        lambda: outboxes.Outbox(store).due(Channel),
        lambda: outboxes.Outbox(store).waiting(Channel),
        lambda: _latest(store),
    ]
    for model, event in (("m", None), ("c", "x")):
        monitor = cb.Monitor(store, model=model)
        found += [
            monitor.status,
            lambda monitor=monitor: monitor.status(version="1"),
            monitor.alarms,
            monitor.groups,
            monitor.versions,
            monitor.history,
            lambda monitor=monitor: monitor.history(version="1"),
            lambda monitor=monitor, event=event: monitor.history(event=event),
            lambda monitor=monitor, event=event: monitor.table(version="1", event=event),
        ]
    grouped = cb.Monitor(store, model="m")
    found += [lambda: grouped.table("2026-01-02", "2026-01-05", version="1")]
    return [*found, lambda: grouped.history("g", version="1"), lambda: grouped.table(version="1", group="g")]


def writes(address, folder):
    """Return ways to read a store that also write it."""
    monitor = cb.Monitor(address, model="m")
    return [
        lambda: monitor.observe([1, 0], [0.5, 0.5], time="2026-01-07", group="g", batch="b7", version="1"),
        lambda: monitor.outcome("a", 1),
        lambda: monitor.observe([1, 0], [0.5, 0.5], time="2026-01-20", group="g"),
        monitor.close,
        lambda: monitor.compact(0.01),
        lambda: monitor.forget("2026-01-06"),
        lambda: monitor.export(folder / "export"),
        lambda: cb.Monitor(address, model="c").close(),
    ]


def _latest(store):
    with store.read() as connection:
        return latest_versions(connection)


def failures(calls):
    """Return the number of calls that raise a `StoreError`; other errors may be about unknown names only."""
    count, unknown = (
        0,
        "must be a (version|group|model) |must be an alarm|was deleted|at least one row|must be a new id",
    )
    for call in calls:
        try:
            call()
        except StoreError:
            count += 1
        except InputError as error:
            if not re.search(unknown, str(error)):
                raise
    return count


def opened(make, *arguments):
    """Return the calls on a store, or one call that fails as the opening did."""
    try:
        return make(*arguments)
    except StoreError as error:
        return [lambda error=error: _raise(error)]


def _raise(error):
    raise error


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("filled") / "store.db"
    secret = fill(str(path))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path, secret


def edited(original, path, edit, *values):
    """Copy a store and edit the copy; return False if a constraint refuses it."""
    shutil.copy(original, path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        try:
            connection.execute(edit, values)
        except sqlite3.IntegrityError:
            return False
    return True


def update_of(table, column):
    return f'UPDATE {table.name} SET "{column.name}" = ? WHERE rowid = (SELECT min(rowid) FROM {table.name})'


def test_each_hostile_value_of_each_column_is_refused_when_it_is_read(store):
    fill(store)
    address = store if "://" in store else f"sqlite:///{store}"
    engine, refused = sa.create_engine(address), set()  # SQLite checks no foreign keys by default
    is_sqlite = engine.dialect.name == "sqlite"
    first = "rowid = (SELECT min(rowid)" if is_sqlite else "ctid = (SELECT min(ctid)"
    for table, column in COLUMNS:
        edit = sa.table(table.name, sa.column(column.name)).update().where(sa.text(f"{first} FROM {table.name})"))
        for value in HOSTILE:
            with engine.connect() as connection:
                with contextlib.suppress(sa.exc.DBAPIError), connection.begin_nested():
                    connection.execute(edit.values({column.name: value}))
                refused |= {column} if is_refused(connection, column) else set()
                connection.rollback()
    engine.dispose()
    # PostgreSQL has types of its own; these rules say no more.
    loose = set() if is_sqlite else {"text", "bytes", "flag", "limit"}
    assert refused == {column for _, column in COLUMNS if column.type.rule not in loose}


def is_refused(connection, column):
    """Return whether the values of a column are refused with an error that names it; others must meet its rule."""
    try:
        found = connection.execute(sa.select(column)).scalars().all()
    except StoreError as error:
        return f"{column.table.name.removeprefix('calibrant_')}.{column.name} must be" in str(error)
    assert all(each is None or RULES[column.type.rule].holds(each) for each in found)
    return False


# Values that each rule accepts, and that the monitor would not have written.
ACCEPTED = {
    "count": [2**62], "rows": [2**62], "ordinal": [2**31 - 1], "time": [1], "sum": [1e308], "number": [1e308],
    "limit": [-math.inf], "probability": [0.0], "flag": [1, 0], "bytes": [b""], "text": ["[[]]"], "label": ['"z"'],
    "stream": ["event 1 of 2"], "sha256": ["0" * 64], "scope": ["admin"], "delivery": ["earlier"],
}  # fmt: skip


OFTEN_READ = [schema.cells, schema.streams, schema.alarms]
EDITS = [
    *(pytest.param(table, ACCEPTED, id=table.name) for table in OFTEN_READ),
    *(
        pytest.param(table, values, marks=pytest.mark.slow, id=f"{table.name}, {name} values")
        for table in schema.metadata.sorted_tables
        for name, values in (("accepted", ACCEPTED), ("hostile", dict.fromkeys(RULES, HOSTILE)))
    ),
]


@pytest.mark.parametrize(("table", "values"), EDITS)
def test_a_store_with_a_hostile_value_gives_results_or_store_errors(table, values, filled, tmp_path):
    original, secret = filled
    columns = [column for _, column in COLUMNS if column.table is table]
    for number, (column, value) in enumerate((c, v) for c in columns for v in values[c.type.rule]):
        path = tmp_path / f"{number}.db"
        if edited(original, path, update_of(table, column), value):
            failures(opened(reads, str(path), secret))
            failures(opened(writes, str(path), tmp_path / str(number)))


def test_rows_that_contradict_each_other_are_store_errors(filled, tmp_path):
    original, secret = filled
    edits = [
        "DELETE FROM calibrant_streams WHERE stream = ''",
        "DELETE FROM calibrant_streams WHERE stream != ''",
        "UPDATE calibrant_streams SET k = n + 1",
        "UPDATE calibrant_streams SET cohort = 0",
        "UPDATE calibrant_evidence SET score_sum = n * 2",
        "UPDATE calibrant_cells SET n = n + 1",
        "UPDATE calibrant_cells SET event = '\"z\"' WHERE event != ''",
        "UPDATE calibrant_alarms SET window = 1",
        "UPDATE calibrant_versions SET ordinal = ordinal + 1 WHERE name = '2'",
        "INSERT INTO calibrant_schema VALUES (3)",
        "DELETE FROM calibrant_schema",
        "UPDATE calibrant_schema SET version = 0",
    ]
    for number, edit in enumerate(edits):
        path = tmp_path / f"{number}.db"
        assert edited(original, path, edit)
        count = failures(opened(reads, str(path), secret)) + failures(opened(writes, str(path), tmp_path / f"{number}"))
        assert count, edit


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "{}x",
        '{"alpha": "x"}', '{"alpha": 2}', '{"window": []}', '{"window": "month"}', '{"what": 1}',
        '{"maturity": "x"}', '{"maturity": -1}', '{"kind": "foo"}', '{"kind": "multiclass"}', '{"levels": [2]}',
        '{"kind": "multiclass", "classes": [[]]}', '{"margin": NaN}', '{"resolution": "x"}', "[" * 100_000,
    ],
)  # fmt: skip
def test_settings_that_no_model_can_have_are_store_errors(text):
    with pytest.raises(StoreError, match="The store is damaged: .*settings"):
        ModelSettings.from_json(text)


def test_evidence_that_no_stream_can_have_is_refused():
    good = EProcess().update(EProcess().start(), cb.ScoreTable.from_counts([0.1], [50], [8])).to_dict()
    assert Evidence.from_dict(good).to_dict() == good
    bad = [{}, {**good, "n_windows": -1}, {**good, "log_e": math.nan}, {**good, "processes": [1.0]}]
    bad += [{**good, "memories": []}, {**good, "shifts": {}}, {**good, "spreads": ["x"]}, {**good, "log_e": [1.0]}]
    memories = [[[[-1.0]], [0.0]], *good["memories"][1:]]
    bad += [{**good, "memories": memories}, None]
    for values in bad:
        with pytest.raises(InputError, match="values must be"):
            Evidence.from_dict(values)


def test_each_rule_of_columns_is_used():
    assert {column.type.rule for _, column in COLUMNS} == set(RULES)
