"""Count rows inside an engine, which returns each distinct row once, and read the counts into tables.

The engine groups rows by group, outcome and score and counts them: ::

    SELECT g0, y, score, count(*) AS n FROM (SELECT country AS g0, y, CAST(p AS DOUBLE) AS score FROM ...) GROUP BY ...

Values (missing cells, labels, scores outside [0, 1]) are validated afterwards by the shared reader. The engine only
does casts, comparisons and roundings that are bitwise identical in all engines.
"""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, TypeAlias, Unpack, overload
from uuid import uuid4

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.columns import LEAST_WEIGHT
from calibrant._support.errors import InputError, no_column
from calibrant._support.lazy import warn_moved
from calibrant._support.sql_dialects import DIALECTS, Dialect
from calibrant.ingest.counting import CountOptions, EngineSums, TableOptions, Weighting
from calibrant.ingest.frames import same_name
from calibrant.ingest.table_counter import TableCounter, check_names
from calibrant.tables.collection import Tables
from calibrant.tables.rows import Missing
from calibrant.tables.score_table import ScoreTable

_LARGEST, _ALL_WHOLE = np.finfo(np.float64).max.item(), 2.0**53
# Sums of weights in this range do not overflow, where some engines fail; sums beyond 2**53 are refused later.
_FAR = 1e280


@dataclass(frozen=True)
class CountQuery:
    """SQL expressions of an engine for the counts that a `TableCounter` needs."""

    counter: TableCounter
    dialect: Dialect
    text: frozenset[str] = frozenset()  # columns of text, which are compared by bytes, not by collation

    @property
    def shared(self) -> list[str]:
        """The expressions that all models share: groups, outcome, weight."""
        counter = self.counter
        columns = [f"{self._label(key)} AS g{i}" for i, key in enumerate(counter.keys)]
        columns.append(f"{self._label(counter.y)} AS y")
        if counter.weighting is not None:
            weight = self._number(counter.weighting.name)
            columns += [f"{weight} AS w", f"{self._sort(weight)} AS sort"]
        return columns

    @property
    def scores(self) -> list[str]:
        """The score of each model, on the grid if there is one."""
        return [self._number(model, self.counter.options.resolution) for model in self.counter.models]

    @property
    def keys(self) -> list[str]:
        """The names that rows are grouped by."""
        sort = [] if self.counter.weighting is None else ["sort"]
        model = ["model"] if len(self.counter.models) > 1 else []
        return [*(f"g{i}" for i in range(len(self.counter.keys))), "y", *sort, *model, "score"]

    @property
    def sums(self) -> dict[str, str]:
        """The sums over equal rows, by name.

        Rows with and without the event are grouped apart, so that these are sums of w y and of w^2 y too. Sums of
        frequencies are exact as doubles: whole numbers below 2**53 are, and a larger sum is refused.
        """
        sql, weighting = self.dialect, self.counter.weighting
        if weighting is None:
            return {"n": "count(*)"}
        sums = {"n": "count(*)", "total": f"sum({sql.between('w', -_FAR, _FAR)})", "least": "min(w)"}
        if weighting.importance:
            usual = f"w >= {sql.number(LEAST_WEIGHT)} AND w <= {sql.number(_ALL_WHOLE)}"
            sums["square"] = f"sum(CASE WHEN {usual} THEN w * w ELSE {sql.number(0)} END)"
        return sums

    def _label(self, column: str) -> str:
        name = self.dialect.name(column)
        return self.dialect.bytewise.format(x=name) if column in self.text else name

    def _number(self, column: str, step: float | None = None) -> str:
        """Return a column as doubles; values that are not numbers stay as they are and are refused by the reader."""
        sql, name = self.dialect, self.dialect.name(column)
        value = x = sql.as_double(name)
        if step is not None:
            rounded = f"({sql.nearest.format(x=f'{x} / {sql.number(step)}')}) * {sql.number(step)}"
            inside = f"{x} >= {sql.number(0)} AND {x} <= {sql.number(1)}"
            value = f"CASE WHEN {inside} THEN {sql.least}({rounded}, {sql.number(1)}) ELSE {x} END"
        if sql.is_number:
            value = f"CASE WHEN {sql.is_number.format(x=name)} THEN {value} ELSE {name} END"
        return value

    def _sort(self, w: str) -> str:
        """Return the class of a weight: missing, 0, negative, too small, infinite, valid; or a fractional frequency.

        Only weights of one class are added up, so the least weight of a class shows whether all of them are valid.
        """
        sql, weighting = self.dialect, self.counter.weighting
        whole = f"WHEN {w} >= {sql.number(_ALL_WHOLE)} THEN 5 WHEN {w} = {sql.nearest.format(x=w)} THEN 5 ELSE 6"
        if weighting is not None and weighting.importance:
            whole = "ELSE 5"
        return (
            f"CASE WHEN {w} IS NULL THEN 0 WHEN {w} = {sql.number(0)} THEN 1 "
            f"WHEN {w} < {sql.number(0)} THEN 2 WHEN {w} < {sql.number(LEAST_WEIGHT)} THEN 3 "
            f"WHEN {w} > {sql.number(_LARGEST)} THEN 4 {whole} END"
        )

    def take(self, answer: Mapping[str, _columns.ColumnData]) -> None:
        """Add the rows of a result, or of a part of it, to the tables."""
        counter = self.counter
        for place, model in enumerate(counter.models):
            own = np.arange(len(answer["n"]))
            if "model" in answer:
                own = np.flatnonzero(answer["model"].values == place)
            if not own.size:
                continue
            rows = answer["n"].values[own].astype(np.int64)
            cut = {name: replace(column.part(own), counts=rows) for name, column in answer.items()}
            sums, w = EngineSums(rows), None
            if counter.weighting is not None:
                added = (_columns.numbers(cut[name]) for name in ("total", "square") if name in cut)
                sums = EngineSums(rows, *(column.values.astype(np.float64) for column in added))
                w = replace(cut["least"], name=counter.weighting.name)
            keys = [replace(cut[f"g{i}"], name=key) for i, key in enumerate(counter.keys)]
            y, p = replace(cut["y"], name=counter.y), replace(cut["score"], name=model)
            counter.add_counted(model, y, p, w, keys, sums)


Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]

