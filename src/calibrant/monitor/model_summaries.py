"""`ModelSummary`: the state of each model of a store, read with a few queries for all models together."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from calibrant.monitor import schema
from calibrant.monitor.evidence import WHOLE, log_threshold
from calibrant.monitor.model_settings import ModelSettings
from calibrant.monitor.observations import group_label
from calibrant.monitor.store import Store
from calibrant.monitor.stored_values import check_sums
from calibrant.monitor.time_windows import to_datetime

__all__ = ["ModelState", "ModelSummary", "read_states", "read_summaries"]

RECENT_WINDOWS = 60


@dataclass(frozen=True)
class ModelSummary:
    """The latest version of a model after its last closed window, without groups that have no alarm.

    Attributes
    ----------
    model, version : str
    window : str or int
        The setting.
    n_rows : int
        Number of rows of closed windows.
    n_open_rows : int
        Number of rows of open windows.
    n_windows : int
        Number of closed windows.
    predicted, observed : float
        Mean score and event rate of closed windows; NaN without one.
    log_e_value, threshold : float
    evidence : tuple of float
        Log e-values after each of the last windows, at most `RECENT_WINDOWS`.
    last_window : datetime or None
        Start of the last closed window.
    unlabelled : float
        Share of predictions without an outcome; NaN if there are no predictions.
    alarms : tuple
        Group, or None for all rows, of each alarm that was not acknowledged.
    n_acknowledged : int
        Number of acknowledged alarms.
    silenced : datetime or None
        End of the last silence, which may be over.
    """

    model: str
    version: str
    window: str | int
    n_rows: int
    n_open_rows: int
    n_windows: int
    predicted: float
    observed: float
    log_e_value: float
    threshold: float
    evidence: tuple[float, ...]
    last_window: datetime | None
    unlabelled: float
    alarms: tuple[Any, ...]
    n_acknowledged: int
    silenced: datetime | None

    @property
    def state(self) -> str:
        """Return "alarm", "acknowledged", "no alarm" or "no evidence"; evidence needs a closed window."""
        if self.alarms:
            return "alarm"
        if self.n_acknowledged:
            return "acknowledged"
        return "no alarm" if self.n_windows else "no evidence"


def read_summaries(store: Store, models: Collection[str] | None = None) -> list[ModelSummary]:
    """Return the summary of each model, or of the named ones, sorted by name."""
    with store.read() as connection:
        rows = [row for row in connection.execute(_latest_versions()) if models is None or row.model in models]
        found = [row.version_id for row in rows if row.version_id is not None]
        parts = _Parts(
            _windows(connection, found),
            _open_rows(connection, found),
            _evidence(connection, found),
            _alarms(connection, [row.model_id for row in rows]),
            _unlabelled(connection, [row.model_id for row in rows]),
            _silenced(connection),
        )
    return sorted((_summary(row, parts) for row in rows), key=lambda summary: summary.model)


class ModelState(NamedTuple):
    """When a model was created, its revision, which grows when it changes, and its number of alarms.

    A model that was deleted and created again begins with revision 0.
    """

    created: int
    revision: int
    n_alarms: int


def read_states(store: Store) -> dict[str, ModelState]:
    """Return the state of each model, sorted by name."""
    models, versions, alarms = schema.models, schema.versions, schema.alarms
    joined = models.outerjoin(versions, versions.c.model_id == models.c.id)
    joined = joined.outerjoin(alarms, alarms.c.version_id == versions.c.id)
    columns = models.c.name, models.c.created, models.c.revision
    query = sa.select(*columns, sa.func.count(alarms.c.id)).select_from(joined).group_by(*columns)
    with store.read() as connection:
        rows = connection.execute(query).all()
    return {name: ModelState(*map(int, numbers)) for name, *numbers in sorted(map(tuple, rows))}


@dataclass(frozen=True)
class _Parts:
    """Results of the queries: by version the windows, open rows and evidence; by model the rest."""

    windows: Mapping[int, Any]
    open_rows: Mapping[int, int]
    evidence: Mapping[int, list[float]]
    alarms: Mapping[int, list[Any]]
    unlabelled: Mapping[int, float]
    silenced: Mapping[int, int]


def _summary(row: Any, parts: _Parts) -> ModelSummary:
    check_sums(row, "streams")
    closed = parts.windows.get(row.version_id)
    alarms = parts.alarms.get(row.model_id, [])
    settings, until = ModelSettings.from_json(row.settings), parts.silenced.get(row.model_id)
    return ModelSummary(
        model=row.model,
        version="1" if row.version is None else row.version,
        window=settings.window,
        n_rows=row.n or 0,
        n_open_rows=parts.open_rows.get(row.version_id, 0),
        n_windows=0 if closed is None else int(closed.count),
        predicted=row.score_sum / row.n if row.n else math.nan,
        observed=row.k / row.n if row.n else math.nan,
        log_e_value=row.log_e or 0.0,
        threshold=log_threshold(settings.alpha, row.ordinal or 1),
        evidence=tuple(parts.evidence.get(row.version_id, ())),
        last_window=None if closed is None else to_datetime(closed.last),
        unlabelled=parts.unlabelled.get(row.model_id, math.nan),
        alarms=tuple(
            None if each.stream == WHOLE else group_label(each.stream) for each in alarms if each.acknowledged is None
        ),
        n_acknowledged=sum(each.acknowledged is not None for each in alarms),
        silenced=None if until is None else to_datetime(until),
    )


def _latest_versions() -> sa.Select[Any]:
    """Return the query of each model with its latest version and the sums of its closed windows."""
    models, versions, streams = schema.models, schema.versions, schema.streams
    newer = versions.alias("newer")
    latest = sa.select(sa.func.max(newer.c.ordinal)).where(newer.c.model_id == models.c.id).scalar_subquery()
    own = (versions.c.model_id == models.c.id) & (versions.c.ordinal == latest)
    whole = (streams.c.version_id == versions.c.id) & (streams.c.stream == WHOLE)
    names = models.c.id.label("model_id"), models.c.name.label("model"), models.c.settings
    columns = versions.c.id.label("version_id"), versions.c.name.label("version"), versions.c.ordinal
    sums = streams.c.n, streams.c.k, streams.c.score_sum, streams.c.log_e
    joined = models.outerjoin(versions, own).outerjoin(streams, whole)
    return sa.select(*names, *columns, *sums).select_from(joined)


def _windows(connection: sa.Connection, versions: list[int]) -> dict[int, Any]:
    """Return the number of closed windows and the start of the last one."""
    table = schema.windows
    query = (
        sa.select(table.c.version_id, sa.func.count().label("count"), sa.func.max(table.c.start).label("last"))
        .where(table.c.version_id.in_(versions), table.c.closed)
        .group_by(table.c.version_id)
    )
    return {row.version_id: row for row in connection.execute(query)}


def _open_rows(connection: sa.Connection, versions: list[int]) -> dict[int, int]:
    cells, windows = schema.cells, schema.windows
    same = (windows.c.version_id == cells.c.version_id) & (windows.c.window == cells.c.window)
    query = (
        sa.select(windows.c.version_id, sa.func.sum(cells.c.n))
        .join(cells, same)
        .where(windows.c.version_id.in_(versions), ~windows.c.closed)
        .group_by(windows.c.version_id)
    )
    return {version: int(n) for version, n in connection.execute(query)}


def _evidence(connection: sa.Connection, versions: list[int]) -> dict[int, list[float]]:
    """Return the log e-values of the last windows in order of time."""
    table = schema.evidence
    place = sa.func.row_number().over(partition_by=table.c.version_id, order_by=table.c.window.desc())
    inner = (
        sa.select(table.c.version_id, table.c.window, table.c.log_e, place.label("place"))
        .where(table.c.version_id.in_(versions), table.c.stream == WHOLE)
        .subquery()
    )
    query = sa.select(inner.c.version_id, inner.c.log_e).where(inner.c.place <= RECENT_WINDOWS)
    found: dict[int, list[float]] = defaultdict(list)
    for version, log_e in connection.execute(query.order_by(inner.c.version_id, inner.c.window)):
        found[version].append(log_e)
    return found


def _alarms(connection: sa.Connection, models: list[int]) -> dict[int, list[Any]]:
    """Return the alarms of all versions in the order in which they were raised."""
    alarms, versions = schema.alarms, schema.versions
    query = (
        sa.select(versions.c.model_id, alarms.c.stream, alarms.c.acknowledged)
        .join(versions, versions.c.id == alarms.c.version_id)
        .where(versions.c.model_id.in_(models))
        .order_by(alarms.c.id)
    )
    found: dict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(query):
        found[row.model_id].append(row)
    return found


def _unlabelled(connection: sa.Connection, models: list[int]) -> dict[int, float]:
    """Return the share of predictions without an outcome."""
    table = schema.pending
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    query = sa.select(table.c.model_id, table.c.labelled, sa.func.count()).where(table.c.model_id.in_(models))
    for model, labelled, count in connection.execute(query.group_by(table.c.model_id, table.c.labelled)):
        counts[model][bool(labelled)] += int(count)
    return {model: without / (without + known) for model, (without, known) in counts.items()}


def _silenced(connection: sa.Connection) -> dict[int, int]:
    """Return the end of the last silence of each model."""
    table = schema.silences
    query = sa.select(table.c.model_id, sa.func.max(table.c.until)).group_by(table.c.model_id)
    return {model: int(until) for model, until in connection.execute(query)}
