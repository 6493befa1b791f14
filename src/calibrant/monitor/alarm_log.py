"""The log of alarms in the store: written, read and acknowledged; and silences, in which nobody is notified.

`calibrant.monitor.evidence` decides whether an alarm is raised.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from calibrant._support.errors import Argument, InputError
from calibrant.monitor import schema
from calibrant.monitor.observations import check_name, group_label
from calibrant.monitor.schema import WHOLE, damaged
from calibrant.monitor.status import Alarm
from calibrant.monitor.store import Store, not_found
from calibrant.monitor.time_windows import read_time, to_datetime


def store_alarms(connection: sa.Connection, version_id: int, alarms: Sequence[tuple[str, int, float]]) -> None:
    """Store alarms: the stream, the window and the log e-value of each, with an entry of the outbox."""
    for stream, window, log_e in alarms:
        raised = schema.now()
        values = {"version_id": version_id, "stream": stream, "window": window, "log_e": log_e, "raised": raised}
        alarm_id = schema.insert_row(connection, schema.alarms, values)
        entry = {"id": str(uuid.uuid4()), "alarm_id": alarm_id, "created": raised}
        connection.execute(schema.outbox.insert().values(**entry))


def read_alarms(connection: sa.Connection, model_id: int) -> tuple[Alarm, ...]:
    """Return all alarms of a model in the order in which they were raised."""
    alarms, versions = schema.alarms, schema.versions
    query = (
        sa.select(alarms, versions.c.name, schema.windows.c.start)
        .join(versions, versions.c.id == alarms.c.version_id)
        .outerjoin(schema.windows, schema.same_window(alarms))
        .where(versions.c.model_id == model_id)
        .order_by(alarms.c.id)
    )
    return tuple(alarm_from_row(row) for row in connection.execute(query))


def alarm_from_row(row: Any) -> Alarm:
    """Return the alarm of a row of the store with the name of its version and the start of its window."""
    if row.start is None:
        raise damaged(f"alarm {row.id} names a window that does not exist")
    group = None if row.stream == WHOLE else group_label(row.stream)
    start, raised = to_datetime(row.start), to_datetime(row.raised)
    done = None if row.acknowledged is None else to_datetime(row.acknowledged)
    return Alarm(int(row.id), row.name, group, start, row.log_e, raised, done, row.reason)


def acknowledge_alarm(connection: sa.Connection, model_id: int, alarm_id: int, reason: str) -> None:
    """Acknowledge an alarm of a model; a repeated call changes nothing, and the first reason stays."""
    alarms = {alarm.id: alarm for alarm in read_alarms(connection, model_id)}
    if alarm_id not in alarms:
        raise not_found("alarm", "an alarm of the model, which has", map(str, alarms), alarm_id)
    alarm = alarms[alarm_id]
    if alarm.acknowledged is None:
        values = {"acknowledged": schema.now(), "reason": reason}
        connection.execute(schema.alarms.update().where(schema.alarms.c.id == alarm_id).values(**values))
    elif alarm.reason != reason:
        raise InputError(
            Argument("alarm") + f" must not be acknowledged yet; alarm {alarm.id} was at "
            f"{alarm.acknowledged:%Y-%m-%d %H:%M} UTC: {alarm.reason}"
        )


@dataclass(frozen=True)
class Silence:
    """A silence of a model: who asked for it, why, and until when. `active` is False when it is over."""

    id: int
    created: datetime
    until: datetime
    reason: str
    author: str
    active: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        times = {name: getattr(self, name).isoformat(timespec="seconds") for name in ("created", "until")}
        return {"id": self.id, **times, "reason": self.reason, "author": self.author, "active": self.active}


def silence_model(store: Store, model: str, until: Any, reason: str, author: str) -> Silence:
    """Send no notifications of a model's alarms until a time.

    Alarms are raised and listed as before. Those that nobody acknowledged are sent when the silence is over.
    """
    end, now, text = read_time(until, "until"), schema.now(), check_name("reason", reason)
    if end <= now:
        raise InputError(Argument("until") + f" must lie in the future; got {to_datetime(end):%Y-%m-%d %H:%M}.")
    with store.write() as connection:
        about = {"created": now, "until": end, "reason": text, "author": author}
        key = schema.insert_row(connection, schema.silences, {"model_id": _model_id(connection, model), **about})
    return Silence(key, to_datetime(now), to_datetime(end), text, author, True)


def end_silence(store: Store, model: str, silence_id: int) -> None:
    """End a silence of a model now."""
    with store.write() as connection:
        table, now = schema.silences, schema.now()
        own = (table.c.id == silence_id) & (table.c.model_id == _model_id(connection, model)) & (table.c.until > now)
        is_id = 0 < silence_id < 2**63  # drivers refuse larger numbers
        if not is_id or not connection.execute(table.update().where(own).values(until=now)).rowcount:
            active = (str(silence.id) for silence in list_silences(store, model) if silence.active)
            raise not_found("silence", "an active silence of the model, which has", active, silence_id)


def list_silences(store: Store, model: str) -> list[Silence]:
    """Return all silences of a model in the order of their creation."""
    table, models, now = schema.silences, schema.models, schema.now()
    query = sa.select(table).join(models, models.c.id == table.c.model_id).where(models.c.name == model)
    with store.read() as connection:
        rows = connection.execute(query.order_by(table.c.id)).all()
    return [
        Silence(int(r.id), to_datetime(r.created), to_datetime(r.until), r.reason, r.author, r.until > now)
        for r in rows
    ]


def _model_id(connection: sa.Connection, model: str) -> int:
    """Return the id of a model, whose revision grows."""
    table: Any = schema.models
    model_id = connection.execute(sa.select(table.c.id).where(table.c.name == model)).scalar()
    if model_id is None:
        raise InputError(Argument("model") + f" must be a model of the store; got {model!r}.")
    connection.execute(table.update().where(table.c.id == model_id).values(revision=table.c.revision + 1))
    return int(model_id)
