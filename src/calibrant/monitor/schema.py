"""Tables of the store, the version of their schema, and migrations between versions."""

import time
from collections.abc import Callable

import sqlalchemy as sa

__all__ = ["MIGRATIONS", "SCHEMA_VERSION", "metadata", "now"]

SCHEMA_VERSION = 3

metadata = sa.MetaData()
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # SQLite numbers rows of this type only


def _table(name: str, *columns: sa.Column[object] | sa.Constraint | sa.Index) -> sa.Table:
    return sa.Table(f"calibrant_{name}", metadata, *columns)


def _whole(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def _parent(name: str, table: str) -> sa.Column[object]:
    key = sa.ForeignKey(f"calibrant_{table}.id", ondelete="CASCADE")
    return sa.Column(name, _Id, key, primary_key=True)


def _event() -> sa.Column[object]:
    # The key of a class or of a level; "" for a binary forecast and for the rates that a model of another kind shows.
    return sa.Column("event", sa.Text, nullable=False, server_default="")


schema = _table("schema", sa.Column("version", sa.Integer, nullable=False))

models = _table(
    "models",
    sa.Column("id", _Id, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("settings", sa.Text, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    _whole("n_duplicates"),
    _whole("n_unknown"),
    _whole("revision"),
    # Predictions that `forget` deleted, and those of them that had no outcome.
    _whole("n_forgotten"),
    _whole("n_forgotten_unlabelled"),
)

# `revision` of a model grows with each write transaction. `horizon`: windows with a lower key are closed.
versions = _table(
    "versions",
    sa.Column("id", _Id, primary_key=True),
    sa.Column("model_id", _Id, sa.ForeignKey("calibrant_models.id", ondelete="CASCADE"), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("ordinal", sa.Integer, nullable=False),
    sa.Column("newest", sa.BigInteger),
    sa.Column("horizon", sa.BigInteger),
    sa.UniqueConstraint("model_id", "name"),
    sa.UniqueConstraint("model_id", "ordinal"),
)

windows = _table(
    "windows",
    _parent("version_id", "versions"),
    sa.Column("window", sa.BigInteger, primary_key=True),
    sa.Column("start", sa.BigInteger, nullable=False),
    sa.Column("end", sa.BigInteger, nullable=False),
    sa.Column("closed", sa.Boolean, nullable=False),
    _whole("n_late"),
    _whole("n_unlabelled"),
)

# Rows of one window and group arrive in several parts, which become one when the window closes.
cells = _table(
    "cells",
    sa.Column("id", _Id, primary_key=True),
    sa.Column("version_id", _Id, sa.ForeignKey("calibrant_versions.id", ondelete="CASCADE"), nullable=False),
    sa.Column("window", sa.BigInteger, nullable=False),
    sa.Column("first_window", sa.BigInteger, nullable=False),
    sa.Column("group", sa.Text, nullable=False),
    _event(),
    sa.Column("n", sa.BigInteger, nullable=False),
    sa.Column("k", sa.BigInteger, nullable=False),
    sa.Column("score_sum", sa.Double, nullable=False),
    sa.Column("information", sa.Double, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Index("calibrant_cells_by_window", "version_id", "window"),
)

# The last state of the e-process of the whole (stream "") and of each group; what a status shows has columns. Streams
# of events have keys of their own: see `evidence.stream_key`.
streams = _table(
    "streams",
    _parent("version_id", "versions"),
    sa.Column("stream", sa.Text, primary_key=True),
    _event(),
    sa.Column("cohort", sa.Integer, nullable=False),
    _whole("n"),
    _whole("k"),
    sa.Column("score_sum", sa.Double, nullable=False),
    sa.Column("log_e", sa.Double, nullable=False),
    sa.Column("shift", sa.Double),
    sa.Column("shift_low", sa.Double),
    sa.Column("shift_high", sa.Double),
    sa.Column("state", sa.Text, nullable=False),
)

evidence = _table(
    "evidence",
    _parent("version_id", "versions"),
    sa.Column("stream", sa.Text, primary_key=True),
    sa.Column("window", sa.BigInteger, primary_key=True),
    _event(),
    sa.Column("n", sa.BigInteger, nullable=False),
    sa.Column("k", sa.BigInteger, nullable=False),
    sa.Column("score_sum", sa.Double, nullable=False),
    sa.Column("information", sa.Double, nullable=False),
    sa.Column("log_e", sa.Double, nullable=False),
)

alarms = _table(
    "alarms",
    sa.Column("id", _Id, primary_key=True),
    sa.Column("version_id", _Id, sa.ForeignKey("calibrant_versions.id", ondelete="CASCADE"), nullable=False),
    sa.Column("stream", sa.Text, nullable=False),
    sa.Column("window", sa.BigInteger, nullable=False),
    sa.Column("log_e", sa.Double, nullable=False),
    sa.Column("raised", sa.BigInteger, nullable=False),
    sa.Column("acknowledged", sa.BigInteger),
    sa.Column("reason", sa.Text),
    sa.UniqueConstraint("version_id", "stream"),
)

batches = _table(
    "batches",
    _parent("model_id", "models"),
    sa.Column("batch", sa.Text, primary_key=True),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("n_rows", sa.BigInteger, nullable=False),
    sa.Column("received", sa.BigInteger, nullable=False),
)

pending = _table(
    "pending",
    _parent("version_id", "versions"),
    sa.Column("row_id", sa.Text, primary_key=True),
    sa.Column("model_id", _Id, sa.ForeignKey("calibrant_models.id", ondelete="CASCADE"), nullable=False),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("group", sa.Text, nullable=False),
    sa.Column("score", sa.Double, nullable=False),
    sa.Column("labelled", sa.Boolean, nullable=False),
    sa.Index("calibrant_pending_by_time", "version_id", "labelled", "time"),
    sa.Index("calibrant_pending_by_row", "model_id", "row_id"),
)

# One entry per alarm, written in the transaction of the alarm; `id` is the id that receivers get.
outbox = _table(
    "outbox",
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("alarm_id", _Id, sa.ForeignKey("calibrant_alarms.id", ondelete="CASCADE"), nullable=False, unique=True),
    sa.Column("created", sa.BigInteger, nullable=False),
)

# A channel is a webhook or a mailbox. It gets the entries that were written after it was first used.
channels = _table(
    "channels",
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("created", sa.BigInteger, nullable=False),
)

# `state`: waiting, delivered, acknowledged (before it was sent), earlier (than the channel).
deliveries = _table(
    "deliveries",
    sa.Column("outbox_id", sa.Text, sa.ForeignKey("calibrant_outbox.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("channel", sa.Text, sa.ForeignKey("calibrant_channels.name", ondelete="CASCADE"), primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    _whole("attempts"),
    sa.Column("next_attempt", sa.BigInteger, nullable=False),
    sa.Column("delivered", sa.BigInteger),
    sa.Column("error", sa.Text),
    sa.Index("calibrant_deliveries_by_state", "channel", "state", "next_attempt"),
)

silences = _table(
    "silences",
    sa.Column("id", _Id, primary_key=True),
    sa.Column("model_id", _Id, sa.ForeignKey("calibrant_models.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("until", sa.BigInteger, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("author", sa.Text, nullable=False),
)

# Access tokens of the service: the SHA-256 of each, never the token. Revoked tokens stay in the table.
tokens = _table(
    "tokens",
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("models", sa.Text),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("expires", sa.BigInteger),
    sa.Column("revoked", sa.BigInteger),
)

# Who did what and when; `model` is a name, so that entries stay when the model is deleted.
audit = _table(
    "audit",
    sa.Column("id", _Id, primary_key=True),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("model", sa.Text),
    sa.Column("detail", sa.Text, nullable=False),
)


def _add_service(connection: sa.Connection) -> None:
    """Add the tables of the service and the revision of models."""
    known = {column["name"] for column in sa.inspect(connection).get_columns(models.name)}
    if "revision" not in known:
        connection.execute(sa.text(f"ALTER TABLE {models.name} ADD COLUMN revision BIGINT NOT NULL DEFAULT 0"))
    metadata.create_all(connection, tables=[outbox, channels, deliveries, silences, tokens, audit])


def now() -> int:
    """Return the time of the clock in microseconds."""
    return time.time_ns() // 1000


def _add_events(connection: sa.Connection) -> None:
    """Add the columns of version 2: events of forecasts that are not binary, and counts of forgotten predictions."""
    for table in ("cells", "streams", "evidence"):
        connection.exec_driver_sql(f"ALTER TABLE calibrant_{table} ADD COLUMN event TEXT NOT NULL DEFAULT ''")
    for column in ("n_forgotten", "n_forgotten_unlabelled"):
        connection.exec_driver_sql(f"ALTER TABLE calibrant_models ADD COLUMN {column} BIGINT NOT NULL DEFAULT 0")


# From each older version to the next: functions that change the tables on an open connection.
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {1: _add_events, 2: _add_service}
