"""Spark and databases count rows themselves; the tables are those that arrays give."""

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import calibrant as cb
from calibrant import regression as rg
from calibrant._support.errors import InputError
from calibrant.ingest import queries
from calibrant.ingest.spark import WORKERS_OPTION
from tests.export.fitted_maps import fitted_maps, new_rows
from tests.export.row_numbers import MANY
from tests.ingest import spark_driver
from tools import servers

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
for _library in ("pandas", "polars", "duckdb"):
    pytest.importorskip(_library, reason=f"{_library} is not installed")

from tests.ingest.test_frames import DATA, TABLE  # noqa: E402  # skips its module without these libraries

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")

ROOT = Path(__file__).parents[2]
WORDS = pa.array(np.where(DATA["y"] == 1, "spam", "ham"))
DAYS = pa.array((DATA["g"] % 3 + 20000).astype(np.int32)).cast("date32")
ROWS = TABLE.append_column("word", WORDS).append_column("date", DAYS)
needs_spark = pytest.mark.skipif(servers.why_no_spark() is not None, reason=str(servers.why_no_spark()))
needs_postgresql = pytest.mark.skipif(servers.why_no_postgresql() is not None, reason=str(servers.why_no_postgresql()))


# Where rows lie: each engine is a function from a table of rows to what `from_frame` or `from_query` is called with.


@pytest.fixture(scope="session")
def cluster():
    with servers.spark_cluster(workers=2, memory="1g") as running:
        yield running


@pytest.fixture(scope="session")
def postgresql():
    with servers.postgresql() as address:
        yield address


@pytest.fixture(scope="module")
def spark_local():
    yield from _session("local[2]")


@pytest.fixture(scope="module")
def spark_standalone(cluster):
    yield from _session(cluster.url)


def _session(url):
    from pyspark.sql import SparkSession

    servers.spark_environment()
    builder = SparkSession.builder.master(url).appName("calibrant")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    yield spark
    spark.stop()


SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.session.timeZone": "UTC",
    # Short runs: the optimising compiler and parallel collectors take more time than they save.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def counted(frame, *, p, **options):
    """Count a frame by model, also where it is one."""
    return cb.from_frame(frame, p=[p] if isinstance(p, str) else p, **options)


class Spark:
    """Rows in Parquet files of a Spark session."""

    def __init__(self, session, folder, workers):
        self.session, self.folder, self.workers = session, folder, workers

    def keep(self, table):
        path = self.folder / f"{len(list(self.folder.iterdir()))}.parquet"
        pq.write_table(table, path, row_group_size=10_000)
        return self.session.read.parquet(str(path))

    def tables(self, frame, **options):
        self.session.conf.set(WORKERS_OPTION, str(self.workers).lower())
        return counted(frame, **options)


class Database:
    """Rows in a table of a database."""

    def __init__(self, connection):
        self.connection, self.made = connection, 0

    def keep(self, table):
        self.made += 1
        name = f"rows{self.made}"
        self.fill(name, table)
        return f"SELECT * FROM {name} -- all of them"

    def tables(self, sql, *, p, **options):
        return cb.from_query(self.connection, sql, p=[p] if isinstance(p, str) else p, **options)


class SQLite(Database):
    def fill(self, name, table):
        self.connection.execute(f"CREATE TABLE {name} ({', '.join(table.column_names)})")
        rows = zip(*(_cells(table.column(column)) for column in table.column_names), strict=True)
        self.connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * table.num_columns)})", rows)


class DuckDB(Database):
    def fill(self, name, table):
        self.connection.register("given", table)
        self.connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM given")


class PostgreSQL(Database):
    TYPES: ClassVar = {
        "int8": "smallint", "int64": "bigint", "float": "real", "double": "double precision", "string": "text",
        "date32[day]": "date", "bool": "boolean", "decimal128(6, 4)": "numeric(6, 4)",
    }  # fmt: skip

    def fill(self, name, table):
        types = [f"{field.name} {self.TYPES[str(field.type)]}" for field in table.schema]
        self.connection.execute(f"CREATE TABLE {name} ({', '.join(types)})")
        with self.connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in zip(*(table.column(column).to_pylist() for column in table.column_names), strict=True):
                copy.write_row(row)
        self.connection.commit()


def _cells(column):
    """As SQLite takes them: it has no dates."""
    return [str(cell) if "date" in str(column.type) and cell is not None else cell for cell in column.to_pylist()]


