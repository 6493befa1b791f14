"""Heterogeneity of predicted probabilities between groups, and the mean of few clusters, from tables of each."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import Note
from calibrant._support.logistic import expit
from calibrant.inference.heterogeneity import (
    FEWEST_GROUPS,
    estimate_heterogeneity,
    random_effects_mean,
    unknown_heterogeneity,
)
from calibrant.inference.log_odds_shifts import CommonLine, LogOddsShifts, common_line
from calibrant.inference.paired_rows import FEWEST_CLUSTERS, PairedRows
from calibrant.inference.table_sample import TableSample
from calibrant.results.group_differences import Heterogeneity
from calibrant.results.uncertainty import Estimate
from calibrant.tables.score_table import ScoreTable, event_squares, row_squares

NAME, TEST = "log-odds shift", "score test of the variance between groups"


class _Columns(NamedTuple):
    """Log-odds of the scores between 0 and 1 of several tables, their rows and events, and where each table begins.

    Squares of weights of rows and of events are given with importance weights. `places` are those of the tables with
    such scores.
    """

    x: Floats
    n: Floats
    k: Floats
    squares: Floats | None
    event_squares: Floats | None
    start: Ints
    places: Ints


def log_odds_heterogeneity(
    groups: Mapping[Any, TableSample], whole: TableSample, level: float, name: str = NAME
) -> Heterogeneity:
    """Return the heterogeneity of the log-odds shifts of groups, beside the shift and the slope of all rows.

    Frequencies are rows. Importance weights and clusters count as fewer rows: the variance of the sum of each group is
    that of its weights, times the variance of the sums of clusters around their group over that of independent rows,
    averaged over groups. Where no group has two clusters, groups are the clusters, within which rows are independent.
    """
    columns = _columns([sample.table for sample in groups.values()])
    one = _columns([whole.table])
    line = common_line(one.x, one.n, one.k) if one.x.size else None
    keys = [list(groups)[place] for place in columns.places.tolist()]
    if line is None or len(keys) < FEWEST_GROUPS:
        why = "events and other rows" if line is None else "groups with scores between 0 and 1, at least two"
        note = Note("few_groups", len(keys), f"Heterogeneity between groups needs {why}.")
        return unknown_heterogeneity(name, TEST, level, len(keys), (note,))
    samples = [list(groups.values())[place] for place in columns.places.tolist()]
    inflation, noise, notes = _inflation(columns, samples, line)
    effects = _effects(columns, inflation, line, noise)
    return estimate_heterogeneity(effects, keys, name=name, test=TEST, level=level, notes=notes)


def mean_shift_over_clusters(tables: Sequence[ScoreTable], level: float) -> Estimate | None:
    """Return calibration in the large as the mean log-odds shift over few clusters; None where it does not exist.

    Clusters differ randomly, rows within a cluster are independent: the interval of Hartung and Knapp with Student's
    quantile of one degree of freedom less than clusters.
    """
    columns = _columns(tables)
    order = np.argsort(columns.x, kind="stable")
    line = common_line(columns.x[order], columns.n[order], columns.k[order], sloped=False) if order.size else None
    if line is None or columns.places.size < FEWEST_CLUSTERS:
        return None
    inflation, noise, _ = _inflation(columns, [], line)
    return random_effects_mean(_effects(columns, inflation, line, noise), "calibration in the large", level)


def _columns(tables: Sequence[ScoreTable]) -> _Columns:
    used = [(table.score > 0) & (table.score < 1) for table in tables]
    size = np.array([np.count_nonzero(each) for each in used])
    places = np.flatnonzero(size)
    parts = [(tables[i], used[i]) for i in places.tolist()]

    def joined(column: Any) -> Floats:
        values = [np.asarray(column(table)[own], dtype=np.float64) for table, own in parts]
        return np.concatenate(values) if values else np.empty(0)

    p = joined(lambda table: table.score)
    weighted = any(table.importance for table, _ in parts)
    squares = joined(row_squares) if weighted else None
    of_events = joined(event_squares) if weighted else None
    start = np.cumsum(size[places]) - size[places]
    x = np.log(p) - np.log1p(-p)
    return _Columns(x, joined(lambda t: t.n), joined(lambda t: t.k), squares, of_events, start, places)


def _effects(columns: _Columns, inflation: Floats, line: CommonLine, noise: float) -> LogOddsShifts:
    """Return the effects of groups whose rows count as fewer."""
    share = 1 / np.repeat(inflation, np.diff(np.append(columns.start, columns.x.size)))
    return LogOddsShifts(columns.x, columns.n * share, columns.k * share, columns.start, line, noise)


def _inflation(
    columns: _Columns, samples: Sequence[TableSample], line: CommonLine
) -> tuple[Floats, float, tuple[Note, ...]]:
    """Return by how much weights and clusters inflate the variance of the sum of each group over its weight.

    Also the squared relative error of this estimate, and notes about its assumptions.
    """
    q = expit(line(columns.x))
    variance = np.add.reduceat(columns.n * q * (1 - q), columns.start)
    weighted, notes = variance, tuple[Note, ...]()
    if columns.squares is not None and columns.event_squares is not None:
        weighted = np.add.reduceat(columns.squares * q * (1 - q), columns.start)
        events, rest = columns.event_squares, columns.squares - columns.event_squares
        residuals = float(np.sum(events * (1 - q) ** 2 + rest * q**2))
        weighted = weighted * (residuals / float(np.sum(columns.squares * q * (1 - q))))
        text = "Heterogeneity between groups: weighted rows count as fewer rows with the same variance."
        notes = (Note("heterogeneity_weights", 1, text),)
    if not any(sample.n_clusters is not None for sample in samples):
        return weighted / variance, 0.0, notes
    factor, noise, about = _cluster_factor(samples, weighted, line)
    return weighted / variance * factor, noise, (*notes, about)


def _cluster_factor(samples: Sequence[TableSample], variance: Floats, line: CommonLine) -> tuple[float, float, Note]:
    """Return the variance of sums of clusters around their group over that of independent rows, over all groups."""
    squares = expected = degrees = 0.0
    for sample, of_group in zip(samples, variance.tolist(), strict=True):
        rows = sample.clustered_rows
        if rows is None or rows.n_draws < 2:
            continue
        total, scale = _cluster_sums(rows, line)
        share = scale / scale.sum() if scale.sum() > 0 else np.full(scale.size, 1 / scale.size)
        left = 1 - float(np.sum(share**2))
        squares += float(np.sum((total - share * total.sum()) ** 2))
        expected += of_group * left
        degrees += 1 / (1 - left) - 1
    if degrees < 1 or not expected > 0:
        text = "Heterogeneity between groups: each group is one cluster, within which rows are taken as independent."
        return 1.0, 0.0, Note("heterogeneity_clusters", 1, text)
    text = (
        "Heterogeneity between groups: rows in clusters count as fewer rows with the same variance, by one factor for "
        "all groups; a cluster with rows in several groups is taken as independent in each."
    )
    return max(squares / expected, 1e-3), 2 / degrees, Note("heterogeneity_clusters", 1, text)


def _cluster_sums(rows: PairedRows, line: CommonLine) -> tuple[Floats, Floats]:
    """Return for each cluster the sum of residuals beside the common line, and its information."""
    assert rows.cluster is not None
    p = rows.scores[0][rows.places[0]]
    inside = (p > 0) & (p < 1)
    p = np.where(inside, p, 0.5)
    q = expit(line(np.log(p) - np.log1p(-p)))
    weight = inside * (1.0 if rows.weight is None else rows.weight.astype(np.float64))
    total, scale = (
        np.bincount(rows.cluster, weights=values, minlength=rows.n_draws).astype(np.float64)
        for values in (weight * (rows.event - q), weight * q * (1 - q))
    )
    return total, scale
