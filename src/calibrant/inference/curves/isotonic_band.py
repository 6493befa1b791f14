"""The confidence band of Dimitriadis, Dümbgen, Henzi, Puke and Ziegel for rising calibration curves."""

import numpy as np

from calibrant._support.typing import Floats, Ints
from calibrant.inference.design import Design
from calibrant.metrics.local_regression import score_groups
from calibrant.tables.residuals import event_squares, row_squares
from calibrant.tables.score_table import ScoreTable

__all__ = ["isotonic_band", "robust_isotonic_band"]

_MOST_GROUPS = 400
_MOST_ROBUST_GROUPS = 50  # approximate limits must not reach far into the tails


def isotonic_band(table: ScoreTable, at: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the limits at each point of a band that contains the whole curve, if the curve rises.

    For each run of neighbouring scores the exact (Clopper and Pearson) limits of its event rate hold jointly with
    probability `level`, by Bonferroni over all m (m + 1) limits of m scores. A rising curve lies above the lower limit
    of each run that ends at or before the point, and below the upper limit of each run that starts at or after it.
    With more than 400 scores the runs are those of 400 groups of neighbouring scores, which depend on no outcome; the
    band stays valid. Runs that start or end without an event cannot give the highest lower limit, and are skipped.
    """
    start = score_groups(len(table), _MOST_GROUPS)
    n, k = np.add.reduceat(table.n, start), np.add.reduceat(table.k, start)
    first, last = table.score[start], table.score[np.append(start[1:], len(table)) - 1]
    tail = (1 - level) / (start.size * (start.size + 1))
    lowest = _highest_lower_limits(n, k, tail)
    mirrored = _highest_lower_limits(n[::-1], (n - k)[::-1], tail)[::-1]
    return _at_points(lowest, 1 - mirrored, first, last, at)


def _highest_lower_limits(n: Ints, k: Ints, tail: float) -> Floats:
    """Return for each group the highest lower limit of runs that end with it or before it."""
    from scipy.special import betaincinv

    found = np.zeros(n.size)
    ends = np.flatnonzero(k > 0)
    rows, events = (np.concatenate([[0], np.cumsum(column)]) for column in (n, k))
    for end in ends:
        starts = ends[ends <= end]
        total, hits = rows[end + 1] - rows[starts], events[end + 1] - events[starts]
        found[end] = float(betaincinv(hits, total - hits + 1, tail).max())
    highest: Floats = np.maximum.accumulate(found)
    return highest


def robust_isotonic_band(design: Design, at: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the same limits for weights or clusters, from approximate limits of each run.

    The limits are those of Korn and Graubard (1998) for proportions of surveys: exact binomial limits of the effective
    number of rows, which has the same variance, and which is reduced by the squared ratio of the quantiles of the
    normal and Student's distribution. The runs are those of 50 groups of neighbouring scores at most.
    """
    from scipy.special import betaincinv

    table = design.table
    start = score_groups(len(table), _MOST_ROBUST_GROUPS)
    first, last = table.score[start], table.score[np.append(start[1:], len(table)) - 1]
    tail = (1 - level) / (start.size * (start.size + 1))
    rate, size = _effective_runs(design, start, tail)
    events = rate * size
    known = np.triu(np.ones(rate.shape, dtype=bool))
    lower = np.where(known & (events > 0), betaincinv(np.maximum(events, 1e-300), size - events + 1, tail), 0.0)
    upper = np.where(known & (events < size), betaincinv(events + 1, np.maximum(size - events, 1e-300), 1 - tail), 1.0)
    lowest = np.maximum.accumulate(lower.max(axis=0))
    highest = np.minimum.accumulate(upper.min(axis=1)[::-1])[::-1]
    return _at_points(lowest, highest, first, last, at)


def _effective_runs(design: Design, start: Ints, tail: float) -> tuple[Floats, Floats]:
    """Return event rate and effective number of rows of the run from group i to group j, at [i, j].

    The variance contains one more row of each outcome, with the mean weight of its kind, and it is at least that of a
    run with the design effect of all rows: a run without an event shows no variance.
    """
    from scipy.special import ndtri, stdtrit

    table = design.table
    n, k = (_run_sums(np.add.reduceat(column, start)) for column in (table.n, table.k))
    weights = _mean_weights(table)
    more = n + weights.sum()
    shrunk = (k + weights[0]) / more
    added = weights[0] ** 2 * (1 - shrunk) ** 2 + weights[1] ** 2 * shrunk**2
    variance = _run_variances(design, start, shrunk) + added
    size = shrunk * (1 - shrunk) * more**2 / variance
    size = np.minimum(size, size[0, -1] * n / n[0, -1])
    ratio = ndtri(tail) / stdtrit(design.degrees, tail)
    return k / n, np.maximum(size * min(float(ratio**2), 1.0), 1e-9)


def _run_sums(column: Floats | Ints) -> Floats:
    """Return the sum from group i to group j at [i, j]; sums of empty runs, below the diagonal, are the first value."""
    # Each run is added up by itself: differences of sums would lose small weights beside huge ones.
    every = np.triu(np.tile(np.asarray(column, dtype=np.float64), (column.size, 1)))
    found: Floats = np.where(np.triu(np.ones(every.shape, dtype=bool)), np.cumsum(every, axis=1), column[0])
    return found


def _mean_weights(table: ScoreTable) -> Floats:
    """Return the mean weight of rows with the event and of others, each row counted by its weight; 1 for counts."""
    squares = event_squares(table)
    pairs = ((squares.sum(), table.k.sum()), ((row_squares(table) - squares).sum(), (table.n - table.k).sum()))
    found = np.array([float(square / total) if total > 0 else float(table.n.max()) for square, total in pairs])
    least: Floats = np.maximum(found, 1e-9 * found.max())  # squares of small weights are lost beside huge ones
    return least


def _run_variances(design: Design, start: Ints, rate: Floats) -> Floats:
    """Return the variance of the sum of weight * (event - rate) of each run, by rows or by clusters."""
    table = design.table
    if design.rows is None:
        events = _run_sums(np.add.reduceat(event_squares(table), start))
        every = _run_sums(np.add.reduceat(row_squares(table), start))
        found: Floats = events * (1 - rate) ** 2 + (every - events) * rate**2
        return found
    label = np.searchsorted(start, design.rows.places[0], side="right") - 1
    weight = np.ones(label.size) if design.rows.weight is None else design.rows.weight.astype(np.float64)
    sums = [_cluster_sums(design, label, weight * column, start.size) for column in (design.rows.event, 1.0)]
    kk, kn, nn = (_distances(sums[i], sums[j]) for i, j in ((0, 0), (0, 1), (1, 1)))
    clusters = design.rows.n_draws
    robust = (kk - 2 * rate * kn + rate**2 * nn) * (clusters / (clusters - 1))
    return np.maximum(robust, 0.0)


def _cluster_sums(design: Design, label: Ints, value: Floats, groups: int) -> Floats:
    """Return sums up to each group of scores, (groups + 1) x clusters."""
    assert design.rows is not None
    assert design.rows.cluster is not None
    size = groups * design.rows.n_draws
    cells = np.bincount(label * design.rows.n_draws + design.rows.cluster, weights=value, minlength=size)
    upto = np.cumsum(cells.reshape(groups, -1), axis=0)
    return np.concatenate([np.zeros((1, design.rows.n_draws)), upto])


def _distances(one: Floats, other: Floats) -> Floats:
    """Return at [i, j] the sum over clusters of the products of two sums from group i to group j."""
    products = one @ other.T
    own = np.diag(products)
    found: Floats = own[None, 1:] + own[:-1, None] - products[:-1, 1:] - products[1:, :-1].T
    return found


def _at_points(lowest: Floats, highest: Floats, first: Floats, last: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Return the limits at points: of the groups that end at or before a point, and that start at or after it."""
    below = np.searchsorted(last, at, side="right") - 1
    above = np.searchsorted(first, at, side="left")
    low = np.where(below >= 0, lowest[np.maximum(below, 0)], 0.0)
    high = np.where(above < first.size, highest[np.minimum(above, first.size - 1)], 1.0)
    return low, high
