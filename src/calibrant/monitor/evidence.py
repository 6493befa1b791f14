"""Evidence against calibration: e-processes of the whole and of each group over closed windows, and alarms."""

import json
import math
import uuid
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from calibrant.inference.sequential.e_processes import EProcess, Evidence
from calibrant.inference.sequential.e_tests import e_bh
from calibrant.monitor import schema
from calibrant.monitor.cells import table_sums
from calibrant.monitor.observations import NO_GROUP
from calibrant.tables.score_table import ScoreTable

__all__ = ["WHOLE", "EvidenceRecorder", "MonitoredStream", "group_weights", "log_threshold"]

WHOLE = ""


def version_share(ordinal: int) -> float:
    """Return the share of alpha of a version: 3/4 for the first; the later ones share the rest, 1/4 in all."""
    return 0.75 if ordinal == 1 else 0.25 / (ordinal * (ordinal - 1))


def log_threshold(alpha: float, ordinal: int = 1) -> float:
    """Return the log e-value of an alarm of the whole, which has one half of alpha; the groups have the other."""
    return math.log(2 / (alpha * version_share(ordinal)))


@dataclass
class MonitoredStream:
    """The e-process of the whole or of a group after the last closed window, and its sums over all closed windows."""

    state: Evidence
    cohort: int
    n: int = 0
    k: int = 0
    score_sum: float = 0.0

    def update(self, process: EProcess, table: ScoreTable) -> dict[str, Any]:
        """Add a window; return the columns of its row of evidence."""
        sums = table_sums(table)
        self.state = process.update(self.state, table)
        self.n, self.k, self.score_sum = self.n + sums["n"], self.k + sums["k"], self.score_sum + sums["score_sum"]
        return {**sums, "log_e": float(self.state.log_e)}

    @classmethod
    def from_row(cls, row: Any) -> "MonitoredStream":
        """Return the stream of a row of the store."""
        return cls(Evidence.from_dict(json.loads(row.state)), row.cohort, row.n, row.k, row.score_sum)

    def to_row(self, alpha: float) -> dict[str, Any]:
        """Return the columns of the store, with the confidence sequence at `alpha`."""
        low, high = self.state.shifts.interval(alpha)
        return {
            "cohort": self.cohort,
            "n": self.n,
            "k": self.k,
            "score_sum": self.score_sum,
            "log_e": float(self.state.log_e),
            "shift": float(self.state.shifts.estimate),
            # If all shifts are refuted, there are no limits.
            "shift_low": None if math.isnan(low) else float(low),
            "shift_high": None if math.isnan(high) else float(high),
            "state": json.dumps(self.state.to_dict()),
        }


def group_weights(cohorts: dict[str, int]) -> dict[str, float]:
    """Return the weights of groups: 1 / (c (c + 1)) for cohort c, shared equally by its groups.

    Cohort c are the groups that first had rows in the c-th window with new groups. The weights of a cohort are fixed
    when it appears, so they sum to at most 1 however many groups come later.

    >>> group_weights({"a": 1, "b": 1, "c": 2})
    {'a': 0.25, 'b': 0.25, 'c': 0.16666666666666666}
    """
    sizes = Counter(cohorts.values())
    return {name: 1 / (c * (c + 1) * sizes[c]) for name, c in cohorts.items()}


class EvidenceRecorder:
    """The e-processes of one version while windows close, in order of time."""

    def __init__(
        self, connection: sa.Connection, version_id: int, ordinal: int, process: EProcess, alpha: float
    ) -> None:
        self.connection, self.version_id = connection, version_id
        self.process, self.alpha, self.ordinal = process, alpha, ordinal
        table = schema.streams
        rows = connection.execute(sa.select(table).where(table.c.version_id == version_id)).all()
        self.streams = {row.stream: MonitoredStream.from_row(row) for row in rows}
        self.stored = set(self.streams)
        alarms = schema.alarms
        query = sa.select(alarms.c.stream).where(alarms.c.version_id == version_id)
        self.alarmed = set(connection.execute(query).scalars())
        self.raised: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.new_alarms: list[dict[str, Any]] = []

    def add_window(self, window: int, tables: dict[str, ScoreTable]) -> None:
        """Add a closed window: the table of each group, and `NO_GROUP` for rows without one."""
        self._update(WHOLE, 0, window, sum(tables.values(), ScoreTable.empty()))
        groups = {name: table for name, table in tables.items() if name != NO_GROUP}
        known = [stream.cohort for stream in self.streams.values()]
        for name, table in groups.items():
            self._update(name, max(known) + 1, window, table)
        self._raise_alarms(window)

    def _update(self, name: str, cohort: int, window: int, table: ScoreTable) -> None:
        stream = self.streams.setdefault(name, MonitoredStream(self.process.start(), cohort))
        added = stream.update(self.process, table)
        self.rows.append({"version_id": self.version_id, "stream": name, "window": window, **added})

    def _raise_alarms(self, window: int) -> None:
        found = []
        if self.streams[WHOLE].state.log_e >= log_threshold(self.alpha, self.ordinal):
            found.append(WHOLE)
        names = [name for name in self.streams if name != WHOLE]
        if names:
            weights = group_weights({name: self.streams[name].cohort for name in names})
            log_e = np.array([float(self.streams[name].state.log_e) for name in names])
            level = self.alpha * version_share(self.ordinal) / 2
            rejected = e_bh(log_e, np.array([weights[name] for name in names]), level)
            found += [name for name, alarm in zip(names, rejected, strict=True) if alarm]
        for name in found:
            if name not in self.alarmed:
                self.alarmed.add(name)
                self.raised.append(name)
                self.new_alarms.append(
                    {
                        "version_id": self.version_id,
                        "stream": name,
                        "window": window,
                        "log_e": float(self.streams[name].state.log_e),
                        "raised": schema.now(),
                    }
                )

    def save(self) -> None:
        """Write the rows of evidence, the last states and new alarms."""
        if not self.rows:
            return
        self.connection.execute(schema.evidence.insert(), self.rows)
        for alarm in self.new_alarms:
            key = self.connection.execute(schema.alarms.insert().values(**alarm)).inserted_primary_key
            assert key is not None
            entry = {"id": str(uuid.uuid4()), "alarm_id": int(key[0]), "created": alarm["raised"]}
            self.connection.execute(schema.outbox.insert().values(**entry))
        changed = {row["stream"] for row in self.rows}
        for name in sorted(changed):
            values = self.streams[name].to_row(self.alpha)
            key = {"version_id": self.version_id, "stream": name}
            if name in self.stored:
                table = schema.streams
                same = (table.c.version_id == self.version_id) & (table.c.stream == name)
                self.connection.execute(table.update().where(same).values(**values))
            else:
                self.connection.execute(schema.streams.insert().values(**key, **values))
