"""Writing rows into windows: batches, predictions and outcomes, late rows, clocks, and the closing of windows."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from calibrant._support import columns as _columns
from calibrant._support.arrays import Bools, Ints
from calibrant._support.errors import Argument, InputError
from calibrant.monitor import schema
from calibrant.monitor.cells import CellKey, cell_row, load_cells
from calibrant.monitor.evidence import WHOLE, EvidenceRecorder
from calibrant.monitor.model_settings import ModelSettings
from calibrant.monitor.observations import NO_EVENT, NO_GROUP, Chunk, RowChunk, check_name, read_groups
from calibrant.monitor.schema import damaged
from calibrant.monitor.time_windows import read_times, to_datetime
from calibrant.tables.rows import Rows
from calibrant.tables.score_table import ScoreTable, check_scores

__all__ = [
    "MOST_GROUPS",
    "BatchConflictError",
    "Outcomes",
    "Predictions",
    "Recorder",
    "Version",
    "batch_places",
    "check_cells",
    "is_repeated",
]

_MOST_PARTS = 64
MOST_GROUPS = 2000
_MOST_STREAMS = 20_000  # groups times classes or levels
_FIRST_KEY = -(2**62)  # below the key of each window


class BatchConflictError(InputError):
    """A batch has the id of an earlier one with other rows.

    See Also
    --------
    Monitor, SettingsConflictError

    Examples
    --------
    >>> import calibrant as cb
    >>> monitor = cb.Monitor("sqlite://")
    >>> _ = monitor.observe([0, 1], [0.2, 0.7], time="2026-01-01", batch="a")
    >>> try:
    ...     monitor.observe([0, 0], [0.2, 0.7], time="2026-01-01", batch="a")
    ... except BatchConflictError as error:
    ...     print(error.argument)
    batch
    """


@dataclass
class Version:
    """A version of a model: its clock `newest`, and `horizon`, below which all windows are closed."""

    id: int
    name: str
    ordinal: int
    newest: int | None
    horizon: int | None


def check_cells(chunk: Chunk, settings: ModelSettings, most: int) -> None:
    """Raise an error if rows of several windows have too many cells, pairs of a window and a group (times events).

    All of them may close in one transaction, for which other writers wait.
    """
    rule = settings.rule
    n_windows = -(-chunk.n_rows // rule.n_rows) if rule.counts_rows else np.unique(rule.starts(chunk.times)).size
    n_cells = n_windows * len(chunk.group_keys) * len(settings.events)
    if n_windows > 1 and n_cells > most:
        raise InputError(
            Argument("time")
            + f" must give at most {most:,} pairs of a window and a group (times classes or levels) in "
            f"one call; got {n_windows:,} windows and {len(chunk.group_keys):,} groups.",
            hint="Send the rows in parts, older windows first.",
        )


class Recorder:
    """One write transaction on a model, whose row is locked.

    Parameters
    ----------
    connection : Connection
    model_id : int
    model : str
        Its name.
    settings : ModelSettings
    """

    def __init__(self, connection: sa.Connection, model_id: int, model: str, settings: ModelSettings) -> None:
        self.connection, self.model_id, self.model = connection, model_id, model
        self.settings, self.rule = settings, settings.rule
        table = schema.versions
        query = sa.select(table).where(table.c.model_id == model_id).order_by(table.c.ordinal)
        rows = connection.execute(query).all()
        self.versions = [Version(row.id, row.name, row.ordinal, row.newest, row.horizon) for row in rows]
        if [each.ordinal for each in self.versions] != list(range(1, len(rows) + 1)):
            raise damaged(f"versions.ordinal of model {model!r} must count from 1")
        self.n_closed = 0
        self.raised: list[tuple[str, str]] = []

    def version(self, name: str | None) -> Version:
        """Return the version of a name, the latest one by default; create it if it is new."""
        found = [each for each in self.versions if name is None or each.name == name]
        if found:
            return found[-1]
        ordinal = len(self.versions) + 1
        values = {"model_id": self.model_id, "name": name or "1", "ordinal": ordinal}
        key = self.connection.execute(schema.versions.insert().values(**values)).inserted_primary_key
        assert key is not None
        created = Version(int(key[0]), name or "1", ordinal, None, None)
        self.versions.append(created)
        return created

    def check_groups(self, version: Version, groups: Collection[str]) -> None:
        """Raise an error if new groups would be too many: each costs time when a window closes."""
        given, most = set(groups) - {NO_GROUP}, min(MOST_GROUPS, _MOST_STREAMS // len(self.settings.events))
        streams, cells = schema.streams, schema.cells
        own = (streams.c.version_id == version.id) & (streams.c.event == NO_EVENT)
        query = sa.select(streams.c.stream).where(own, streams.c.stream.in_(given))
        if not given or (len(given) <= most and len(self.connection.execute(query).all()) == len(given)):
            return
        is_open = (cells.c.version_id == version.id) & (cells.c.window >= (version.horizon or _FIRST_KEY))
        queries = sa.select(streams.c.stream).where(own), sa.select(cells.c.group).where(is_open).distinct()
        known = {key for each in queries for key in self.connection.execute(each).scalars()} - {WHOLE, NO_GROUP}
        if len(known | given) > max(most, len(known)):
            raise InputError(
                Argument("group") + f" must have at most {most:,} different labels in a version of this model; got "
                f"{len(given - known):,} new ones beside {len(known):,}.",
                hint="Monitor coarser groups, such as regions instead of customers.",
            )

    def record(self, version: Version, chunk: Chunk) -> int:
        """Write rows into their windows; return the number of late rows."""
        self.check_groups(version, chunk.group_keys)
        windows, late = self._assign(version, chunk)
        cells = []
        for window, key, table in chunk.tables(windows):
            kept = table if self.settings.resolution is None else table.round(self.settings.resolution)
            cells.append(cell_row(version.id, window, key, kept))
        sizes = chunk.sizes if chunk.sizes.any() else np.array([cell["n"] for cell in cells])
        n_late = np.where(late, sizes, 0)
        self._touch_windows(version, windows, chunk.times, n_late)
        self.connection.execute(schema.cells.insert(), cells)
        for window in np.unique(windows).tolist():
            self._join_parts(version, window)
        return int(n_late.sum())

    def _join_parts(self, version: Version, window: int) -> None:
        """Join the small parts of an open window of many batches, so that it closes fast.

        Parts with more than an eighth of the mean number of rows per group and event stay, so that each row is joined a
        few times only: the cost per row grows with the logarithm of the number of batches.
        """
        cells = schema.cells
        where = (cells.c.version_id == version.id) & (cells.c.window == window)
        if self.connection.execute(sa.select(sa.func.count()).where(where)).scalar_one() <= _MOST_PARTS:
            return
        keys = (cells.c.group + "\n" + cells.c.event).distinct()
        counts = sa.select(sa.func.count(), sa.func.count(keys), sa.func.sum(cells.c.n))
        n_parts, n_keys, n_rows = self.connection.execute(counts.where(where)).one()
        if n_parts > _MOST_PARTS + 16 * n_keys:
            self._merge_cells(version, window, cells.c.n <= int(n_rows) // (8 * n_keys))

    def _assign(self, version: Version, chunk: Chunk) -> tuple[Ints, Bools]:
        """Return the window of each row, and whether it is late: the oldest open window gets late rows."""
        if self.rule.counts_rows:
            return self._assign_by_rows(version, chunk), np.zeros(chunk.times.size, dtype=bool)
        windows = self.rule.starts(chunk.times)
        if version.horizon is None:
            return windows, np.zeros(windows.size, dtype=bool)
        late = windows < version.horizon
        return np.where(late, version.horizon, windows), late

    def _assign_by_rows(self, version: Version, chunk: Chunk) -> Ints:
        """Fill the open window first, in order of time, then new ones."""
        first, cells = version.horizon or 0, schema.cells
        query = sa.select(sa.func.sum(cells.c.n)).where(
            cells.c.version_id == version.id, cells.c.window == first, cells.c.event == NO_EVENT
        )
        filled = int(self.connection.execute(query).scalar() or 0)
        order = np.argsort(chunk.times, kind="stable")
        before = np.cumsum(chunk.sizes[order]) - chunk.sizes[order]
        windows = np.empty(chunk.times.size, dtype=np.int64)
        windows[order] = first + (filled + before) // self.rule.n_rows
        return windows

    def _touch_windows(self, version: Version, windows: Ints, times: Ints, late: Ints) -> None:
        """Create the windows that have no rows yet, and count late rows."""
        table = schema.windows
        for window in np.unique(windows).tolist():
            chosen = windows == window
            start, end = (int(f(times[chosen])) for f in (np.min, np.max))
            if not self.rule.counts_rows:
                start, end = window, window + self.rule.length
            n_late = int(late[chosen].sum())
            same = (table.c.version_id == version.id) & (table.c.window == window)
            found = self.connection.execute(sa.select(table).where(same)).first()
            if found is None:
                values = {"version_id": version.id, "window": window, "start": start, "end": end, "closed": False}
                self.connection.execute(table.insert().values(**values, n_late=n_late))
            elif n_late or self.rule.counts_rows:
                wider = {"start": min(start, found.start), "end": max(end, found.end), "n_late": found.n_late + n_late}
                self.connection.execute(table.update().where(same).values(**wider))

    def advance(self, version: Version, newest: int) -> None:
        """Move the clock of a version and of all before it, and close the windows that end before it."""
        for each in self.versions[: version.ordinal]:
            each.newest = newest if each.newest is None else max(each.newest, newest)
            horizon = None if self.rule.counts_rows else self.rule.start(each.newest - self.rule.maturity)
            self.close(each, horizon)

    def close(self, version: Version, horizon: int | None) -> None:
        """Close the windows below `horizon`, or all that are full; store the clock of the version."""
        table = schema.windows
        is_open = (table.c.version_id == version.id) & ~table.c.closed
        if horizon is None:
            keys = self._full_windows(version)
            horizon = max(keys) + 1 if keys else version.horizon
        else:
            horizon = horizon if version.horizon is None else max(horizon, version.horizon)
            query = sa.select(table.c.window).where(is_open, table.c.window < horizon).order_by(table.c.window)
            keys = list(self.connection.execute(query).scalars())
        if keys:
            self._close(version, keys)
        version.horizon = horizon
        values = {"newest": version.newest, "horizon": version.horizon}
        self.connection.execute(schema.versions.update().where(schema.versions.c.id == version.id).values(**values))

    def _full_windows(self, version: Version) -> list[int]:
        cells = schema.cells
        query = (
            sa.select(cells.c.window)
            .where(
                cells.c.version_id == version.id, cells.c.window >= (version.horizon or 0), cells.c.event == NO_EVENT
            )
            .group_by(cells.c.window)
            .having(sa.func.sum(cells.c.n) >= self.rule.n_rows)
            .order_by(cells.c.window)
        )
        return list(self.connection.execute(query).scalars())

    def _close(self, version: Version, keys: list[int]) -> None:
        evidence = EvidenceRecorder(self.connection, version.id, version.ordinal, self.settings)
        for window in keys:
            evidence.add_window(window, self._merge_cells(version, window))
            self._mark_closed(version, window)
        evidence.save()
        self.n_closed += len(keys)
        self.raised += [(version.name, stream) for stream in evidence.raised]

    def _merge_cells(self, version: Version, window: int, chosen: Any = True) -> dict[CellKey, ScoreTable]:
        """Return the table of each group and event of a window; the (chosen) parts of each in the store become one."""
        cells = schema.cells
        where = (cells.c.version_id == version.id) & (cells.c.window == window) & chosen
        found = load_cells(self.connection, self.model, where)
        tables: dict[CellKey, ScoreTable] = {}
        for row, table in found:
            key = row.group, row.event
            tables[key] = tables[key] + table if key in tables else table
        if len(found) > len(tables):
            self.connection.execute(cells.delete().where(where))
            rows = [cell_row(version.id, window, key, table) for key, table in tables.items()]
            self.connection.execute(cells.insert(), rows)
        return dict(sorted(tables.items()))

    def _mark_closed(self, version: Version, window: int) -> None:
        table = schema.windows
        values: dict[str, Any] = {"closed": True}
        same = (table.c.version_id == version.id) & (table.c.window == window)
        if not self.rule.counts_rows:
            values |= {"n_unlabelled": self._count_unlabelled(version, window)}
        self.connection.execute(table.update().where(same).values(**values))

    def _count_unlabelled(self, version: Version, window: int) -> int:
        table = schema.pending
        query = sa.select(sa.func.count()).where(
            table.c.version_id == version.id,
            ~table.c.labelled,
            table.c.time >= window,
            table.c.time < window + self.rule.length,
        )
        return int(self.connection.execute(query).scalar_one())

    def count_on_model(self, **counts: int) -> None:
        """Add to the counters of the model: duplicates and unknown ids."""
        table: Any = schema.models
        changed = {name: table.c[name] + count for name, count in counts.items() if count}
        if changed:
            self.connection.execute(table.update().where(table.c.id == self.model_id).values(**changed))


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


_IDS_PER_QUERY = 500


@dataclass(frozen=True, eq=False)
class Predictions:
    """Ids, scores, times and groups of predictions without outcomes."""

    ids: list[str]
    scores: list[float]
    times: list[int]
    groups: list[str]

    @classmethod
    def read(cls, id: Any, p: Any, time: Any, group: Any) -> "Predictions":
        """Read the columns of a call; single values are one row."""
        ids = _read_ids(id)
        scores = _columns.scores(_columns.read([p] if np.ndim(p) == 0 else p, "p"))
        _columns.check_lengths([_columns.ColumnData("id", np.array(ids, dtype=object)), scores])
        _columns.refuse_missing([scores])
        codes, keys = read_groups(group, len(ids))
        times = read_times(time, len(ids)).tolist()
        return cls(ids, scores.values.tolist(), times, [keys[code] for code in codes])

    def sha256(self) -> str:
        """Return the checksum of the predictions in any order."""
        return _digest(zip(self.ids, self.scores, self.times, self.groups, strict=True))

    def store(self, recorder: Recorder, version: Version) -> int:
        """Store the predictions of new ids; return the number of duplicates, which are left out."""
        recorder.check_groups(version, self.groups)
        seen = {row.row_id for row in _known(recorder, self.ids) if row.version_id == version.id}
        rows = []
        for row_id, score, time, group in zip(self.ids, self.scores, self.times, self.groups, strict=True):
            if row_id not in seen:
                seen.add(row_id)
                rows.append({"row_id": row_id, "score": score, "time": time, "group": group})
        shared = {"model_id": recorder.model_id, "version_id": version.id, "labelled": False}
        if rows:
            recorder.connection.execute(schema.pending.insert(), [{**shared, **row} for row in rows])
        return len(self.ids) - len(rows)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Ids and outcomes of earlier predictions."""

    ids: list[str]
    events: list[int]

    @classmethod
    def read(cls, id: Any, y: Any, pos_label: object = None) -> "Outcomes":
        """Read the columns of a call; single values are one row."""
        ids = _read_ids(id)
        y = _columns.events(_columns.read([y] if np.ndim(y) == 0 else y, "y"), pos_label)
        _columns.check_lengths([_columns.ColumnData("id", np.array(ids, dtype=object)), y])
        _columns.refuse_missing([y])
        return cls(ids, [int(each) for each in y.values])

    def sha256(self) -> str:
        """Return the checksum of the outcomes in any order."""
        return _digest(zip(self.ids, self.events, strict=True))

    def match(self, recorder: Recorder) -> "tuple[list[tuple[Version, RowChunk]], int, int]":
        """Return the labelled rows of each version, and the numbers of duplicates and of unknown ids.

        An outcome counts in every version that predicted its id. The predictions are marked as labelled.
        """
        known: dict[str, list[Any]] = {}
        for row in _known(recorder, self.ids):
            known.setdefault(row.row_id, []).append(row)
        used: dict[str, int] = {}
        duplicates = unknown = 0
        for row_id, event in zip(self.ids, self.events, strict=True):
            if row_id not in known:
                unknown += 1
            elif row_id in used or all(row.labelled for row in known[row_id]):
                duplicates += 1
            else:
                used[row_id] = event
        table = schema.pending
        for ids in _pieces(list(used)):
            same = (table.c.model_id == recorder.model_id) & table.c.row_id.in_(ids)
            recorder.connection.execute(table.update().where(same).values(labelled=True))
        chunks = []
        for version in recorder.versions:
            rows = [
                (row, event)
                for row_id, event in used.items()
                for row in known[row_id]
                if row.version_id == version.id and not row.labelled
            ]
            if rows:
                chunks.append((version, _chunk(rows)))
        return chunks, duplicates, unknown


