"""Reading monitored models: the status, history and tables of one, and summaries of all models of a store."""

import math
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa

from calibrant._support.arrays import Floats
from calibrant._support.errors import Argument, InputError, Note
from calibrant.inference.sequential.change_points import WindowSums, change_point, dispersion
from calibrant.monitor import schema
from calibrant.monitor.alarm_log import read_alarms
from calibrant.monitor.cells import load_cells
from calibrant.monitor.evidence import group_thresholds, group_weights, level_of_groups, log_threshold
from calibrant.monitor.model_settings import ModelSettings, StoredModel, Version
from calibrant.monitor.observations import NO_EVENT, NO_GROUP, group_key, group_label
from calibrant.monitor.schema import WHOLE, check_stream, check_sums, damaged, stream_key
from calibrant.monitor.status import (
    Alarm,
    ChangeEstimate,
    ConfidenceSequence,
    GroupStatus,
    History,
    Status,
    WindowRecord,
)
from calibrant.monitor.store import Store, not_found
from calibrant.monitor.time_windows import to_datetime
from calibrant.tables.score_table import ScoreTable

# Estimates of a change from fewer windows mean little.
_FEWEST_WINDOWS = 5
# An interval of a change that has a larger share of the windows says nothing.
_WIDEST = 0.5
# Level of the test for windows that vary more than the settings state.
_SIGNIFICANT = 0.01
# A rounding error below half of this log-odds error, or of the margin if it is larger, is not reported.
_LEAST_MARGIN = 0.02
_HOUR = 3_600_000_000


