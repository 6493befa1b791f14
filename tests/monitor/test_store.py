"""The store under failure: damaged cells, newer schemas, full disks, locks, killed processes."""

import contextlib
import gc
import random
import sqlite3
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from small_disks import small_disk

import calibrant as cb
import tools.kill.monitor
from calibrant import InputError
from calibrant.monitor import schema
from calibrant.monitor import store as stores
from calibrant.monitor.cells import decode_table, encode_table
from calibrant.monitor.schema import StoreError
from tools import servers

START = datetime(2026, 1, 1, tzinfo=UTC)


def rows(n=50, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


def test_tables_survive_storage():
    for n in (1, 10, 500):
        table = cb.ScoreTable.from_arrays(*rows(n))
        assert decode_table(encode_table(table), "It") == table


def test_each_flipped_byte_of_a_table_is_found():
    data = encode_table(cb.ScoreTable.from_arrays(*rows(100)))
    for place in range(0, len(data), 7):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(StoreError, match="It is damaged"):
            decode_table(bytes(changed), "It")
    with pytest.raises(StoreError, match="It is damaged"):
        decode_table(data[:-3], "It")


def test_a_damaged_cell_is_named(store):
    monitor = cb.Monitor(store, model="churn")
    monitor.observe(*rows(), time=START, group="north")
    monitor.observe(*rows(), time=START, group="south")
    with monitor.store.write() as connection:
        cells = schema.cells
        (data,) = connection.execute(sa.select(cells.c.data).where(cells.c.group == '"north"')).one()
        broken = bytes([*data[:-1], data[-1] ^ 1])
        connection.execute(cells.update().where(cells.c.group == '"north"').values(data=broken))
    message = "The table of model 'churn', window 2026-01-01 00:00, group 'north', is damaged: its checksum does not"
    with pytest.raises(StoreError, match=message):
        monitor.evaluate()
    assert monitor.status().n_rows == 100, "the status reads no tables"
    with pytest.raises(StoreError, match=message):
        monitor.observe(*rows(), time=START + timedelta(days=1))
    assert monitor.status().n_rows == 100


def test_a_store_of_the_first_schema_goes_on_as_if_it_were_new(store):
    def feed(model, days):
        monitor = cb.Monitor(store, model=model)
        for day in days:
            monitor.observe(*rows(80, day), time=START + timedelta(days=day), group=["a", "b"] * 40)
        return monitor

    feed("old", range(5))
    feed("new", range(9))
    with cb.Monitor(store, model="old").store.write() as connection:
        for table, column in (
            *((name, "event") for name in ("cells", "streams", "evidence")),
            *(("models", name) for name in ("n_forgotten", "n_forgotten_unlabelled")),
        ):
            connection.exec_driver_sql(f"ALTER TABLE calibrant_{table} DROP COLUMN {column}")
        connection.execute(schema.schema.update().values(version=1))
    old, new = (feed("old", range(5, 9)), cb.Monitor(store, model="new"))
    for group in (None, "a"):
        assert old.history(group).to_dict()["windows"] == new.history(group).to_dict()["windows"]
    assert old.table() == new.table()


def test_a_newer_schema_is_refused(store):
    monitor = cb.Monitor(store)
    with monitor.store.write() as connection:
        connection.execute(schema.schema.update().values(version=99))
    with pytest.raises(
        StoreError, match=f"up to version {schema.SCHEMA_VERSION}; got version 99, which a newer Calibrant"
    ):
        cb.Monitor(store)


def test_an_older_schema_is_migrated(store, monkeypatch):
    monitor = cb.Monitor(store)
    monitor.observe(*rows(), time=START)

    def add_column(connection):
        connection.execute(sa.text("ALTER TABLE calibrant_models ADD COLUMN owner TEXT"))

    now = schema.SCHEMA_VERSION
    monkeypatch.setattr(schema, "SCHEMA_VERSION", now + 2)
    monkeypatch.setattr(schema, "MIGRATIONS", {now: lambda connection: None, now + 1: add_column})
    again = cb.Monitor(store)
    assert again.status().n_rows == 50
    with again.store.read() as connection:
        assert connection.execute(sa.select(schema.schema.c.version)).scalar_one() == now + 2
        assert connection.execute(sa.text("SELECT owner FROM calibrant_models")).scalar_one() is None


def test_a_store_of_version_2_gets_the_tables_of_the_service(store):
    monitor = cb.Monitor(store)
    monitor.observe(*rows(), time=START)
    with monitor.store.write() as connection:
        for name in ("deliveries", "channels", "outbox", "silences", "tokens", "audit"):
            connection.execute(sa.text(f"DROP TABLE calibrant_{name}"))
        connection.execute(sa.text("ALTER TABLE calibrant_models DROP COLUMN revision"))
        connection.execute(schema.schema.update().values(version=2))
    again = cb.Monitor(store)
    again.observe(*rows(), time=START)
    assert again.status().n_rows == 100
    with again.store.read() as connection:
        assert connection.execute(sa.select(schema.models.c.revision)).scalar_one() == 1
        assert {table.name for table in schema.metadata.sorted_tables} <= set(sa.inspect(connection).get_table_names())


def test_writes_in_one_transaction_are_stored_together_or_not_at_all(store):
    monitor = cb.Monitor(store)
    with monitor.store.transaction():
        monitor.observe(*rows(), time=START)
        with pytest.raises(InputError):
            monitor.acknowledge(99, "no such alarm")
        monitor.observe(*rows(), time=START)
    assert monitor.status().n_rows == 100
    with contextlib.suppress(RuntimeError), monitor.store.transaction():
        monitor.observe(*rows(), time=START)
        raise RuntimeError
    assert monitor.status().n_rows == 100


def test_a_failed_migration_changes_nothing(path, monkeypatch):
    cb.Monitor(path)

    def fail(connection):
        connection.execute(sa.text("DROP TABLE calibrant_cells"))
        connection.execute(sa.text("SELECT * FROM no_such_table"))

    with monkeypatch.context() as patch:
        now = schema.SCHEMA_VERSION
        patch.setattr(schema, "SCHEMA_VERSION", now + 1)
        patch.setattr(schema, "MIGRATIONS", {now: fail})
        with pytest.raises(StoreError, match="no such table: no_such_table"):
            cb.Monitor(path)
    cb.Monitor(path).observe(*rows(), time=START)


def test_a_locked_store_is_a_clear_error(path, monkeypatch):
    monkeypatch.setattr(stores, "_BUSY_SECONDS", 0)
    monitor = cb.Monitor(path)
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="The store is locked by another process. Nothing of this call was stored"):
        monitor.observe(*rows(), time=START, batch=1)
    assert monitor.status().n_rows == 0
    other.close()
    assert monitor.observe(*rows(), time=START, batch=1).n_rows == 50


