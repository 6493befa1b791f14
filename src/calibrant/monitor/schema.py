"""Tables of the store, the version of their schema, migrations, and checks of what the store holds.

Each column checks the values that it reads: a database can be edited by hand or be damaged.
"""

import json
import math
import re
import time
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from calibrant.monitor.time_windows import DAY, LAST_YEAR, read_time

_LARGEST = 2**63 - 1
# A window may end after the last time that is accepted.
_FIRST_TIME, _LAST_TIME = read_time(datetime(1, 1, 1)), read_time(datetime(LAST_YEAR, 12, 31)) + 366 * DAY


class StoreError(OSError):
    """The store cannot be read or written. What it held before the call is unchanged.

    See Also
    --------
    Monitor

    Examples
    --------
    >>> damaged("a window ends before it begins")
    StoreError('The store is damaged: a window ends before it begins. Restore it from a backup.')
    """

    __module__ = "calibrant.exceptions"


def damaged(what: str) -> StoreError:
    """Return the error about content of the store that the monitor did not write."""
    return StoreError(f"The store is damaged: {what}. Restore it from a backup.")


class Rule(NamedTuple):
    """What the values of a column must be, in words and as a function; the other function converts raw values."""

    words: str
    holds: Callable[[Any], bool]
    convert: Callable[[Any], Any]


def _integers(words: str, low: int, high: int = _LARGEST) -> Rule:
    return Rule(words, lambda value: type(value) is int and low <= value <= high, _to_integer)


def _reals(words: str, low: float, high: float) -> Rule:
    return Rule(words, lambda value: type(value) is float and low <= value <= high, _to_float)


def _texts(words: str, holds: Callable[[str], Any] = lambda value: True) -> Rule:
    return Rule(words, lambda value: isinstance(value, str) and bool(holds(value)), lambda value: value)


def _to_integer(value: Any) -> Any:
    # PostgreSQL has sums of whole numbers as decimals.
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value


