"""Evidence against calibration: e-processes of all rows and of each group over closed windows, and alarms."""

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from calibrant._support.arrays import Floats
from calibrant.inference.sequential.e_processes import EProcess, Evidence
from calibrant.inference.sequential.e_values import e_bh, log_mean_e
from calibrant.monitor import schema
from calibrant.monitor.alarm_log import store_alarms
from calibrant.monitor.cells import CellKey, table_sums
from calibrant.monitor.model_settings import ModelSettings
from calibrant.monitor.observations import NO_EVENT, NO_GROUP
from calibrant.monitor.schema import WHOLE, check_stream, damaged, stream_key
from calibrant.tables.score_table import ScoreTable


def _version_share(ordinal: int) -> float:
    """Return the share of alpha of a version: 3/4 for the first; the later ones share the rest, 1/4 in all."""
    return 0.75 if ordinal == 1 else 0.25 / (ordinal * (ordinal - 1))


def log_threshold(alpha: float, ordinal: int = 1) -> float:
    """Return the log e-value at which all rows together raise an alarm; they have half of alpha, groups the rest."""
    return math.log(2 / (alpha * _version_share(ordinal)))


def level_of_groups(alpha: float, ordinal: int = 1) -> float:
    """Return the level of e-BH over the groups of a version: one half of its share of alpha."""
    return alpha * _version_share(ordinal) / 2


@dataclass
class MonitoredStream:
    """The evidence of all rows, of a group or of one of their events, and its sums over all closed windows.

    `state` is None for the whole and the groups of forecasts with several events: their e-value is the mean of those
    of the events.
    """

    state: Evidence | None
    cohort: int
    event: str = NO_EVENT
    n: int = 0
    k: int = 0
    score_sum: float = 0.0
    log_e: float = 0.0

    def update(self, process: EProcess, table: ScoreTable, log_e: float = 0.0) -> dict[str, Any]:
        """Add a window, with the log e-value of the events if there are several; return its row of evidence."""
        sums = table_sums(table)
        if self.state is not None:
            self.state = process.update(self.state, table)
            log_e = float(self.state.log_e)
        self.log_e = log_e
        self.n, self.k, self.score_sum = self.n + sums["n"], self.k + sums["k"], self.score_sum + sums["score_sum"]
        return {**sums, "event": self.event, "log_e": log_e}

    @classmethod
    def from_row(cls, row: Any) -> "MonitoredStream":
        """Return the stream of a row of the store."""
        try:
            values = json.loads(row.state)
            state = None if values is None else Evidence.from_dict(values)
        except (ValueError, RecursionError) as error:
            raise damaged(f"the state of stream {row.stream!r} is not valid") from error
        check_stream(row, "streams")
        return cls(state, row.cohort, row.event, row.n, row.k, row.score_sum, row.log_e)

    def to_row(self, alpha: float) -> dict[str, Any]:
        """Return the columns of the store, with the confidence sequence at `alpha`."""
        shifts = None if self.state is None else self.state.shifts
        low, high = (math.nan, math.nan) if shifts is None else shifts.interval(alpha)
        return {
            **{name: getattr(self, name) for name in ("event", "cohort", "n", "k", "score_sum", "log_e")},
            "shift": None if shifts is None else float(shifts.estimate),
            # If all shifts are refuted, there are no limits.
            "shift_low": None if math.isnan(low) else float(low),
            "shift_high": None if math.isnan(high) else float(high),
            "state": json.dumps(None if self.state is None else self.state.to_dict()),
        }


def group_weights(cohorts: dict[str, int]) -> dict[str, float]:
    """Return the weights of groups: 1 / (c (c + 1)) for cohort c, shared equally by its groups.

    Groups whose first rows come in the same window form a cohort; cohorts are numbered from 1 in the order of these
    windows. The weights of a cohort never change, so all weights sum to at most 1, however many groups come later.

    >>> group_weights({"a": 1, "b": 1, "c": 2})
    {'a': 0.25, 'b': 0.25, 'c': 0.16666666666666666}
    """
    sizes = Counter(cohorts.values())
    return {name: 1 / (c * (c + 1) * sizes[c]) for name, c in cohorts.items()}


def group_thresholds(log_e: Floats, weights: Floats, level: float) -> Floats:
    """Return the log e-value at which each group would raise an alarm by e-BH, with the other groups as they are.

    Groups that have much evidence together need less each: k groups raise an alarm if each has e * weight of at least
    1 / (level k).

    >>> group_thresholds(np.log([2000.0, 1.0]), np.array([0.25, 0.25]), 0.025).round(2)
    array([5.08, 4.38])
    """
    evidence = np.asarray(log_e) + np.log(weights)
    places = np.arange(evidence.size)
    limits = -np.log(level * (places + 1))  # for k = 1, 2, ... groups at once
    reached = evidence.size - np.searchsorted(np.sort(evidence), limits)  # groups at or above each limit
    # The most groups that could raise an alarm with this one: k - 1 of the others are above the limit. A group is one
    # of those above a limit from its own place on.
    own = np.searchsorted(-limits, -evidence)
    with_it = int(np.max(np.where(reached > places, places, -1), initial=-1))
    before = np.maximum.accumulate(np.where(reached >= places, places, 0))
    most = np.where(with_it >= own, with_it, before[np.maximum(own, 1) - 1])
    return np.asarray(limits[most] - np.log(weights))