@pytest.fixture(scope="module", params=[
    pytest.param("spark, local", marks=[needs_spark, pytest.mark.xdist_group("spark")]),
    # The kernel in Python workers counts only what test_sql_counts_what_workers_count has; SQL counts all else on both.
    pytest.param("spark, SQL alone, local", marks=[needs_spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]),
    pytest.param("spark, standalone", marks=[needs_spark, pytest.mark.slow, pytest.mark.xdist_group("spark")]),
    pytest.param("postgresql", marks=[needs_postgresql, pytest.mark.xdist_group("postgresql")]),
    pytest.param("sqlite", marks=pytest.mark.xdist_group("databases")),
    pytest.param("duckdb", marks=pytest.mark.xdist_group("databases")),
])  # fmt: skip
def engine(request, tmp_path_factory):
    if request.param.startswith("spark"):
        session = request.getfixturevalue(f"spark_{request.param.split()[-1]}")
        yield Spark(session, tmp_path_factory.mktemp("rows"), workers="SQL" not in request.param)
        return
    if request.param == "postgresql":
        import psycopg

        with psycopg.connect(request.getfixturevalue("postgresql")) as connection:
            yield PostgreSQL(connection)
        return
    opened = sqlite3.connect(":memory:") if request.param == "sqlite" else duckdb.connect()
    yield {"sqlite": SQLite, "duckdb": DuckDB}[request.param](opened)
    opened.close()


@pytest.fixture(scope="module")
def rows(engine):
    return engine.keep(ROWS)


def same(found, expected):
    """Equal tables, with equal words about them."""
    assert found == expected
    for key, table in found.items():
        other = expected[key]
        assert (table.n_in, table.n_dropped) == (other.n_in, other.n_dropped)
        assert sorted((n.code, n.count, n.text) for n in table.notes) == sorted(
            (n.code, n.count, n.text) for n in other.notes
        )


@pytest.mark.parametrize(
    "options",
    [
        {"p": "p"},
        {"p": "q"},
        {"p": "p", "frequency": "w"},
        {"p": "h", "missing": "drop"},
        {"p": ["p", "q", "h"], "by": "g", "frequency": "w", "missing": "drop"},
        {"p": "p", "by": ["word", "g"]},
        {"p": "p", "y": "word", "pos_label": "spam"},
        {"p": "p", "resolution": 2**-10},
        {"p": ["p", "q"], "resolution": 1 / 3, "by": "g"},
        {"p": "q", "resolution": 2**-20, "frequency": "w"},
    ],
    ids=str,
)
def test_every_engine_gives_the_table_of_the_arrays(engine, rows, options):
    options = {"y": "y", **options}
    same(engine.tables(rows, **options), counted(ROWS, **options))


@pytest.mark.parametrize(
    "options", [{"sample_weight": "v"}, {"sample_weight": "w"}, {"sample_weight": "v", "resolution": 2**-10}], ids=str
)
def test_importance_weights_agree(engine, rows, options):
    found = engine.tables(rows, y="y", p="p", **options).total()
    expected = cb.from_frame(ROWS, y="y", p="p", **options)
    assert found.importance
    assert np.array_equal(found.score, expected.score)
    for name in ("n", "k", "w2", "k2"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12)
    assert (found.n_in, found.n_dropped) == (expected.n_in, expected.n_dropped)


def test_groups_are_the_values_that_split_rows(engine, rows):
    tables = engine.tables(rows, y="y", p="p", by="date")
    expected = cb.from_frame(ROWS, y="y", p="p", by="date")
    assert [str(group) for group in tables.groups] == [str(group) for group in expected.groups]
    assert tables.total() == expected.total()


