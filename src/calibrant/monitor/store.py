"""`Store`: a database of monitored models, SQLite or PostgreSQL, with durable transactions and an audit log."""

import json
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

from calibrant._support.errors import Argument, InputError, MissingExtraError

try:
    import sqlalchemy as sa
    from sqlalchemy import event
except ModuleNotFoundError as error:
    raise MissingExtraError("The monitor needs SQLAlchemy", "monitor", name="sqlalchemy") from error

from calibrant.monitor import schema
from calibrant.monitor.schema import StoreError, damaged, read_json
from calibrant.monitor.time_windows import to_datetime

_BUSY_SECONDS = 30
_MOST_SHOWN = 20
_WRITE = "calibrant_write"
_LOCK_OF_CREATION = 7_231_009_645  # any number that other programs do not use

_FULL = "The disk of the store is full.{undone} Free some space and repeat the call."
_LOCKED = "The store is locked by another process.{undone} Repeat the call."
_UNDONE = " Nothing of this call was stored."

# Codes of SQLite and of PostgreSQL, and what to do; a longer code comes before its beginning.
_PROBLEMS = {
    **dict.fromkeys(("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "53100"), _FULL),
    **dict.fromkeys(("SQLITE_BUSY", "55P03", "40P01"), _LOCKED),
    "SQLITE_READONLY": "The store must be writable; its file or its folder is read-only.",
    "SQLITE_CANTOPEN": "The file of the store cannot be opened. Check that its folder exists and is writable.",
    "SQLITE_NOTADB": "The file of the store is not a SQLite database. Name another file.",
    "SQLITE_CORRUPT": "The file of the store is damaged. Restore it from a backup.",
    "SQLITE_IOERR": "The file of the store cannot be read or written: input/output error.",
}


class Store:
    """Transactions on the database of a path, a URL or an engine of SQLAlchemy.

    A write transaction is durable when it returns: SQLite has a write-ahead log with ``synchronous=FULL``, PostgreSQL
    its own. Writers wait for each other: SQLite locks the file, PostgreSQL the row of the model.
    """

    def __init__(self, target: str | PathLike[str] | sa.URL | sa.Engine) -> None:
        self._outer = threading.local()
        self.engine: sa.Engine = target if isinstance(target, sa.Engine) else _engine(target)
        if not isinstance(target, sa.Engine):
            weakref.finalize(self, self.engine.dispose)
        self.is_sqlite: bool = self.engine.dialect.name == "sqlite"
        _check_database(self.engine.dialect.name)
        if self.is_sqlite and not event.contains(self.engine, "connect", _prepare_sqlite):
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        self._prepare()

    @contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Make one transaction of all writes of this thread in the block: all are durable at its end, or none.

        A write in the block that fails is undone alone, and the others stay.
        """
        with self.write() as connection:
            outer, self._outer.connection = self._current(), connection
            try:
                yield connection
            finally:
                self._outer.connection = outer

    def _current(self) -> sa.Connection | None:
        return getattr(self._outer, "connection", None)

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Return a connection in a write transaction, which is committed at the end."""
        outer = self._current()
        if outer is not None:
            with _translated(writes=True), outer.begin_nested():
                yield outer
            return
        options = {_WRITE: True}
        with _translated(writes=True), self.engine.connect().execution_options(**options) as own, own.begin():
            yield own

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Return a connection in a read transaction, which sees one state of the store."""
        outer = self._current()
        if outer is not None:
            with _translated(writes=True):
                yield outer
            return
        options = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with _translated(writes=False), self.engine.connect().execution_options(**options) as own, own.begin():
            yield own

    @contextmanager
    def act(self, who: str, action: str, model: str | None = None, **detail: object) -> Iterator[dict[str, object]]:
        """Make one transaction of an act and of its entry in the audit log; the block may add to the details."""
        with self.transaction():
            yield detail
            record_audit(self, who, action, model, **detail)

    def insert_new(self, connection: sa.Connection, table: sa.Table, values: dict[str, Any]) -> bool:
        """Insert a row; return False if there is one with its key, which another process may have inserted."""
        from sqlalchemy.dialects import postgresql, sqlite

        insert: Any = sqlite.insert if self.is_sqlite else postgresql.insert
        statement = insert(table).values(**values).on_conflict_do_nothing().returning(next(iter(table.primary_key)))
        return connection.execute(statement).first() is not None

    def models(self) -> list[str]:
        """Return the names of all models, sorted."""
        with self.read() as connection:
            return list(connection.execute(sa.select(schema.models.c.name).order_by(schema.models.c.name)).scalars())

    def delete(self, model: str) -> None:
        """Delete a model with all its data, which may be damaged."""
        models = self.models()
        if model not in models:
            raise InputError(Argument("model") + f" must be a model of the store, which has {models}; got {model!r}.")
        with self.write() as connection:
            connection.execute(schema.models.delete().where(schema.models.c.name == model))

    def _prepare(self) -> None:
        """Create the tables, or bring those of an older version up to date."""
        with self.read() as connection:
            if self._version(connection) == schema.SCHEMA_VERSION:
                return
        with self.write() as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_OF_CREATION)))
            found = self._version(connection)
            if found is None:
                schema.metadata.create_all(connection)
                connection.execute(schema.schema.insert().values(version=schema.SCHEMA_VERSION))
                return
            for version in range(found, schema.SCHEMA_VERSION):
                schema.MIGRATIONS[version](connection)
            connection.execute(schema.schema.update().values(version=schema.SCHEMA_VERSION))

    def _version(self, connection: sa.Connection) -> int | None:
        if not sa.inspect(connection).has_table(schema.schema.name):
            return None
        found: int = connection.execute(sa.select(schema.schema.c.version)).scalar_one()
        if found > schema.SCHEMA_VERSION:
            raise StoreError(
                f"The store must have a schema up to version {schema.SCHEMA_VERSION}; got version {found}, which a "
                "newer Calibrant wrote. Install that version: pip install --upgrade calibrant."
            )
        return found


def not_found(argument: str, words: str, known: Iterable[str], value: object) -> InputError:
    """Return the error for a value that is none of the known ones, of which the first are shown."""
    shown = ", ".join(islice(known, _MOST_SHOWN)) or "none"
    return InputError(Argument(argument) + f" must be {words} {shown}; got {value!r}.", value=value)


def store_file(target: str) -> str | None:
    """Return the path of the file of a SQLite store; None for other databases, and for SQLite in memory."""
    url = _engine(target).url
    path = url.database
    named = url.get_backend_name() == "sqlite" and path and path != ":memory:" and not path.startswith("file:")
    return path if named else None


def _check_database(name: str) -> None:
    if name not in ("sqlite", "postgresql"):
        raise InputError(
            Argument("store") + f" must be SQLite or PostgreSQL; got {name}.",
            hint="Pass a path, or a URL such as postgresql+psycopg://user@host/database.",
        )


def _engine(target: str | PathLike[str] | sa.URL) -> sa.Engine:
    text = str(Path(target)) if isinstance(target, PathLike) else target
    if not isinstance(text, (str, sa.URL)) or text in ("", ".") or "\0" in str(text):
        raise InputError(Argument("store") + f" must be a path or a URL of SQLAlchemy; got {target!r}.", value=target)
    if isinstance(text, str) and "://" not in text:
        text = sa.URL.create("sqlite", database=text)
    try:
        url = sa.make_url(text)
        _check_database(url.get_backend_name())
        return sa.create_engine(url)
    except InputError:
        raise
    except (sa.exc.ArgumentError, ValueError) as error:  # an option of the URL may be no number
        raise InputError(
            Argument("store") + f" must be a path or a URL of SQLAlchemy; got {str(target)!r}.",
            hint="For PostgreSQL pass postgresql+psycopg://user@host/database.",
        ) from error
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"This store needs {error.name}", "monitor,postgresql", name=error.name) from error


def _prepare_sqlite(connection: Any, record: Any) -> None:
    # The driver begins no transactions itself: `_begin_sqlite` does.
    connection.isolation_level = None
    for name, value in {
        "busy_timeout": _BUSY_SECONDS * 1000,
        "journal_mode": "WAL",
        "synchronous": "FULL",
        "foreign_keys": "ON",
    }.items():
        connection.execute(f"PRAGMA {name}={value}")


def _begin_sqlite(connection: sa.Connection) -> None:
    # A writer takes the lock at once: one that reads first could not get it after another has written.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(_WRITE) else "BEGIN")


@contextmanager
def _translated(*, writes: bool) -> Iterator[None]:
    """Turn errors of the database, and rows that another row names and that are missing, into `StoreError`.

    `writes`: the block may write, so the error says that nothing was stored.
    """
    try:
        yield
    except (sa.exc.NoResultFound, sa.exc.MultipleResultsFound) as error:
        raise damaged("rows contradict each other") from error
    except UnicodeDecodeError as error:  # a name in the schema, or in a message of SQLite
        raise StoreError(_PROBLEMS["SQLITE_CORRUPT"]) from error
    except (sa.exc.DBAPIError, sqlite3.Error) as error:
        cause = getattr(error, "orig", error)
        code = str(getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or "")
        known = next((text for start, text in _PROBLEMS.items() if code.startswith(start)), None)
        first = (str(cause) or type(cause).__name__).splitlines()[0]
        text = known or f"The store cannot be used: {first}."
        raise StoreError(text.replace("{undone}", _UNDONE if writes else "")) from error


@dataclass(frozen=True)
class AuditEntry:
    """One act: the id of the token or the command line in `who`, the act, its model and its details."""

    id: int
    time: str
    who: str
    action: str
    model: str | None
    detail: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return dict(vars(self))


def record_audit(store: Store, who: str, action: str, model: str | None = None, **detail: object) -> None:
    """Add an entry, in the transaction of the act if there is one."""
    values = {"time": schema.now(), "who": who, "action": action, "model": model, "detail": json.dumps(detail)}
    with store.write() as connection:
        connection.execute(schema.audit.insert().values(**values))


def read_audit(store: Store, after: int, limit: int) -> list[AuditEntry]:
    """Return entries with an id above `after`, in order."""
    table = schema.audit
    query = sa.select(table).where(table.c.id > after).order_by(table.c.id).limit(limit)
    with store.read() as connection:
        rows = connection.execute(query).all()
    details = [read_json(row.detail, "audit.detail", dict) for row in rows]
    return [
        AuditEntry(int(row.id), to_datetime(row.time).isoformat(), row.who, row.action, row.model, detail)
        for row, detail in zip(rows, details, strict=True)
    ]
