"""Joint test of calibration for point predictions and predictive distributions: components, adjusted by Holm.

Each component tests one consequence of calibration. Rows may be independent, weighted or clustered: where they are
clustered, every component works on sums per cluster.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant._support.errors import Note, join_notes
from calibrant._support.json_values import plain
from calibrant._support.typing import Floats, Ints
from calibrant.forecasts.distributions import Quantiles, Samples
from calibrant.inference.bias_by_bin import too_alike
from calibrant.inference.estimates import Estimate
from calibrant.inference.multiplicity import holm
from calibrant.inference.uniformity import a_squared, ad_pvalue
from calibrant.metrics.bin_means import bin_means
from calibrant.metrics.bins import PAVA, PAVABC, MeanBins, Quantile
from calibrant.tables.mean_partition import MeanPartition
from calibrant.tables.mean_table import MeanTable

__all__ = ["BinSums", "Component", "JointTest", "Units"]

ROWS_PER_BIN = 50
MOST_BINS, MOST_CELLS = 10, 20
FEWEST_EXPECTED = 5
FEWEST_CLUSTERS = 10
CLUSTERS_PER_BIN = 5
# Largest squared skewness over the number of rows for which the mean is tested in both directions, and over the number
# of rows per bin for which bins are tested. Chosen by simulation (docs/studies/number_sizes.csv).
SKEWNESS_LIMIT = 0.2
BIN_SKEWNESS_LIMIT = 0.05
SLOPE_SKEWNESS_LIMIT = 0.1
_INTERVALS = (0.5, 0.8, 0.9, 0.95)
_FEW_MEMBERS = 100


@dataclass(frozen=True)
class Component:
    """One component of the joint test.

    Attributes
    ----------
    name : str
        "mean error", "median", "bias by bins", "slope", "PIT" or "coverage".
    statistic, pvalue : float
        The statistic and its raw p-value; NaN where the data do not allow the test.
    adjusted : float
        The p-value adjusted for the number of components by Holm, in a group for the number of groups too.
    direction : str
        The direction that the component shows if it is significant; '' if it shows none.
    method : str
    """

    name: str
    statistic: float
    pvalue: float
    method: str
    direction: str = ""
    adjusted: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return plain(self)


@dataclass(frozen=True)
class JointTest:
    """All components, with one p-value: the smallest adjusted one. NaN where no component can be tested."""

    components: Mapping[str, Component] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @classmethod
    def of(cls, components: Iterable[Component | None], notes: tuple[Note, ...] = ()) -> "JointTest":
        """The joint test of these components; those that are None do not exist."""
        found = [c for c in components if c is not None]
        raw = np.array([c.pvalue for c in found])
        # A component that the data do not allow counts too: the others are the ones that may reject by chance.
        adjusted = np.where(np.isnan(raw), np.nan, holm(np.where(np.isnan(raw), 1.0, raw)))
        return cls({c.name: replace(c, adjusted=float(p)) for c, p in zip(found, adjusted, strict=True)}, notes)

    @property
    def pvalue(self) -> float:
        known = [c.adjusted for c in self.components.values() if not math.isnan(c.adjusted)]
        return min(known) if known else math.nan

    def scaled(self, factor: float) -> "JointTest":
        """The test as one of several groups: every adjusted p-value times what Holm's method multiplies it by."""
        return replace(
            self,
            components={
                name: c if math.isnan(c.adjusted) else replace(c, adjusted=min(1.0, factor * c.adjusted))
                for name, c in self.components.items()
            },
        )

    def significant(self, alpha: float) -> list[Component]:
        return [c for c in self.components.values() if c.adjusted <= alpha]


# One mean