def test_missing_cells_are_refused_or_dropped_and_counted(engine):
    holes = pa.table(
        {
            "y": pa.array([0, 1, None, 1, 0, 0], pa.int64()),
            "p": pa.array([0.1, None, 0.3, 0.9, 0.2, float("nan")], pa.float32()),
            "g": pa.array(["a", "b", "a", None, "a", "b"]),
            "w": pa.array([1.0, 1.0, 1.0, None, 0.0, 2.0]),
        }
    )
    kept = engine.keep(holes)
    with pytest.raises(InputError, match=r"^y has 1 missing value\. Pass missing='drop'") as caught:
        engine.tables(kept, y="y", p="p")
    assert caught.value.row is None
    same(engine.tables(kept, y="y", p="p", missing="drop"), counted(holes, y="y", p="p", missing="drop"))
    for option in ("sample_weight", "frequency"):
        weighted = {"y": "y", "p": "p", option: "w", "missing": "drop"}
        same(engine.tables(kept, **weighted), counted(holes, **weighted))
    with pytest.raises(InputError, match="g has 1 missing value"):
        engine.tables(kept, y="y", p="p", by="g", missing="drop")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"p": [0.5, 1.5, 1.5, 0.2]}, r"p must lie in \[0, 1\]; 2 of 4 values do not, one of them is 1.5"),
        ({"p": [0.5, -3.0, 1.0, 0.2]}, "logits or margins"),
        ({"p": [0.5, float("inf"), 1.0, 0.2]}, "one of them is inf"),
        ({"p": ["0.5", "0.5", "0.1", "1"]}, "p must hold numbers"),
        ({"y": [0, 1, 2, 2]}, "y must have two labels; got 3"),
        ({"y": [-1, 1, 1, 1]}, "y must hold 0 and 1; got the labels -1, 1"),
        ({"y": [0.0, 0.5, 1.0, 1.0]}, "y must hold 0 and 1; a value is 0.5"),
        ({"y": ["no", "no", "yes", "yes"]}, "pos_label='yes'"),
        (
            {"w": [1.0, -1.0, -1.0, 2.0]},
            "w must be finite and not negative; 2 of 4 values are not, one of them is -1",
        ),
        ({"w": [1.0, float("inf"), 1.0, 2.0]}, "w must be finite and not negative; 1 of 4"),
        ({"w": [1.0, 1e-200, 1.0, 2.0]}, "w must be 0 or at least 1e-100"),
        ({"w": [0.0, 0.0, 0.0, 0.0]}, "w must be positive in at least one row; got zero in every row"),
        ({"w": ["a", "b", "a", "a"]}, "w must hold numbers"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_errors_state_the_number_of_bad_rows(engine, columns, words):
    rows = {"y": [0, 1, 1, 0], "p": [0.5, 0.5, 0.1, 1.0], "w": [1.0, 1.0, 2.0, 3.0], **columns}
    kept = engine.keep(pa.table(rows))
    with pytest.raises(InputError, match=words):
        engine.tables(kept, y="y", p="p", sample_weight="w")


@pytest.mark.parametrize(
    ("frequency", "words"),
    [
        ([1.0, 2.5, 1.0, 2.0], r"w must be a whole number of rows, 0 or more; got 2.5\. For real weights"),
        ([1.0, -2.0, 1.0, 2.0], "w must be a whole number of rows, 0 or more; got -2"),
        ([1.0, float("inf"), 1.0, 2.0], "w must be a whole number of rows, 0 or more; got inf"),
        ([0.0, 0.0, 0.0, 0.0], "w must be positive in at least one row; got zero in every row"),
    ],
    ids=str,
)
def test_bad_frequencies_are_refused(engine, frequency, words):
    kept = engine.keep(pa.table({"y": [0, 1, 1, 0], "p": [0.5, 0.5, 0.1, 1.0], "w": frequency}))
    with pytest.raises(InputError, match=words):
        engine.tables(kept, y="y", p="p", frequency="w")


def test_scores_just_outside_are_clipped_and_counted(engine):
    p = [1.0000001, 1.0000001, -1e-9, 0.3, 1.0]
    rows = pa.table({"y": [1, 1, 0, 0, 1], "p": p})
    kept = engine.keep(rows)
    same(engine.tables(kept, y="y", p="p"), counted(rows, y="y", p="p"))
    grid = {"y": "y", "p": "p", "resolution": 2**-20}
    same(engine.tables(kept, **grid), counted(rows, **grid))


def test_halves_go_to_the_even_cell_as_in_numpy(engine):
    step = 2.0**-4
    p = [i * step / 2 for i in range(33)] + [np.nextafter(step / 2, 0), np.nextafter(step / 2, 1), 1e-320]
    rows = pa.table({"y": [0, 1] * 18, "p": p})
    for resolution in (step, 0.1, 2**-30, 1e-19, 1e-300):
        found = engine.tables(engine.keep(rows), y="y", p="p", resolution=resolution).total()
        assert found == cb.ScoreTable.from_arrays([0, 1] * 18, p).round(resolution)


def test_empty_data_and_missing_columns_are_errors(engine):
    kept = engine.keep(pa.table({"y": pa.array([], pa.int64()), "p": pa.array([], pa.float64())}))
    with pytest.raises(InputError, match="no rows"):
        engine.tables(kept, y="y", p="p")
    with pytest.raises(InputError, match="no column 'score'; it has 'y', 'p'"):
        engine.tables(kept, y="y", p="score")


def test_weights_beyond_what_adds_up_are_refused(engine):
    rows = pa.table({"y": [0] * 300 + [1], "p": [0.1] * 300 + [0.9], "w": [1e18] * 300 + [1.0]})
    kept = engine.keep(rows)
    for option in ("sample_weight", "frequency"):
        with pytest.raises(InputError, match=rf"{option} must add up to less than 2\*\*53; got the sum 3e\+20"):
            engine.tables(kept, y="y", p="p", **{option: "w"})
    negative = engine.keep(pa.table({"y": [0, 0, 1], "p": [0.1, 0.1, 0.9], "w": [-1e308, -1e308, 1.0]}))
    with pytest.raises(InputError, match="2 of 3 values are not, one of them is -1e"):
        engine.tables(negative, y="y", p="p", sample_weight="w")


def test_labels_that_differ_by_capital_letters_are_two(engine):
    rows = pa.table({"y": ["A", "a", "a", "A"], "p": [0.1, 0.1, 0.2, 0.2], "g": ["x", "X", "x", "X"]})
    kept = engine.keep(rows)
    options = {"y": "y", "p": "p", "by": "g", "pos_label": "a"}
    same(engine.tables(kept, **options), counted(rows, **options))
    nocase = {
        "Spark": lambda: kept.selectExpr(*(f"collate({name}, 'UTF8_LCASE') AS {name}" for name in "yg"), "p"),
        "SQLite": lambda: f"SELECT y COLLATE NOCASE AS y, p, g COLLATE NOCASE AS g FROM ({kept}\n)",
        "DuckDB": lambda: f"SELECT y COLLATE NOCASE AS y, p, g COLLATE NOCASE AS g FROM ({kept}\n)",
        "PostgreSQL": lambda: f"SELECT CAST(y AS citext) AS y, p, CAST(g AS citext) AS g FROM ({kept}\n) AS t",
    }
    if isinstance(engine, PostgreSQL):
        engine.connection.execute("CREATE EXTENSION citext")
    same(engine.tables(nocase[type(engine).__name__](), **options), counted(rows, **options))


# Databases alone


@pytest.fixture
def sqlite():
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT 1 AS y, 0.25 AS p, 0.75 AS p", "Two columns are named 'p'"),
        ("CHOOSE 1", r"cannot run the query: near \"1\": syntax error. It must be one SELECT"),
        ("SELECT 1 AS y, 0.5 AS p; SELECT 2", "without a semicolon"),
        ("SELECT 1 AS y, 0.5 AS score", "The query has no column 'p'; it has 'y', 'score'"),
        ("SELECT 1 AS y, 0.5 AS P", "Did you mean 'P'"),
        ("SELECT 1 AS y, x'00' AS p", "p must hold numbers"),
    ],
)
def test_bad_queries_are_refused(sqlite, sql, words):
    with pytest.raises(InputError, match=words):
        cb.from_query(sqlite, sql)


