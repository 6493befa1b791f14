"""Frames of every library give the tables that arrays give."""

import json
import os
from datetime import datetime, timedelta

import numpy as np
import pytest

import calibrant as cb
from calibrant._support.errors import InputError
from calibrant.tables import storage

nw = pytest.importorskip("narwhals", reason="narwhals is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
pl = pytest.importorskip("polars", reason="polars is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")

ROWS = int(os.environ.get("CALIBRANT_TEST_ROWS", "50000"))


def made(rows=ROWS):
    """Ties, -0.0, float32 scores, whole and real weights, 50 groups."""
    rng = np.random.default_rng(0)
    p = np.where(rng.random(rows) < 0.3, np.round(rng.random(rows), 2), rng.random(rows)).astype(np.float32)
    p[:5] = -0.0
    return {
        "y": (rng.random(rows) < p).astype(np.int8),
        "p": p,
        "q": np.sqrt(np.abs(p)).astype(np.float64),
        "g": rng.integers(0, 50, rows),
        "w": rng.integers(0, 3, rows),
        "v": rng.random(rows),
        "h": np.where(rng.random(rows) < 0.01, np.nan, p),
    }


DATA = made()
TABLE = pa.table({**DATA, "h": pa.array(DATA["h"], from_pandas=True)})  # NaN is null there
ENGINES = {
    "pandas": lambda t: t.to_pandas(),
    "pandas, nullable": lambda t: t.to_pandas().convert_dtypes(),
    "pandas, arrow": lambda t: t.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars, lazy": lambda t: pl.from_arrow(t).lazy(),
    "pyarrow": lambda t: t,
    "duckdb": duckdb.from_arrow,
}
each_engine = pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)


@each_engine
def test_every_engine_gives_the_same_table(make):
    frame = make(TABLE)
    y, p = DATA["y"], DATA["p"]
    assert cb.from_frame(frame, y="y", p="p") == cb.ScoreTable.from_arrays(y, p)
    whole = cb.from_frame(frame, y="y", p="p", frequency="w")
    assert whole == cb.ScoreTable.from_arrays(y, p, frequency=DATA["w"])
    assert whole.n_dropped == np.count_nonzero(DATA["w"] == 0)
    real = cb.from_frame(frame, y="y", p="p", sample_weight="v")
    expected = cb.ScoreTable.from_arrays(y, p, sample_weight=DATA["v"])
    assert real.n == pytest.approx(expected.n, rel=1e-12)
    assert real.w2 == pytest.approx(expected.w2, rel=1e-12)
    assert real.k2 == pytest.approx(expected.k2, rel=1e-12)
    weighted = cb.from_frame(frame, y="y", p="p", sample_weight="w")
    assert weighted == cb.ScoreTable.from_arrays(y, p, sample_weight=DATA["w"])
    assert weighted.importance
    holes = cb.from_frame(frame, y="y", p="h", missing="drop")
    assert holes == cb.ScoreTable.from_arrays(y, DATA["h"], missing="drop")
    assert holes.n_dropped == np.count_nonzero(np.isnan(DATA["h"]))
    rounded = cb.from_frame(frame, y="y", p="p", resolution=2**-10)
    assert rounded == cb.ScoreTable.from_arrays(y, p).round(2**-10)
    assert any("rounded" in note.text for note in rounded.notes)


@each_engine
def test_groups_and_models_come_from_one_pass(make):
    tables = cb.from_frame(make(TABLE), y="y", p=["p", "q"], by="g", frequency="w")
    assert tables.models == ["p", "q"]
    assert tables.groups == list(range(50))
    assert len(tables) == 100
    for model in ("p", "q"):
        whole = cb.ScoreTable.from_arrays(DATA["y"], DATA[model], frequency=DATA["w"])
        assert tables.total(model) == whole
        own = DATA["g"] == 7
        part = cb.ScoreTable.from_arrays(DATA["y"][own], DATA[model][own], frequency=DATA["w"][own])
        assert tables[model, 7] == part
    with pytest.raises(InputError, match="model must be one of 'p', 'q'"):
        tables.of()


