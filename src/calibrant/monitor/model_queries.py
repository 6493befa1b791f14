"""Reading monitored models: the status, history and tables of one, and summaries of all models of a store."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from calibrant._support.arrays import Floats
from calibrant._support.errors import Argument, InputError, Note
from calibrant.inference.sequential.change_points import WindowSums, change_point, dispersion
from calibrant.monitor import schema
from calibrant.monitor.cells import load_cells
from calibrant.monitor.events import BINARY
from calibrant.monitor.evidence import (
    WHOLE,
    group_thresholds,
    group_weights,
    level_of_groups,
    log_threshold,
)
from calibrant.monitor.model_settings import ModelSettings
from calibrant.monitor.observations import NO_EVENT, NO_GROUP, group_label
from calibrant.monitor.schema import check_stream, check_sums, damaged, stream_key
from calibrant.monitor.status import (
    Alarm,
    ChangeEstimate,
    ConfidenceSequence,
    GroupStatus,
    History,
    Status,
    WindowRecord,
)
from calibrant.monitor.store import Store
from calibrant.monitor.time_windows import to_datetime
from calibrant.tables.score_table import ScoreTable

__all__ = ["ModelState", "ModelSummary", "Reader", "alarm_from_row", "read_states", "read_summaries"]

# Estimates of a change from fewer windows mean little.
_FEWEST_WINDOWS = 5
# An interval of a change that has a larger share of the windows says nothing.
_WIDEST = 0.5
# Level of the test for windows that vary more than the settings state.
_SIGNIFICANT = 0.01
# A rounding error below half of this log-odds error, or of the margin if it is larger, is not reported.
_LEAST_MARGIN = 0.02


@dataclass(frozen=True)
class Reader:
    """Queries on one model in a read transaction."""

    connection: sa.Connection
    model_id: int
    model: str
    settings: ModelSettings

    def version(self, name: str | None = None) -> Any:
        """Return the row of a version, by default of the latest; None if the model has no rows."""
        table = schema.versions
        query = sa.select(table).where(table.c.model_id == self.model_id).order_by(table.c.ordinal.desc())
        rows = self.connection.execute(query).all()
        found = [row for row in rows if name is None or row.name == name]
        if name is not None and not found:
            known = ", ".join(repr(row.name) for row in reversed(rows)) or "none"
            raise InputError(Argument("version") + f" must be a version of the model, which has {known}; got {name!r}.")
        return found[0] if found else None

    def versions(self) -> list[str]:
        """Return the names of all versions, the latest last."""
        table = schema.versions
        query = sa.select(table.c.name).where(table.c.model_id == self.model_id).order_by(table.c.ordinal)
        return list(self.connection.execute(query).scalars())

    def status(self, version_name: str | None = None) -> Status:
        """Return the status of a version."""
        version = self.version(version_name)
        streams = {} if version is None else self._streams(version.id)
        whole = streams.pop(WHOLE, None)
        closed = [] if version is None else self._evidence(version.id, WHOLE)
        events = {} if version is None else self._events(version.id, WHOLE)
        if whole is None and (streams or closed):
            raise damaged(f"version {version.name!r} has closed windows and no sums of all rows")
        alarms = self.alarms()
        n_open, n_open_rows = (0, 0) if version is None else self._open(version.id)
        n_unlabelled, n_predictions = self._unlabelled()
        alarmed = version is not None and any(a.group is None and a.version == version.name for a in alarms)
        threshold = log_threshold(self.settings.alpha, 1 if version is None else version.ordinal)
        return Status(
            model=self.model,
            version="1" if version is None else version.name,
            alarms=alarms,
            groups=self._groups(streams, version, alarms),
            n_rows=n_open_rows + (0 if whole is None else whole.n),
            n_windows=len(closed),
            n_open_windows=n_open,
            n_open_rows=n_open_rows,
            unlabelled=n_unlabelled / n_predictions if n_predictions else math.nan,
            n_unlabelled=n_unlabelled,
            predicted=math.nan if whole is None else whole.score_sum / whole.n,
            observed=math.nan if whole is None else whole.k / whole.n,
            log_e_value=0.0 if whole is None else whole.log_e,
            threshold=threshold,
            last_window=to_datetime(closed[-1].start) if closed else None,
            change_point=self._change(version.id, WHOLE) if alarmed else None,
            confidence_sequence=_sequence(whole),
            notes=self._notes(version, closed, n_unlabelled, n_predictions),
            settings=self.settings.to_dict(),
            events=self._event_statuses(events, threshold),
        )

    def history(self, group: str | None, version_name: str | None = None, event: str = NO_EVENT) -> History:
        """Return all windows, closed and open, of all rows or of the group with a key, or of one of their events."""
        version = self.version(version_name)
        own = WHOLE if group is None else group
        label = None if group is None else group_label(group)
        about: dict[str, Any] = {"kind": self.settings.kind, "event": None if event == NO_EVENT else group_label(event)}
        if version is None:
            level = log_threshold(self.settings.alpha)
            return History(self.model, "1", None, (), self.settings.window, level, **about)
        closed = self._evidence(version.id, stream_key(own, event))
        alarm = next((a for a in self.alarms() if a.version == version.name and a.group == label), None)
        raised = math.inf if alarm is None else self._raised(version.id, own)
        limits = self._thresholds(version, group, closed)
        if event != NO_EVENT:  # the mean of the e-values decides; alone, an event needs as many times more
            limits = limits + math.log(len(self.settings.events))
        records = [_record(row, row.log_e, limit, raised) for row, limit in zip(closed, limits, strict=True)]
        records += [_record(row, math.nan, math.nan, raised) for row in self._open_windows(version.id, group, event)]
        change = None
        if alarm is not None:
            change = self._change(version.id, own, None if event == NO_EVENT else closed)
        last = float(limits[-1]) if closed else log_threshold(self.settings.alpha, version.ordinal)
        windows = tuple(records)
        return History(self.model, version.name, label, windows, self.settings.window, last, change, **about)

    def _thresholds(self, version: Any, group: str | None, closed: list[Any]) -> Floats:
        """Return for each closed window the log e-value of an alarm: of a group, with the other groups as they were."""
        if group is None or not closed:
            return np.full(len(closed), log_threshold(self.settings.alpha, version.ordinal))
        streams = self._streams(version.id)
        streams.pop(WHOLE, None)
        if group not in streams:
            raise damaged(f"stream {group!r} has evidence and no sums")
        names = list(streams)
        weights = group_weights({name: stream.cohort for name, stream in streams.items()})
        level = level_of_groups(self.settings.alpha, version.ordinal)
        shares, own = np.array([weights[name] for name in names]), names.index(group)
        found = []
        for values in self._group_evidence(version.id, names, [row.window for row in closed]):
            known = ~np.isnan(values)
            position = int(known[:own].sum())
            found.append(group_thresholds(values[known], shares[known], level)[position])
        return np.array(found)

    def _group_evidence(self, version_id: int, names: list[str], windows: list[int]) -> Floats:
        """Return the log e-value of each group after each of these windows; NaN before its first rows."""
        table = schema.evidence
        query = (
            sa.select(table.c.stream, table.c.window, table.c.log_e)
            .where(table.c.version_id == version_id, table.c.event == NO_EVENT, table.c.stream != WHOLE)
            .order_by(table.c.window)
        )
        place = {name: i for i, name in enumerate(names)}
        found, last, rows = np.empty((len(windows), len(names))), np.full(len(names), np.nan), iter(windows)
        wanted, at = next(rows, None), 0
        for stream, window, log_e in self.connection.execute(query):
            while wanted is not None and window > wanted:
                found[at] = last
                wanted, at = next(rows, None), at + 1
            if stream not in place:
                raise damaged(f"stream {stream!r} has evidence and no sums")
            last[place[stream]] = log_e
        found[at:] = last
        return found

    def _raised(self, version_id: int, stream: str) -> int:
        """Return the window that raised the alarm of a stream."""
        table = schema.alarms
        same = (table.c.version_id == version_id) & (table.c.stream == stream)
        return int(self.connection.execute(sa.select(table.c.window).where(same)).scalar_one())

    def group_keys(self) -> list[str]:
        """Return the keys of all groups with rows, sorted."""
        query = (
            sa.select(schema.cells.c.group)
            .join(schema.versions, schema.versions.c.id == schema.cells.c.version_id)
            .where(schema.versions.c.model_id == self.model_id, schema.cells.c.group != NO_GROUP)
            .distinct()
        )
        return sorted(self.connection.execute(query).scalars())

    def alarms(self) -> tuple[Alarm, ...]:
        """Return all alarms in the order in which they were raised."""
        alarms, versions, windows = schema.alarms, schema.versions, schema.windows
        same = (windows.c.version_id == alarms.c.version_id) & (windows.c.window == alarms.c.window)
        query = (
            sa.select(alarms, versions.c.name, windows.c.start)
            .join(versions, versions.c.id == alarms.c.version_id)
            .outerjoin(windows, same)
            .where(versions.c.model_id == self.model_id)
            .order_by(alarms.c.id)
        )
        return tuple(alarm_from_row(row) for row in self.connection.execute(query))

    def tables(
        self, since: int | None, until: int | None, version_name: str | None = None, event: str = NO_EVENT
    ) -> dict[str, ScoreTable]:
        """Return the table of each group in the windows that start at `since` or later and before `until`."""
        version = self.version(version_name)
        if version is None:
            return {}
        where = (schema.cells.c.version_id == version.id) & (schema.cells.c.event == event)
        if until is not None:
            self._check_until(version.id, until)
        if since is not None:
            where &= schema.windows.c.start >= since
        if until is not None:
            where &= schema.windows.c.start < until
        found: dict[str, ScoreTable] = {}
        for row, table in load_cells(self.connection, self.model, where):
            if since is not None and row.first_window < row.window and not self._starts_after(row, since):
                raise InputError(
                    Argument("since") + f" must not lie in windows that forget() merged; got {to_datetime(since)}.",
                    hint=f"Pass a time after the window from {to_datetime(row.start):%Y-%m-%d %H:%M}, or leave it out.",
                )
            found[row.group] = found[row.group] + table if row.group in found else table
        return dict(sorted(found.items()))

    def _check_until(self, version_id: int, until: int) -> None:
        """Raise an error if `until` lies in windows that were merged, which are stored with the last of them."""
        cells, windows = schema.cells, schema.windows
        last = (windows.c.version_id == cells.c.version_id) & (windows.c.window == cells.c.window)
        query = (
            sa.select(cells.c.first_window, windows.c.start)
            .join(windows, last)
            .where(cells.c.version_id == version_id, cells.c.first_window < cells.c.window, windows.c.start >= until)
        )
        for first, start in self.connection.execute(query):
            own = (windows.c.version_id == version_id) & (windows.c.window == first)
            if int(self.connection.execute(sa.select(windows.c.start).where(own)).scalar_one()) < until:
                raise InputError(
                    Argument("until") + f" must not lie in windows that forget() merged; got {to_datetime(until)}.",
                    hint=f"Pass a time after the window from {to_datetime(start):%Y-%m-%d %H:%M}, or leave it out.",
                )

    def _starts_after(self, row: Any, since: int) -> bool:
        table = schema.windows
        same = (table.c.version_id == row.version_id) & (table.c.window == row.first_window)
        return int(self.connection.execute(sa.select(table.c.start).where(same)).scalar_one()) >= since

    def _streams(self, version_id: int) -> dict[str, Any]:
        """Return the last sums and values of each stream, without the states of their e-processes."""
        table = schema.streams
        columns = [column for column in table.c if column.name != "state"]
        own = (table.c.version_id == version_id) & (table.c.event == NO_EVENT)
        query = sa.select(*columns).where(own).order_by(table.c.stream)
        return {row.stream: check_stream(row, "streams") for row in self.connection.execute(query)}

    def _events(self, version_id: int, group: str) -> dict[str, Any]:
        """Return the last sums and values of each event of all rows or of a group; none for binary forecasts."""
        if list(self.settings.events) == [NO_EVENT]:
            return {}
        table = schema.streams
        columns = [column for column in table.c if column.name != "state"]
        keys = [stream_key(group, event) for event in self.settings.events]
        query = sa.select(*columns).where(table.c.version_id == version_id, table.c.stream.in_(keys))
        return {row.event: check_stream(row, "streams") for row in self.connection.execute(query)}

    def _tested(self, version_id: int, group: str) -> list[Any]:
        """Return the closed windows of the event that is tested; of several, of the one with the largest e-value."""
        events = self._events(version_id, group)
        largest = max(events, key=lambda event: events[event].log_e, default=NO_EVENT)
        return self._evidence(version_id, stream_key(group, largest))

    def _evidence(self, version_id: int, stream: str) -> list[Any]:
        evidence, windows = schema.evidence, schema.windows
        same = (windows.c.version_id == evidence.c.version_id) & (windows.c.window == evidence.c.window)
        query = (
            sa.select(evidence, windows.c.start, windows.c.n_late)
            .join(windows, same)
            .where(evidence.c.version_id == version_id, evidence.c.stream == stream)
            .order_by(evidence.c.window)
        )
        return [check_stream(row, "evidence") for row in self.connection.execute(query)]

    def _open_windows(self, version_id: int, group: str | None, event: str = NO_EVENT) -> list[Any]:
        cells, windows = schema.cells, schema.windows
        same = (windows.c.version_id == cells.c.version_id) & (windows.c.window == cells.c.window)
        sums = (sa.func.sum(cells.c[name]).label(name) for name in ("n", "k", "score_sum"))
        query = (
            sa.select(windows.c.start, windows.c.window, *sums)
            .join(windows, same)
            .where(cells.c.version_id == version_id, cells.c.event == event, ~windows.c.closed)
            .group_by(windows.c.start, windows.c.window)
            .order_by(windows.c.window)
        )
        rows = self.connection.execute(query if group is None else query.where(cells.c.group == group))
        return [check_sums(row, "cells") for row in rows]

    def _open(self, version_id: int) -> tuple[int, int]:
        rows = self._open_windows(version_id, None)
        return len(rows), sum(int(row.n) for row in rows)

    def _unlabelled(self) -> tuple[int, int]:
        """Return the number of predictions without an outcome, and of all predictions, forgotten ones included."""
        table, model = schema.pending, schema.models
        query = sa.select(table.c.labelled, sa.func.count()).where(table.c.model_id == self.model_id)
        counts = {bool(row[0]): int(row[1]) for row in self.connection.execute(query.group_by(table.c.labelled))}
        forgotten = sa.select(model.c.n_forgotten, model.c.n_forgotten_unlabelled).where(model.c.id == self.model_id)
        old, unlabelled = self.connection.execute(forgotten).one()
        return counts.get(False, 0) + int(unlabelled), sum(counts.values()) + int(old)

    def _groups(self, streams: dict[str, Any], version: Any, alarms: tuple[Alarm, ...]) -> dict[Any, GroupStatus]:
        if not streams:
            return {}
        own = group_weights({key: stream.cohort for key, stream in streams.items()})
        alarmed = {alarm.group for alarm in alarms if alarm.version == version.name}
        log_e, weights = (np.array([f(key) for key in streams]) for f in (lambda key: streams[key].log_e, own.get))
        limits = group_thresholds(log_e, weights, level_of_groups(self.settings.alpha, version.ordinal))
        limit = dict(zip(streams, limits.tolist(), strict=True))
        order = sorted(streams, key=lambda key: -streams[key].log_e)
        return {
            group_label(key): _group(streams[key], own[key], limit[key], group_label(key) in alarmed) for key in order
        }

    def _event_statuses(self, streams: dict[str, Any], threshold: float) -> dict[Any, GroupStatus]:
        """Return the state of each event, the largest e-value first."""
        count = len(self.settings.events)
        order = sorted(streams, key=lambda key: -streams[key].log_e)
        alone = threshold + math.log(count)
        return {group_label(key): _group(streams[key], 1 / count, alone, False) for key in order}

    def _change(self, version_id: int, stream: str, closed: list[Any] | None = None) -> ChangeEstimate | None:
        """Estimate the first window after the change that raised the alarm of a stream; None if rates do not show it.

        Windows after the alarm make the estimate more precise, but may have a change of their own, such as the return
        to normal: without an estimate before the alarm, the windows up to the alarm are used alone.
        """
        windows = self._tested(version_id, stream) if closed is None else closed
        found, raised = self._estimate_change(windows), self._raised(version_id, stream)
        known = [row for row in windows if row.window <= raised]
        if found is not None and known and found.window <= to_datetime(known[-1].start):
            return found
        return self._estimate_change(known)

    def _estimate_change(self, closed: list[Any]) -> ChangeEstimate | None:
        """Estimate the first window after a change from the sums of closed windows; None if they do not show it."""
        if len(closed) < _FEWEST_WINDOWS:
            return None
        effect = 0.0 if self.settings.dependence == "independent" else self.settings.window_effect
        found = change_point(_sums(closed), window_effect=effect)
        # A change of the slope alone changes no rates; then any window might be the first one.
        if found is None or found.high - found.low > _WIDEST * len(closed):
            return None
        at, low, high = (to_datetime(closed[i].start) for i in (found.index, found.low, found.high))
        return ChangeEstimate(at, low, high)

    def _notes(self, version: Any, closed: list[Any], n_unlabelled: int, n_predictions: int) -> tuple[Note, ...]:
        counters = self.connection.execute(
            sa.select(schema.models.c.n_duplicates, schema.models.c.n_unknown).where(
                schema.models.c.id == self.model_id
            )
        ).one()
        table = schema.windows
        late = 0
        if version is not None:
            query = sa.select(sa.func.sum(table.c.n_late)).where(table.c.version_id == version.id)
            late = int(self.connection.execute(query).scalar() or 0)
        texts = {
            "late": (late, "Rows that arrived after their window closed, counted in the next open window: {count}."),
            "duplicates": (counters.n_duplicates, "Rows left out because their id was known already: {count}."),
            "unknown": (counters.n_unknown, "Outcomes left out because no prediction has their id: {count}."),
            "unlabelled": (
                n_unlabelled,
                f"Predictions without an outcome: {{count}} of {n_predictions:,}.",
            ),
        }
        notes = [Note(code, int(count), text) for code, (count, text) in texts.items() if count]
        if version is not None and version.newest is not None and version.newest > schema.now() + 3_600_000_000:
            text = f"The newest time, {to_datetime(version.newest):%Y-%m-%d %H:%M} UTC, lies in the future: earlier "
            notes.append(Note("future", 1, text + "rows are late. If it is wrong, observe under a new version."))
        notes += self._resolution_notes(closed)
        return (*notes, *([] if version is None else self._dispersion_notes(version.id, closed)))

    def _resolution_notes(self, closed: list[Any]) -> list[Note]:
        """Report a resolution that changes the scores by more than the margin, which breaks the guarantee."""
        step, n_rows = self.settings.resolution, sum(int(row.n) for row in closed)
        if step is None or not n_rows or self.settings.kind != BINARY:
            return []
        spread = sum(float(row.information) for row in closed) / n_rows
        error = step / 2 / spread if spread else math.inf
        if error <= max(self.settings.margin, _LEAST_MARGIN) / 2:
            return []
        text = (
            f"Scores are rounded to multiples of {step:.3g}, which changes the log-odds of a typical score by up to "
            f"{error:.2g}: false alarms are likely. Monitor under a new model name with a smaller resolution."
        )
        return [Note("resolution", 1, text)]

    def _dispersion_notes(self, version_id: int, closed: list[Any]) -> list[Note]:
        """Report windows that vary more than the settings state, which breaks the guarantee.

        Of several events the smallest p-value counts, times their number.
        """
        stated = {"window": self.settings.window_effect, "independent": 0.0}.get(self.settings.dependence)
        if stated is None:
            return []
        keys = [stream_key(WHOLE, event) for event in self.settings.events]
        streams = (closed if key == WHOLE else self._evidence(version_id, key) for key in keys)
        every = (dispersion(_sums(rows), window_effect=stated) for rows in streams)
        found = min((each for each in every if each is not None), key=lambda each: each.pvalue, default=None)
        if found is None or not found.pvalue <= _SIGNIFICANT / len(keys):
            return []
        cause = "independent rows" if not stated else f"a window effect of {stated:g}"
        text = (
            f"Windows vary more than {cause} would explain (p = {found.pvalue:.1g}; estimated window effect "
            f"{found.window_effect:.2g}): false alarms are more likely than alpha. Monitor under a new model name "
            "with a larger window_effect, or with dependence='any'."
        )
        return [Note("dispersion", 1, text)]


def _sums(closed: list[Any]) -> WindowSums:
    """Return the sums of closed windows."""
    columns = ([getattr(row, name) for row in closed] for name in ("n", "k", "score_sum", "information"))
    return WindowSums.from_columns(*(np.array(column, dtype=np.float64) for column in columns))


def _sequence(stream: Any) -> ConfidenceSequence:
    if stream is None or stream.shift is None:
        return ConfidenceSequence(math.nan, -math.inf, math.inf)
    low, high = (math.nan if each is None else each for each in (stream.shift_low, stream.shift_high))
    return ConfidenceSequence(stream.shift, low, high)


def _group(stream: Any, weight: float, threshold: float, alarm: bool) -> GroupStatus:
    rates = stream.score_sum / stream.n, stream.k / stream.n
    return GroupStatus(stream.n, *rates, stream.log_e, weight, alarm, _sequence(stream), threshold)


def alarm_from_row(row: Any) -> Alarm:
    """Return the alarm of a row of the store with the name of its version and the start of its window."""
    if row.start is None:
        raise damaged(f"alarm {row.id} names a window that does not exist")
    return Alarm(
        int(row.id),
        row.name,
        None if row.stream == WHOLE else group_label(row.stream),
        to_datetime(row.start),
        row.log_e,
        to_datetime(row.raised),
        None if row.acknowledged is None else to_datetime(row.acknowledged),
        row.reason,
    )


def _record(row: Any, log_e: float, threshold: float, raised: float) -> WindowRecord:
    """Return the record of a window; without a log e-value it is open."""
    start, n, closed = to_datetime(row.start), int(row.n), not math.isnan(log_e)
    rates = float(row.score_sum) / n, int(row.k) / n
    return WindowRecord(start, n, int(row.k), *rates, log_e, row.window >= raised, closed, threshold)


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
            _closed_windows(connection, found),
            _open_rows(connection, found),
            _recent_evidence(connection, found),
            _alarms_of_models(connection, [row.model_id for row in rows]),
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


def _closed_windows(connection: sa.Connection, versions: list[int]) -> dict[int, Any]:
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


def _recent_evidence(connection: sa.Connection, versions: list[int]) -> dict[int, list[float]]:
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


def _alarms_of_models(connection: sa.Connection, models: list[int]) -> dict[int, list[Any]]:
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
