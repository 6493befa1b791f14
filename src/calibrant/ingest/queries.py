"""Queries, counted by the database that they are put to; only the distinct rows come back."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from calibrant import _columns
from calibrant._sql import Dialect, dialect_named
from calibrant.errors import InputError
from calibrant.ingest.counting import Options
from calibrant.ingest.frames import no_column
from calibrant.ingest.groups import Split, named
from calibrant.ingest.pushdown import Counts
from calibrant.ingest.tables import Tables
from calibrant.table import Missing, ScoreTable

__all__ = ["from_query", "tables_from_query"]

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
# PostgreSQL's numbers for its types of numbers: bigint, smallint, integer, real, double precision, numeric.
_POSTGRESQL_NUMBERS = (20, 21, 23, 700, 701, 1700)


def from_query(
    connection: Any,
    sql: str,
    parameters: Parameters | None = None,
    *,
    y: str = "y",
    p: str = "p",
    weight: str | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
    importance: bool = False,
    resolution: float | None = None,
    dialect: str | None = None,
) -> ScoreTable:
    """Let a database count the rows of a query: the table of their outcomes and scores.

    Parameters
    ----------
    connection : DB-API connection
        To SQLite (``sqlite3``), PostgreSQL (``psycopg``, ``psycopg2``, ``pg8000``) or DuckDB. Nothing is written,
        committed or rolled back; it stays open.
    sql : str
        A SELECT. The database groups its rows by outcome and score, counts them, and sends these counts.
    parameters : sequence or mapping, optional
        What the driver puts into the placeholders of `sql`.
    y, p : str, default="y" and "p"
        Names of the query's columns of outcomes and of scores.
    weight : str, optional
        Name of the query's column of weights.
    pos_label, missing, importance
        See `ScoreTable.from_arrays`.
    resolution : float, optional
        Round scores to multiples of this before they are grouped, so that less is sent; see `ScoreTable.round`.
    dialect : {"duckdb", "postgresql", "sqlite"}, optional
        By default the driver says it.

    Returns
    -------
    ScoreTable
        The same, bit by bit, as `ScoreTable.from_arrays` of the rows (sums of real weights to 1e-12).

    Examples
    --------
    >>> import sqlite3
    >>> shop = sqlite3.connect(":memory:")
    >>> _ = shop.execute("CREATE TABLE scores (happened, said, country)")
    >>> _ = shop.executemany("INSERT INTO scores VALUES (?, ?, ?)", [(0, 0.2, "a"), (1, 0.7, "b"), (1, 0.7, "a")])
    >>> from_query(shop, "SELECT happened AS y, said AS p FROM scores WHERE country = ?", ("a",))
    ScoreTable(2 rows, 2 distinct scores, 1 positives)
    """
    tables = tables_from_query(
        connection,
        sql,
        parameters,
        y=y,
        p=p,
        weight=weight,
        pos_label=pos_label,
        missing=missing,
        importance=importance,
        resolution=resolution,
        dialect=dialect,
    )
    return tables.total()


def tables_from_query(
    connection: Any,
    sql: str,
    parameters: Parameters | None = None,
    *,
    y: str = "y",
    p: str | Sequence[str] = "p",
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
    importance: bool = False,
    resolution: float | None = None,
    dialect: str | None = None,
) -> Tables:
    """Let a database count the rows of a query by groups, and for several models, in one statement.

    Parameters
    ----------
    connection, sql, parameters, y, weight, pos_label, missing, importance, resolution, dialect
        See `from_query`.
    p : str or list of str
        The column of scores, or one for each model.
    by : str or list of str, optional
        The columns that split the rows. A row that lacks a value there is an error.

    Returns
    -------
    Tables
        ``tables[model, group]``; groups in sorted order.
    """
    models, keys = named(p, "p"), [] if by is None else named(by, "by")
    split = Split(y, models, keys, weight, Options(pos_label, missing, importance, resolution))
    database = _Database(connection, dialect)
    query = sql.strip().rstrip(";")
    database.check(query, parameters, split)
    counts = Counts(split, database.dialect)
    names = [*counts.keys, *counts.sums]
    for rows in database.answer(counting(query, counts), parameters):
        columns = zip(names, zip(*rows, strict=True), strict=True)
        counts.take({name: _columns.read(list(cells), name) for name, cells in columns})
    return split.tables()


def counting(query: str, counts: Counts) -> str:
    """The statement that counts the rows of a query."""
    shared, keys = ", ".join(counts.shared), ", ".join(counts.keys)
    each = [
        f"SELECT {shared}, {place} AS model, {score} AS score FROM asked" for place, score in enumerate(counts.scores)
    ]
    sums = ", ".join(f"{sum_} AS {name}" for name, sum_ in counts.sums.items())
    rows = " UNION ALL ".join(each)
    return f"WITH asked AS (\n{query}\n)\nSELECT {keys}, {sums}\nFROM ({rows}) AS counted\nGROUP BY {keys}"


class _Database:
    """A connection that somebody opened, and what its driver does in its own way."""

    def __init__(self, connection: Any, dialect: str | None) -> None:
        self.connection = connection
        self.driver = next((root for root in _roots(connection) if root in _DRIVERS), None)
        if not hasattr(connection, "cursor") or (dialect is None and self.driver is None):
            kind = type(connection)
            raise InputError(
                f"This is no connection to a known database: {kind.__module__}.{kind.__name__}.",
                hint="Pass one of sqlite3, psycopg or duckdb (of SQLAlchemy: engine.raw_connection().driver_connection)"
                ", or say dialect='postgresql' where a database speaks like it.",
                argument="connection",
            )
        self.name = dialect or _DRIVERS[str(self.driver)]
        self.dialect: Dialect = dialect_named(self.name)

    def run(self, statement: str, parameters: Parameters | None = None, *, stream: bool = False) -> Any:
        """The cursor of a statement that was run."""
        if self.driver in ("duckdb", "_duckdb"):  # cursors of DuckDB do not see the connection's temporary tables
            cursor = self.connection
        elif stream and self.driver in ("psycopg", "psycopg2") and not self.connection.autocommit:
            cursor = self.connection.cursor("calibrant")  # on the server, so that rows come as they are asked for
        else:
            cursor = self.connection.cursor()
        cursor.execute(*((statement,) if parameters is None else (statement, parameters)))
        return cursor

    def check(self, query: str, parameters: Parameters | None, split: Split) -> None:
        """The query must be one, and have the columns that are needed; scores and weights must be numbers."""
        try:
            about = self.run(f"SELECT * FROM (\n{query}\n) AS asked LIMIT 0", parameters).description
        except Exception as error:  # each driver has its own
            raise InputError(
                f"The database refuses the query: {str(error).strip().splitlines()[0]}.",
                hint="It must be a SELECT.",
                argument="sql",
            ) from error
        there = [column[0] for column in about]
        for name in split.names:
            if name not in there:
                raise no_column(name, there)
        for name in (*split.models, *([] if split.weight is None else [split.weight])):
            kind = about[there.index(name)][1]
            if not self._holds_numbers(kind):
                raise InputError(
                    f"{name} must hold numbers; its type is {self._shown(kind)}.",
                    hint="Convert it in the query; nothing is parsed or converted here.",
                    argument=name,
                )
        if self.name == "postgresql" and int(self.run("SHOW extra_float_digits").fetchone()[0]) < 1:
            raise InputError(
                "This connection rounds the numbers that it sends (extra_float_digits is below 1).",
                hint="SET extra_float_digits = 1 first.",
                argument="connection",
            )

    def _holds_numbers(self, kind: Any) -> bool:
        if self.name == "postgresql":
            return kind in _POSTGRESQL_NUMBERS
        text = str(kind)
        return self.name == "sqlite" or not text.startswith(("VARCHAR", "BLOB", "DATE", "TIME", "UUID", "STRUCT"))

    def _shown(self, kind: Any) -> str:
        if self.name != "postgresql":
            return str(kind)
        return str(self.run(f"SELECT format_type({int(kind)}, NULL)").fetchone()[0])

    def answer(self, statement: str, parameters: Parameters | None) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a statement, batch by batch."""
        cursor = self.run(statement, parameters, stream=True)
        try:
            while rows := cursor.fetchmany(_BATCH):
                yield rows
        finally:
            if cursor is not self.connection:
                cursor.close()


def _roots(connection: Any) -> list[str]:
    """The packages that the connection's class and its bases come from."""
    return [kind.__module__.split(".")[0] for kind in type(connection).__mro__]