def _digest(rows: Iterable[tuple[Any, ...]]) -> str:
    return hashlib.sha256(json.dumps(sorted(rows)).encode()).hexdigest()


def _chunk(rows: list[tuple[Any, int]]) -> RowChunk:
    keys = sorted({row.group for row, _ in rows})
    position = {key: i for i, key in enumerate(keys)}
    scores = np.array([row.score for row, _ in rows])
    checked = check_scores(Rows.read(np.array([event for _, event in rows]), {"p": scores}, outcome="y"))
    times = np.array([row.time for row, _ in rows], dtype=np.int64)
    return RowChunk(checked, times, np.array([position[row.group] for row, _ in rows], dtype=np.int64), keys)


def _read_ids(id: Any) -> list[str]:
    if np.ndim(id) == 0:
        return [check_name("id", _whole(id.item() if isinstance(id, np.generic) else id))]
    column = _columns.read(id, "id")
    _columns.refuse_missing([column])
    if not len(column):
        raise InputError(Argument("id") + " must have at least one row; got none.")
    return [check_name("id", _whole(each)) for each in column.values.tolist()]


def _whole(value: Any) -> Any:
    """Return a whole number as an int, so that the ids 1 and 1.0 are one."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _known(recorder: Recorder, ids: Sequence[str]) -> Iterator[Any]:
    table = schema.pending
    for piece in _pieces(list(dict.fromkeys(ids))):
        where = (table.c.model_id == recorder.model_id) & table.c.row_id.in_(piece)
        yield from recorder.connection.execute(sa.select(table).where(where))


def _pieces(ids: list[str]) -> Iterator[list[str]]:
    return (ids[i : i + _IDS_PER_QUERY] for i in range(0, len(ids), _IDS_PER_QUERY))