def test_other_files_and_urls_are_errors(tmp_path):
    (tmp_path / "text.db").write_text("not a database, but long enough to look at" * 100)
    with pytest.raises(StoreError, match="is not a SQLite database"):
        cb.Monitor(tmp_path / "text.db")
    with pytest.raises(StoreError, match="cannot be opened. Check that its folder exists"):
        cb.Monitor(tmp_path / "no" / "store.db")
    with pytest.raises(InputError, match="store must be a path or a URL of SQLAlchemy; got 'non sense://x'"):
        cb.Monitor("non sense://x")
    with pytest.raises(InputError, match="store must be a path or a URL of SQLAlchemy; got 'sqlite:///a.db.timeout=x'"):
        cb.Monitor("sqlite:///a.db?timeout=x")
    with pytest.raises(InputError, match="store must be SQLite or PostgreSQL; got mysql"):
        cb.Monitor("mysql://user@host/database")
    with pytest.raises(InputError, match="store must be SQLite or PostgreSQL; got nonsense"):
        cb.Monitor("nonsense://x")
    with pytest.raises(InputError, match="store must be a path or a URL of SQLAlchemy; got '://x'"):
        cb.Monitor("://x")
    with pytest.raises(StoreError, match="The store cannot be used"):
        cb.Monitor("postgresql+psycopg://nobody@127.0.0.1:1/none?connect_timeout=2")


@pytest.mark.parametrize("target", [None, 5, b"store.db", "", Path(), "a\0b"])
def test_a_store_must_be_named(target):
    """SQLite takes an empty name as a temporary database, and would lose all batches without a word."""
    with pytest.raises(InputError, match="store must be a path or a URL of SQLAlchemy; got"):
        cb.Monitor(target)


def test_an_engine_is_a_store_and_stays_open(path):
    engine = sa.create_engine(f"sqlite:///{path}")
    try:
        for _ in range(2):
            cb.Monitor(engine).observe(*rows(), time=START)
        assert cb.Monitor(engine).status().n_rows == 100
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    finally:
        engine.dispose()