def _to_float(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _to_bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


@lru_cache(maxsize=8192)
def _is_label(key: str) -> bool:
    """Return whether a text is the key of a label, or empty: JSON of a scalar, or of a list of scalars."""
    if not key:
        return True
    try:
        found = json.loads(key)
    except (ValueError, RecursionError):
        return False
    parts = found if isinstance(found, list) else [found]
    numbers = (part for part in parts if isinstance(part, float))
    return all(type(part) in (str, int, float) for part in parts) and all(map(math.isfinite, numbers))


def _is_stream(key: str) -> bool:
    """Return whether a text is the key of a stream: that of a label, or of an event of a group."""
    if not key.startswith("event "):
        return _is_label(key)
    # A label may hold the word that joins both keys.
    cuts = [at for at in range(len(key)) if key.startswith(" of ", at)]
    return any(_is_label(key[6:at]) and _is_label(key[at + 4 :]) for at in cuts)


_FINITE = 1.7976931348623157e308
RULES = {
    "count": _integers("a whole number of at least 0", 0),
    "rows": _integers("a whole number of at least 1", 1),
    "ordinal": _integers("a whole number from 1 to 2147483647", 1, 2**31 - 1),
    "time": _integers("microseconds since 1970 in the years 1 to 9000", _FIRST_TIME, _LAST_TIME),
    "sum": _reals("a finite number of at least 0", 0.0, _FINITE),
    "number": _reals("a finite number", -_FINITE, _FINITE),
    "limit": _reals("a number", -math.inf, math.inf),
    "probability": _reals("a number from 0 to 1", 0.0, 1.0),
    "flag": Rule("0 or 1", lambda value: type(value) is bool, lambda value: bool(value) if value in (0, 1) else value),
    "bytes": Rule("bytes", lambda value: type(value) is bytes, _to_bytes),
    "text": _texts("text"),
    "label": _texts("the key of a group or of an event", _is_label),
    "stream": _texts("the key of a stream", _is_stream),
    "sha256": _texts("a SHA-256 in hexadecimal", re.compile("[0-9a-f]{64}").fullmatch),
    "scope": _texts("read, write or admin", ("read", "write", "admin").__contains__),
    "delivery": _texts("a state of a delivery", ("waiting", "delivered", "acknowledged", "earlier").__contains__),
}


class StoredValue(sa.types.TypeDecorator[Any]):
    """A type of SQL with the rule that its values meet; others are a `StoreError` that names the column.

    The rule also holds for minima, maxima and sums of the column. NULL is left to the constraints of the database.

    Parameters
    ----------
    base : TypeEngine
        The type of SQL.
    rule : str
        A key of `RULES`.
    place : str
        Table and column, for the error.
    """

    impl: sa.types.TypeEngine[Any] | type[sa.types.TypeEngine[Any]] = sa.Text
    cache_ok = True

    def __init__(self, base: sa.types.TypeEngine[Any], rule: str, place: str = "") -> None:
        super().__init__()
        self.base = base
        self.rule = rule
        self.place = place
        self.impl = base

    def result_processor(self, dialect: Any, coltype: object) -> Callable[[Any], Any]:
        """Return the function that checks values; it sees them as the driver returns them."""
        rule, place = RULES[self.rule], self.place

        def read(value: Any) -> Any:
            if value is None:
                return None
            found = rule.convert(value)
            if not rule.holds(found):
                raise damaged(f"{place} must be {rule.words}; got {repr(value)[:60]}")
            return found

        return read


def read_json(text: str, place: str, kind: type) -> Any:
    """Return the list or the mapping that a column holds as JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, kind):
        raise damaged(f"{place} must be JSON of a {kind.__name__}; got {text[:60]!r}")
    return found


def stream_key(group: str, event: str) -> str:
    """Return the key of a stream: that of the group, or one for an event of the group, which no group has."""
    return f"event {event} of {group}" if event else group


def check_stream(row: Any, place: str) -> Any:
    """Return a row of a stream if its key fits its event, and its sums can be sums; see `check_sums`."""
    fits = row.stream.startswith(f"event {row.event} of ") if row.event else not row.stream.startswith("event ")
    if not fits:
        raise damaged(f"{place}.stream must be the key of a stream of event {row.event!r}; got {row.stream!r}")
    if getattr(row, "cohort", 1) < bool(row.stream and not row.event):
        raise damaged(f"{place}.cohort must be at least 1 for a group; got {row.cohort}")
    return check_sums(row, place)


def check_sums(row: Any, place: str) -> Any:
    """Return a row with the sums of some forecasts, n, k and score_sum, if they can be sums of outcomes and scores."""
    if row.n is not None and (row.n < 1 or row.k > row.n or row.score_sum > row.n * (1 + 1e-9)):
        found = f"n = {row.n}, k = {row.k}, score_sum = {row.score_sum:g}"
        raise damaged(f"{place} must have sums of at least one row, with k and score_sum up to n; got {found}")
    return row


SCHEMA_VERSION = 3
WHOLE = ""  # the stream of all rows

metadata: sa.MetaData = sa.MetaData()
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite numbers rows of this type only


def _table(name: str, *columns: sa.Column[object] | sa.Constraint | sa.Index) -> sa.Table:
    for column in columns:
        if isinstance(column, sa.Column) and isinstance(column.type, StoredValue):
            column.type = StoredValue(column.type.base, column.type.rule, f"{name}.{column.name}")
    return sa.Table(f"calibrant_{name}", metadata, *columns)


def _text(name: str, rule: str = "text", **options: Any) -> sa.Column[object]:
    return sa.Column(name, StoredValue(sa.Text(), rule), **{"nullable": False, **options})


def _integer(name: str, rule: str, **options: Any) -> sa.Column[object]:
    return sa.Column(name, StoredValue(sa.BigInteger(), rule), **{"nullable": False, **options})


def _number(name: str, rule: str, **options: Any) -> sa.Column[object]:
    return sa.Column(name, StoredValue(sa.Double(), rule), **{"nullable": False, **options})


def _flag(name: str) -> sa.Column[object]:
    return sa.Column(name, StoredValue(sa.Boolean(), "flag"), nullable=False)


def _ordinal(name: str, rule: str = "ordinal") -> sa.Column[object]:
    return sa.Column(name, StoredValue(sa.Integer(), rule), nullable=False)


def _whole(name: str) -> sa.Column[object]:
    return _integer(name, "count", server_default="0")


def _parent(name: str, table: str) -> sa.Column[object]:
    key = sa.ForeignKey(f"calibrant_{table}.id", ondelete="CASCADE")
    return sa.Column(name, _Id, key, primary_key=True)


def _event() -> sa.Column[object]:
    # The key of a class or of a level; "" for a binary forecast and for the rates that a model of another kind shows.
    return _text("event", "label", server_default="")


schema: sa.Table = _table("schema", _ordinal("version"))

models: sa.Table = _table(
    "models",
    sa.Column("id", _Id, primary_key=True),
    _text("name", unique=True),
    _text("settings"),
    _integer("created", "time"),
    *map(_whole, ("n_duplicates", "n_unknown")),
    # Predictions that `forget` deleted, and those of them that had no outcome.
    *map(_whole, ("n_forgotten", "n_forgotten_unlabelled", "revision")),
)

# `revision` of a model grows with each write transaction. `horizon`: windows with a lower key are closed.
versions: sa.Table = _table(
    "versions",
    sa.Column("id", _Id, primary_key=True),
    sa.Column("model_id", _Id, sa.ForeignKey("calibrant_models.id", ondelete="CASCADE"), nullable=False),
    _text("name"),
    _ordinal("ordinal"),
    _integer("newest", "time", nullable=True),
    _integer("horizon", "time", nullable=True),
    sa.UniqueConstraint("model_id", "name"),
    sa.UniqueConstraint("model_id", "ordinal"),
)

windows: sa.Table = _table(
    "windows",
    _parent("version_id", "versions"),
    _integer("window", "time", primary_key=True),
    _integer("start", "time"),
    _integer("end", "time"),
    _flag("closed"),
    *map(_whole, ("n_late", "n_unlabelled")),
)

# Rows of one window and group arrive in several parts, which become one when the window closes.
cells: sa.Table = _table(
    "cells",
    sa.Column("id", _Id, primary_key=True),
    sa.Column("version_id", _Id, sa.ForeignKey("calibrant_versions.id", ondelete="CASCADE"), nullable=False),
    _integer("window", "time"),
    _integer("first_window", "time"),
    _text("group", "label"),
    _event(),
    _integer("n", "rows"),
    _integer("k", "count"),
    _number("score_sum", "sum"),
    _number("information", "sum"),
    sa.Column("data", StoredValue(sa.LargeBinary(), "bytes"), nullable=False),
    sa.Index("calibrant_cells_by_window", "version_id", "window"),
)

# The last state of the e-process of the whole (stream "") and of each group; what a status shows has columns. Streams
# of events have keys of their own: see `evidence.stream_key`.
streams: sa.Table = _table(
    "streams",
    _parent("version_id", "versions"),
    _text("stream", "stream", primary_key=True),
    _event(),
    _ordinal("cohort", "count"),
    _whole("n"),
    _whole("k"),
    _number("score_sum", "sum"),
    _number("log_e", "number"),
    _number("shift", "number", nullable=True),
    _number("shift_low", "limit", nullable=True),
    _number("shift_high", "limit", nullable=True),
    _text("state"),
)

evidence: sa.Table = _table(
    "evidence",
    _parent("version_id", "versions"),
    _text("stream", "stream", primary_key=True),
    _integer("window", "time", primary_key=True),
    _event(),
    _integer("n", "rows"),
    _integer("k", "count"),
    _number("score_sum", "sum"),
    _number("information", "sum"),
    _number("log_e", "number"),
)

alarms: sa.Table = _table(
    "alarms",
    sa.Column("id", _Id, primary_key=True),
    sa.Column("version_id", _Id, sa.ForeignKey("calibrant_versions.id", ondelete="CASCADE"), nullable=False),
    _text("stream", "label"),
    _integer("window", "time"),
    _number("log_e", "number"),
    _integer("raised", "time"),
    _integer("acknowledged", "time", nullable=True),
    _text("reason", nullable=True),
    sa.UniqueConstraint("version_id", "stream"),
)

batches: sa.Table = _table(
    "batches",
    _parent("model_id", "models"),
    _text("batch", primary_key=True),
    _text("sha256", "sha256"),
    _integer("n_rows", "count"),
    _integer("received", "time"),
)

pending: sa.Table = _table(
    "pending",
    _parent("version_id", "versions"),
    _text("row_id", primary_key=True),
    sa.Column("model_id", _Id, sa.ForeignKey("calibrant_models.id", ondelete="CASCADE"), nullable=False),
    _integer("time", "time"),
    _text("group", "label"),
    _number("score", "probability"),
    _flag("labelled"),
    sa.Index("calibrant_pending_by_time", "version_id", "labelled", "time"),
    sa.Index("calibrant_pending_by_row", "model_id", "row_id"),
)

# One entry per alarm, written in the transaction of the alarm; `id` is the id that receivers get.
outbox: sa.Table = _table(
    "outbox",
    _text("id", primary_key=True),
    sa.Column("alarm_id", _Id, sa.ForeignKey("calibrant_alarms.id", ondelete="CASCADE"), nullable=False, unique=True),
    _integer("created", "time"),
)

# A channel is a webhook or a mailbox. It gets the entries that were written after it was first used.
channels: sa.Table = _table("channels", _text("name", primary_key=True), _integer("created", "time"))

# `state`: waiting, delivered, acknowledged (before it was sent), earlier (than the channel).
deliveries: sa.Table = _table(
    "deliveries",
    sa.Column("outbox_id", sa.Text, sa.ForeignKey("calibrant_outbox.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("channel", sa.Text, sa.ForeignKey("calibrant_channels.name", ondelete="CASCADE"), primary_key=True),
    _text("state", "delivery"),
    _whole("attempts"),
    _integer("next_attempt", "time"),
    _integer("delivered", "time", nullable=True),
    _text("error", nullable=True),
    sa.Index("calibrant_deliveries_by_state", "channel", "state", "next_attempt"),
)

silences: sa.Table = _table(
    "silences",
    sa.Column("id", _Id, primary_key=True),
    sa.Column("model_id", _Id, sa.ForeignKey("calibrant_models.id", ondelete="CASCADE"), nullable=False),
    _integer("created", "time"),
    _integer("until", "time"),
    _text("reason"),
    _text("author"),
)

# Access tokens of the service: the SHA-256 of each, never the token. Revoked tokens stay in the table.
tokens: sa.Table = _table(
    "tokens",
    _text("id", primary_key=True),
    _text("name"),
    _text("sha256", "sha256"),
    _text("scope", "scope"),
    _text("models", nullable=True),
    _integer("created", "time"),
    _integer("expires", "time", nullable=True),
    _integer("revoked", "time", nullable=True),
)

# Who did what and when; `model` is a name, so that entries stay when the model is deleted.
audit: sa.Table = _table(
    "audit",
    sa.Column("id", _Id, primary_key=True),
    _integer("time", "time"),
    _text("who"),
    _text("action"),
    _text("model", nullable=True),
    _text("detail"),
)


def same_window(table: Any) -> Any:
    """Return the condition that joins the rows of a table to their windows."""
    return (windows.c.version_id == table.c.version_id) & (windows.c.window == table.c.window)


def insert_row(connection: sa.Connection, table: sa.Table, values: dict[str, Any]) -> int:
    """Insert a row and return the key that it got."""
    key: Any = connection.execute(table.insert().values(**values)).inserted_primary_key
    return int(key[0])


def now() -> int:
    """Return the time of the clock in microseconds."""
    return time.time_ns() // 1000


def _add_events(connection: sa.Connection) -> None:
    """Add the columns of version 2: events of forecasts that are not binary, and counts of forgotten predictions."""
    for table in ("cells", "streams", "evidence"):
        connection.exec_driver_sql(f"ALTER TABLE calibrant_{table} ADD COLUMN event TEXT NOT NULL DEFAULT ''")
    for column in ("n_forgotten", "n_forgotten_unlabelled"):
        connection.exec_driver_sql(f"ALTER TABLE calibrant_models ADD COLUMN {column} BIGINT NOT NULL DEFAULT 0")


def _add_service(connection: sa.Connection) -> None:
    """Add what version 3 has: the tables of the service and the revision of models."""
    known = {column["name"] for column in sa.inspect(connection).get_columns(models.name)}
    if "revision" not in known:
        connection.execute(sa.text(f"ALTER TABLE {models.name} ADD COLUMN revision BIGINT NOT NULL DEFAULT 0"))
    metadata.create_all(connection, tables=[outbox, channels, deliveries, silences, tokens, audit])


# From each older version to the next: functions that change the tables on an open connection.
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {1: _add_events, 2: _add_service}