@each_engine
def test_missing_cells_are_refused_or_dropped_and_counted(make):
    holes = pa.table(
        {
            "y": pa.array([0, 1, None, 1, 0], pa.int64()),
            "p": pa.array([0.1, None, 0.3, 0.9, 0.2], pa.float32()),
            "g": pa.array(["a", "b", "a", None, "a"]),
        }
    )
    frame = make(holes)
    with pytest.raises(InputError, match=r"y has 1 missing value \(first at row 2\)"):
        cb.from_frame(frame, y="y", p="p")
    table = cb.from_frame(frame, y="y", p="p", missing="drop")
    assert (table.size, table.n_in, table.n_dropped) == (3, 5, 2)
    with pytest.raises(InputError, match="g has 1 missing value"):
        cb.from_frame(frame, y="y", p="p", by="g", missing="drop")


@each_engine
def test_labels_of_any_kind_and_booleans_are_read(make):
    words = pa.table({"y": ["ham", "spam", "spam"], "b": [False, True, True], "p": [0.1, 0.8, 0.7]})
    expected = cb.ScoreTable.from_arrays([0, 1, 1], [0.1, 0.8, 0.7])
    assert cb.from_frame(make(words), y="y", p="p", pos_label="spam") == expected
    assert cb.from_frame(make(words), y="b", p="p") == expected
    with pytest.raises(InputError, match="pos_label"):
        cb.from_frame(make(words), y="y", p="p")


def test_several_columns_split_rows_together():
    frame = pl.DataFrame({"y": [0, 1, 1, 0], "p": [0.2, 0.7, 0.7, 0.1], "a": ["x", "y", "x", "x"], "b": [1, 1, 2, 1]})
    tables = cb.from_frame(frame, y="y", p="p", by=["a", "b"])
    assert tables.groups == [("x", 1), ("x", 2), ("y", 1)]
    assert tables["p", ("x", 1)].size == 2
    alone = cb.from_frame(frame, y="y", p=["p"])
    assert list(alone) == [("p", None)]
    assert alone.total() == cb.from_frame(frame, y="y", p="p")


def test_weights_of_each_group_are_importance_weights():
    frame = pl.DataFrame({"y": [0, 1, 1, 0], "p": [0.2, 0.7, 0.7, 0.1], "g": list("aabb"), "w": [1.0, 2.0, 0.5, 1.0]})
    tables = cb.from_frame(frame, y="y", p="p", by="g", sample_weight="w")
    assert all(table.importance for table in tables.values())
    assert tables.total().size == pytest.approx(4.5)


def test_columns_of_weights_and_frequencies_are_checked():
    frame = pl.DataFrame({"y": [0, 1, 1], "p": [0.2, 0.7, 0.7], "w": [1.0, 2.5, 1.0], "none": [0, 0, 0]})
    with pytest.raises(InputError, match=r"w must be a whole number of rows, 0 or more; got 2.5 \(row 1\)"):
        cb.from_frame(frame, y="y", p="p", frequency="w")
    with pytest.raises(InputError, match="must not be given together"):
        cb.from_frame(frame, y="y", p="p", frequency="w", sample_weight="w")
    for option in ("frequency", "sample_weight"):
        with pytest.raises(InputError, match="none must be positive in at least one row; got zero in every row"):
            cb.from_frame(frame, y="y", p="p", **{option: "none"})
    with pytest.raises(TypeError, match="weight"):
        cb.from_frame(frame, y="y", p="p", weight="w")