@dataclass(frozen=True)
class Reader:
    """Queries on one model in a read transaction."""

    connection: sa.Connection
    model: StoredModel

    @property
    def settings(self) -> ModelSettings:
        """The settings of the model."""
        return self.model.settings

    def _version(self, name: object) -> Version:
        """Return a version, by default the latest; nothing in the store belongs to that of a model without rows."""
        versions = self.model.versions(self.connection)
        named = [version for version in versions if name is None or version.name == str(name)]
        if name is not None and not named:
            known = (repr(version.name) for version in versions)
            raise not_found("version", "a version of the model, which has", known, str(name))
        return named[-1] if named else Version(-1, "1", 1)

    def status(self, version_name: object) -> Status:
        """Return the status of a version, by default of the latest."""
        version = self._version(version_name)
        streams, closed = self._streams(version), self._evidence(version, WHOLE)
        whole = streams.pop(WHOLE, None)
        if whole is None and (streams or closed):
            raise damaged(f"version {version.name!r} has closed windows and no sums of all rows")
        alarms = read_alarms(self.connection, self.model.id)
        open_windows = self._open_windows(version, None)
        n_open_rows = sum(int(row.n) for row in open_windows)
        n_unlabelled, n_predictions = self._unlabelled()
        alarmed = any(alarm.group is None and alarm.version == version.name for alarm in alarms)
        threshold = log_threshold(self.settings.alpha, version.ordinal)
        return Status(
            model=self.model.name,
            version=version.name,
            alarms=alarms,
            groups=self._groups(streams, version, alarms),
            n_rows=n_open_rows + (0 if whole is None else whole.n),
            n_windows=len(closed),
            n_open_windows=len(open_windows),
            n_open_rows=n_open_rows,
            unlabelled=n_unlabelled / n_predictions if n_predictions else math.nan,
            n_unlabelled=n_unlabelled,
            predicted=math.nan if whole is None else whole.score_sum / whole.n,
            observed=math.nan if whole is None else whole.k / whole.n,
            log_e_value=0.0 if whole is None else whole.log_e,
            threshold=threshold,
            last_window=to_datetime(closed[-1].start) if closed else None,
            change_point=self._change(version, WHOLE) if alarmed else None,
            confidence_sequence=_sequence(whole),
            notes=self._notes(version, closed, n_unlabelled, n_predictions),
            settings=self.settings.to_dict(),
            events=self._event_statuses(self._events(version, WHOLE), threshold),
        )

    def history(self, group: Any, version_name: object, event: str) -> History:
        """Return all windows, closed and open, of all rows or of a group, or of one of their events."""
        stream = WHOLE if group is None else self._group_key(group)
        version, label = self._version(version_name), None if group is None else group_label(stream)
        closed = self._evidence(version, stream_key(stream, event))
        alarms = read_alarms(self.connection, self.model.id)
        alarm = next((a for a in alarms if a.version == version.name and a.group == label), None)
        raised = math.inf if alarm is None else self._raised(version, stream)
        limits = self._thresholds(version, stream, closed)
        if event != NO_EVENT:  # the mean of the e-values decides; alone, an event needs as many times more
            limits = limits + math.log(len(self.settings.events))
        records = [_record(row, row.log_e, limit, raised) for row, limit in zip(closed, limits, strict=True)]
        open_windows = self._open_windows(version, None if group is None else stream, event)
        records += [_record(row, math.nan, math.nan, raised) for row in open_windows]
        change = None
        if alarm is not None:
            change = self._change(version, stream, None if event == NO_EVENT else closed)
        return History(
            self.model.name,
            version.name,
            label,
            tuple(records),
            self.settings.window,
            float(limits[-1]) if closed else log_threshold(self.settings.alpha, version.ordinal),
            change,
            kind=self.settings.kind,
            event=None if event == NO_EVENT else group_label(event),
        )

    def _group_key(self, group: Any) -> str:
        """Return the key of a group, which the model must have."""
        key, known = group_key(group), self.group_keys()
        if key not in known:
            shown = (repr(group_label(other)) for other in known)
            raise not_found("group", "a group of the model, which has", shown, group)
        return key

    def _thresholds(self, version: Version, group: str, closed: list[Any]) -> Floats:
        """Return for each closed window the log e-value of an alarm: of a group, with the other groups as they were."""
        if group == WHOLE or not closed:
            return np.full(len(closed), log_threshold(self.settings.alpha, version.ordinal))
        streams = self._streams(version)
        streams.pop(WHOLE, None)
        if group not in streams:
            raise damaged(f"stream {group!r} has evidence and no sums")
        names = list(streams)
        weights = group_weights({name: stream.cohort for name, stream in streams.items()})
        level = level_of_groups(self.settings.alpha, version.ordinal)
        shares, place = np.array([weights[name] for name in names]), names.index(group)
        limits = []
        for values in self._group_evidence(version, names, [row.window for row in closed]):
            seen = ~np.isnan(values)
            limits.append(group_thresholds(values[seen], shares[seen], level)[int(seen[:place].sum())])
        return np.array(limits)

    def _group_evidence(self, version: Version, names: list[str], windows: list[int]) -> Floats:
        """Return the log e-value of each group after each of these windows; NaN before its first rows."""
        table = schema.evidence
        query = (
            sa.select(table.c.stream, table.c.window, table.c.log_e)
            .where(table.c.version_id == version.id, table.c.event == NO_EVENT, table.c.stream != WHOLE)
            .order_by(table.c.window)
        )
        place = {name: i for i, name in enumerate(names)}
        evidence, last = np.empty((len(windows), len(names))), np.full(len(names), np.nan)
        row = 0  # of the first window that is not complete
        for stream, window, log_e in self.connection.execute(query):
            while row < len(windows) and window > windows[row]:
                evidence[row] = last
                row += 1
            if stream not in place:
                raise damaged(f"stream {stream!r} has evidence and no sums")
            last[place[stream]] = log_e
        evidence[row:] = last
        return evidence

    def _raised(self, version: Version, stream: str) -> int:
        """Return the window that raised the alarm of a stream."""
        table = schema.alarms
        same = (table.c.version_id == version.id) & (table.c.stream == stream)
        return int(self.connection.execute(sa.select(table.c.window).where(same)).scalar_one())

    def group_keys(self) -> list[str]:
        """Return the keys of all groups with rows, sorted."""
        query = (
            sa.select(schema.cells.c.group)
            .join(schema.versions, schema.versions.c.id == schema.cells.c.version_id)
            .where(schema.versions.c.model_id == self.model.id, schema.cells.c.group != NO_GROUP)
            .distinct()
        )
        return sorted(self.connection.execute(query).scalars())

    def tables(self, since: int | None, until: int | None, version_name: object, event: str) -> dict[str, ScoreTable]:
        """Return the table of each group in the windows that start at `since` or later and before `until`."""
        version = self._version(version_name)
        where = (schema.cells.c.version_id == version.id) & (schema.cells.c.event == event)
        if until is not None:
            self._check_until(version, until)
            where &= schema.windows.c.start < until
        if since is not None:
            where &= schema.windows.c.start >= since
        tables: dict[str, ScoreTable] = {}
        for row, table in load_cells(self.connection, self.model.name, where):
            if since is not None and row.first_window < row.window and self._start(version, row.first_window) < since:
                raise _merged_windows("since", since, row.start)
            tables[row.group] = tables[row.group] + table if row.group in tables else table
        return dict(sorted(tables.items()))

    def _check_until(self, version: Version, until: int) -> None:
        """Raise an error if `until` lies in windows that were merged, which are stored with the last of them."""
        cells, windows = schema.cells, schema.windows
        merged = (cells.c.version_id == version.id) & (cells.c.first_window < cells.c.window)
        query = (
            sa.select(cells.c.first_window, windows.c.start)
            .join(windows, schema.same_window(cells))
            .where(merged, windows.c.start >= until)
        )
        for first, start in self.connection.execute(query):
            if self._start(version, first) < until:
                raise _merged_windows("until", until, start)

    def _start(self, version: Version, window: int) -> int:
        """Return the start of a window."""
        table = schema.windows
        same = (table.c.version_id == version.id) & (table.c.window == window)
        return int(self.connection.execute(sa.select(table.c.start).where(same)).scalar_one())

    def _streams(self, version: Version) -> dict[str, Any]:
        """Return the last sums and values of each stream by its key, without the states of their e-processes."""
        rows = self._stream_rows(version, schema.streams.c.event == NO_EVENT)
        return {row.stream: row for row in rows}

    def _events(self, version: Version, group: str) -> dict[str, Any]:
        """Return the last sums and values of each event of all rows or of a group; none if there is one event."""
        if self.settings.has_one_event:
            return {}
        keys = [stream_key(group, event) for event in self.settings.events]
        return {row.event: row for row in self._stream_rows(version, schema.streams.c.stream.in_(keys))}

    def _stream_rows(self, version: Version, where: Any) -> list[Any]:
        table = schema.streams
        columns = [column for column in table.c if column.name != "state"]
        query = sa.select(*columns).where(table.c.version_id == version.id, where).order_by(table.c.stream)
        return [check_stream(row, "streams") for row in self.connection.execute(query)]

    def _tested(self, version: Version, group: str) -> list[Any]:
        """Return the closed windows of the event that is tested; of several, of the one with the largest e-value."""
        events = self._events(version, group)
        largest = max(events, key=lambda event: events[event].log_e, default=NO_EVENT)
        return self._evidence(version, stream_key(group, largest))

    def _evidence(self, version: Version, stream: str) -> list[Any]:
        """Return the rows of the closed windows of a stream."""
        evidence, windows = schema.evidence, schema.windows
        query = (
            sa.select(evidence, windows.c.start, windows.c.n_late)
            .join(windows, schema.same_window(evidence))
            .where(evidence.c.version_id == version.id, evidence.c.stream == stream)
            .order_by(evidence.c.window)
        )
        return [check_stream(row, "evidence") for row in self.connection.execute(query)]

    def _open_windows(self, version: Version, group: str | None, event: str = NO_EVENT) -> list[Any]:
        """Return the sums of each open window, of all rows or of a group."""
        cells, windows = schema.cells, schema.windows
        sums = (sa.func.sum(cells.c[name]).label(name) for name in ("n", "k", "score_sum"))
        query = (
            sa.select(windows.c.start, windows.c.window, *sums)
            .join(windows, schema.same_window(cells))
            .where(cells.c.version_id == version.id, cells.c.event == event, ~windows.c.closed)
            .group_by(windows.c.start, windows.c.window)
            .order_by(windows.c.window)
        )
        rows = self.connection.execute(query if group is None else query.where(cells.c.group == group))
        return [check_sums(row, "cells") for row in rows]

    def _unlabelled(self) -> tuple[int, int]:
        """Return the number of predictions without an outcome, and of all predictions, forgotten ones included."""
        table, model = schema.pending, schema.models
        query = sa.select(table.c.labelled, sa.func.count()).where(table.c.model_id == self.model.id)
        counts = {bool(row[0]): int(row[1]) for row in self.connection.execute(query.group_by(table.c.labelled))}
        forgotten = sa.select(model.c.n_forgotten, model.c.n_forgotten_unlabelled).where(model.c.id == self.model.id)
        old, unlabelled = self.connection.execute(forgotten).one()
        return counts.get(False, 0) + int(unlabelled), sum(counts.values()) + int(old)

    def _groups(self, streams: dict[str, Any], version: Version, alarms: tuple[Alarm, ...]) -> dict[Any, GroupStatus]:
        """Return the state of each group, the largest e-value first."""
        if not streams:
            return {}
        weights = group_weights({key: stream.cohort for key, stream in streams.items()})
        alarmed = {alarm.group for alarm in alarms if alarm.version == version.name}
        log_e, shares = np.array([row.log_e for row in streams.values()]), np.array(list(weights.values()))
        limits = group_thresholds(log_e, shares, level_of_groups(self.settings.alpha, version.ordinal)).tolist()
        rows = sorted(zip(streams.values(), weights.values(), limits, strict=True), key=lambda row: -row[0].log_e)
        labels = {row.stream: group_label(row.stream) for row in streams.values()}
        return {
            labels[row.stream]: _group(row, weight, limit, labels[row.stream] in alarmed) for row, weight, limit in rows
        }

    def _event_statuses(self, streams: dict[str, Any], threshold: float) -> dict[Any, GroupStatus]:
        """Return the state of each event, the largest e-value first."""
        count = len(self.settings.events)
        order = sorted(streams, key=lambda key: -streams[key].log_e)
        alone = threshold + math.log(count)
        return {group_label(key): _group(streams[key], 1 / count, alone, False) for key in order}

    def _change(self, version: Version, stream: str, closed: list[Any] | None = None) -> ChangeEstimate | None:
        """Estimate the first window after the change that raised the alarm of a stream; None if rates do not show it.

        Windows after the alarm make the estimate more precise, but may have a change of their own, such as the return
        to normal: without an estimate before the alarm, the windows up to the alarm are used alone.
        """
        windows = self._tested(version, stream) if closed is None else closed
        estimate, raised = self._estimate_change(windows), self._raised(version, stream)
        before = [row for row in windows if row.window <= raised]
        if estimate is not None and before and estimate.window <= to_datetime(before[-1].start):
            return estimate
        return self._estimate_change(before)

    def _estimate_change(self, closed: list[Any]) -> ChangeEstimate | None:
        """Estimate the first window after a change from the sums of closed windows; None if they do not show it."""
        if len(closed) < _FEWEST_WINDOWS:
            return None
        effect = 0.0 if self.settings.dependence == "independent" else self.settings.window_effect
        change = change_point(_sums(closed), window_effect=effect)
        # A change of the slope alone changes no rates; then any window might be the first one.
        if change is None or change.high - change.low > _WIDEST * len(closed):
            return None
        return ChangeEstimate(*(to_datetime(closed[i].start) for i in (change.index, change.low, change.high)))

    def _notes(self, version: Version, closed: list[Any], n_unlabelled: int, n_predictions: int) -> tuple[Note, ...]:
        models, windows = schema.models, schema.windows
        counters = sa.select(models.c.n_duplicates, models.c.n_unknown).where(models.c.id == self.model.id)
        n_duplicates, n_unknown = self.connection.execute(counters).one()
        query = sa.select(sa.func.sum(windows.c.n_late)).where(windows.c.version_id == version.id)
        texts = {
            "late": (
                self.connection.execute(query).scalar() or 0,
                "Rows that arrived after their window closed, counted in the next open window: {count}.",
            ),
            "duplicates": (n_duplicates, "Rows left out because their id was known already: {count}."),
            "unknown": (n_unknown, "Outcomes left out because no prediction has their id: {count}."),
            "unlabelled": (n_unlabelled, f"Predictions without an outcome: {{count}} of {n_predictions:,}."),
        }
        notes = [Note(code, int(count), text) for code, (count, text) in texts.items() if count]
        if version.newest is not None and version.newest > schema.now() + _HOUR:
            text = f"The newest time, {to_datetime(version.newest):%Y-%m-%d %H:%M} UTC, lies in the future: earlier "
            notes.append(Note("future", 1, text + "rows are late. If it is wrong, observe under a new version."))
        return (*notes, *self._resolution_notes(closed), *self._dispersion_notes(version, closed))

    def _resolution_notes(self, closed: list[Any]) -> list[Note]:
        """Report a resolution that changes the scores by more than the margin, which breaks the guarantee."""
        step, n_rows = self.settings.resolution, sum(int(row.n) for row in closed)
        if step is None or not n_rows or not self.settings.has_one_event:
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

    def _dispersion_notes(self, version: Version, closed: list[Any]) -> list[Note]:
        """Report windows that vary more than the settings state, which breaks the guarantee.

        Of several events the smallest p-value counts, times their number.
        """
        stated = {"window": self.settings.window_effect, "independent": 0.0}.get(self.settings.dependence)
        if stated is None or not closed:
            return []
        keys = [stream_key(WHOLE, event) for event in self.settings.events]
        streams = (closed if key == WHOLE else self._evidence(version, key) for key in keys)
        tests = [test for rows in streams if (test := dispersion(_sums(rows), window_effect=stated)) is not None]
        strongest = min(tests, key=lambda test: test.pvalue, default=None)
        if strongest is None or not strongest.pvalue <= _SIGNIFICANT / len(keys):
            return []
        cause = "independent rows" if not stated else f"a window effect of {stated:g}"
        text = (
            f"Windows vary more than {cause} would explain (p = {strongest.pvalue:.1g}; estimated window effect "
            f"{strongest.window_effect:.2g}): false alarms are more likely than alpha. Monitor under a new model name "
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
    low, high = (math.nan if limit is None else limit for limit in (stream.shift_low, stream.shift_high))
    return ConfidenceSequence(stream.shift, low, high)


def _group(stream: Any, weight: float, threshold: float, alarm: bool) -> GroupStatus:
    rates = stream.score_sum / stream.n, stream.k / stream.n
    return GroupStatus(stream.n, *rates, stream.log_e, weight, alarm, _sequence(stream), threshold)


def _merged_windows(argument: str, time: int, start: int) -> InputError:
    """Return the error for a limit within windows that were merged; the last of them starts at `start`."""
    return InputError(
        Argument(argument) + f" must not lie in windows that forget() merged; got {to_datetime(time)}.",
        hint=f"Pass a time after the window from {to_datetime(start):%Y-%m-%d %H:%M}, or leave it out.",
    )


def _record(row: Any, log_e: float, threshold: float, raised: float) -> WindowRecord:
    """Return the record of a window; without a log e-value it is open."""
    start, n, closed = to_datetime(row.start), int(row.n), not math.isnan(log_e)
    rates = float(row.score_sum) / n, int(row.k) / n
    return WindowRecord(start, n, int(row.k), *rates, log_e, row.window >= raised, closed, threshold)


_RECENT_WINDOWS = 60


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
        Log e-values after each of the last windows, at most `_RECENT_WINDOWS`.
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
        rows = [row for row in latest_versions(connection) if models is None or row.model in models]
        versions = [row.version_id for row in rows if row.version_id is not None]
        ids = [row.model_id for row in rows]
        windows, open_rows = _closed_windows(connection, versions), _open_rows(connection, versions)
        evidence, alarms = _recent_evidence(connection, versions), alarms_by_model(connection, ids)
        predictions, silences = predictions_by_model(connection, ids), _last_silences(connection)
    summaries = []
    for row in rows:
        check_sums(row, "streams")
        settings, closed = ModelSettings.from_json(row.settings), windows.get(row.version_id)
        raised, silenced = alarms.get(row.model_id, []), silences.get(row.model_id)
        unacknowledged = [alarm.stream for alarm in raised if alarm.acknowledged is None]
        n_unlabelled, n_predictions = predictions.get(row.model_id, (0, 0))
        summary = ModelSummary(
            model=row.model,
            version="1" if row.version is None else row.version,
            window=settings.window,
            n_rows=row.n or 0,
            n_open_rows=open_rows.get(row.version_id, 0),
            n_windows=0 if closed is None else int(closed.count),
            predicted=row.score_sum / row.n if row.n else math.nan,
            observed=row.k / row.n if row.n else math.nan,
            log_e_value=row.log_e or 0.0,
            threshold=log_threshold(settings.alpha, row.ordinal or 1),
            evidence=tuple(evidence.get(row.version_id, [])),
            last_window=None if closed is None else to_datetime(closed.last),
            unlabelled=n_unlabelled / n_predictions if n_predictions else math.nan,
            alarms=tuple(None if stream == WHOLE else group_label(stream) for stream in unacknowledged),
            n_acknowledged=len(raised) - len(unacknowledged),
            silenced=None if silenced is None else to_datetime(silenced),
        )
        summaries.append(summary)
    return summaries


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


def latest_versions(connection: sa.Connection) -> list[Any]:
    """Return each model with its counters, its latest version and the sums of its closed windows, sorted by name."""
    models, versions, streams = schema.models, schema.versions, schema.streams
    newer = versions.alias("newer")
    latest = sa.select(sa.func.max(newer.c.ordinal)).where(newer.c.model_id == models.c.id).scalar_subquery()
    of_model = (versions.c.model_id == models.c.id) & (versions.c.ordinal == latest)
    whole = (streams.c.version_id == versions.c.id) & (streams.c.stream == WHOLE)
    query = sa.select(
        *(models.c.id.label("model_id"), models.c.name.label("model"), models.c.settings),
        *(models.c.n_duplicates, models.c.n_unknown),
        *(versions.c.id.label("version_id"), versions.c.name.label("version"), versions.c.ordinal),
        *(versions.c.newest, streams.c.n, streams.c.k, streams.c.score_sum, streams.c.log_e),
    ).select_from(models.outerjoin(versions, of_model).outerjoin(streams, whole))
    return sorted(connection.execute(query), key=lambda row: row.model)


def alarms_by_model(connection: sa.Connection, models: Collection[int]) -> dict[int, list[Any]]:
    """Return the streams of the alarms of all versions, and when they were acknowledged, by the id of the model."""
    alarms, versions = schema.alarms, schema.versions
    query = (
        sa.select(versions.c.model_id, alarms.c.stream, alarms.c.acknowledged)
        .join(versions, versions.c.id == alarms.c.version_id)
        .where(versions.c.model_id.in_(models))
        .order_by(alarms.c.id)
    )
    by_model: dict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(query):
        by_model[row.model_id].append(row)
    return by_model


def predictions_by_model(connection: sa.Connection, models: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return the numbers of predictions without an outcome and of all predictions, by the id of the model."""
    table = schema.pending
    unlabelled = sa.func.sum(sa.case((table.c.labelled, 0), else_=1))
    query = sa.select(table.c.model_id, unlabelled, sa.func.count()).where(table.c.model_id.in_(models))
    rows = connection.execute(query.group_by(table.c.model_id))
    return {model: (int(without), int(count)) for model, without, count in rows}


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
    query = (
        sa.select(windows.c.version_id, sa.func.sum(cells.c.n))
        .join(cells, schema.same_window(cells))
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
    query = sa.select(inner.c.version_id, inner.c.log_e).where(inner.c.place <= _RECENT_WINDOWS)
    by_version: dict[int, list[float]] = defaultdict(list)
    for version, log_e in connection.execute(query.order_by(inner.c.version_id, inner.c.window)):
        by_version[version].append(log_e)
    return by_version


def _last_silences(connection: sa.Connection) -> dict[int, int]:
    """Return the end of the last silence of each model."""
    table = schema.silences
    query = sa.select(table.c.model_id, sa.func.max(table.c.until)).group_by(table.c.model_id)
    return {model: int(until) for model, until in connection.execute(query)}
