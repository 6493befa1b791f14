"""SQL of each dialect: parsed and translated by sqlglot, and executed by the engines that are found."""

import re
from functools import cache

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import calibrant as cb
from calibrant._support.sql_dialects import DIALECTS
from tests.export.fitted_maps import fitted_maps, new_rows
from tests.results.test_audit_conditions import HOSTILE, every_condition, rows, segment
from tools import servers

OF_SQLGLOT = {"postgresql": "postgres", "sqlserver": "tsql"}
LONG = 40_000  # characters
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)
needs_mariadb = pytest.mark.skipif(servers.why_no_mariadb() is not None, reason=str(servers.why_no_mariadb()))
needs_postgresql = pytest.mark.skipif(servers.why_no_postgresql() is not None, reason=str(servers.why_no_postgresql()))


@cache
def maps():
    return list(fitted_maps(400))


def expressions(dialect):
    """The SQL of each map, its values in Python, and the columns that it reads."""
    for fitted, options, in_python in maps():
        found = cb.to_sql(fitted, **options, dialect=dialect)
        columns = options.get("columns", [options.get("column")])
        names = columns.values() if isinstance(columns, dict) else columns
        for place, sql in enumerate(found.values() if isinstance(found, dict) else [found]):
            yield sql, lambda rows, f=in_python, j=place: np.asarray(f(rows))[:, j], set(names)


def test_the_maps_are_of_every_kind():
    from calibrant.calibrators.class_maps import CLASS_MAPS
    from calibrant.calibrators.maps import MAPS

    without_formula = {"coupling", *(kind for kind, class_ in MAPS.items() if not hasattr(class_, "formula"))}
    assert without_formula == {"coupling", "sinh_arcsinh", "quantile_shifts"}
    short = [fitted.map_ for fitted, options, _ in maps() if len(str(cb.to_sql(fitted, **options))) < 3 * LONG]
    parts = [
        each for map_ in short for each in (map_, *getattr(map_, "per_class", ()), getattr(map_, "confidence", None))
    ]
    assert {each.kind for each in parts if each} >= {*MAPS, *CLASS_MAPS} - without_formula


@pytest.fixture
def sqlglot():
    return pytest.importorskip("sqlglot", reason="sqlglot is not installed")


def parse(sqlglot, sql, dialect):
    return sqlglot.parse_one(sql, read=OF_SQLGLOT.get(dialect, dialect), error_level=sqlglot.ErrorLevel.RAISE)