def test_errors_of_the_statement_that_counts_are_those_of_the_query(sqlite, tmp_path):
    sqlite.execute("CREATE TABLE t (y, p, g)")
    sqlite.execute("INSERT INTO t VALUES (1, 0.5, CAST(x'ff' AS TEXT))")
    with pytest.raises(InputError, match=r"Could not decode to UTF-8 .* Convert or filter such values"):
        cb.from_query(sqlite, "SELECT * FROM t", by="g")
    with pytest.raises(InputError, match=r"syntax error\. It must be one SELECT"):
        cb.from_query(sqlite, "SELECT y, p FROM t) UNION SELECT * FROM (SELECT 1, 0.5")
    path = tmp_path / "rows.db"
    with contextlib.closing(sqlite3.connect(path)) as writer, contextlib.closing(sqlite3.connect(path)) as reader:
        writer.execute("CREATE TABLE t (y, p)")
        writer.commit()
        writer.execute("BEGIN EXCLUSIVE")
        reader.execute("PRAGMA busy_timeout = 0")
        database = queries._Database(reader, None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            list(database.answer("SELECT * FROM t", None))


@pytest.mark.parametrize("sql", [b"SELECT 1", None])
def test_a_query_must_be_text(sqlite, sql):
    with pytest.raises(InputError, match="sql must be text"):
        cb.from_query(sqlite, sql)


def test_objects_other_than_connections_are_refused(sqlite):
    with pytest.raises(InputError, match="must be one to a known database; got builtins.str"):
        cb.from_query("postgresql://", "SELECT 1")
    with pytest.raises(InputError, match="dialect must be one of duckdb, postgresql, sqlite"):
        cb.from_query(sqlite, "SELECT 1", dialect="spark")


def test_queries_of_many_shapes_are_counted(sqlite):
    sqlite.executescript("CREATE TABLE calibrant (y, p, g); CREATE TABLE asked (y, p, g);")
    rows = [(i % 2, i / 200000, f"g{i % 3}") for i in range(200000)]
    sqlite.executemany("INSERT INTO asked VALUES (?, ?, ?)", rows)
    expected = cb.ScoreTable.from_arrays(*zip(*((y, p) for y, p, _ in rows), strict=True))
    for sql in ("SELECT * FROM asked;", "WITH a AS (SELECT y, p FROM asked) SELECT * FROM a ORDER BY p -- sorted"):
        assert cb.from_query(sqlite, sql) == expected  # more rows than one batch
    some = cb.from_query(sqlite, "SELECT * FROM asked WHERE g = :g AND p LIKE '0.0%'", {"g": "g1"})
    assert some == cb.ScoreTable.from_arrays(
        *zip(*((y, p) for y, p, g in rows if g == "g1" and str(p).startswith("0.0")), strict=True)
    )
    sqlite.row_factory = lambda cursor, row: dict(zip([c[0] for c in cursor.description], row, strict=True))
    assert cb.from_query(sqlite, "SELECT * FROM asked") == expected


def test_groups_of_any_type_stay_apart(sqlite):
    groups = [9007199254740993, 9007199254740992, 1.5, "b", "b\0", b"b", b"b\0", "007", 7]
    sqlite.execute("CREATE TABLE t (y, p, g)")
    sqlite.executemany("INSERT INTO t VALUES (1, 0.5, ?)", [(group,) for group in groups])
    assert set(cb.from_query(sqlite, "SELECT * FROM t", by="g").groups) == set(groups)
    large = "SELECT 1 AS y, 0.5 AS p, unnest([9223372036854775809, 9223372036854775811, 5])::UBIGINT AS g"
    with duckdb.connect() as connection:
        assert cb.from_query(connection, large, by="g").groups == [5, 9223372036854775809, 9223372036854775811]


@pytest.mark.parametrize("kind", ["ENUM('0.1')", "JSON", "VARCHAR", "BIT", "INTEGER[]"])
def test_duckdb_refuses_lossy_conversions(kind):
    value = {"BIT": "'1'", "INTEGER[]": "[1]"}.get(kind, "'0.1'")
    with duckdb.connect() as connection, pytest.raises(InputError, match="p must hold numbers; got type"):
        cb.from_query(connection, f"SELECT 1 AS y, CAST({value} AS {kind}) AS p")


@needs_postgresql
@pytest.mark.xdist_group("postgresql")
def test_postgresql_in_all_its_ways(postgresql):
    import psycopg

    query, expected = "SELECT 1 AS y, CAST(0.1 AS real) AS p", cb.ScoreTable.from_arrays([1], np.float32([0.1]))
    with psycopg.connect(postgresql, row_factory=psycopg.rows.dict_row) as connection:
        with pytest.raises(InputError, match="does not exist. It must be one SELECT"):
            cb.from_query(connection, "SELECT nothing FROM nowhere")
        assert cb.from_query(connection, query) == expected  # the transaction did not fail
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        odd = 'SELECT 1 AS y, 0.25 AS "p%%" WHERE 1 = %s'
        assert cb.from_query(connection, odd, (1,), p="p%").size == 1
        with pytest.raises(InputError, match="equality operator"):
            cb.from_query(connection, "SELECT 1 AS y, 0.5 AS p, CAST('{}' AS json) AS g", by="g")
        with pytest.raises(InputError, match="p must hold numbers; got type boolean"):
            cb.from_query(connection, "SELECT 1 AS y, true AS p")
        connection.execute("SET extra_float_digits = 0")
        with pytest.raises(InputError, match="extra_float_digits"):
            cb.from_query(connection, query)
        connection.rollback()
        with pytest.raises(psycopg.Error):
            connection.execute("SELECT nothing")
        with pytest.raises(InputError, match="transaction is aborted.*Roll back first"):
            cb.from_query(connection, query)
    with psycopg.connect(postgresql, autocommit=True) as connection:
        assert cb.from_query(connection, query) == expected
        nines = "SELECT 1 AS y, CAST(0.1234567890123456789012345678901234567890 AS numeric) AS p"
        assert cb.from_query(connection, nines).score.tolist() == [0.1234567890123456789]


# Spark alone


@needs_spark
@pytest.mark.xdist_group("spark")
def test_spark_counts_in_each_partition_and_runs_no_python(spark_local, tmp_path):
    from calibrant._support.sql_dialects import DIALECTS
    from calibrant.ingest.counting import CountOptions
    from calibrant.ingest.queries import CountQuery
    from calibrant.ingest.spark import counted
    from calibrant.ingest.table_counter import TableCounter

    pq.write_table(ROWS, tmp_path / "rows.parquet")
    frame = spark_local.read.parquet(str(tmp_path / "rows.parquet"))
    split = TableCounter("y", ["p", "q"], ["g"], None, CountOptions(resolution=2**-20))
    plan = counted(frame, CountQuery(split, DIALECTS["spark"]))._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in plan
    assert plan.count("Exchange") == 1
    assert plan.index("HashAggregate", plan.index("Exchange")) < plan.index("partial_count") < plan.index("rint")
    assert "ReadSchema: struct<y:tinyint,p:float,q:double,g:bigint>" in plan  # and no other column


@needs_spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    "options", [{"p": ["p", "q"]}, {"p": "h", "missing": "drop"}, {"p": ["p", "q"], "resolution": 2**-10}], ids=str
)
def test_sql_counts_what_workers_count(spark_local, tmp_path, options):
    engine, options = Spark(spark_local, tmp_path, workers=False), {"y": "y", **options}
    same(engine.tables(engine.keep(ROWS), **options), counted(ROWS, **options))
    if "resolution" in options:
        test_halves_go_to_the_even_cell_as_in_numpy(engine)


