"""Writing rows into windows: batches, predictions and outcomes, late rows, clocks, and the closing of windows."""

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa

from calibrant._support.arrays import Bools, Ints
from calibrant._support.errors import Argument, InputError
from calibrant.monitor import schema
from calibrant.monitor.cells import CellKey, cell_row, load_cells
from calibrant.monitor.evidence import EvidenceRecorder
from calibrant.monitor.model_settings import ModelSettings, StoredModel, Version
from calibrant.monitor.observations import (
    NO_EVENT,
    NO_GROUP,
    Chunk,
    Outcomes,
    Predictions,
    RowChunk,
    check_name,
    group_label,
)
from calibrant.monitor.schema import WHOLE, damaged
from calibrant.monitor.status import Receipt
from calibrant.monitor.time_windows import WindowRule, to_datetime
from calibrant.tables.score_table import ScoreTable

_MOST_PARTS = 64
MOST_GROUPS = 2000
_MOST_STREAMS = 20_000  # groups times classes or levels
_FIRST_KEY = -(2**62)  # below the key of each window
_IDS_PER_QUERY = 500


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

    __module__ = "calibrant.exceptions"


def check_cells(chunk: Chunk, settings: ModelSettings, most: int) -> None:
    """Raise an error if rows of several windows have too many cells, pairs of a window and a group (times events).

    All of them may close in one transaction, for which other writers wait.
    """
    rule = settings.rule
    n_windows = -(-chunk.n_rows // rule.n_rows) if rule.counts_rows else np.unique(rule.starts(chunk.times)).size
    n_cells = n_windows * len(chunk.groups) * len(settings.events)
    if n_windows > 1 and n_cells > most:
        raise InputError(
            Argument("time")
            + f" must give at most {most:,} pairs of a window and a group (times classes or levels) in "
            f"one call; got {n_windows:,} windows and {len(chunk.groups):,} groups.",
            hint="Send the rows in parts, older windows first.",
        )


class Recorder:
    """One write transaction on a model, whose row is locked."""

    def __init__(self, connection: sa.Connection, model: StoredModel) -> None:
        self.connection = connection
        self.model = model
        self.settings: ModelSettings = model.settings
        self.rule: WindowRule = model.settings.rule
        self.versions: list[Version] = model.versions(connection)
        if [version.ordinal for version in self.versions] != list(range(1, len(self.versions) + 1)):
            raise damaged(f"versions.ordinal of model {model.name!r} must count from 1")
        self._n_closed = 0
        self._raised: list[str] = []  # streams with a new alarm

    def observe(self, chunk: Chunk, batch: object, version: object) -> Receipt:
        """Count rows in their windows, and close the windows that are complete."""
        target, places = self._places(version)
        if self._is_repeated(batch, chunk, places):
            return Receipt(0, repeated_batch=True)
        n_late = self._record(target, chunk)
        self._advance(target, int(chunk.times.max()))
        return self._receipt(chunk.n_rows, n_late)

    def predict(self, predictions: Predictions, batch: object, version: object) -> Receipt:
        """Store predictions of new ids; others are duplicates, which are left out."""
        target, places = self._places(version)
        if self._is_repeated(batch, predictions, places, "predictions"):
            return Receipt(0, repeated_batch=True)
        self._check_groups(target, predictions.groups)
        seen = {row.row_id for row in self._predictions(predictions.ids) if row.version_id == target.id}
        new: dict[str, dict[str, Any]] = {}
        columns = (predictions.ids, predictions.scores, predictions.times.tolist(), predictions.groups)
        for row_id, score, time, group in zip(*columns, strict=True):
            if row_id not in seen:
                new.setdefault(row_id, {"row_id": row_id, "score": score, "time": time, "group": group})
        shared = {"model_id": self.model.id, "version_id": target.id, "labelled": False}
        if new:
            self.connection.execute(schema.pending.insert(), [shared | row for row in new.values()])
        n_duplicates = predictions.n_rows - len(new)
        self.count_on_model(n_duplicates=n_duplicates)
        self._advance(target, int(predictions.times.max()))
        return self._receipt(len(new), n_duplicates=n_duplicates)

    def outcome(self, outcomes: Outcomes, time: int | None, batch: object) -> Receipt:
        """Count the rows of predictions whose outcomes are known now; `time` moves the clock."""
        if self._is_repeated(batch, outcomes, [""], "outcomes"):
            return Receipt(0, repeated_batch=True)
        chunks, n_duplicates, n_unknown = self._match(outcomes)
        n_late = sum(self._record(version, chunk) for version, chunk in chunks)
        self.count_on_model(n_duplicates=n_duplicates, n_unknown=n_unknown)
        for version in [version for version, _ in chunks] or self.versions[-1:]:
            times = [moment for moment in (time, version.newest) if moment is not None]
            if times:
                self._advance(version, max(times))
        return self._receipt(sum(chunk.n_rows for _, chunk in chunks), n_late, n_duplicates, n_unknown)

    def close(self, until: int | None) -> Receipt:
        """Close the windows that end at a time or earlier, by default all."""
        newest = max((version.newest for version in self.versions if version.newest is not None), default=0)
        if until is not None and until > max(newest + self.rule.length, schema.now()):
            raise InputError(
                Argument("until") + f" must not lie in the future; got {to_datetime(until):%Y-%m-%d %H:%M}.",
                hint="All rows before it would be late.",
            )
        for version in self.versions:
            if self.rule.counts_rows:
                self._close(version, (version.horizon or 0) + 1)
            elif version.newest is not None:
                last = self.rule.start(version.newest) + self.rule.length
                self._close(version, last if until is None else self.rule.start(until))
        return self._receipt(0)

    def _receipt(self, n_rows: int, n_late: int = 0, n_duplicates: int = 0, n_unknown: int = 0) -> Receipt:
        alarms = tuple(None if stream == WHOLE else group_label(stream) for stream in self._raised)
        return Receipt(n_rows, n_late, n_duplicates, n_unknown, n_closed=self._n_closed, alarms=alarms)

    def _places(self, name: object) -> tuple[Version, list[str]]:
        """Return the version that gets rows, by default the latest, and the versions in which a batch may be stored.

        Without a name these are all versions: the latest one may have changed since an earlier attempt.
        """
        target = self._version(None if name is None else check_name("version", name))
        return target, [version.name for version in reversed(self.versions) if name is None or version is target]

    def _version(self, name: str | None) -> Version:
        """Return the version of a name, the latest one by default; create it if it is new."""
        named = [version for version in self.versions if name is None or version.name == name]
        if named:
            return named[-1]
        ordinal = len(self.versions) + 1
        values = {"model_id": self.model.id, "name": name or "1", "ordinal": ordinal}
        created = Version(schema.insert_row(self.connection, schema.versions, values), name or "1", ordinal)
        self.versions.append(created)
        return created

    def _is_repeated(
        self, batch: object, rows: Chunk | Predictions | Outcomes, places: list[str], *content: str
    ) -> bool:
        """Return whether a batch was stored before, else store its id; other rows with this id are an error.

        `places` are versions, because each has its own batches: first the one that gets the rows, then those where
        an earlier attempt may have stored them. `content` is that of rows other than observations.
        """
        if batch is None:
            return False
        name, table, sha256 = check_name("batch", batch), schema.batches, rows.sha256()
        keys = [json.dumps([place, name, *content]) for place in places]
        query = sa.select(table).where(table.c.model_id == self.model.id, table.c.batch.in_(keys))
        stored = {row.batch: row for row in self.connection.execute(query)}
        if any(row.sha256 == sha256 for row in stored.values()):
            return True
        if keys[0] not in stored:
            values = {"model_id": self.model.id, "batch": keys[0], "sha256": sha256, "n_rows": rows.n_rows}
            self.connection.execute(table.insert().values(**values, received=schema.now()))
            return False
        earlier = stored[keys[0]]
        raise BatchConflictError(
            Argument("batch") + f" must be a new id or come with the same rows as before; got {name!r} with other "
            f"rows ({rows.n_rows:,} now, {earlier.n_rows:,} at {to_datetime(earlier.received):%Y-%m-%d %H:%M:%S} UTC).",
            hint="Give each batch its own id.",
            value=batch,
        )

    def _predictions(self, ids: Iterable[str]) -> Iterator[Any]:
        """Yield the predictions with some ids, of all versions."""
        table = schema.pending
        for some in _pieces(list(dict.fromkeys(ids))):
            where = (table.c.model_id == self.model.id) & table.c.row_id.in_(some)
            yield from self.connection.execute(sa.select(table).where(where))

    def _match(self, outcomes: Outcomes) -> tuple[list[tuple[Version, RowChunk]], int, int]:
        """Return the labelled rows of each version, and the numbers of duplicates and of unknown ids.

        An outcome counts in every version that predicted its id. The predictions are marked as labelled.
        """
        predicted: dict[str, list[Any]] = {}
        for row in self._predictions(outcomes.ids):
            predicted.setdefault(row.row_id, []).append(row)
        used: dict[str, int] = {}
        duplicates = unknown = 0
        for row_id, event in zip(outcomes.ids, outcomes.events, strict=True):
            if row_id not in predicted:
                unknown += 1
            elif row_id in used or all(row.labelled for row in predicted[row_id]):
                duplicates += 1
            else:
                used[row_id] = event
        table = schema.pending
        for ids in _pieces(list(used)):
            same = (table.c.model_id == self.model.id) & table.c.row_id.in_(ids)
            self.connection.execute(table.update().where(same).values(labelled=True))
        labelled = [(row, event) for row_id, event in used.items() for row in predicted[row_id] if not row.labelled]
        chunks = []
        for version in self.versions:
            rows = [(row, event) for row, event in labelled if row.version_id == version.id]
            if rows:
                chunks.append((version, self._chunk(rows)))
        return chunks, duplicates, unknown

    def _chunk(self, rows: list[tuple[Any, int]]) -> RowChunk:
        """Return stored predictions with their outcomes."""
        groups = sorted({row.group for row, _ in rows})
        place = {group: i for i, group in enumerate(groups)}
        events, scores = np.array([event for _, event in rows]), np.array([row.score for row, _ in rows])
        times, codes = np.array([(row.time, place[row.group]) for row, _ in rows], dtype=np.int64).T
        return RowChunk(self.settings.read_rows(events, scores, None), times, codes, groups)

    def _check_groups(self, version: Version, groups: Collection[str]) -> None:
        """Raise an error if new groups would be too many: each costs time when a window closes."""
        given, most = set(groups) - {NO_GROUP}, min(MOST_GROUPS, _MOST_STREAMS // len(self.settings.events))
        streams, cells = schema.streams, schema.cells
        tested = (streams.c.version_id == version.id) & (streams.c.event == NO_EVENT)
        query = sa.select(streams.c.stream).where(tested, streams.c.stream.in_(given))
        if not given or (len(given) <= most and len(self.connection.execute(query).all()) == len(given)):
            return
        is_open = (cells.c.version_id == version.id) & (cells.c.window >= (version.horizon or _FIRST_KEY))
        queries = sa.select(streams.c.stream).where(tested), sa.select(cells.c.group).where(is_open).distinct()
        stored = {key for query in queries for key in self.connection.execute(query).scalars()} - {WHOLE, NO_GROUP}
        if len(stored | given) > max(most, len(stored)):
            raise InputError(
                Argument("group") + f" must have at most {most:,} different labels in a version of this model; got "
                f"{len(given - stored):,} new ones beside {len(stored):,}.",
                hint="Monitor coarser groups, such as regions instead of customers.",
            )

    def _record(self, version: Version, chunk: Chunk) -> int:
        """Write rows into their windows; return the number of late rows."""
        self._check_groups(version, chunk.groups)
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
        where = _in_window(cells, version, window)
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
        where = _in_window(cells, version, first) & (cells.c.event == NO_EVENT)
        filled = int(self.connection.execute(sa.select(sa.func.sum(cells.c.n)).where(where)).scalar() or 0)
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
            start, end = int(times[chosen].min()), int(times[chosen].max())
            if not self.rule.counts_rows:
                start, end = window, window + self.rule.length
            n_late = int(late[chosen].sum())
            where = _in_window(table, version, window)
            row = self.connection.execute(sa.select(table).where(where)).first()
            if row is None:
                values = {"version_id": version.id, "window": window, "start": start, "end": end, "closed": False}
                self.connection.execute(table.insert().values(**values, n_late=n_late))
            elif n_late or self.rule.counts_rows:
                wider = {"start": min(start, row.start), "end": max(end, row.end), "n_late": row.n_late + n_late}
                self.connection.execute(table.update().where(where).values(**wider))

    def _advance(self, version: Version, newest: int) -> None:
        """Move the clock of a version and of all before it, and close the windows that end before it."""
        for earlier in self.versions[: version.ordinal]:
            earlier.newest = newest if earlier.newest is None else max(earlier.newest, newest)
            horizon = None if self.rule.counts_rows else self.rule.start(earlier.newest - self.rule.maturity)
            self._close(earlier, horizon)

    def _close(self, version: Version, horizon: int | None) -> None:
        """Close the windows below `horizon`, or all that are full; store the clock of the version."""
        table = schema.windows
        if horizon is None:
            keys = self._full_windows(version)
            horizon = max(keys) + 1 if keys else version.horizon
        else:
            horizon = horizon if version.horizon is None else max(horizon, version.horizon)
            is_open = (table.c.version_id == version.id) & ~table.c.closed & (table.c.window < horizon)
            keys = list(
                self.connection.execute(sa.select(table.c.window).where(is_open).order_by(table.c.window)).scalars()
            )
        if keys:
            evidence = EvidenceRecorder(self.connection, version.id, version.ordinal, self.settings)
            for window in keys:
                evidence.add_window(window, self._merge_cells(version, window))
                self._mark_closed(version, window)
            evidence.save()
            self._n_closed += len(keys)
            self._raised += [stream for stream, _, _ in evidence.raised]
        version.horizon = horizon
        values = {"newest": version.newest, "horizon": version.horizon}
        self.connection.execute(schema.versions.update().where(schema.versions.c.id == version.id).values(**values))

    def _full_windows(self, version: Version) -> list[int]:
        cells = schema.cells
        is_open = (cells.c.version_id == version.id) & (cells.c.window >= (version.horizon or 0))
        query = (
            sa.select(cells.c.window)
            .where(is_open, cells.c.event == NO_EVENT)
            .group_by(cells.c.window)
            .having(sa.func.sum(cells.c.n) >= self.rule.n_rows)
            .order_by(cells.c.window)
        )
        return list(self.connection.execute(query).scalars())

    def _merge_cells(self, version: Version, window: int, chosen: Any = True) -> dict[CellKey, ScoreTable]:
        """Return the table of each group and event of a window; the (chosen) parts of each in the store become one."""
        cells = schema.cells
        where = _in_window(cells, version, window) & chosen
        parts = load_cells(self.connection, self.model.name, where)
        tables: dict[CellKey, ScoreTable] = {}
        for row, table in parts:
            key = row.group, row.event
            tables[key] = tables[key] + table if key in tables else table
        if len(parts) > len(tables):
            self.connection.execute(cells.delete().where(where))
            rows = [cell_row(version.id, window, key, table) for key, table in tables.items()]
            self.connection.execute(cells.insert(), rows)
        return dict(sorted(tables.items()))

    def _mark_closed(self, version: Version, window: int) -> None:
        table, pending = schema.windows, schema.pending
        values: dict[str, Any] = {"closed": True}
        if not self.rule.counts_rows:
            inside = (pending.c.time >= window) & (pending.c.time < window + self.rule.length)
            query = sa.select(sa.func.count()).where(pending.c.version_id == version.id, ~pending.c.labelled, inside)
            values["n_unlabelled"] = int(self.connection.execute(query).scalar_one())
        self.connection.execute(table.update().where(_in_window(table, version, window)).values(**values))

    def count_on_model(self, **counts: int) -> None:
        """Add to the counters of the model: duplicates and unknown ids."""
        table: Any = schema.models
        changed = {name: table.c[name] + count for name, count in counts.items() if count}
        if changed:
            self.connection.execute(table.update().where(table.c.id == self.model.id).values(**changed))


def _in_window(table: Any, version: Version, window: int) -> Any:
    """Return the condition for the rows of one window of a version."""
    return (table.c.version_id == version.id) & (table.c.window == window)


def _pieces(ids: list[str]) -> Iterator[list[str]]:
    return (ids[i : i + _IDS_PER_QUERY] for i in range(0, len(ids), _IDS_PER_QUERY))