@each_dialect
def test_sqlglot_parses_each_dialect_and_translates_it_to_the_values_of_python(sqlglot, dialect):
    """sqlglot knows what the functions of each engine mean; DuckDB computes the values of its translation."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    given = new_rows(300)
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE scored ({', '.join(f'{name} DOUBLE' for name in given)})")
    connection.executemany(f"INSERT INTO scored VALUES ({', '.join('?' * len(given))})", _cells(given))
    for sql, in_python, names in expressions(dialect):
        if len(sql) > LONG:  # other maps of the same kind are shorter
            continue
        tree = parse(sqlglot, f"SELECT {sql} AS calibrated FROM scored ORDER BY i", dialect)
        assert not list(tree.find_all(sqlglot.exp.Command))
        columns = {column.name for column in tree.find_all(sqlglot.exp.Column)}
        assert columns - {"i", "v", "column1"} == names
        if dialect == "sqlite":  # its typeof has no translation; other tests run SQLite itself
            continue
        found = connection.execute(tree.sql(dialect="duckdb")).fetchall()
        assert np.abs(np.array(found, dtype=float)[:, 0] - in_python(given)).max() <= 1e-12


def _cells(given):
    return [tuple(float(value) for value in row) for row in zip(*given.values(), strict=True)]


@each_dialect
def test_names_and_texts_stay_what_they_are(sqlglot, dialect):
    sql, exp = DIALECTS[dialect], sqlglot.exp
    for value in [*HOSTILE, "a]b", "[a]", "\\", "back\\\nslash", "gr\u00f6\u00dfe", "x'y"]:
        tree = parse(sqlglot, f"SELECT {sql.text(value)} AS {sql.name('c')}", dialect)
        texts = [each.name for each in tree.find_all(exp.Literal, exp.National)]
        assert "".join(texts) == value, (dialect, value)
        name = parse(sqlglot, f"SELECT {sql.name(value)} FROM t", dialect)
        assert next(each.name for each in name.find_all(exp.Identifier)) == value, (dialect, value)


def test_case_of_sql_server_is_nested_at_most_ten_deep(sqlglot):
    rng = np.random.default_rng(0)
    p = np.sort(rng.random(20_000))
    cal = cb.calibrators.BinningAverage(n_bins=10_000).fit(p, rng.random(20_000) < p)
    text = cb.to_sql(cal, "p", dialect="sqlserver")
    depth, deepest = 0, 0
    for word in re.findall(r"\bCASE\b|\bEND\b", text):
        depth += 1 if word == "CASE" else -1
        deepest = max(deepest, depth)
    assert (depth, deepest) == (0, 4)
    assert cb.to_sql(cal, "p").count("CASE") > 5_000  # elsewhere by bisection
    assert text.count("WHEN") == 1 + cal.map_.edges.size


def test_numbers_of_sql_server_are_not_subnormal():
    sql = DIALECTS["sqlserver"]
    assert sql.number(5e-324) == "2.2250738585072014e-308"
    assert sql.number(-1e-310) == "(-2.2250738585072014e-308)"
    assert sql.number(0.0) == "0.0e0"
    assert DIALECTS["duckdb"].number(5e-324) == "5e-324"


def test_databricks_runs_the_sql_of_spark():
    for (databricks, _, _), (spark, _, _) in zip(expressions("databricks"), expressions("spark"), strict=True):
        assert databricks == spark


# Engines


@pytest.fixture(scope="module")
def mariadb():
    with servers.mariadb() as connection:
        yield connection


@needs_mariadb
def test_mariadb_gives_the_values_of_python(mariadb):
    given = new_rows(2_000)
    cursor = mariadb.cursor()
    cursor.execute(f"CREATE TABLE scored ({', '.join(f'`{name}` DOUBLE' for name in given)})")
    cursor.executemany(f"INSERT INTO scored VALUES ({', '.join(['%s'] * len(given))})", _cells(given))
    for sql, in_python, _ in expressions("mysql"):
        cursor.execute(f"SELECT {sql} AS c FROM scored ORDER BY i")
        values = np.array(cursor.fetchall(), dtype=float)[:, 0]
        assert np.abs(values - in_python(given)).max() <= 1e-12


@needs_mariadb
def test_mariadb_returns_null_where_python_refuses(mariadb):
    cal = cb.Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    cursor = mariadb.cursor()
    for value in ("NULL", "1.5", "-0.1", "1e308"):
        cursor.execute(f"SELECT {cb.to_sql(cal, 's', dialect='mysql')} FROM (SELECT {value} AS s) AS t")
        assert cursor.fetchall() == ((None,),)
    cursor.execute(f"SELECT {cb.to_sql(cal, 's', dialect='mysql')} FROM (SELECT CAST(0.25 AS DECIMAL(6, 4)) AS s) AS t")
    assert cursor.fetchall() == ((pytest.approx(cal([0.25])[0], abs=1e-12),),)


@needs_mariadb
def test_mariadb_selects_the_rows_of_a_segment(mariadb):
    frame, p, _ = rows()
    table = frame.assign(score=p)
    cursor = mariadb.cursor()
    cursor.execute("CREATE TABLE segments (number DOUBLE, level INT, text VARCHAR(99), flag BOOL, score DOUBLE)")
    cells = table.astype(object).where(table.notna(), None).values.tolist()
    cursor.executemany("INSERT INTO segments VALUES (%s, %s, %s, %s, %s)", cells)
    for condition in every_condition(frame, p):
        each = segment([condition])
        cursor.execute(f"SELECT count(*) FROM segments WHERE {each.to_sql('mysql')}")
        assert cursor.fetchone()[0] == each.mask(frame, forecast={"score": p}).sum(), each.rule


@needs_postgresql
def test_postgresql_computes_the_sql_of_redshift():
    """Redshift cannot run here. It descends from PostgreSQL, which takes the same SQL."""
    import psycopg

    given = new_rows(500)
    with servers.postgresql() as address, psycopg.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE scored ({', '.join(f'{name} float8' for name in given)})")
        with cursor.copy("COPY scored FROM STDIN") as copy:
            for row in _cells(given):
                copy.write_row(row)
        for sql, in_python, _ in expressions("redshift"):
            cursor.execute(f"SELECT {sql} AS c FROM scored ORDER BY i")
            values = np.array(cursor.fetchall(), dtype=float)[:, 0]
            assert np.abs(values - in_python(given)).max() <= 1e-12