@dataclass(frozen=True)
class Units:
    """What independent units (rows or clusters) add to a sum whose expectation is 0 under calibration.

    Attributes
    ----------
    total : float
        The sum.
    deviation : ndarray
        What each unit adds to the sum, less what it adds on average; their sum is 0.
    count : ndarray
        How many units each entry stands for.
    """

    total: float
    deviation: Floats
    count: Any

    @property
    def size(self) -> float:
        return float(np.sum(self.count))

    @property
    def error(self) -> float:
        """Standard error of the sum."""
        m = self.size
        return math.sqrt(m / (m - 1) * float(np.sum(self.count * self.deviation**2))) if m > 1 else math.nan

    @property
    def skewness(self) -> float:
        d = self.deviation
        square = float(np.sum(self.count * d * d)) / self.size
        return float(np.sum(self.count * d * d * d)) / self.size / square**1.5 if square > 0 else 0.0

    def test(self) -> tuple[float, float, bool]:
        r"""The statistic t, its two-sided p-value, and whether skewness limits the test to one direction.

        The p-value is the larger of those of Student's t and of Hall's (1992) transformation of it,

        .. math::

           g(t) = \frac{(1 + a t)^3 - 1}{3 a} + \frac a2, \quad
           a = \frac{\gamma (1 + 3 \gamma^2 / m)}{3 \sqrt m}, \quad
           \nu = \frac{m}{1 + \tfrac34 \gamma^2}

        with at most m - 1 and :math:`\nu` degrees of freedom, the precision of the variance of m values of a gamma
        distribution with skewness :math:`\gamma`. A sample tells too little of its own skewness where few rows carry
        it, hence the factor of a. Beyond :math:`\gamma^2 / m = 0.2` a mean on the side of the short tail is not
        tested: too few rows have been seen of the long one.
        """
        from scipy.special import stdtr

        m, error = self.size, self.error
        if not m > 1 or math.isnan(error):
            return math.nan, math.nan, False
        if error == 0:
            return (0.0, 1.0, False) if self.total == 0 else (math.copysign(math.inf, self.total), 0.0, False)
        t, skew = self.total / error, self.skewness
        df = max(1.0, min(m - 1, m / (1 + 0.75 * skew**2)))
        short_side = t * skew < 0
        if skew**2 / m > SKEWNESS_LIMIT:
            return t, math.nan if short_side else float(2 * stdtr(df, -abs(t))), True
        a = skew * (1 + 3 * skew**2 / m) / (3 * math.sqrt(m))
        g = ((1 + a * t) ** 3 - 1) / (3 * a) + a / 2 if abs(a) > 1e-9 else t
        if g * t <= 0:
            return t, 1.0, False
        return t, float(2 * stdtr(df, -min(abs(t), abs(g)))), False


def units(table: MeanTable, values: Floats, cluster: Ints | None) -> Units:
    """Units of the weighted sum of `values`, one for each entry of the table."""
    weight = table.n.astype(np.float64)
    away = values - table.average(values)
    total = float(weight @ values)
    if cluster is not None:
        return cluster_units(total, cluster, weight * away)
    if table.importance:
        return Units(total, weight * away, np.ones(len(table)))
    return Units(total, away, weight)


def cluster_units(total: float, cluster: Ints, deviation: Floats) -> Units:
    """Clusters as units, from the deviations of rows."""
    sums: Floats = np.bincount(cluster, weights=deviation).astype(np.float64)
    return Units(total, sums, np.ones(sums.size))


def mean_component(table: MeanTable, cluster: Ints | None, estimate: Estimate) -> tuple[Component, bool]:
    """Mean error, prediction less outcome; and whether skewness limits the test."""
    error = table.prediction - table.mean
    if estimate.pvalue is None or estimate.standard_error == 0:
        p = math.nan if estimate.pvalue is None else estimate.pvalue
        found = Component("mean error", math.nan, p, "one-sample t", _side(estimate.value))
        return found, False
    t, p, limited = units(table, error, cluster).test()
    return Component("mean error", t, p, "one-sample t, corrected for skewness", _side(estimate.value)), limited


def _side(error: float) -> str:
    return "overestimates" if error > 0 else "underestimates"


