"""Tables of the store, the version of their schema, and migrations between versions."""

import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from calibrant.monitor.stored_values import StoredValue

__all__ = ["MIGRATIONS", "SCHEMA_VERSION", "metadata", "now"]

SCHEMA_VERSION = 3

metadata = sa.MetaData()
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


schema = _table("schema", _ordinal("version"))

models = _table(
    "models",
    sa.Column("id", _Id, primary_key=True),
    _text("name", unique=True),
    _text("settings"),
    _integer("created", "time"),
    _whole("n_duplicates"),
    _whole("n_unknown"),
    # Predictions that `forget` deleted, and those of them that had no outcome.
    _whole("n_forgotten"),
    _whole("n_forgotten_unlabelled"),
    _whole("revision"),
)

# `revision` of a model grows with each write transaction. `horizon`: windows with a lower key are closed.
versions = _table(
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

windows = _table(
    "windows",
    _parent("version_id", "versions"),
    _integer("window", "time", primary_key=True),
    _integer("start", "time"),
    _integer("end", "time"),
    _flag("closed"),
    _whole("n_late"),
    _whole("n_unlabelled"),
)

# Rows of one window and group arrive in several parts, which become one when the window closes.
cells = _table(
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
streams = _table(
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

evidence = _table(
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

alarms = _table(
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

batches = _table(
    "batches",
    _parent("model_id", "models"),
    _text("batch", primary_key=True),
    _text("sha256", "sha256"),
    _integer("n_rows", "count"),
    _integer("received", "time"),
)

pending = _table(
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
outbox = _table(
    "outbox",
    _text("id", primary_key=True),
    sa.Column("alarm_id", _Id, sa.ForeignKey("calibrant_alarms.id", ondelete="CASCADE"), nullable=False, unique=True),
    _integer("created", "time"),
)

# A channel is a webhook or a mailbox. It gets the entries that were written after it was first used.
channels = _table(
    "channels",
    _text("name", primary_key=True),
    _integer("created", "time"),
)

# `state`: waiting, delivered, acknowledged (before it was sent), earlier (than the channel).
deliveries = _table(
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

silences = _table(
    "silences",
    sa.Column("id", _Id, primary_key=True),
    sa.Column("model_id", _Id, sa.ForeignKey("calibrant_models.id", ondelete="CASCADE"), nullable=False),
    _integer("created", "time"),
    _integer("until", "time"),
    _text("reason"),
    _text("author"),
)

# Access tokens of the service: the SHA-256 of each, never the token. Revoked tokens stay in the table.
tokens = _table(
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
audit = _table(
    "audit",
    sa.Column("id", _Id, primary_key=True),
    _integer("time", "time"),
    _text("who"),
    _text("action"),
    _text("model", nullable=True),
    _text("detail"),
)


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
