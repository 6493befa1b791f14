"""Ids of batches: a batch that is sent again is stored once."""

import json
from collections.abc import Callable, Sequence

import sqlalchemy as sa

from calibrant._support.errors import Argument
from calibrant.monitor import schema
from calibrant.monitor.conflicts import BatchConflictError
from calibrant.monitor.observations import check_name
from calibrant.monitor.recording import Recorder, Version
from calibrant.monitor.time_windows import to_datetime

__all__ = ["batch_places", "is_repeated"]


def batch_places(recorder: Recorder, own: Version, given: object) -> list[str]:
    """Return the versions in which a batch may be stored: its own, and all if none was given.

    The latest version may have changed since an earlier attempt.
    """
    return [own.name] if given is not None else [each.name for each in reversed(recorder.versions)]


def is_repeated(
    recorder: Recorder,
    batch: object,
    sha256: Callable[[], str],
    n_rows: int,
    places: Sequence[str],
    *kind: str,
) -> bool:
    """Return whether a batch was stored before, else store its id; other content with this id is an error.

    `places` are versions, because each has its own batches: first the one that gets the rows, then those where
    an earlier attempt may have stored them. `kind` is that of rows other than observations.
    """
    if batch is None:
        return False
    name, table, content = check_name("batch", batch), schema.batches, sha256()
    keys = [json.dumps([place, name, *kind]) for place in places]
    query = sa.select(table).where(table.c.model_id == recorder.model_id, table.c.batch.in_(keys))
    known = {row.batch: row for row in recorder.connection.execute(query)}
    if any(row.sha256 == content for row in known.values()):
        return True
    if keys[0] not in known:
        values = {"model_id": recorder.model_id, "batch": keys[0], "sha256": content, "n_rows": n_rows}
        recorder.connection.execute(table.insert().values(**values, received=schema.now()))
        return False
    found = known[keys[0]]
    raise BatchConflictError(
        Argument("batch") + f" must be a new id or come with the same rows as before; got {name!r} with other "
        f"rows ({n_rows:,} now, {found.n_rows:,} at {to_datetime(found.received):%Y-%m-%d %H:%M:%S} UTC).",
        hint="Give each batch its own id.",
        value=batch,
    )
