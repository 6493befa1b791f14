"""Alarms in the store, and silences: no notification of a model's alarms for some time, with a reason."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from calibrant._support.errors import Argument, InputError
from calibrant.monitor import schema
from calibrant.monitor.observations import check_name
from calibrant.monitor.store import Store
from calibrant.monitor.time_windows import read_time, to_datetime

__all__ = ["Silence", "end_silence", "list_silences", "silence_model"]


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
        values = {"model_id": _model_id(connection, model), "created": now, "until": end, "reason": text}
        key = connection.execute(schema.silences.insert().values(**values, author=author)).inserted_primary_key
        assert key is not None
    return Silence(int(key[0]), to_datetime(now), to_datetime(end), text, author, True)


def end_silence(store: Store, model: str, silence_id: int) -> None:
    """End a silence of a model now."""
    with store.write() as connection:
        table, now = schema.silences, schema.now()
        own = (table.c.id == silence_id) & (table.c.model_id == _model_id(connection, model)) & (table.c.until > now)
        is_id = 0 < silence_id < 2**63  # drivers refuse larger numbers
        if not is_id or not connection.execute(table.update().where(own).values(until=now)).rowcount:
            known = ", ".join(str(each.id) for each in list_silences(store, model) if each.active) or "none"
            raise InputError(
                Argument("silence") + f" must be an active silence of the model, which has {known}; got {silence_id}."
            )


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
    found = connection.execute(sa.select(table.c.id).where(table.c.name == model)).scalar()
    if found is None:
        raise InputError(Argument("model") + f" must be a model of the store; got {model!r}.")
    connection.execute(table.update().where(table.c.id == found).values(revision=table.c.revision + 1))
    return int(found)