@needs_spark
@pytest.mark.xdist_group("spark")
def test_frames_of_spark_that_cannot_be_counted(spark_local, tmp_path):
    frame = spark_local.range(5).selectExpr("id % 2 AS y", "0.5D AS p", "0.7D AS P", "'x' AS word")
    with pytest.raises(InputError, match="does not distinguish column 'p' from one that differs in case"):
        cb.from_frame(frame, y="y", p="p")
    with pytest.raises(InputError, match="word must hold numbers; got type string"):
        cb.from_frame(frame, y="y", p="word")
    stream = spark_local.readStream.format("rate").load().selectExpr("value % 2 AS y", "0.5D AS p")
    with pytest.raises(InputError, match="got a stream"):
        cb.from_frame(stream, y="y", p="p")
    variant = spark_local.range(3).selectExpr("parse_json('1') AS g", "id % 2 AS y", "0.5D AS p")
    with pytest.raises(InputError, match="Spark cannot count"):
        cb.from_frame(variant, y="y", p="p", by="g")


@needs_spark
@pytest.mark.xdist_group("spark")
def test_names_of_any_kind_are_columns(spark_local, tmp_path):
    odd = ["a.b", "a b", "`", "select", "é"]
    table = pa.table({name: ROWS.column(column)[:100] for name, column in zip(odd, "ypqgw", strict=True)})
    path = tmp_path / "odd.parquet"
    pq.write_table(table, path)
    frame = spark_local.read.parquet(str(path))
    options = {"y": "a.b", "p": ["a b", "`"], "by": "select", "frequency": "é"}
    same(counted(frame, **options), counted(table, **options))


