"""Coverage of central intervals by the predicted width, and tests of the tails of predictive distributions."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats, Ints
from calibrant._support.random_streams import generator
from calibrant.forecasts.distributions import Samples
from calibrant.forecasts.protocol import INTERVAL_LEVELS
from calibrant.inference.regression.discrete_pit import pit_shares
from calibrant.inference.regression.point_components import BinSums, bin_sums, bins_component
from calibrant.inference.residual_tests import cluster_terms
from calibrant.metrics.bins import EqualSize
from calibrant.results.verdict import TestResult
from calibrant.tables.mean_table import MeanTable

_ROWS_PER_GROUP, _MOST_GROUPS, _CLUSTERS_PER_GROUP = 50, 5, 5
_FEWEST_MEMBERS = 8
_DIGITS = 9  # of widths that differ by more than rounding
TAIL = 0.05  # share of outcomes in both tails together


@dataclass(frozen=True)
class WidthGroups:
    """Coverage in groups of the predicted width.

    Attributes
    ----------
    sums : BinSums
        How much more often than predicted outcomes lie in central intervals.
    of_rows : BinSums
        The same for independent rows.
    """

    sums: BinSums
    of_rows: BinSums


def width_groups(forecast: Any, y: Floats, u: Floats, cluster: Ints | None, seed: Any) -> WidthGroups | None:
    """Return how much more often than predicted outcomes lie in central intervals, in groups of the predicted width.

    The number of a row is the share of levels whose interval contains it, less its expectation. None where the widths
    do not differ, or where no central intervals are known. The spread of the members of an ensemble is noisy, so that
    intervals that are narrow by chance contain fewer outcomes: rows are grouped by one half of the members, and ranked
    among the other half.
    """
    low, high = forecast.cells(y) if forecast.is_discrete else (u, u)
    if forecast.ensemble is not None:
        members = forecast.ensemble
        if members.shape[1] < _FEWEST_MEMBERS:
            return None
        shuffled = generator(seed).permuted(members, axis=1)
        half = members.shape[1] // 2
        width, forecast = shuffled[:, :half].std(axis=1), Samples(shuffled[:, half:])
        low, high = forecast.cells(y)
        levels = forecast.interval_levels(np.array(INTERVAL_LEVELS))
        levels = levels[levels > 1e-9]
    else:
        levels = forecast.interval_levels()
        width = forecast.spread() if levels.size else None
    if width is None or not levels.size:
        return None
    width = np.round(width / max(float(np.abs(width).max()), 1e-300), _DIGITS)
    if not float(np.ptp(width)) > 0:
        return None
    covered = pit_shares(low, high, (1 + levels) / 2) - pit_shares(low, high, (1 - levels) / 2)
    excess = covered.mean(axis=1) - levels.mean()
    # The groups depend on the order of the widths alone; their own size may be anything.
    place = np.unique(width, return_inverse=True)[1] / y.size
    ones, nothing = np.broadcast_to(np.int64(1), y.shape), np.broadcast_to(0.0, y.shape)
    table = MeanTable(place, ones, place - excess, nothing, single=True)
    most = y.size / _ROWS_PER_GROUP if cluster is None else (int(cluster.max()) + 1) / _CLUSTERS_PER_GROUP
    bins = EqualSize(int(np.clip(most, 1, _MOST_GROUPS)))
    of_rows = bin_sums(table, None, bins)
    return WidthGroups(of_rows if cluster is None else bin_sums(table, cluster, bins), of_rows)


def width_component(groups: WidthGroups | None) -> TestResult | None:
    """Test that intervals cover as often as predicted in each group of the predicted width.

    In few clusters coverage is skewed: the p-value is at least that for independent rows.
    """
    test, of_rows = (None, None) if groups is None else (bins_component(groups.sums), bins_component(groups.of_rows))
    if test is None or of_rows is None:
        return None
    pvalue = float(np.maximum(test.pvalue, of_rows.pvalue))
    return TestResult(test.statistic, pvalue, "coverage by width", method=test.method)


def tail_component(low: Floats, high: Floats, forecast: Any, cluster: Ints | None) -> TestResult | None:
    r"""Test how often and how far outcomes lie in the tails, 2.5 % on either side.

    With t the predicted probability of a more extreme outcome and q = 0.05,

    .. math::

       S = \sum_{t_i < q / 2} \log \frac{q / 2}{t_i}

    is a sum of K exponential variables, K binomial, if forecasts are calibrated. An outcome far beyond counts more than
    one in the tail. For discrete distributions t is spread over its interval, which makes S less variable: the test is
    conservative. None where only some quantiles are known.
    """
    if forecast.known_levels is not None:
        return None
    values = _depth(low, high) + _depth(1 - high, 1 - low)
    total, n = float(values.sum()), values.size
    expected = n * TAIL
    direction = "heavy tails" if total > expected else "light tails"
    above = _compound_tail(total, n)
    pvalue, method = min(1.0, 2 * min(above, 1 - above)), "compound binomial"
    if cluster is not None:  # few clusters have outcomes in the tails
        of_clusters = cluster_terms(total - expected, cluster, values - values.mean()).test()[1]
        pvalue, method = float(np.maximum(pvalue, of_clusters)), f"{method}, at least t of cluster sums"
    return TestResult(total / expected, pvalue, "tails", direction=direction, method=method)


def _depth(low: Floats, high: Floats) -> Floats:
    """Return the mean of log(q / t) for t < q over each interval, q = `TAIL` / 2: 0 outside of the tail."""
    q = TAIL / 2
    low, high = np.maximum(low, 0.0), np.maximum(high, 2.0**-54)
    width = high - low

    def integral(t: Floats) -> Floats:
        t = np.minimum(t, q)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(t > 0, t * (np.log(q / np.where(t > 0, t, q)) + 1), 0.0)

    point = np.log(q / np.clip(high, None, q))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (integral(high) - integral(low)) / width
    return np.where(width > 1e-9 * high, mean, point)


def _compound_tail(total: float, n: int) -> float:
    """Return P(S > total) for the sum S of K standard exponential variables, K binomial of n and `TAIL`."""
    from scipy.special import gammaincc
    from scipy.stats import binom

    first, last = binom.ppf([1e-15, 1 - 1e-15], n, TAIL)
    k = np.arange(max(first, 1), max(last, 1) + 1)
    return float(np.clip(np.sum(binom.pmf(k, n, TAIL) * gammaincc(k, total)), 0.0, 1.0))