_DRIVERS = {
    "sqlite3": "sqlite",
    "duckdb": "duckdb",
    "_duckdb": "duckdb",
    "psycopg": "postgresql",
    "psycopg2": "postgresql",
    "pg8000": "postgresql",
}
_BATCH = 1 << 17
_DATABASES = ("duckdb", "postgresql", "sqlite")
# Type numbers of PostgreSQL: bigint, smallint, integer, real, double precision, numeric; text, char, varchar;
# user-defined types (enums, citext) begin at 16384.
_NUMBERS, _TEXT, _USER_DEFINED = (20, 21, 23, 700, 701, 1700), (25, 1042, 1043), 16384
# DuckDB describes columns by their types; before 1.4 by NUMBER, bool and STRING.
_DUCKDB_NUMBERS = re.compile(
    r'(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\)|BOOLEAN|"?NULL"?|NUMBER|bool)$'
)
_DUCKDB_TEXT = ("VARCHAR", "STRING")
_KINDS = {bool: "b", int: "i", float: "f"}  # types of Python and kinds of NumPy
# Errors of the query; other errors, such as a lost connection, are raised unchanged.
_QUERY_ERRORS = ("ProgrammingError", "DataError", "NotSupportedError")

_ONE_SELECT = "It must be one SELECT, without a semicolon inside."


