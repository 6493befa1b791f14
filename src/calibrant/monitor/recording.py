"""Writing rows into windows: late rows, the clock of each version, and the closing of windows."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from calibrant._support.arrays import Bools, Ints
from calibrant._support.errors import Argument, InputError
from calibrant.monitor import schema
from calibrant.monitor.cells import CellKey, cell_row, load_cells
from calibrant.monitor.evidence import WHOLE, EvidenceRecorder
from calibrant.monitor.model_settings import ModelSettings
from calibrant.monitor.observations import NO_EVENT, NO_GROUP, Chunk
from calibrant.monitor.stored_values import damaged
from calibrant.tables.score_table import ScoreTable

__all__ = ["MOST_GROUPS", "Recorder", "Version", "check_cells"]

_MOST_PARTS = 64
MOST_GROUPS = 2000
_MOST_STREAMS = 20_000  # groups times classes or levels
_FIRST_KEY = -(2**62)  # below the key of each window


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