def test_tables_add_up_and_are_evaluated():
    rng = np.random.default_rng(1)
    p = rng.random(4000)
    frame = pl.DataFrame({"y": rng.random(4000) < p**1.5, "p": p, "week": np.arange(4000) // 1000})
    halves = [cb.from_frame(frame[a:b], y="y", p="p", by="week") for a, b in ((0, 2500), (2500, 4000))]
    whole = cb.from_frame(frame, y="y", p="p", by="week")
    assert halves[0] + halves[1] == whole
    assert "4" in repr(whole)
    found = cb.evaluate(whole, n_resamples=49)
    assert list(found.groups) == [0, 1, 2, 3]
    assert found.table == whole.total()
    assert found.by == "week"
    assert cb.evaluate(cb.from_frame(frame, y="y", p=["p"]), n_resamples=49).groups == {}
    assert sum(halves) == whole
    two = cb.from_frame(frame.with_columns(q=frame["p"] / 2), y="y", p=["p", "q"])
    with pytest.raises(InputError, match="tables of one model"):
        cb.evaluate(two)
    with pytest.raises(InputError, match="must have the same groups"):
        whole + cb.from_frame(frame, y="y", p=["p"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: cb.from_frame(f, y="y", p="score"), "no column 'score'; it has 'y', 'p'"),
        (lambda f: cb.from_frame([1, 2], y="y", p="p"), "a frame that Narwhals supports"),
        (lambda f: cb.from_frame(f, y="y", p=[]), "p must name at least one column"),
        (lambda f: cb.from_frame(f, y="y", p=["p", "p"]), "each once"),
        (lambda f: cb.from_frame(f, y="y", p="p", resolution=2), "resolution must lie"),
        (lambda f: cb.from_frame(f.filter(f["p"] > 5), y="y", p="p"), "no rows"),
    ],
)
def test_bad_requests_are_refused(call, words):
    with pytest.raises(InputError, match=words):
        call(pl.DataFrame({"y": [0, 1], "p": [0.2, 0.7]}))


def test_arrays_of_other_libraries_are_read_without_a_copy():
    class Elsewhere:
        """An array of a library that speaks dlpack and nothing else."""

        def __init__(self, values):
            self.values = values

        def __dlpack__(self, **options):
            return self.values.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.values.__dlpack_device__()

    y, p = np.array([0, 1, 1]), np.array([0.1, 0.8, 0.7])
    assert cb.ScoreTable.from_arrays(Elsewhere(y), Elsewhere(p)) == cb.ScoreTable.from_arrays(y, p)


# Tables that are kept


@pytest.fixture
def table(rng):
    p = rng.random(500).round(2)
    return cb.ScoreTable.from_arrays(rng.random(500) < p, p, missing="drop")


@pytest.mark.parametrize("option", [None, "frequency", "sample_weight"])
def test_a_stored_table_is_unchanged(option, rng, tmp_path):
    p = rng.random(500).round(2)
    options = {} if option is None else {option: rng.integers(0, 4, 500)}
    y = np.where(np.arange(500) == 3, np.nan, rng.random(500) < p)
    table = cb.ScoreTable.from_arrays(y, p, **options, missing="drop")
    table.to_parquet(tmp_path / "t.parquet")
    for again in (cb.ScoreTable.from_parquet(tmp_path / "t.parquet"), cb.ScoreTable.from_arrow(table.to_arrow())):
        assert again == table
        assert (again.n_in, again.n_dropped, again.notes) == (table.n_in, table.n_dropped, table.notes)
        assert (again + again).size == 2 * table.size
    assert [f.name for f in tmp_path.iterdir()] == ["t.parquet"]


def test_a_flipped_byte_or_a_cut_is_seen(table, tmp_path):
    path = tmp_path / "t.parquet"
    table.to_parquet(path)
    good = path.read_bytes()
    for place in range(8, len(good) - 8, max(1, len(good) // 40)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        try:
            assert cb.ScoreTable.from_parquet(path) == table  # a byte that means nothing
        except InputError as error:
            assert "t.parquet" in str(error)  # noqa: PT017
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(InputError, match=r"t.parquet cannot be read"):
        cb.ScoreTable.from_parquet(path)
    with pytest.raises(InputError, match="There is no file"):
        cb.ScoreTable.from_parquet(tmp_path / "none.parquet")


def test_other_files_and_versions_are_refused(table):
    with pytest.raises(InputError, match="is not a table that calibrant wrote"):
        cb.ScoreTable.from_arrow(TABLE)
    frame = table.to_arrow()
    about = json.loads(frame.schema.metadata[b"calibrant"])
    other = frame.replace_schema_metadata({b"calibrant": json.dumps({**about, "version": 99})})
    with pytest.raises(InputError, match="must have a format up to"):
        cb.ScoreTable.from_arrow(other)
    weighted = cb.ScoreTable.from_arrays([0, 1], [0.2, 0.7], sample_weight=[1, 2]).to_arrow()
    assert weighted.column_names == ["score", "n", "k", "w2", "k2"]
    with pytest.raises(InputError, match="damaged"):
        cb.ScoreTable.from_arrow(weighted.drop_columns(["k2"]))
    moved = frame.set_column(1, "n", pa.array(np.asarray(frame.column("n")) + 1))
    with pytest.raises(InputError, match="damaged"):
        cb.ScoreTable.from_arrow(moved)


def of_format_1(table):
    """The Arrow table that the first format would have written."""
    arrays = {name: getattr(table, name) for name in ("score", "n", "k", "w2") if getattr(table, name) is not None}
    about = {"version": 1, "n_in": table.n_in, "n_dropped": table.n_dropped, "notes": []}
    about["sha256"] = storage._checksum(arrays, about)
    return pa.table(arrays).replace_schema_metadata({b"calibrant": json.dumps(about)})


def test_tables_of_counts_of_the_first_format_are_read_and_those_of_weights_refused(table):
    assert cb.ScoreTable.from_arrow(of_format_1(table)) == table
    weighted = cb.ScoreTable.from_arrays([0, 1], [0.2, 0.7], sample_weight=[1, 2])
    with pytest.raises(InputError, match=r"sums of w\^2 y.*Count the rows again with sample_weight"):
        cb.ScoreTable.from_arrow(of_format_1(weighted))


# Engines that are tried, not tested in full


def _dask(frame):
    dask = pytest.importorskip("dask.dataframe", reason="dask is not installed")
    return dask.from_pandas(frame.to_pandas(), npartitions=3)


def _ibis(frame):
    ibis = pytest.importorskip("ibis", reason="ibis is not installed")
    return ibis.memtable(frame)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [_dask, _ibis])
def test_other_engines_that_narwhals_knows_work_too(make):
    frame = make(TABLE.slice(0, 2000))
    y, p = DATA["y"][:2000], DATA["p"][:2000]
    assert cb.from_frame(frame, y="y", p="p") == cb.ScoreTable.from_arrays(y, p)
    tables = cb.from_frame(frame, y="y", p="p", by="g")
    assert tables.total() == cb.ScoreTable.from_arrays(y, p)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_groups_of_times_are_times_in_every_unit(unit, tmp_path):
    day = np.array(["2026-01-01", "2026-01-02T10:30"], dtype=f"datetime64[{unit}]")
    lasted = np.array([1, 3600], dtype="timedelta64[s]").astype(f"timedelta64[{unit}]")
    frame = pd.DataFrame({"y": [0, 1], "p": [0.1, 0.5], "day": day, "lasted": lasted})
    days = [datetime(2026, 1, 1), datetime(2026, 1, 2, 10, 30)]
    assert cb.from_frame(frame, y="y", p="p", by="day").groups == days
    assert cb.from_frame(frame, y="y", p="p", by="lasted").groups == [timedelta(seconds=1), timedelta(hours=1)]
    frame.drop(columns="lasted").to_parquet(tmp_path / "a.parquet")
    assert cb.scan(tmp_path / "a.parquet", y="y", p="p", by="day").groups == days


def test_times_that_python_does_not_have_stay_apart():
    day = np.array(["2026-01-01", "2026-01-01T00:00:00.000000001"], dtype="datetime64[ns]")
    found = cb.from_frame(pd.DataFrame({"y": [0, 1], "p": [0.1, 0.5], "day": day}), y="y", p="p", by="day")
    assert set(found.groups) == {datetime(2026, 1, 1), day[1]}


@pytest.mark.parametrize("weight", [None, "w"])
def test_groups_count_their_own_clipped_scores(weight):
    p = np.linspace(0.1, 0.9, 100)
    p[[3, 13, 24]] = 1 + 1e-9, 1 + 1e-7, -1e-8
    frame = pd.DataFrame({"y": np.arange(100) // 10 % 2, "p": p, "g": np.arange(100) % 10, "w": 2})
    tables = cb.from_frame(frame, y="y", p="p", by="g", frequency=weight)
    counts = {group: {note.code: note.count for note in table.notes} for (_, group), table in tables.items()}
    assert counts == {g: {3: {"clipped": 2}, 4: {"clipped": 1}}.get(g, {}) for g in range(10)}
    (note,) = tables.total().notes
    assert note.text == "3 values of p lay outside [0, 1] by at most 1e-07 and were clipped."
