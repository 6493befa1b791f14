"""The verdict on point predictions: mean error, bias by bin and slope, and the size of the bias by bin."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._support.arrays import Floats, Ints, power_of_two
from calibrant._support.errors import Argument, InputError, Note, join_notes
from calibrant._support.roots import find_root
from calibrant.inference.estimates import FEWEST_EQUAL
from calibrant.inference.multiplicity import join_tests
from calibrant.inference.regression import point_components
from calibrant.inference.regression.point_components import BinSums
from calibrant.inference.regression.tail_skewness import NO_TAIL, Tail, tail_skewness
from calibrant.inference.residual_tests import box_moments
from calibrant.kinds.point.sample import PointSample
from calibrant.metrics import point as means
from calibrant.results.settings import Margin, RelativeMargin, Settings
from calibrant.results.uncertainty import Estimate
from calibrant.results.verdict import OF_THE_MEAN, Deviation, TestResult, Verdict
from calibrant.tables.mean_table import MeanTable

_MIN_BINS = 5
_MAX_RATIO = 1e6  # of the largest bound that is searched to the size of the noise
_SMALL_RATIO = 3.0  # of T to its expectation without bias, below which the noncentral F distribution is used too


@dataclass(frozen=True)
class MeanMargin:
    """The margin of the bias by bin: its size in a unit, and what one unit is in the unit of the outcome."""

    size: float
    unit: str
    scale: float

    @property
    def is_relative(self) -> bool:
        """Whether the unit is the mean outcome."""
        return self.unit == OF_THE_MEAN


def mean_margin(table: MeanTable, margin: Margin, is_default: bool) -> MeanMargin:
    """Return the margin of the bias by bin of these rows.

    By default 0.05 standard deviations of the outcome, or 5 % of the mean outcome where outcomes are not negative and
    that is less: a rate that is 15 % too high matters, however much single outcomes vary.
    """
    spread, mean = math.sqrt(max(means.variance(table), 0.0)), table.mean_outcome
    may_be_relative = bool((table.mean >= 0).all())
    if isinstance(margin, RelativeMargin):
        if not may_be_relative:
            row = int(np.argmax(table.mean < 0))
            raise InputError(
                Argument("relative_margin", python="RelativeMargin")
                + f" must be given with non-negative outcomes; got {table.mean[row]:.6g}.",
                hint="Use a margin in standard deviations of the outcome, such as margin=0.05.",
                argument="margin",
            )
        return MeanMargin(margin.value, OF_THE_MEAN, mean)
    size = float(margin)  # type: ignore[arg-type]  # points take no AbsoluteMargin
    if is_default and may_be_relative and 0 < mean <= spread:
        return MeanMargin(size, OF_THE_MEAN, mean)
    return MeanMargin(size, "standard deviations of the outcome", spread)


def decide(
    rows: PointSample, error: Estimate, margin: MeanMargin, settings: Settings
) -> tuple[Verdict, tuple[Note, ...]]:
    """Return the verdict on point predictions, and notes about tests that are limited; `error` is the mean error."""
    table, alpha = rows.table, settings.alpha
    tail = tail_skewness(table, rows.cluster)
    sums = point_components.bin_sums(table, rows.cluster, settings.bins, tail=tail)
    deviation = bias_deviation(sums, margin, alpha, np.unique(table.prediction).size)
    components, limited = mean_components(table, table, rows.cluster, error, sums, 0.0, True, tail)
    if limited:
        deviation = deviation.without_bounds()
    return Verdict(join_tests(components), deviation, alpha), limits_notes(components, limited)


def limits_notes(components: Sequence[TestResult | None], limited: Sequence[str]) -> tuple[Note, ...]:
    """Return notes about the tests that skewness limits, and about a slope that cannot be tested."""
    untested = (note for test in components if test is not None and test.name == "slope" for note in test.notes)
    return join_notes(untested, point_components.skewness_note(list(limited)))


def mean_components(
    table: MeanTable,
    halves: MeanTable,
    cluster: Ints | None,
    error: Estimate,
    sums: point_components.BinSums,
    known: float,
    testable: bool,
    tail: Tail = NO_TAIL,
) -> tuple[list[TestResult | None], list[str]]:
    """Return the components that test means, and the names of those that skewness limits.

    `known` is the skewness of the members of an ensemble, `tail` that of non-negative outcomes; bins and slope are
    tested where `testable`.
    """
    mean, skewed_mean = point_components.mean_component(table, cluster, error, known, tail)
    slope, skewed_slope = (
        point_components.slope_component(halves, cluster, sums.skewness, tail) if testable else (None, False)
    )
    if error.pvalue is None:
        slope = None
    flags = (("mean error", skewed_mean), ("slope", skewed_slope), ("bias by bins", sums.limited))
    limited = [name for name, flag in flags if flag]
    return [mean, point_components.bins_component(sums) if testable else None, slope], limited


def bias_deviation(
    sums: BinSums, margin: MeanMargin, alpha: float, distinct: int = 1, name: str = "bias by bin"
) -> Deviation:
    r"""Return the root mean square bias by bin, in the unit of the margin, with bounds by inversion.

    T is the sum over bins of :math:`n_b d_b^2`, :math:`d_b` the mean error. With covariance C of these,
    :math:`M = n^{1/2} C n^{1/2}` and the true root mean square R,

    .. math::

       E T = \mathrm{tr} M + N R^2, \quad \mathrm{Var}\, T = 2 \mathrm{tr} M^2 + 4 v N R^2

    and T is about a multiple of an F variable with these moments (Patnaik, 1949). v is the larger of
    :math:`\mathrm{tr} M^2 / \mathrm{tr} M` and the variance in the direction of the observed errors. The upper bound
    solves :math:`P_R(T \le t) = \alpha P_0(T \le t)`, so it is never 0 by chance. It is at least the solution for a
    noncentral F variable, which is more precise where T is small.
    """

    def made(value: float, low: float, high: float) -> Deviation:
        value, low, high = (scale * each / margin.scale for each in (value, low, high))
        return Deviation.from_bounds(name, margin.unit, value, low, high, margin.size, alpha)

    if not margin.scale > 0 or not sums.known:
        return Deviation.from_bounds(name, margin.unit, math.nan, math.nan, math.nan, margin.size, alpha)
    total = float(sums.size.sum())
    root = np.sqrt(sums.size)
    scale = power_of_two(np.append(sums.error, np.sqrt(np.diag(sums.covariance))))
    scaled = root * sums.error / scale
    covariance = sums.covariance / scale**2 * np.outer(root, root)
    trace, df, nu = _moments(sums, covariance)
    statistic = float(scaled @ scaled)
    value = math.sqrt(max(statistic - trace, 0.0) / total)
    if not trace > 0:  # errors do not vary
        known = float(sums.effective.sum()) >= FEWEST_EQUAL - 1e-9
        return made(value, *((value, value) if known else (math.nan, math.nan)))
    if sums.limited or not (sums.are_given or len(sums) >= min(_MIN_BINS, distinct)):
        return made(value, math.nan, math.nan)
    along = float(scaled @ covariance @ scaled) / statistic if statistic > 0 else 0.0
    variance = max(trace / nu, along)

    def below(size: float) -> float:
        from scipy.special import fdtr

        mean = trace + total * size**2
        var = 2 * trace**2 / nu + 4 * variance * total * size**2
        return float(fdtr(2 * mean**2 / var, df, statistic / mean))

    def noncentral(size: float) -> float:
        from scipy.special import ncfdtr

        return float(ncfdtr(nu, df, total * size**2 * nu / trace, statistic / trace))

    unit_size = math.sqrt(trace / total)
    if statistic <= 1e-9 * trace:  # the limit of the ratio of both probabilities
        return made(value, 0.0, unit_size * math.sqrt(-2 * math.log(alpha) / nu))
    low, high = _invert(below, unit_size, alpha)
    if statistic < _SMALL_RATIO * trace:
        high = max(high, _invert(noncentral, unit_size, alpha)[1])
    return made(value, low, high)


def _moments(sums: BinSums, covariance: Floats) -> tuple[float, float, float]:
    """Return the trace of the covariance, its degrees of freedom, and the equivalent number of independent squares."""
    if sums.clusters is not None:
        trace, df, nu = box_moments(covariance, sums.clusters)
        return trace, nu * df, nu
    own = np.diag(covariance)
    trace = float(own.sum())
    if not trace > 0:
        return trace, math.nan, math.nan
    each = np.maximum(sums.effective - 1, 1.0) / (1 + 0.75 * sums.skewness**2)
    return trace, trace**2 / float(np.sum(own**2 / each)), trace**2 / float(own @ own)


def _invert(below: Callable[[float], float], unit: float, alpha: float) -> tuple[float, float]:
    """Return bounds of a size from the probability, decreasing in the size, of a statistic below the observed one."""
    first = below(0.0)

    def solve(probability: float) -> float:
        high = unit
        while below(high) > probability and high < _MAX_RATIO * unit:
            high *= 2
        return find_root(lambda size: below(size) - probability, 0.0, high, xtol=1e-6 * unit)

    low = 0.0 if first <= 1 - alpha else solve(1 - alpha)
    return low, solve(alpha * first) if first > 0 else 0.0
