"""Counting in batches: rows with ties are folded into the table, and all groups are counted in one sort."""

import resource
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import calibrant as cb
from calibrant._support.columns import ColumnData
from calibrant._support.errors import InputError
from calibrant.ingest.counting import CountOptions, Weighting
from calibrant.ingest.table_counter import TableCounter

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
pytest.importorskip("duckdb", reason="duckdb is not installed")

BATCH = 1 << 18


def batches(count, draw, *, seed=0):
    """Yield batches of outcomes and scores."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield {"y": rng.integers(0, 2, BATCH, dtype=np.int8), "p": draw(rng, BATCH)}


def counted(rows, *, keys=(), weighting=None, expected=None, max_memory=None, resolution=None):
    options = CountOptions(resolution=resolution)
    counter = TableCounter("y", ["p"], list(keys), weighting, options, max_memory)
    counter.expected = expected
    for batch in rows:
        counter.add({name: ColumnData(name, values) for name, values in batch.items()})
    return counter.tables()


def two_scores(rng, size):
    return rng.integers(1, 3, size) / 4


@pytest.mark.parametrize("expected", [None, 80 * BATCH])
def test_memory_of_counting_follows_the_table(expected):
    """20,971,520 rows take 180 MiB if all of them are kept."""
    tracemalloc.start()
    try:
        table = counted(batches(80, two_scores), expected=expected).total()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert table.size == 80 * BATCH
    assert len(table) == 2
    assert peak < 64 * 2**20


SCAN = """
import sys
import calibrant as cb
table = cb.scan(sys.argv[1], y="y", p="p")
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(table.size, len(table), int(peak.split()[1]) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak memory is read from /proc")
def test_peak_memory_of_a_scan_of_many_rows_with_two_scores(tmp_path):
    rows = 20_000_000
    y = pa.array(np.arange(rows) % 2, type=pa.int8())
    p = pa.array(np.arange(rows) // 2 % 2 / 4 + 0.25)
    pq.write_table(pa.table({"y": y, "p": p}), tmp_path / "two.parquet")
    done = subprocess.run(
        [sys.executable, "-c", SCAN, str(tmp_path / "two.parquet")], capture_output=True, text=True, check=True
    )
    size, distinct, peak = map(int, done.stdout.split()[-3:])
    assert (size, distinct) == (rows, 2)
    assert peak < 350  # MiB; 535 if all rows are kept


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("expected", [None, 6 * BATCH, 2 * BATCH])
@pytest.mark.parametrize("scores", ["ties", "distinct", "ties, then distinct", "float32, then float64"])
def test_folding_changes_no_table(monkeypatch, grouped, expected, scores):
    monkeypatch.setattr("calibrant.ingest.table_counter._FOLD", BATCH)
    rng = np.random.default_rng(1)
    rows = []
    for i in range(6):
        p = rng.random(BATCH) if scores == "distinct" or (scores == "ties, then distinct" and i > 2) else None
        p = rng.integers(0, 1001, BATCH) / 1000 if p is None else p
        p = p.astype(np.float32) if scores == "float32, then float64" and i < 3 else p
        group = rng.integers(0, 3 + i, BATCH)  # groups appear in later batches
        rows.append({"y": rng.integers(0, 2, BATCH), "p": p, "g": group if grouped else np.zeros(BATCH, dtype=int)})
    tables = counted(rows, keys=["g"] if grouped else [], expected=expected)
    y, p, g = (np.concatenate([batch[name].astype(float) for batch in rows]) for name in ("y", "p", "g"))
    for group in range(8) if grouped else [None]:
        own = g == group if grouped else slice(None)
        found, whole = tables["p", group], cb.ScoreTable.from_arrays(y[own], p[own])
        assert found == whole
        assert (found.n_in, found.n_dropped, found.notes) == (whole.n_in, 0, whole.notes)


@pytest.mark.parametrize("grouped", [False, True])
def test_folding_of_frequencies_changes_no_table(monkeypatch, grouped):
    monkeypatch.setattr("calibrant.ingest.table_counter._FOLD", 1000)
    rng = np.random.default_rng(2)
    rows = [
        {"y": rng.integers(0, 2, 900), "p": rng.integers(0, 11, 900) / 10, "w": rng.integers(0, 4, 900) * 1.0}
        | {"g": rng.integers(0, 3, 900)}
        for _ in range(10)
    ]
    tables = counted(rows, keys=["g"] if grouped else [], weighting=Weighting("w", importance=False))
    y, p, w, g = (np.concatenate([batch[name] for batch in rows]) for name in ("y", "p", "w", "g"))
    for group in range(3) if grouped else [None]:
        own = g == group if grouped else slice(None)
        found, whole = tables["p", group], cb.ScoreTable.from_arrays(y[own], p[own], frequency=w[own])
        assert found == whole
        assert (found.n_in, found.n_dropped, found.notes) == (whole.n_in, whole.n_dropped, whole.notes)


def test_rows_with_ties_are_folded_before_memory_is_refused():
    table = counted(batches(12, two_scores), max_memory=20 * 2**20).total()
    assert table.size == 12 * BATCH
    with pytest.raises(InputError, match="Counting these rows exactly may take"):
        counted(batches(12, lambda rng, size: rng.random(size)), max_memory=20 * 2**20)


def test_rounded_groups_carry_one_note(monkeypatch):
    monkeypatch.setattr("calibrant.ingest.table_counter._FOLD", BATCH)
    rows = [batch | {"g": np.arange(BATCH) % 2} for batch in batches(3, lambda rng, size: rng.random(size))]
    table = counted(rows, keys=["g"], resolution=2**-8)["p", 1]
    y, p = (np.concatenate([batch[name][1::2] for batch in rows]) for name in ("y", "p"))
    expected = cb.ScoreTable.from_arrays(y, p).round(2**-8)
    assert table == expected
    assert table.notes == expected.notes


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["north", "south", "east"], dtype=object),
        np.array([7, -3, 2**62]),
        np.array([0.5, -0.25, 1e300]),
        np.array([True, False]),
        np.array(["2026-01-02", "2025-01-01"], dtype="datetime64[D]"),
        np.array([2**64 - 1, 1], dtype=np.uint64),
        np.array(["a", 1, "b"], dtype=object),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_groups_of_every_type_are_encoded_as_by_hand(labels):
    rng = np.random.default_rng(3)
    g, h, y, p = (
        labels[rng.integers(0, len(labels), 4000)],
        rng.integers(0, 3, 4000),
        rng.integers(0, 2, 4000),
        rng.random(4000),
    )
    for keys in (["g"], ["g", "h"], ["h", "g"]):
        tables = counted([{"y": y, "p": p, "g": g, "h": h}], keys=keys)
        assert len(tables) == len(labels) * (1 if keys == ["g"] else 3)
        for label in labels:
            for other in range(3) if len(keys) > 1 else [None]:
                shown = label.astype(object) if hasattr(label, "astype") else label
                key = shown if len(keys) == 1 else (shown, other) if keys[0] == "g" else (other, shown)
                own = (g == label) & ((h == other) | (other is None))
                assert tables["p", key] == cb.ScoreTable.from_arrays(y[own], p[own])


@pytest.mark.parametrize("rows", [1500, 150_000])
def test_a_column_of_ids_is_refused_as_groups(rows):
    frame = pa.table({"y": np.arange(rows) % 2, "p": np.full(rows, 0.5), "id": np.arange(rows)})
    with pytest.raises(InputError, match="by must have at most"):
        cb.from_frame(frame, y="y", p="p", by="id")


def test_a_column_of_ids_in_a_file_is_refused_as_groups(tmp_path):
    pq.write_table(pa.table({"y": [0, 1] * 1000, "p": [0.5] * 2000, "id": range(2000)}), tmp_path / "ids.parquet")
    with pytest.raises(InputError, match=r"by must have at most 1,000 groups, or at least 2 rows .* got 2,000 groups"):
        cb.scan(tmp_path / "ids.parquet", y="y", p="p", by="id")


def test_many_groups_are_totalled_fast():
    """One by one, the sum of 20,000 tables takes half a minute."""
    rng = np.random.default_rng(4)
    tables = cb.metrics.Tables(
        {
            ("p", i): cb.ScoreTable(np.sort(rng.random(4)), np.ones(4, dtype=int), np.zeros(4, dtype=int), n_in=4)
            for i in range(20_000)
        }
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    total = tables.total()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 5
    assert (total.size, total.n_in, len(total)) == (80_000, 80_000, 80_000)
