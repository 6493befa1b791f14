"""Bands of diagrams: ranges of rates and of cumulative differences if the model is calibrated."""

from dataclasses import dataclass

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.errors import check_share
from calibrant._support.random_streams import RandomState, Stream, seed_sequence
from calibrant._support.roots import find_root
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.resampling import draw_replicates, one_by_one
from calibrant.inference.table_replicates import null_sampler
from calibrant.inference.tails import brownian_maximum_tail
from calibrant.metrics.calibration_errors import ecce
from calibrant.metrics.gce import Breakdown
from calibrant.tables.score_table import ScoreTable, residual_variance


@dataclass(frozen=True, eq=False)
class Band:
    """Limits `low` and `high` of each point; `level` is the share of calibrated models that lie inside.

    Attributes
    ----------
    low, high : ndarray
        Limits of each point.
    level : float
        Share of calibrated models inside.

    See Also
    --------
    consistency_band, cumulative_band

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.inference import consistency_band
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> band = consistency_band(cb.ECE()(table))
    >>> band.level, bool((band.low < band.high).all())
    (0.95, True)
    """

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
    """Return the range of the rate of each bin if the model is calibrated, pointwise.

    With `rows` in clusters, and with importance weights, residuals get random signs; see `table_replicates`. Otherwise
    outcomes are simulated from the scores. Each replicate is binned by the same kind of bins; its rate at the mean
    score of each bin of the data is used. Bins that do not depend on the outcomes are the same in all replicates.
    Bröcker and Smith (2007); for PAVA bins these are the bands of Dimitriadis, Gneiting and Jordan (2021).

    Parameters
    ----------
    breakdown : Breakdown
        The bins, as a metric over bins returns them.
    confidence_level : float, default=0.95
        Share of calibrated models whose rate lies inside, per bin.
    n_resamples, random_state
        Number of replicates and their seed.
    rows : rows with clusters, optional
        For dependent rows.
    progress : bool, optional
        Whether to show a progress bar; by default for long work.

    Returns
    -------
    Band
        Lower and upper limit of each bin.

    See Also
    --------
    Band, cumulative_band, ReliabilityDisplay

    Examples
    --------
    >>> from calibrant import ECE
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> band = consistency_band(ECE()(table))
    >>> bool((band.low < [0.1, 0.3, 0.8]).all() and (band.high > [0.1, 0.3, 0.8]).all())
    True
    """
    level = check_share("confidence_level", confidence_level)
    partition, bins = breakdown.partition, breakdown.definition.bins
    table = partition.table
    where = np.clip(partition.mean_score, partition.min_score, partition.max_score)  # a mean is rounded
    sampler = null_sampler(table, rows)

    def rates(stream: Stream) -> Floats:
        replicate = bins(sampler(stream))
        return replicate.rate[np.searchsorted(replicate.min_score, where, side="right") - 1]

    simulated = draw_replicates(
        one_by_one(rates),
        purpose="null",
        n_resamples=n_resamples,
        seed=seed_sequence(random_state),
        rows=table.size,
        show=progress,
    )
    low, high = np.clip(np.quantile(simulated, ((1 - level) / 2, (1 + level) / 2), axis=0), 0.0, 1.0)
    return Band(low, high, level)


def cumulative_band(
    table: ScoreTable,
    *,
    confidence_level: float = 0.95,
    rows: PairedRows | None = None,
    n_resamples: int = 999,
    random_state: RandomState = 0,
) -> Band:
    """Return the band that contains the whole curve of cumulative differences if the model is calibrated.

    Its limits have the same distance from 0 everywhere: the quantile of the maximum of the absolute value of a Brownian
    motion, times the standard deviation of the end of the curve. This holds for many rows. ``ecce_test(kind="mad")``
    rejects at 1 - level exactly for the curves that leave the band. Importance weights have a robust variance. The
    increments of a curve of clusters (`rows`) are dependent: the quantile is that of curves with one random sign per
    cluster.

    Parameters
    ----------
    table : ScoreTable
        The rows.
    confidence_level : float, default=0.95
        Share of calibrated models whose whole curve lies inside.
    rows : rows with clusters, optional
        For dependent rows.
    n_resamples, random_state
        Number of replicates and their seed, for clusters.

    Returns
    -------
    Band
        Lower and upper limit at each distinct score.

    See Also
    --------
    Band, consistency_band, CumulativeDisplay

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> round(float(cumulative_band(table).high[0]), 4)
    0.0507
    """
    level = check_share("confidence_level", confidence_level)
    if rows is not None and rows.cluster is not None:
        reach = _cluster_quantile(table, rows, level, n_resamples, random_state)
    else:
        spread = float(np.sqrt(np.sum(residual_variance(table))) / table.size)
        reach = spread * find_root(lambda x: brownian_maximum_tail(x) - (1 - level), 0.3, 50.0)
    return Band(np.full(len(table), -reach), np.full(len(table), reach), level)


def _cluster_quantile(
    table: ScoreTable, rows: PairedRows, level: float, n_resamples: int, random_state: RandomState
) -> float:
    """Return the quantile of the largest cumulative difference over null replicates of clusters."""
    sampler = null_sampler(table, rows)
    simulated = draw_replicates(
        one_by_one(lambda stream: [ecce(sampler(stream)).mad]),
        purpose="null",
        n_resamples=n_resamples,
        seed=seed_sequence(random_state),
        rows=table.size,
    )
    return float(np.quantile(simulated, level))