@pytest.mark.slow
@needs_spark
@pytest.mark.xdist_group("spark")
def test_a_result_too_large_for_the_driver_is_an_error_with_a_hint(tmp_path):
    with run_driver("local[2]", tmp_path, rows=200_000, settings={"spark.driver.maxResultSize": "100k"}) as driver:
        said = driver.communicate(timeout=180)[0]
    assert "InputError: The distinct scores exceed the limit of Spark's driver" in said
    assert "resolution=2**-20" in said


@needs_spark
@pytest.mark.xdist_group("spark")
def test_spark_connect_counts_too(tmp_path):
    pytest.importorskip("grpc", reason="grpcio, which Spark Connect needs, is not installed")
    pytest.importorskip("grpc_status", reason="grpcio-status, which Spark Connect needs, is not installed")
    with run_driver("connect", tmp_path, rows=30_000) as driver:
        said = driver.communicate(timeout=180)[0]
    assert driver.returncode == 0, said
    assert cb.ScoreTable.from_parquet(tmp_path / "table.parquet") == expected_of(30_000)


@pytest.fixture
def by_kernel(monkeypatch):
    """Fail if SQL counts."""

    def refuse(*_):
        raise AssertionError("SQL counted the frame")

    monkeypatch.setattr("calibrant.ingest.spark._count_by_sql", refuse)


def outcomes_and_options():
    """Yield each type of the outcome with each option; one option per type is fast."""
    for i, y in enumerate(("y", "CAST(y AS BIGINT)", "y = 1")):
        for j, options in enumerate(({}, {"resolution": 2**-10}, {"missing": "drop"})):
            yield pytest.param(y, options, id=f"{options}-{y}", marks=() if i == j else pytest.mark.slow)


@needs_spark
@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("by_kernel")
@pytest.mark.parametrize(("y", "options"), list(outcomes_and_options()))
def test_python_workers_count_with_the_kernel(spark_local, tmp_path, y, options):
    rows = ROWS
    if options.get("missing"):
        absent = np.arange(ROWS.num_rows) % 7
        columns = {"y": ROWS.column("y").to_numpy(), "p": ROWS.column("p").to_numpy(), "q": ROWS.column("q").to_numpy()}
        rows = pa.table({name: pa.array(column, mask=absent == i) for i, (name, column) in enumerate(columns.items())})
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=ROWS.num_rows // 3)
    spark_local.conf.set(WORKERS_OPTION, "true")
    spark_local.conf.set("spark.sql.files.maxPartitionBytes", "50000")
    try:
        frame = spark_local.read.parquet(str(tmp_path / "rows.parquet")).selectExpr(f"{y} AS y", "p", "q")
        assert frame.rdd.getNumPartitions() > 1
        found = cb.from_frame(frame, y="y", p=["p", "q"], **options)
    finally:
        spark_local.conf.unset("spark.sql.files.maxPartitionBytes")
    same(found, counted(rows, y="y", p=["p", "q"], **options))