@overload
def from_query(
    connection: Any,
    sql: str,
    parameters: Parameters | None = None,
    *,
    y: str = "y",
    p: str = "p",
    by: None = None,
    dialect: str | None = None,
    **options: Unpack[TableOptions],
) -> ScoreTable: ...
@overload
def from_query(
    connection: Any,
    sql: str,
    parameters: Parameters | None = None,
    *,
    y: str = "y",
    p: str | Sequence[str] = "p",
    by: str | Sequence[str],
    dialect: str | None = None,
    **options: Unpack[TableOptions],
) -> Tables: ...
@overload
def from_query(
    connection: Any,
    sql: str,
    parameters: Parameters | None = None,
    *,
    y: str = "y",
    p: list[str] | tuple[str, ...],
    by: None = None,
    dialect: str | None = None,
    **options: Unpack[TableOptions],
) -> Tables: ...
def from_query(
    connection: Any,
    sql: str,
    parameters: Parameters | None = None,
    *,
    y: str = "y",
    p: str | Sequence[str] = "p",
    by: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
    frequency: str | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
    resolution: float | None = None,
    dialect: str | None = None,
) -> ScoreTable | Tables:
    """Let a database count the outcomes and scores of a query, as a whole or by model and group, in one statement.

    Parameters
    ----------
    connection : DB-API connection
        To SQLite (``sqlite3``), PostgreSQL (``psycopg``, ``psycopg2``, ``pg8000``) or DuckDB. It stays open, and its
        transaction is neither committed nor rolled back.
    sql : str
        One SELECT, without a semicolon inside. The database groups its rows by outcome and score and returns counts.
    parameters : sequence or mapping, optional
        Values of the placeholders of `sql`.
    y : str, default="y"
        Name of the query's column of outcomes.
    p : str or list of str, default="p"
        Name of the query's column of scores, or a list with one name per model.
    by : str or list of str, optional
        The columns that split the rows into groups. A missing group is an error, and so are more than 1,000 groups of
        fewer than 2 rows on average, which a column of ids has.
    sample_weight, frequency : str, optional
        Name of the query's column of importance weights, or of the column of numbers of equal rows.
    pos_label, missing
        See `ScoreTable.from_arrays`.
    resolution : float, optional
        Round scores to multiples of this before they are grouped, so that fewer rows are fetched; see
        `ScoreTable.round`.
    dialect : {"duckdb", "postgresql", "sqlite"}, optional
        By default that of the driver.

    Returns
    -------
    ScoreTable or Tables
        One table, bitwise identical to `ScoreTable.from_arrays` of the rows (sums of real weights to 1e-12). With `by`,
        or with a list of models, `Tables`: ``tables[model, group]``, with groups in sorted order.

    See Also
    --------
    from_frame, scan, ScoreTable, Tables

    Examples
    --------
    >>> import sqlite3
    >>> shop = sqlite3.connect(":memory:")
    >>> _ = shop.execute("CREATE TABLE scores (event, score, country)")
    >>> _ = shop.executemany("INSERT INTO scores VALUES (?, ?, ?)", [(0, 0.2, "a"), (1, 0.7, "b"), (1, 0.7, "a")])
    >>> from_query(shop, "SELECT event AS y, score AS p FROM scores WHERE country = ?", ("a",))
    ScoreTable(2 rows, 2 distinct scores, 1 positives)
    >>> tables = from_query(shop, "SELECT * FROM scores", y="event", p="score", by="country")
    >>> tables["score", "b"].size
    1
    >>> shop.close()
    """
    models, keys = check_names(p, "p"), [] if by is None else check_names(by, "by")
    weighting = Weighting.named(sample_weight, frequency)
    counter = TableCounter(y, models, keys, weighting, CountOptions(pos_label, missing, resolution))
    database = _Database(connection, dialect)
    if not isinstance(sql, str):
        raise InputError(f"sql must be text; got {type(sql).__name__}.", argument="sql", value=sql)
    query = sql.strip().rstrip(";")
    with database.savepoint():
        counts = CountQuery(counter, database.dialect, database.check(query, parameters, counter))
        names = [*counts.keys, *counts.sums]
        for rows in database.answer(counting(query, counts, percent=database.percent(parameters)), parameters):
            columns = zip(names, zip(*rows, strict=True), strict=True)
            counts.take({name: _column(cells, name) for name, cells in columns})
    tables = counter.tables()
    return tables.total() if by is None and isinstance(p, str) else tables


def tables_from_query(
    connection: Any, sql: str, parameters: Parameters | None = None, *, p: str | Sequence[str] = "p", **options: Any
) -> Tables:
    """Count the rows of a query by model and group; deprecated: use `from_query` with `by` or a list of models."""
    warn_moved("calibrant.tables_from_query", "calibrant.from_query(by=...)")
    return from_query(connection, sql, parameters, p=[p] if isinstance(p, str) else list(p), **options)