def slope_component(table: MeanTable, cluster: Ints | None, skewness: float) -> tuple[Component | None, bool]:
    r"""Slope of the outcome on the prediction, against 1, with leverage-corrected (HC3) or cluster sums.

    Few rows with extreme predictions x decide it: about :math:`m = (\sum x^2)^2 / \sum x^4`. Where the squared
    skewness of the errors exceeds a tenth of m, the slope is not tested: the long tail has not been seen among them.
    """
    p, weight = table.prediction, table.n.astype(np.float64)
    x = p - table.mean_prediction
    spread = float(weight @ x**2)
    if not spread > 0:
        return None, False
    error = p - table.mean
    error = error - table.average(error)
    tilt = float(weight @ (x * error)) / spread
    left = error - tilt * x
    name, direction = "slope", "overconfident" if tilt > 0 else "underconfident"
    if float(np.abs(left).max()) <= table.rounding:  # the points lie on a line
        exact = 1.0 if float(np.abs(error).max()) <= table.rounding else 0.0
        return Component(name, math.nan, exact, "t of the slope", direction), False
    sums = x * left
    if cluster is not None:
        made = cluster_units(tilt * spread, cluster, weight * sums)
    else:
        leverage = (1 / table.size + x**2 / spread) * (weight if table.importance else 1.0)
        sums = sums / np.maximum(1 - leverage, 1e-8)
        if table.importance:
            made = Units(tilt * spread, weight * sums, np.ones(len(table)))
        else:
            made = Units(tilt * spread, sums, weight)
    t, chance, limited = made.test()
    if cluster is None and skewness**2 * float(weight @ x**4) > SLOPE_SKEWNESS_LIMIT * spread**2:
        chance, limited = math.nan, True
    return Component(name, t, chance, "t of the slope, corrected for skewness", direction), limited


# Bins


@dataclass(frozen=True)
class BinSums:
    """Errors by bins of the prediction: mean, and covariance of the means."""

    size: Floats  # rows or weight
    effective: Floats  # rows
    error: Floats  # mean error
    cover: Floats  # covariance of the mean errors
    alone: Floats  # their variances, were rows independent
    skewness: float
    clusters: int | None
    chosen: bool  # by the caller
    merged: bool = False  # because errors are skewed

    def __len__(self) -> int:
        return self.size.size

    @property
    def known(self) -> bool:
        return bool(np.isfinite(self.error).all() and np.isfinite(self.cover).all())

    @property
    def limited(self) -> bool:
        """Whether errors are too skewed for these bins, or for any."""
        return self._crowded or (self.merged and len(self) == 1)

    @property
    def _crowded(self) -> bool:
        return bool(self.skewness**2 / float(self.effective.min()) > BIN_SKEWNESS_LIMIT)


def bin_sums(table: MeanTable, cluster: Ints | None, bins: MeanBins | None) -> BinSums:
    """Errors in the caller's bins; by default ten, or fewer so that each has enough rows, clusters and symmetry."""
    if bins is not None and not isinstance(bins, (PAVA, PAVABC)):  # those follow the outcomes
        return _sums(table, cluster, bins, True)
    most = table.effective_size / ROWS_PER_BIN + 1e-9  # equal weights are no weights
    if cluster is not None:
        most = min(most, (int(cluster.max()) + 1) / CLUSTERS_PER_BIN)
    found = _sums(table, cluster, Quantile(int(np.clip(most, 1, MOST_BINS))), False)
    while found.limited and len(found) > 1:
        rows = found.skewness**2 / BIN_SKEWNESS_LIMIT
        fewer = int(np.clip(table.effective_size / rows, 1, len(found) - 1))
        found = replace(_sums(table, cluster, Quantile(fewer), False), merged=True)
    return found


def _sums(table: MeanTable, cluster: Ints | None, bins: MeanBins, chosen: bool) -> BinSums:
    groups = bins(table)
    p, y = table.prediction, table.mean
    means = bin_means(groups, lambda run: p[run] - y[run], rounding=groups.rounding)
    outcomes = bin_means(groups, lambda run: y[run])
    unknown = (means.mean != 0) & too_alike(groups, outcomes.error)
    alone = np.where(unknown, np.nan, means.error) ** 2
    cover, clusters = np.diag(alone), None
    if cluster is not None:
        error = np.where(np.abs(p - y) <= table.rounding, 0.0, p - y)
        sums = sums_by_cluster(cluster, groups.labels, table.n * error, groups.n.size)
        clusters = len(sums)
        cover = covariance(sums) / np.outer(groups.n, groups.n)
    skew = _pooled_skewness(groups, means.mean)
    return BinSums(groups.n, groups.effective_n, means.mean, cover, alone, skew, clusters, chosen)