@needs_spark
@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("by_kernel")
def test_scores_of_many_chunks_and_parts_are_merged(spark_local):
    spark_local.conf.set(WORKERS_OPTION, "true")
    rows = 300_000
    frame = spark_local.range(0, rows, 1, 5).selectExpr(
        "CAST(id * 2654435761 % 1048583 / 1048583D AS FLOAT) AS p", "id * 40503 % 1009 < 400 AS y"
    )
    assert cb.from_frame(frame, y="y", p="p") == expected_of(rows)
    wide = frame.selectExpr("y", "CAST(p AS DOUBLE) AS p")
    assert cb.from_frame(wide, y="y", p="p") == expected_of(rows)


@needs_spark
@pytest.mark.xdist_group("spark")
def test_workers_without_this_version_leave_the_count_to_sql(spark_local, monkeypatch):
    from calibrant.ingest import spark

    monkeypatch.setattr(spark, "_tried", {})
    monkeypatch.setattr(spark, "__version__", "0.0")
    spark_local.conf.set(WORKERS_OPTION, "true")
    frame = spark_local.range(1000).selectExpr("id % 2 AS y", "id / 1000D AS p")
    found = cb.from_frame(frame, y="y", p="p")
    assert list(spark._tried.values()) == [False]
    assert found == cb.ScoreTable.from_arrays(np.arange(1000) % 2, np.arange(1000) / 1000)


@pytest.mark.slow
@needs_spark
@pytest.mark.xdist_group("spark")
def test_workers_that_cannot_import_the_package_leave_the_count_to_sql(tmp_path):
    hidden = tmp_path / "python"  # a Python of workers that finds no installed package
    hidden.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    hidden.chmod(0o755)
    with run_driver("local[2]", tmp_path, rows=30_000, settings={"spark.pyspark.python": str(hidden)}) as driver:
        said = driver.communicate(timeout=180)[0]
    assert driver.returncode == 0, said
    assert cb.ScoreTable.from_parquet(tmp_path / "table.parquet") == expected_of(30_000)


# Machines that fail