def counting(query: str, counts: CountQuery, *, percent: str = "%") -> str:
    """Return the statement that counts the rows of a query; `percent` is the percent sign of the driver."""
    shared, keys = ", ".join(counts.shared), ", ".join(counts.keys)
    rows = " UNION ALL ".join(
        f"SELECT {shared}, {place} AS model, {score} AS score FROM calibrant_asked"
        for place, score in enumerate(counts.scores)
    )
    sums = ", ".join(f"{sum_} AS {name}" for name, sum_ in counts.sums.items())
    asking = f"SELECT {keys}, {sums}\nFROM ({rows}) AS calibrant_counted\nGROUP BY {keys}"
    return f"WITH calibrant_asked AS (\n{query}\n)\n{asking.replace('%', percent)}"


def _column(cells: Sequence[Any], name: str) -> _columns.ColumnData:
    """Read cells as numbers if all have one numeric type, else as objects, which NumPy would convert."""
    kinds = set(map(type, cells))
    expected = _KINDS.get(kinds.pop()) if len(kinds) == 1 else None
    if expected is not None and (values := np.array(cells)).dtype.kind == expected:  # False for ints beyond 64 bits
        return _columns.read(values, name)
    objects = np.empty(len(cells), dtype=object)
    objects[:] = [bytes(cell) if isinstance(cell, memoryview) else cell for cell in cells]
    return _columns.read(objects, name)