@pytest.fixture
def disk(tmp_path):
    """Mount a file system of 1 MB."""
    with small_disk(tmp_path / "disk", "1m") as folder:
        yield folder


def test_a_full_disk_is_a_clear_error_and_the_store_is_intact(disk):
    monitor, stored = cb.Monitor(disk / "store.db"), 0

    def fill():
        nonlocal stored
        for batch in range(1000):
            monitor.observe(*rows(2000, batch), time=START, batch=batch)
            stored += 1

    with pytest.raises(StoreError, match="The disk of the store is full. Nothing of this call was stored"):
        fill()
    assert stored > 0
    again = cb.Monitor(disk / "store.db")
    assert again.status().n_rows == 2000 * stored
    tables = [cb.ScoreTable.from_arrays(*rows(2000, batch)) for batch in range(stored)]
    assert again.evaluate(n_resamples=19).table == sum(tables)
    with again.store.read() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


def test_a_disk_without_space_for_the_lock_file_is_full_and_reading_stores_nothing(disk):
    path = disk / "store.db"
    cb.Monitor(path).observe(*rows(), time=START)
    with contextlib.suppress(OSError), (disk / "fill").open("wb", buffering=0) as out:
        while True:
            out.write(bytes(4096))
    with pytest.raises(StoreError) as caught:
        cb.Monitor(path).status()
    assert caught.value.__cause__.orig.sqlite_errorname == "SQLITE_IOERR_SHMSIZE"
    assert str(caught.value) == "The disk of the store is full. Free some space and repeat the call."


def test_damaged_bytes_in_the_schema_of_sqlite_are_a_store_error(path):
    """SQLite names the damaged table in its message, which is not UTF-8 then."""
    cb.Monitor(path).observe(*rows(), time=START)
    gc.collect()  # close the file
    whole, found = Path(path).read_bytes(), Counter()
    place = whole.index(b"CREATE TABLE")
    for start in range(place, place + 60):
        Path(path).write_bytes(whole[:start] + b"\x9d" + whole[start + 1 :])
        try:
            cb.Monitor(path).status()
        except (StoreError, InputError) as error:
            found[type(error.__cause__)] += 1
    assert found[UnicodeDecodeError] > 0


def check_kills(store):
    result = tools.kill.monitor.run(store, n_batches=60, n_kills=4, seed=random.Random(0))
    assert result.acknowledged == 60
    assert result.kills == 4
    assert (result.lost, result.counted_twice) == (0, 0)


def test_no_acknowledged_batch_is_lost_or_counted_twice_after_kills(path):
    check_kills(path)


@pytest.mark.xdist_group("postgresql")
def test_no_acknowledged_batch_is_lost_or_counted_twice_after_kills_in_a_durable_postgresql():
    reason = servers.why_no_postgresql()
    if reason is not None:
        pytest.skip(reason)
    import psycopg

    with servers.postgresql(durable=True) as address:
        server = dict(part.split("=", 1) for part in address.split())
        with psycopg.connect(**server) as connection:
            for name in ("fsync", "synchronous_commit", "full_page_writes"):
                assert connection.execute(f"SHOW {name}").fetchone() == ("on",)
        check_kills(f"postgresql+psycopg://{server['user']}@{server['host']}:{server['port']}/{server['dbname']}")


def test_small_parts_of_an_open_window_are_joined_and_count_the_same(path):
    whole, parts = cb.Monitor(path, model="whole"), cb.Monitor(path, model="parts")
    rng = np.random.default_rng(0)
    p = rng.random(600).round(2)
    y, group = (rng.random(600) < p).astype(int), rng.integers(0, 3, 600)
    whole.observe(y, p, time=START, group=group)
    with parts.store.transaction():
        for i in range(0, 600, 2):
            own = slice(i, i + 2)
            parts.observe(y[own], p[own], time=START, group=group[own], batch=i)
    count = sa.select(sa.func.count()).select_from(schema.cells)
    with parts.store.read() as connection:
        assert connection.execute(count).scalar_one() <= 64 + 16 * 3 + 3 + 3  # joined at the limit; and those of whole
    assert parts.table() == whole.table()
    for each in (whole, parts):
        each.close()
    assert parts.history().windows == whole.history().windows
    with parts.store.read() as connection:
        assert connection.execute(count).scalar_one() == 6
