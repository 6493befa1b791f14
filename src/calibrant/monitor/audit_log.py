"""The audit log: who did what and when. It never holds secrets."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from calibrant.monitor import schema
from calibrant.monitor.store import Store
from calibrant.monitor.stored_values import read_json
from calibrant.monitor.time_windows import to_datetime

__all__ = ["AuditEntry", "read_audit", "record_audit"]


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
    return [
        AuditEntry(
            int(row.id),
            to_datetime(row.time).isoformat(),
            row.who,
            row.action,
            row.model,
            read_json(row.detail, "audit.detail", dict),
        )
        for row in rows
    ]