def run_driver(url, folder, rows, settings=None):
    """A driver of its own, which counts `rows` rows and keeps the table in the folder."""
    command = [sys.executable, spark_driver.__file__, url, str(folder / "table.parquet"), str(rows)]
    given = json.dumps({**SETTINGS, **(settings or {})})
    servers.spark_environment()
    return subprocess.Popen([*command, given], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_until_counting(driver):
    for line in driver.stdout:
        if line.startswith("counting"):
            return
    raise AssertionError("the driver ended before it counted")


def expected_of(rows):
    number = np.arange(rows)
    return cb.ScoreTable.from_arrays(number * 40503 % 1009 < 400, spark_driver.score(number))


@pytest.mark.slow
@needs_spark
@pytest.mark.xdist_group("spark")
def test_a_failed_driver_or_worker_loses_no_rows(tmp_path):
    rows = 4_000_000
    with servers.spark_cluster(workers=2, memory="1g") as cluster:
        with run_driver(cluster.url, tmp_path, rows) as driver:
            wait_until_counting(driver)
            driver.kill()
        assert list(tmp_path.iterdir()) == []  # nothing half-written
        with run_driver(cluster.url, tmp_path, rows) as driver:
            wait_until_counting(driver)
            cluster.kill_worker()
            said = driver.communicate(timeout=300)[0]
        assert driver.returncode == 0, said
        assert "lost 1 executor" in said, said
    assert cb.ScoreTable.from_parquet(tmp_path / "table.parquet") == expected_of(rows)


# Calibrators where the data lies


def apply_in_engine(engine, kept, expression, names):
    """Values of an expression, and of columns, row by row."""
    if isinstance(engine, Spark):
        found = kept.selectExpr(f"{expression} AS c", *names).toArrow()
        return list(zip(*(found[name].to_pylist() for name in ("c", *names)), strict=True))
    cursor = engine.connection.cursor() if not isinstance(engine, DuckDB) else engine.connection
    return cursor.execute(f"SELECT {expression} AS c, {', '.join(names)} FROM ({kept}\n) AS t").fetchall()


def dialect_of(engine):
    return "spark" if isinstance(engine, Spark) else type(engine).__name__.lower()


def test_a_calibrator_applies_in_the_engine_of_the_scores(engine):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    rng = np.random.default_rng(3)
    p = rng.random(500)
    y = rng.random(500) < p**2
    scores = [*rng.random(200), 0.0, 5e-324, 1e-310, 1.0, 1.0000001, None, 2.0, float("nan")]
    kept = engine.keep(pa.table({"p": pa.array(scores, pa.float64())}))
    for calibrator in (
        cb.Isotonic(),
        cb.Isotonic(strict=True),
        cb.Platt(),
        cb.Platt(on="score"),
        cb.Beta(),
        cb.calibrators.PriorShift(prevalence=0.03),
        cb.calibrators.BinningAverage(),
        cb.calibrators.Temperature(),
    ):
        fitted = calibrator.fit(p, y)
        found = apply_in_engine(engine, kept, cb.to_sql(fitted, "p", dialect=dialect_of(engine)), ["p"])
        good = [(c, score) for c, score in found if c is not None]
        assert len(found) == len(scores)
        assert len(found) - len(good) == 3, type(calibrator).__name__
        values, at = np.array(good).T
        assert values == pytest.approx(fitted(np.clip(at, 0, 1)), abs=1e-12)


def test_a_recalibrator_applies_in_the_engine_of_the_predictions(engine):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    rng = np.random.default_rng(4)
    p = rng.normal(10, 5, 1000)
    y = p + np.sin(p) + rng.normal(size=1000)
    new = [*rng.normal(10, 8, 200), 0.0, 5e-324, -1e6, None, float("nan"), float("inf")]
    kept = engine.keep(pa.table({"p": pa.array(new, pa.float64())}))
    for recalibrator in (
        rg.LinearRecalibrator(cv=None),
        rg.IsotonicRecalibrator(cv=None),
        rg.LocalRecalibrator(cv=None),
        rg.CostRecalibrator(cb.costs.LinearCost(1, 4), n_bins=5, cv=None),
    ):
        fitted = recalibrator.fit(p, y)
        found = apply_in_engine(engine, kept, cb.to_sql(fitted, "p", dialect=dialect_of(engine)), ["p"])
        good = [row for row in found if row[0] is not None]
        assert (len(found), len(good)) == (len(new), len(new) - 3), type(recalibrator).__name__
        values, at = np.array(good).T
        assert values == pytest.approx(fitted.predict(at), rel=1e-12, abs=1e-12)


def test_recalibrated_quantiles_are_computed_in_the_engine_of_the_forecasts(engine):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    rng = np.random.default_rng(5)
    mean, sd = rng.normal(10, 3, 500), np.exp(rng.normal(size=500) / 3)
    y = mean + 2 * sd * rng.standard_t(5, 500)
    columns = {"mean": mean.tolist(), "sd": [*sd[:-2].tolist(), 0.0, None]}
    kept = engine.keep(pa.table({name: pa.array(values, pa.float64()) for name, values in columns.items()}))
    forecast = rg.Gaussian(mean, sd)
    for recalibrator in (rg.VarianceScaling(shift=True), rg.PITRecalibrator(), rg.QuantileRecalibrator()):
        fitted = recalibrator.fit(forecast, y)
        names = {"mean": "mean", "sd": "sd"}
        expression = cb.to_sql(fitted, columns=names, dialect=dialect_of(engine), level=0.95)
        found = apply_in_engine(engine, kept, expression, ["mean", "sd"])
        good = np.array([row for row in found if row[0] is not None])
        assert len(good) == 498, type(recalibrator).__name__
        expected = fitted(rg.Gaussian(good[:, 1], good[:, 2])).quantile(0.95)
        assert good[:, 0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
def test_maps_of_every_kind_give_the_values_of_python(engine):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    rows = new_rows(MANY)
    kept = engine.keep(pa.table(rows))
    for fitted, options, in_python in fitted_maps():
        found = cb.to_sql(fitted, **options, dialect=dialect_of(engine))
        expressions = list(found.values()) if isinstance(found, dict) else [found]
        values = np.array(select_in_engine(engine, kept, expressions, "i"), dtype=float)
        values = values[np.argsort(values[:, -1])][:, :-1]
        assert np.abs(values - in_python(rows)).max() <= 1e-12, type(fitted).__name__


def select_in_engine(engine, kept, expressions, name):
    """Return the values of expressions and of a column, row by row."""
    named = [f"{expression} AS v{j}" for j, expression in enumerate(expressions)]
    if isinstance(engine, Spark):
        found = kept.selectExpr(*named, name).toArrow()
        return np.column_stack([column.to_numpy() for column in found.columns])
    cursor = engine.connection.cursor() if not isinstance(engine, DuckDB) else engine.connection
    return cursor.execute(f"SELECT {', '.join(named)}, {name} FROM ({kept}\n) AS t").fetchall()
