"""The test that decides whether a deviation is real: two statistics, one p-value."""

import numpy as np
from numpy.random import SFC64, SeedSequence

from calibrant._typing import Floats, Ints
from calibrant.inference import resampling
from calibrant.inference.hypothesis_tests import TestResult
from calibrant.inference.resampling import Measure, PairedRows
from calibrant.metrics import ACE, METRICS
from calibrant.table import ScoreTable

# ECCE-R sees what goes the same way over a range of scores; ACE sees gaps that change sign from group to group, to
# which ECCE-R is blind.
STATISTICS: tuple[Measure, Measure] = (METRICS["ecce_r"](), ACE())
NAME = "ECCE-R and ACE by resampling"


def omnibus(table: ScoreTable, *, seed: SeedSequence, n_resamples: int, show: bool | None = None) -> TestResult:
    """Test of calibration by both statistics, with outcomes drawn from the scores."""
    sampler = resampling.null(table)
    draws = resampling.replicates(
        lambda bits: resampling.values(STATISTICS, sampler(bits)),
        purpose="null",
        n_resamples=n_resamples,
        seed=seed,
        threads=table.size >= resampling.THREADS_FROM,
        show=show,
    )
    return from_draws(resampling.values(STATISTICS, table), draws)


def from_draws(observed: list[float], draws: Floats) -> TestResult:
    """The smaller of the two p-values, tested itself: its rank among those of all draws.

    Data and draws are exchangeable if the model is right, whatever is computed from them, so the p-value is exact.
    """
    pooled = np.vstack([observed, draws])
    least = np.min([_share_at_least(column) for column in pooled.T], axis=0)
    pvalue = np.count_nonzero(least <= least[0] + 1e-12) / least.size
    return TestResult(observed[0], float(pvalue), NAME)


def _share_at_least(values: Floats) -> Floats:
    """For every value the share of all that are at least as large, up to rounding."""
    slack = 1e-12 * max(1.0, float(np.abs(values).max()))
    below = np.searchsorted(np.sort(values), values - slack)
    return 1 - below / values.size


def by_clusters(
    table: ScoreTable, rows: PairedRows, *, seed: SeedSequence, n_resamples: int, show: bool | None = None
) -> TestResult:
    """ECCE-R where outcomes of one cluster depend on each other, so that they cannot be drawn from the scores.

    Whole clusters are drawn; how far the path of cumulative differences then strays from that of the data is how far
    the path of the data may stray from 0 by chance.
    """
    (score,), (place,) = rows.scores, rows.places
    residual = (rows.event - score[place]) * (1 if rows.weight is None else rows.weight)

    def path(times: Ints | int) -> Floats:
        return np.cumsum(np.bincount(place, weights=times * residual, minlength=score.size))

    def span(values: Floats) -> float:
        return float(values.max(initial=0.0) - values.min(initial=0.0)) / float(table.size)

    own = path(1)

    def one(bits: SFC64) -> list[float]:
        return [span(path(rows.times(bits)) - own)]

    draws = resampling.replicates(one, purpose="bootstrap", n_resamples=n_resamples, seed=seed, show=show)[:, 0]
    observed = span(own)
    pvalue = (1 + np.count_nonzero(draws >= observed - 1e-12)) / (1 + draws.size)
    return TestResult(observed, float(pvalue), "ECCE-R by drawing clusters")