def sums_by_cluster(cluster: Ints, labels: Ints, values: Any, n_labels: int) -> Floats:
    """Sums of values (None: counts of rows) per cluster and label, of shape (clusters, labels)."""
    n_clusters = int(cluster.max()) + 1
    flat = np.bincount(cluster * n_labels + labels, weights=values, minlength=n_clusters * n_labels)
    return flat.reshape(n_clusters, n_labels).astype(np.float64)


def covariance(sums: Floats) -> Floats:
    """Covariance of the column totals of independent rows."""
    away = sums - sums.mean(axis=0)
    found: Floats = len(sums) / max(len(sums) - 1, 1) * away.T @ away
    return found


def _share_covariance(sums: Floats) -> Floats:
    """Covariance of the totals of cell counts less their expectation.

    Few outcomes in a tail have a small variance too, so that the covariance around the mean alone makes few clusters
    reject too often; the one around 0, which holds under calibration, makes ten clusters unable to reject. Their mean
    keeps the level (docs/studies/number_sizes.csv).
    """
    found: Floats = (covariance(sums) + sums.T @ sums) / 2
    return found


def _pooled_skewness(groups: MeanPartition, mean: Floats) -> float:
    """Skewness of errors that are standardised within their bin, over all rows."""
    table = groups.table
    away = table.prediction - table.mean - mean[groups.labels]
    count: Any = table.n
    if table.importance:
        away, count = away * table.n, np.ones(len(table))
    squares = np.bincount(groups.labels, weights=count * away**2) / np.bincount(groups.labels, weights=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(squares[groups.labels] > 0, away / np.sqrt(squares[groups.labels]), 0.0)
    return float(np.sum(count * z * z * z) / np.sum(count))


def bins_component(sums: BinSums) -> Component | None:
    """Whether the mean error is 0 in every bin; None with a single bin, which is the mean error itself."""
    if len(sums) == 1 and not sums.merged:
        return None
    name, method = "bias by bins", f"{len(sums)} bins"
    if sums.limited and (sums.clusters is None or len(sums) == 1):
        return Component(name, math.nan, math.nan, method)
    if sums.clusters is not None:
        good = np.isfinite(sums.alone) & (sums.alone > 0)
        if not good.any():
            return Component(name, math.nan, math.nan, method)
        scaled = sums.error[good] / np.sqrt(sums.alone[good])
        cover = sums.cover[np.ix_(good, good)] / np.sqrt(np.outer(sums.alone[good], sums.alone[good]))
        statistic, pvalue = box_test(float(scaled @ scaled), cover, sums.clusters)
        return Component(name, statistic, pvalue, f"{method}, F approximation with {sums.clusters:,} clusters")
    return _independent_bins(sums, name, method)


def _independent_bins(sums: BinSums, name: str, method: str) -> Component:
    from scipy.special import chdtrc, ndtri, stdtr

    m, a = sums.effective, sums.skewness / (3 * np.sqrt(sums.effective))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = sums.error / np.sqrt(sums.alone)
        g = t + a * t**2 + a**2 * t**3 / 3 + a / 2
        df = np.maximum(np.minimum(m - 1, m / (1 + 0.75 * sums.skewness**2)), 1.0)
        pvalue = np.where(sums.alone == 0, (sums.error == 0).astype(np.float64), 2 * stdtr(df, -np.abs(g)))
    pvalue = pvalue[~np.isnan(pvalue)]
    if not pvalue.size:
        return Component(name, math.nan, math.nan, method)
    statistic = float(np.sum(ndtri(np.maximum(pvalue, 1e-300) / 2) ** 2))
    return Component(name, statistic, float(chdtrc(pvalue.size, statistic)), f"{method}, chi-squared")


def box_test(statistic: float, cover: Floats, clusters: int) -> tuple[float, float]:
    r"""F approximation (Box, 1954) of a sum of squares of correlated sums.

    .. math::

       \frac{T}{\mathrm{tr} M} \sim F(\nu, \nu (G - 1)), \quad \nu = \frac{(\mathrm{tr} M)^2}{\mathrm{tr} M^2}

    with the estimate of :math:`\mathrm{tr} M^2` that is unbiased for normal sums of G clusters.
    """
    from scipy.special import fdtrc

    trace, df, nu = moments(cover, clusters)
    if not trace > 0:
        return math.nan, math.nan
    return statistic / trace, float(fdtrc(nu, nu * df, statistic / trace))


def moments(cover: Floats, clusters: int) -> tuple[float, float, float]:
    """Trace, degrees of freedom of the estimate, and the equivalent number of independent squares."""
    trace, df = float(np.trace(cover)), float(clusters - 1)
    square = df**2 / max((df - 1) * (df + 2), 1.0) * (float(np.sum(cover**2)) - trace**2 / df)
    nu = trace**2 / square if square > 0 else float(len(cover))
    return trace, df, float(np.clip(nu, 1.0, len(cover)))


# PIT and coverage


def cell_component(
    name: str, method: str, labels: Ints, chance: Floats, cluster: Ints | None, direction: str = ""
) -> Component:
    """Pearson's test that the cells hold these shares of the rows, on sums per cluster where rows are clustered."""
    from scipy.special import chdtrc

    expected = labels.size * chance
    observed = np.bincount(labels, minlength=chance.size)
    statistic = float(np.sum((observed - expected) ** 2 / expected))
    if chance.size < 2:
        return Component(name, math.nan, math.nan, method, direction)
    if cluster is None:
        pvalue = float(chdtrc(chance.size - 1, statistic))
        return Component(name, statistic, pvalue, f"{method}, chi-squared, {chance.size} cells", direction)
    sums = sums_by_cluster(cluster, labels, None, chance.size)
    sums = sums - sums.sum(axis=1, keepdims=True) * chance
    cover = _share_covariance(sums) / np.sqrt(np.outer(expected, expected))
    statistic, pvalue = box_test(statistic, cover, len(sums))
    return Component(name, statistic, pvalue, f"{method}, F approximation, {chance.size} cells", direction)


def merged_levels(levels: Floats, size: int, most: int = MOST_CELLS) -> Floats:
    """As many of these rising levels as leave cells with enough expected rows."""
    least = max(FEWEST_EXPECTED / size, 1 / most) * (1 - 1e-9)
    kept: list[float] = []
    for level in levels:
        if level - (kept[-1] if kept else 0.0) >= least and 1 - level >= least:
            kept.append(float(level))
    return np.array(kept)


def pit_component(u: Floats, forecast: Any, cluster: Ints | None) -> Component:
    """Uniformity of the PIT values: cells of quantiles and ranks of few members by Pearson's test.

    Others by Anderson and Darling's test, in clusters by Pearson's test over ten cells.
    """
    if isinstance(forecast, Samples) and forecast.draws.shape[1] < _FEW_MEMBERS:
        ranks = forecast.draws.shape[1] + 1
        levels, method = np.arange(1, ranks) / ranks, "ranks"
    elif isinstance(forecast, Quantiles):
        levels, method = forecast.levels, "cells between quantiles"
    elif cluster is None:
        statistic = a_squared(np.sort(u))
        return Component("PIT", statistic, ad_pvalue(statistic, u.size), "Anderson-Darling")
    else:
        levels, method = np.arange(1, 10) / 10, "cells"
    inner = merged_levels(levels, u.size)
    chance = np.diff(np.concatenate([[0.0], inner, [1.0]]))
    return cell_component("PIT", method, np.searchsorted(inner, u), chance, cluster)


def central_levels(forecast: Any) -> Floats:
    """Levels of central intervals whose ends the forecast knows; of quantiles without pairs, none."""
    if isinstance(forecast, Samples):
        m = forecast.draws.shape[1]
        rank = np.clip(np.rint((m + 1) * (1 - np.array(_INTERVALS)) / 2), 1, max((m + 1) // 2 - (m % 2), 1))
        found = 1 - 2 * rank / (m + 1)
        return np.unique(found[found > 1e-9])
    if isinstance(forecast, Quantiles):
        q = forecast.levels
        return np.unique([round(float(1 - 2 * v), 12) for v in q if v < 0.5 - 1e-9 and np.isclose(q, 1 - v).any()])
    return np.array(_INTERVALS)


def coverage_component(u: Floats, forecast: Any, cluster: Ints | None, alpha: float) -> Component | None:
    """Coverage of central intervals at all levels jointly; of quantiles without pairs, of the levels themselves."""
    central = central_levels(forecast)
    direction = _confidence(u, forecast, central, cluster, alpha)
    if central.size:
        levels, folded, method = central, np.abs(2 * u - 1), f"{central.size} central intervals"
    elif isinstance(forecast, Quantiles):
        levels, folded, method = forecast.levels, u, f"{forecast.levels.size} levels"
    else:
        return None
    return cumulative_component("coverage", method, np.searchsorted(levels, folded), levels, cluster, direction)


def cumulative_component(
    name: str, method: str, labels: Ints, levels: Floats, cluster: Ints | None, direction: str
) -> Component:
    r"""Cumulative chi-squared test (Nair, 1987) that a share q of the rows lies at or below each level q.

    .. math::

       T = N \sum_k \frac{(\hat q_k - q_k)^2}{q_k (1 - q_k)}

    It has more power than Pearson's test where neighbouring levels deviate alike, as they do for intervals that are too
    narrow. The null distribution is approximated by three moments (Imhof, 1961), in clusters by `box_test`.
    """
    from scipy.special import chdtrc

    n, k = labels.size, levels.size
    scale = np.sqrt(levels * (1 - levels))
    gap = (np.cumsum(np.bincount(labels, minlength=k + 1))[:k] / n - levels) / scale
    statistic = n * float(gap @ gap)
    if cluster is None:
        cover = (np.minimum(levels[:, None], levels) - np.outer(levels, levels)) / np.outer(scale, scale)
        c1, c2, c3 = (float(np.sum(np.linalg.eigvalsh(cover) ** power)) for power in (1, 2, 3))
        df = c2**3 / c3**2
        pvalue = float(chdtrc(df, max(df + (statistic - c1) * math.sqrt(df / c2), 0.0)))
        return Component(name, statistic, pvalue, f"{method}, cumulative chi-squared", direction)
    cells = sums_by_cluster(cluster, labels, None, k + 1)
    sums = (np.cumsum(cells, axis=1)[:, :k] - cells.sum(axis=1, keepdims=True) * levels) / (scale * math.sqrt(n))
    statistic, pvalue = box_test(statistic, _share_covariance(sums), len(sums))
    return Component(name, statistic, pvalue, f"{method}, F approximation", direction)


def _confidence(u: Floats, forecast: Any, central: Floats, cluster: Ints | None, alpha: float) -> str:
    """Whether intervals are too narrow or too wide on average over their levels; '' if that is not significant."""
    if central.size:
        missed = central.mean() - (np.abs(2 * u - 1)[:, None] <= central).mean(axis=1)
    elif isinstance(forecast, Quantiles) and forecast.levels.size > 1:
        low, high = forecast.levels[0], forecast.levels[-1]
        missed = (high - low) - ((u > low) & (u <= high))
    else:
        return ""
    away = missed - missed.mean()
    total = float(missed.sum())
    made = Units(total, away, np.ones(u.size)) if cluster is None else cluster_units(total, cluster, away)
    t, pvalue, _ = made.test()
    if not pvalue <= alpha:
        return ""
    return "overconfident" if t > 0 else "underconfident"


def median_component(u: Floats, forecast: Any, cluster: Ints | None) -> Component | None:
    """Share of outcomes below the median, where no mean is known; None of quantiles without a median."""
    if isinstance(forecast, Quantiles) and not np.isclose(forecast.levels, 0.5).any():
        return None
    below = (u <= 0.5).astype(np.int64)
    direction = "overestimates" if below.mean() > 0.5 else "underestimates"
    return cell_component("median", "share below the median", below, np.array([0.5, 0.5]), cluster, direction)


def skewness_note(limited: Iterable[str]) -> tuple[Note, ...]:
    """A note that names the components that skewness limits."""
    names = ", ".join(limited)
    if not names:
        return ()
    text = (
        f"The errors are too skewed for the number of rows, so these tests are limited: {names}. A deviation towards "
        "the short tail of the errors is not tested, and calibration is not shown. More rows are needed."
    )
    return join_notes([Note("skewed", 1, text)])
