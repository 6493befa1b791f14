"""Parts of an end bin that has most events, for the test-based diagram of rare events."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant.metrics.bins import EqualInformation
from calibrant.metrics.gce import Breakdown
from calibrant.metrics.losses import tests_scores
from calibrant.metrics.significance import clopper_pearson
from calibrant.plots._density import choose_scale
from calibrant.tables.partition import Partition
from calibrant.tables.score_table import ScoreTable

_MOST_PARTS = 5
_EVENTS_PER_PART = 10  # expected events; fewer leave an interval that says little


@dataclass(frozen=True, eq=False)
class DrawnBins:
    """The bins of a breakdown as drawn: one of them may be in several parts.

    Attributes
    ----------
    breakdown : Breakdown
    partition : Partition
        One bin for each part.
    owner : ndarray of int64
        The bin of the breakdown to which each part belongs. Its outcomes test the scores of all its parts.
    lower, upper : ndarray of float64
    rejected : ndarray
        Rows of each part whose score the outcomes of the whole bin reject.
    """

    breakdown: Breakdown
    partition: Partition
    owner: Ints
    lower: Floats
    upper: Floats
    rejected: Ints | Floats

    def __len__(self) -> int:
        """Number of parts."""
        return len(self.partition)

    @classmethod
    def create(cls, breakdown: Breakdown) -> "DrawnBins":
        """Return the bins, with the bin in parts that `_crowded_bin` names."""
        whole, number = breakdown.partition, _crowded_bin(breakdown.partition)
        cuts = np.empty(0, dtype=np.int64) if number is None else _inner_cuts(whole, number)
        if number is None or not cuts.size:
            b = breakdown.per_bin
            return cls(breakdown, whole, np.arange(len(whole)), b["lower"], b["upper"], b["rejected"])
        parts = Partition.from_cuts(whole.table, np.sort(np.concatenate([whole.start[1:], cuts])))
        owner = np.searchsorted(whole.start, parts.start, side="right") - 1
        lower, upper = whole.lower[owner], whole.upper[owner]
        inside = np.flatnonzero(owner == number)
        lower[inside[1:]], upper[inside[:-1]] = parts.lower[inside[1:]], parts.upper[inside[:-1]]
        return cls(breakdown, parts, owner, lower, upper, _rejected_rows(breakdown, parts, owner, number))

    @property
    def split(self) -> Ints:
        """Numbers of the parts of the bin that is in parts; empty if there is none."""
        found: Ints = np.flatnonzero(np.bincount(self.owner)[self.owner] > 1)
        return found

    @property
    def part(self) -> Ints:
        """Number of each part within its bin."""
        found: Ints = np.arange(len(self)) - np.searchsorted(self.owner, self.owner)
        return found

    def rate_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the exact confidence limits of the rate of each part."""
        p = self.partition
        if p is self.breakdown.partition:
            return self.breakdown.rate_interval(level)
        return clopper_pearson(p.effective_k, p.effective_n, confidence_level=level)


def _crowded_bin(partition: Partition) -> int | None:
    """Return the first or last bin if it has most of the rarer outcome, in a table whose scores crowd an end."""
    if choose_scale([partition.table], None, None) != "logit":
        return None
    rare = partition.k if 2 * partition.k.sum() <= partition.n.sum() else partition.n - partition.k
    number = int(np.argmax(rare))
    at_end = number in (0, len(partition) - 1)
    return number if at_end and 2 * rare[number] > rare.sum() else None


def _inner_cuts(partition: Partition, number: int) -> Ints:
    """Return the entries at which the parts of a bin begin, without the first; they depend on no outcome."""
    start = int(partition.start[number])
    stop = int(np.append(partition.start, len(partition.table))[number + 1])
    table = _run(partition.table, slice(start, stop))
    information = float(np.sum(table.n * table.score * (1 - table.score)))
    if table.w2 is not None:
        information *= float(table.n.sum() / table.w2.sum())
    count = min(int(information / _EVENTS_PER_PART), _MOST_PARTS)
    return EqualInformation(count)(table).start[1:] + start if count > 1 else np.empty(0, dtype=np.int64)


def _run(table: ScoreTable, entries: slice) -> ScoreTable:
    squares: dict[str, Any] = {
        name: None if (column := getattr(table, name)) is None else column[entries] for name in ("w2", "k2")
    }
    return replace(table, score=table.score[entries], n=table.n[entries], k=table.k[entries], **squares)


def _rejected_rows(breakdown: Breakdown, parts: Partition, owner: Ints, number: int) -> Ints | Floats:
    loss, table, whole = breakdown.definition.loss, parts.table, breakdown.partition
    assert tests_scores(loss)
    rejected = np.asarray(breakdown.per_bin["rejected"])[owner]
    entries = np.flatnonzero(whole.labels == number)
    decided = loss.rejects(whole, whole.labels[entries], table.score[entries])
    rows = np.bincount(parts.labels[entries], weights=np.where(decided, table.n[entries], 0), minlength=len(parts))
    return np.where(owner == number, rows.astype(rejected.dtype), rejected)