class _Database:
    """An open connection, and the differences between drivers."""

    def __init__(self, connection: Any, dialect: str | None) -> None:
        self.connection = connection
        self.driver = next((root for root in _roots(connection) if root in _DRIVERS), "")
        if not hasattr(connection, "cursor") or (dialect is None and not self.driver) or _is_async(connection):
            kind = type(connection)
            raise InputError(
                f"connection must be one to a known database; got {kind.__module__}.{kind.__name__}.",
                hint="Pass one of sqlite3, psycopg or duckdb (of SQLAlchemy: engine.raw_connection().driver_connection)"
                ", or dialect='postgresql' for a compatible database.",
                argument="connection",
            )
        self.name = dialect or _DRIVERS[self.driver]
        if self.name not in _DATABASES:
            raise InputError(f"dialect must be one of {', '.join(_DATABASES)}; got {dialect!r}.", argument="dialect")
        self.dialect: Dialect = DIALECTS[self.name]

    def run(self, statement: str, parameters: Parameters | None = None, *, stream: bool = False) -> Any:
        """Run a statement and return its cursor; rows are tuples, also if the connection has a row factory."""
        cursor = self._cursor(stream)
        try:
            cursor.execute(*((statement,) if parameters is None else (statement, parameters)))
        except BaseException:
            self._close(cursor)
            raise
        return cursor

    def _close(self, cursor: Any) -> None:
        if cursor is not self.connection:
            cursor.close()

    def _cursor(self, stream: bool) -> Any:
        if self.driver in ("duckdb", "_duckdb"):  # cursors of DuckDB do not see the connection's temporary tables
            return self.connection
        options: dict[str, Any] = {}
        if self.driver == "psycopg":
            options["row_factory"] = import_module("psycopg.rows").tuple_row
            stream = stream and "Raw" not in self.connection.cursor_factory.__name__
        elif self.driver == "psycopg2":
            options["cursor_factory"] = import_module("psycopg2.extensions").cursor
        if stream and "psycopg" in self.driver and not self.connection.autocommit:
            options["name"] = f"calibrant_{uuid4().hex}"  # on the server, so that rows are fetched in batches
        cursor = self.connection.cursor(**options)
        if self.driver == "sqlite3":
            cursor.row_factory = None
        return cursor

    def percent(self, parameters: Parameters | None) -> str:
        """Return the percent sign as the driver needs it beside placeholders."""
        return "%%" if parameters is not None and _DRIVERS.get(self.driver) == "postgresql" else "%"

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Protect the transaction of the connection from errors in the block."""
        if _DRIVERS.get(self.driver) != "postgresql" or self.connection.autocommit:
            yield
            return
        name = f"calibrant_{uuid4().hex}"
        try:
            self.run(f"SAVEPOINT {name}").close()
        except Exception as error:
            raise self._refused(error, "Roll back first if a transaction failed.") from error
        try:
            yield
        except BaseException:
            self.run(f"ROLLBACK TO SAVEPOINT {name}").close()
            raise
        finally:
            self.run(f"RELEASE SAVEPOINT {name}").close()

    def check(self, query: str, parameters: Parameters | None, counter: TableCounter) -> frozenset[str]:
        """Check the query and its columns; return the names of the columns of text."""
        try:
            about = self.run(f"SELECT * FROM (\n{query}\n) AS calibrant_asked LIMIT 0", parameters).description
        except Exception as error:  # each driver has its own errors
            raise self._refused(error, _ONE_SELECT) from error
        there = [column[0] for column in about]
        for name in counter.names:
            if name not in there:
                raise no_column(name, there, "The query")
            # SQLite names the second of two equal columns p:1. The p_1 of DuckDB may be the name of a column.
            if there.count(name) > 1 or (self.name == "sqlite" and f"{name}:1" in there):
                raise same_name(name, [name, name])
        kinds = {name: about[there.index(name)][1] for name in counter.names}
        for name in counter.numbers:
            if not self._holds_numbers(kinds[name]):
                raise InputError(
                    f"{name} must hold numbers; got type {self._shown(kinds[name])}.",
                    hint="Convert it in the query; text is not parsed.",
                    argument=name,
                )
        if _DRIVERS.get(self.driver) == "postgresql" and int(self.run("SHOW extra_float_digits").fetchone()[0]) < 1:
            raise InputError(
                "connection must not round numbers; got extra_float_digits below 1.",
                hint="Run SET extra_float_digits = 1 first.",
                argument="connection",
            )
        return frozenset(name for name in (counter.y, *counter.keys) if self._holds_text(kinds[name]))

    def _holds_numbers(self, kind: Any) -> bool:
        if self.name == "postgresql":
            return kind in _NUMBERS or not isinstance(kind, int)  # other drivers name types differently
        return self.name == "sqlite" or _DUCKDB_NUMBERS.match(str(kind)) is not None

    def _holds_text(self, kind: Any) -> bool:
        if self.name == "postgresql":
            return kind in _TEXT or (isinstance(kind, int) and kind >= _USER_DEFINED)
        return self.name == "sqlite" or str(kind) in _DUCKDB_TEXT

    def _shown(self, kind: Any) -> str:
        if self.name != "postgresql":
            return str(kind)
        return str(self.run(f"SELECT format_type({int(kind)}, NULL)").fetchone()[0])

    def _refused(self, error: Exception, hint: str) -> InputError:
        detail = error.args[0] if error.args else ""
        text = str(detail["M"] if isinstance(detail, dict) and "M" in detail else error)  # pg8000 has a dict
        first = (text.strip().splitlines() or [type(error).__name__])[0]
        return InputError(f"The database cannot run the query: {first.rstrip('.')}.", hint=hint, argument="sql")

    def _is_of_query(self, error: Exception) -> bool:
        """Return whether an error comes from the query; sqlite3 has one class for these and for locks and disks."""
        names = {kind.__name__ for kind in type(error).__mro__}
        unspecific = self.driver == "sqlite3" and getattr(error, "sqlite_errorcode", 1) == 1  # SQLITE_ERROR
        return bool(names & set(_QUERY_ERRORS)) or (unspecific and "OperationalError" in names)

    def answer(self, statement: str, parameters: Parameters | None) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a statement in batches."""
        cursor = None
        try:
            cursor = self.run(statement, parameters, stream=True)
            while rows := cursor.fetchmany(_BATCH):
                yield rows
        except Exception as error:
            if not self._is_of_query(error):
                raise
            hint = _ONE_SELECT if "syntax error" in str(error) else "Convert or filter such values in the query."
            raise self._refused(error, hint) from error
        finally:
            if cursor is not None:
                self._close(cursor)


def _roots(connection: Any) -> list[str]:
    """Return the packages of the class of the connection and of its bases."""
    return [kind.__module__.split(".")[0] for kind in type(connection).__mro__]


def _is_async(connection: Any) -> bool:
    """Return whether the connection is one of asyncio."""
    return inspect.iscoroutinefunction(getattr(connection, "close", None))
