"""Speed of the monitor's store: rows per second, beside a plain INSERT of the same rows, and the status of many models.

``make bench NAME=monitor`` writes both tables to docs/studies. The plain INSERT writes one row of (time, group,
outcome, score) per observation in the same kind of database with the same durability, one transaction per batch; it
computes nothing.
"""

import csv
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

import calibrant as cb
from calibrant.monitor import schema
from calibrant.monitor.store import Store
from tools import servers

BATCHES = ((100, 50), (1_000, 30), (10_000, 20), (100_000, 5))  # rows per batch, number of batches
GROUPS = 20
MODELS, WINDOWS = 100, 365
RESULTS = Path(__file__).parents[1] / "docs" / "studies"
START = datetime(2026, 1, 1, tzinfo=UTC)


def batch(rows: int, seed: int) -> dict[str, Any]:
    """Return the columns of a batch; scores have three decimals."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 8, rows).round(3)
    return {"y": (rng.random(rows) < p).astype(int), "p": p, "group": rng.integers(0, GROUPS, rows)}


def monitor_seconds(store: str, rows: int, batches: int) -> float:
    """Return the time to observe batches in one day, so that no window closes."""
    monitor = cb.Monitor(store, model=f"rows {rows}")
    data = [batch(rows, i) for i in range(batches)]
    started = time.perf_counter()
    for i, each in enumerate(data):
        monitor.observe(each["y"], each["p"], time=START, group=each["group"], batch=i)
    return time.perf_counter() - started


def insert_seconds(store: str, rows: int, batches: int) -> float:
    """Return the time to insert the same rows into a table, one transaction per batch."""
    table = sa.Table(
        f"plain_{rows}",
        sa.MetaData(),
        sa.Column("time", sa.BigInteger),
        sa.Column("group", sa.Integer),
        sa.Column("y", sa.Integer),
        sa.Column("p", sa.Double),
    )
    opened = Store(store)
    with opened.write() as connection:
        table.create(connection)
    data = [batch(rows, i) for i in range(batches)]
    started = time.perf_counter()
    for each in data:
        columns = zip(each["group"].tolist(), each["y"].tolist(), each["p"].tolist(), strict=True)
        found = [{"time": 0, "group": g, "y": y, "p": p} for g, y, p in columns]
        with opened.write() as connection:
            connection.execute(table.insert(), found)
    return time.perf_counter() - started


def fill(store: str) -> list[cb.Monitor]:
    """Write a year of evidence of many models and groups directly; their states are those of a real stream."""
    engine = sa.create_engine(store if "://" in store else f"sqlite:///{store}")  # one pool for all models
    first = cb.Monitor(engine, model="first")
    for day in range(5):
        each = batch(2_000, day)
        first.observe(each["y"], each["p"], time=START + timedelta(days=day), group=each["group"])
    with first.store.read() as connection:
        streams = [dict(row._mapping) for row in connection.execute(sa.select(schema.streams))]
        evidence = [dict(row._mapping) for row in connection.execute(sa.select(schema.evidence))]
    last = [row for row in evidence if row["window"] == max(each["window"] for each in evidence)]
    monitors = [cb.Monitor(engine, model=f"model {i}") for i in range(MODELS)]
    day = 86_400_000_000
    for monitor in monitors:
        with monitor._write() as recorder:
            version = recorder.version(None).id
            starts = [int(START.timestamp() * 1e6) + w * day for w in range(WINDOWS)]
            windows = [{"version_id": version, "window": s, "start": s, "end": s + day, "closed": True} for s in starts]
            recorder.connection.execute(schema.windows.insert(), windows)
            recorder.connection.execute(schema.streams.insert(), [{**row, "version_id": version} for row in streams])
            rows = [{**row, "version_id": version, "window": s} for s in starts for row in last]
            recorder.connection.execute(schema.evidence.insert(), rows)
    return monitors


@contextmanager
def stores() -> Iterator[dict[str, str]]:
    """Yield the addresses of an empty SQLite store and, if a server is found, of a PostgreSQL store."""
    with tempfile.TemporaryDirectory() as folder:
        addresses = {"SQLite": str(Path(folder) / "store.db")}
        if servers.why_no_postgresql() is not None:
            yield addresses
            return
        with servers.postgresql(durable=True) as address:
            server = dict(part.split("=", 1) for part in address.split())
            url = f"postgresql+psycopg://{server['user']}@{server['host']}:{server['port']}/{server['dbname']}"
            yield {**addresses, "PostgreSQL": url}


def speeds(addresses: dict[str, str]) -> Iterator[list[str]]:
    """Yield rows per second of each store and size of batches, those of the plain INSERT, and their ratio."""
    for name, store in addresses.items():
        for rows, batches in BATCHES:
            ours, plain = monitor_seconds(store, rows, batches), insert_seconds(store, rows, batches)
            total = rows * batches
            yield [name, f"{rows:,}", f"{total / ours:,.0f}", f"{total / plain:,.0f}", f"{plain / ours:.2f}"]


def status_times(addresses: dict[str, str]) -> Iterator[list[str]]:
    """Yield the time of the status of all models, in each store, and how much of it is work of this process."""
    for name, store in addresses.items():
        monitors = fill(store)
        started, worked = time.perf_counter(), time.process_time()
        for monitor in monitors:
            monitor.status()
        seconds, cpu = time.perf_counter() - started, time.process_time() - worked
        yield [name, f"{MODELS}", f"{WINDOWS}", f"{GROUPS}", f"{seconds:.2f}", f"{cpu:.2f}"]


def write(name: str, header: list[str], rows: Iterator[list[str]]) -> None:
    """Print a table, and write it to docs/studies."""
    with (RESULTS / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        for row in [header, *rows]:
            csv.writer(file, lineterminator="\n").writerow(row)
            print("  ".join(f"{cell:>18}" for cell in row), flush=True)


def main() -> None:
    """Measure and write both tables."""
    with stores() as addresses:
        names = ["store", "rows per batch", "rows per s", "INSERT, rows per s", "ratio"]
        write("monitor_speed", names, speeds(addresses))
        names = ["store", "models", "windows", "groups", "status, s", "CPU s"]
        write("monitor_status", names, status_times(addresses))


if __name__ == "__main__":
    main()
