"""Bands of diagrams: how far rates and cumulative differences of a calibrated model stray by chance."""

from dataclasses import dataclass

import numpy as np
from numpy.random import SFC64

from calibrant._support.options import check_share
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.typing import Floats
from calibrant.inference import resampling
from calibrant.inference.hypothesis_tests import maximum_survival
from calibrant.inference.resampling import PairedRows
from calibrant.metrics.breakdown import Breakdown
from calibrant.metrics.cumulative import ecce
from calibrant.tables.score_table import ScoreTable

__all__ = ["Band", "consistency_band", "cumulative_band"]


@dataclass(frozen=True, eq=False)
class Band:
    """From `low` to `high`, one pair per point; `level` is the share of calibrated models that stay inside."""

    low: Floats
    high: Floats
    level: float


def consistency_band(
    breakdown: Breakdown,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomState = 0,
    rows: PairedRows | None = None,
    progress: bool | None = None,
) -> Band:
    """Where the rate of each bin lies if the model is calibrated, each bin for itself.

    With `rows` in clusters, and with importance weights, residuals get random signs (see `resampling.null`). Otherwise
    outcomes are drawn from the scores, and binned anew by the same kind of bins; the rate at the mean score of each
    bin of the data is read off the drawn bins. Bins that do not follow the outcomes stay what they are. Bröcker and
    Smith (2007); for PAVA bins these are the bands of Dimitriadis, Gneiting and Jordan (2021).

    Examples
    --------
    >>> from calibrant import ECE
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> band = consistency_band(ECE()(table))
    >>> bool((band.low < [0.1, 0.3, 0.8]).all() and (band.high > [0.1, 0.3, 0.8]).all())
    True
    """
    level = check_share("confidence_level", confidence_level)
    partition, bins = breakdown.partition, breakdown.gce.bins
    table = partition.table
    where = np.clip(partition.mean_score, partition.min_score, partition.max_score)  # a mean is rounded
    sampler = resampling.null(table, rows)

    def rates(bits: SFC64) -> Floats:
        drawn = bins(sampler(bits))
        return drawn.rate[np.searchsorted(drawn.min_score, where, side="right") - 1]

    draws = resampling.replicates(
        rates,
        purpose="null",
        n_resamples=n_resamples,
        seed=seed_sequence(random_state),
        threads=table.size >= resampling.THREADS_FROM,
        show=progress,
    )
    low, high = np.clip(np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=0), 0.0, 1.0)
    return Band(low, high, level)


def cumulative_band(
    table: ScoreTable,
    *,
    confidence_level: float = 0.95,
    rows: PairedRows | None = None,
    n_resamples: int = 999,
    random_state: RandomState = 0,
) -> Band:
    """Band that holds the whole curve of cumulative differences of a calibrated model: one height, on both sides of 0.

    The quantile of the largest distance from 0 of a Brownian motion, times the standard deviation of the curve's end:
    for many rows. A curve that leaves it is one whose ``ecce_test(kind="mad")`` rejects at 1 - level. Importance
    weights have a robust variance. The parts of a curve of clusters (`rows`) are not independent of each other: there
    the quantile is that of curves with one random sign per cluster.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> round(float(cumulative_band(table).high[0]), 4)
    0.0507
    """
    from scipy.optimize import brentq

    level = check_share("confidence_level", confidence_level)
    if rows is not None and rows.cluster is not None:
        reach = _largest_by_clusters(table, rows, level, n_resamples, random_state)
    else:
        spread = float(np.sqrt(np.sum(resampling.residual_variance(table))) / table.size)
        reach = spread * float(brentq(lambda x: maximum_survival(x) - (1 - level), 0.3, 50.0))
    return Band(np.full(len(table), -reach), np.full(len(table), reach), level)


def _largest_by_clusters(
    table: ScoreTable, rows: PairedRows, level: float, n_resamples: int, random_state: RandomState
) -> float:
    sampler = resampling.null(table, rows)
    draws = resampling.replicates(
        lambda bits: [ecce(sampler(bits)).mad],
        purpose="null",
        n_resamples=n_resamples,
        seed=seed_sequence(random_state),
    )
    return float(np.quantile(draws, level))