class EvidenceRecorder:
    """The e-processes of one version while windows close, in order of time."""

    def __init__(self, connection: sa.Connection, version_id: int, ordinal: int, settings: ModelSettings) -> None:
        self.connection = connection
        self.version_id = version_id
        self.ordinal = ordinal
        self.process: EProcess = settings.process
        self.alpha: float = settings.alpha
        self.events: tuple[str, ...] = tuple(settings.events)
        table = schema.streams
        rows = connection.execute(sa.select(table).where(table.c.version_id == version_id)).all()
        self.streams: dict[str, MonitoredStream] = {row.stream: MonitoredStream.from_row(row) for row in rows}
        if self.streams and WHOLE not in self.streams:
            raise damaged("a version has sums of groups and no sums of all rows")
        self.stored: set[str] = set(self.streams)
        alarms = schema.alarms
        query = sa.select(alarms.c.stream).where(alarms.c.version_id == version_id)
        self.alarmed: set[Any] = set(connection.execute(query).scalars())
        self.raised: list[tuple[str, int, float]] = []  # the stream, the window and the log e-value of new alarms
        self.rows: list[dict[str, Any]] = []

    def add_window(self, window: int, tables: dict[CellKey, ScoreTable]) -> None:
        """Add a closed window: the table of each group and event, and `NO_GROUP` for rows without a group."""
        whole: dict[str, ScoreTable] = {}
        groups: dict[str, dict[str, ScoreTable]] = {}
        for (group, event), table in tables.items():
            whole[event] = whole[event] + table if event in whole else table
            if group != NO_GROUP:
                groups.setdefault(group, {})[event] = table
        parts, events = (whole, *groups.values()), {NO_EVENT, *self.events}
        missing = {event for tables_of_part in parts for event in events - tables_of_part.keys()}
        if missing:
            raise damaged(f"window {window} has no table of event {min(missing)!r} for each group")
        self._update(WHOLE, 0, window, whole)
        next_cohort = max(stream.cohort for stream in self.streams.values()) + 1
        for group, events_of_group in groups.items():
            self._update(group, next_cohort, window, events_of_group)
        self._raise_alarms(window)

    def _update(self, group: str, cohort: int, window: int, tables: dict[str, ScoreTable]) -> None:
        """Add a window of all rows or of a group: its events first, then the mean of their e-values."""
        several = self.events != (NO_EVENT,)
        added = [self._add(group, event, cohort, window, tables[event]) for event in self.events if several]
        mean = float(log_mean_e(np.array([row["log_e"] for row in added]))) if several else 0.0
        self._add(group, NO_EVENT, cohort, window, tables[NO_EVENT], mean)

    def _add(
        self, group: str, event: str, cohort: int, window: int, table: ScoreTable, log_e: float = 0.0
    ) -> dict[str, Any]:
        key = stream_key(group, event)
        if key not in self.streams:
            state = self.process.start() if event in self.events else None
            self.streams[key] = MonitoredStream(state, cohort, event)
        row = {"version_id": self.version_id, "stream": key, "window": window}
        row |= self.streams[key].update(self.process, table, log_e)
        self.rows.append(row)
        return row

    def _raise_alarms(self, window: int) -> None:
        alarming = [WHOLE] if self.streams[WHOLE].log_e >= log_threshold(self.alpha, self.ordinal) else []
        names = [name for name, stream in self.streams.items() if name != WHOLE and stream.event == NO_EVENT]
        if names:
            weights = group_weights({name: self.streams[name].cohort for name in names})
            log_e = np.array([self.streams[name].log_e for name in names])
            rejected = e_bh(log_e, np.array(list(weights.values())), level_of_groups(self.alpha, self.ordinal))
            alarming += [name for name, alarm in zip(names, rejected, strict=True) if alarm]
        self.raised += [(name, window, self.streams[name].log_e) for name in alarming if name not in self.alarmed]
        self.alarmed.update(alarming)

    def save(self) -> None:
        """Write the rows of evidence, the last states and new alarms."""
        if not self.rows:
            return
        self.connection.execute(schema.evidence.insert(), self.rows)
        store_alarms(self.connection, self.version_id, self.raised)
        table = schema.streams
        for name in sorted({row["stream"] for row in self.rows}):
            values = self.streams[name].to_row(self.alpha)
            if name in self.stored:
                same = (table.c.version_id == self.version_id) & (table.c.stream == name)
                self.connection.execute(table.update().where(same).values(**values))
            else:
                self.connection.execute(table.insert().values(version_id=self.version_id, stream=name, **values))
