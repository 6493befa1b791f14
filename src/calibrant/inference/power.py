"""Power of tests: the deviation that a bin detects, and what shows a model to lie within a margin."""

import math
from dataclasses import dataclass

import numpy as np

from calibrant._kernels.scipy_binomial import binomial_pvalue
from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats, Ints
from calibrant._support.errors import InputError, check_count, check_share
from calibrant._support.formatting import round_up
from calibrant._support.lazy import cached_property
from calibrant._support.plain_data import PlainResult
from calibrant._support.roots import find_root, first_integer
from calibrant.inference.log_odds_deviation import MIN_INFORMATION, SMALLEST_PROBABILITY
from calibrant.inference.tails import noncentral_chi2_cdf
from calibrant.metrics.bins import EqualInformation, information_bins
from calibrant.metrics.log_odds import LogOddsBins
from calibrant.tables.score_table import ScoreTable

_MOST_ROWS_OF_A_BIN = 10**8  # beyond, the accuracy of the test is not known
MOST_ROWS = 2**53  # more cannot be counted, so no plan needs them
_NORMAL_INFORMATION = 1e5  # of a bin; with more, its log-odds error is taken as normal


@dataclass(frozen=True, repr=False)
class Detectable(PlainResult):
    """The smallest deviations from a predicted rate that the exact binomial test detects; see `detectable`.

    Attributes
    ----------
    n, rate : int, float
        Number of rows and predicted rate.
    alpha, power : float
        Significance level and power of the test.
    above, below : float
        Smallest deviations above and below `rate` that the test detects with this power; NaN if there is none.

    See Also
    --------
    detectable

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.inference.detectable(100, 0.2)
    Detectable(100 rows with a predicted rate of 0.2: at least 0.1246 above, at least 0.09981 below)
    """

    n: int
    rate: float
    alpha: float
    power: float
    above: float
    below: float

    def __repr__(self) -> str:
        rows = f"{self.n:,} rows with a predicted rate of {self.rate:.4g}"
        return f"Detectable({rows}: at least {self.above:.4g} above, at least {self.below:.4g} below)"


def detectable(n: int, rate: float, *, alpha: float = 0.05, power: float = 0.8) -> Detectable:
    """Return the smallest deviation that a bin of `n` rows detects when the model predicts `rate`.

    The exact two-sided binomial test of TCE rejects the prediction `rate` with a probability of at least `power` where
    the true rate is at least ``rate + above`` or at most ``rate - below``. NaN where no true rate is far enough away: a
    model that predicts 1 % cannot be shown to overestimate with 50 rows.

    Parameters
    ----------
    n : int
        Number of rows in the bin.
    rate : float
        Predicted event rate, in [0, 1].
    alpha : float, default=0.05
        Level of the test; a p-value equal to it rejects.
    power : float, default=0.8

    Returns
    -------
    Detectable
        ``above`` and ``below``.

    See Also
    --------
    sample_size, Detectable, equivalence

    Notes
    -----
    Compare it with the width of a bin: TCE tests each score of a bin against the rate of the whole bin, so scores whose
    distance exceeds the detectable deviation are rejected even if all of them are calibrated. With N rows spread evenly
    over [0, 1], the paper's bins of N/20 rows or more are at least 0.05 wide, and detect less than that from n = 800
    on, which is N = 16,000. The detectable deviation decreases with n^(-1/2), so it exceeds the width of a bin only
    while n is below about N^(2/3). See "Inference" in the documentation.

    Examples
    --------
    >>> deviation = detectable(100, 0.2)
    >>> round(deviation.above, 3), round(deviation.below, 3)
    (0.125, 0.1)
    """
    check_count("n", n, _MOST_ROWS_OF_A_BIN)
    if not 0 <= rate <= 1:
        raise InputError(f"rate must lie in [0, 1]; got {rate!r}.", argument="rate", value=rate)
    check_share("alpha", alpha)
    check_share("power", power)
    last_low, first_high = _rejections(int(n), float(rate), alpha)
    above = _root(int(n), last_low, first_high, float(rate), 1.0, power)
    below = _root(int(n), last_low, first_high, float(rate), 0.0, power)
    return Detectable(int(n), float(rate), alpha, power, above - rate, rate - below)


def _rejections(n: int, rate: float, alpha: float) -> tuple[int, int]:
    """Return the limits of rejection: at most `last_low` events (-1: never), at least `first_high` (n + 1: never).

    From the expected number of events the p-value decreases on both sides, so each limit is found by bisection.
    """

    def rejects(k: int) -> bool:
        one: Ints = np.array([k])
        return bool(binomial_pvalue(one, np.array([n]), np.array([rate]))[0] <= alpha)

    mode = min(n, int((n + 1) * rate))  # its p-value is 1
    return first_integer(-1, mode, lambda k: not rejects(k)) - 1, first_integer(mode, n + 1, rejects)


def _root(n: int, last_low: int, first_high: int, rate: float, end: float, power: float) -> float:
    """Return the true rate nearest to `rate`, towards `end`, at which the test rejects with probability `power`."""
    from scipy.stats import binom

    def missing(true: float) -> float:
        return float(power - binom.cdf(last_low, n, true) - binom.sf(first_high - 1, n, true))

    if rate == end or missing(end) > 0:
        return float("nan")
    if missing(rate) <= 0:
        return rate
    return find_root(missing, rate, end, xtol=1e-14, rtol=1e-14)


@dataclass(frozen=True, eq=False)
class PlannedBins:
    """Bins of a calibrated model whose rows are not yet observed.

    Attributes
    ----------
    information : float
        Information V of each bin.
    skewness, kurtosis : ndarray
        For each bin the sums of p (1 - p) (1 - 2 p) and of p (1 - p) (1 - 6 p (1 - p)), divided by V. For rare events
        both are 1. One value stands for bins that are alike.
    count : int
        Number of bins.
    """

    information: float
    skewness: Floats
    kurtosis: Floats
    count: int

    def __len__(self) -> int:
        return self.count

    @classmethod
    def from_scores(cls, scores: ScoreTable | float, information: float) -> "PlannedBins":
        """Return bins of the scores of a table, as far as ties allow, or of distinct scores near one value."""
        count = information_bins(information)
        if not isinstance(scores, ScoreTable):
            third, fourth = np.array([1 - 2 * scores]), np.array([1 - 6 * scores * (1 - scores)])
            return cls(information / count, third, fourth, count)
        bins = LogOddsBins.from_table(scores, EqualInformation(count))
        p, information_of_rows = scores.score, bins.scores.information
        factors = (1 - 2 * p, 1 - 6 * p * (1 - p))
        third, fourth = (bins.total(information_of_rows * factor) / bins.information for factor in factors)
        return cls(information / len(bins), third, fourth, len(bins))

    @cached_property
    def _outcomes(self) -> tuple[Floats, Floats, Floats]:
        """Numbers of events of a typical bin with one score: probabilities, V d^2, and V over the curvature at d."""
        from scipy.special import betaln, xlog1py

        if self.information > _NORMAL_INFORMATION:
            z = np.linspace(-12, 12, 2001)
            density = np.exp(-(z**2) / 2)
            return density / density.sum(), z**2, np.ones(z.size)
        p = max((1 - math.sqrt(float(np.mean(self.skewness**2)))) / 2, 1e-6)
        n, width = self.information / (p * (1 - p)), 12 * math.sqrt(self.information) + 12
        events = np.arange(max(math.floor(n * p - width), 0), min(math.floor(n), math.ceil(n * p + width)) + 1.0)
        probability = np.exp(
            events * math.log(p) + xlog1py(n - events, -p) - betaln(n - events + 1, events + 1) - math.log(n)
        )
        seen = np.clip(events, 0.5, n - 0.5)
        d = np.log(seen * (1 - p) / ((n - seen) * p))
        return probability / probability.sum(), self.information * d**2, self.information * n / (seen * (n - seen))

    def distribution(self, value: float) -> float:
        """Return the probability that T is at most this, by a scaled chi-squared distribution.

        Log-odds are curved, so the mean and variance of T are above those of chi-squared, most where events are few.
        """
        from scipy.special import chdtr

        probability, statistic, _ = self._outcomes
        mean = float(probability @ statistic)
        variance = float(probability @ (statistic - mean) ** 2)
        return float(chdtr(len(self) * 2 * mean**2 / variance, value * 2 * mean / variance))

    def largest_within(self, margin: float, alpha: float) -> float:
        """Return the largest T with which an error is shown to lie within the margin, over all variances in use."""
        probability, _, spread = self._outcomes
        g, h = self.skewness, self.kurtosis
        moments = [(float(probability @ spread), float(probability @ spread**2))]
        for d in (margin, -margin):
            spread = np.exp((g**2 - h) * d**2 / 2 - g * d)  # V divided by the curvature at d
            moments.append((float(np.mean(spread)), float(np.mean(spread**2))))
        largest = []
        for first, second in moments:
            scale = second / first
            whole = self.information * len(self) / scale
            largest.append(scale * _largest_statistic(whole, len(self) * first / scale, margin, alpha))
        return min(largest)


def equivalence_power(scores: ScoreTable | float, information: float, margin: float, alpha: float) -> float:
    """Return the probability that a calibrated model is shown to lie within the margin.

    `scores` is a table of expected scores, or one typical score. The test over fine bins, which rejects at most
    alpha / 4 of the calibrated models and none where information is large, is ignored.
    """
    bins = PlannedBins.from_scores(scores, information)
    return bins.distribution(bins.largest_within(margin, alpha))


def information_needed(
    margin: float, *, alpha: float = 0.05, power: float = 0.8, scores: ScoreTable | float = 0.0
) -> float:
    """Return the information with which a calibrated model is shown to lie within the margin with this probability.

    It is infinite where that of 2**53 rows is too little. `scores` is a table of expected scores, or one typical score;
    0 means rare events, which need the most.
    """

    def lacking(log_information: float) -> float:
        return power - equivalence_power(scores, float(np.exp(log_information)), margin, alpha)

    low = high = float(np.log(MIN_INFORMATION))
    most = math.log(MOST_ROWS)
    while lacking(high) > 0:
        if high == most:
            return math.inf
        low, high = high, min(high + 0.5, most)
    return float(np.exp(find_root(lacking, low, high, xtol=1e-4))) if high > low else MIN_INFORMATION


def _largest_statistic(information: float, bins: float, margin: float, alpha: float) -> float:
    """Return the largest T with which an error is shown to lie within the margin; 0 where none is."""
    from scipy.special import chdtr, chdtri

    edge = margin**2 * information

    def beyond(value: float) -> float:
        return noncentral_chi2_cdf(value, bins, edge) / float(chdtr(bins, value)) - alpha

    low, high = float(chdtri(bins, 1 - SMALLEST_PROBABILITY)), 2 * (edge + bins) + 100
    return find_root(beyond, low, high) if beyond(low) < 0 else 0.0


def rows_to_decide(rows: float, information: float, margin: float, alpha: float) -> int | None:
    """Return how many further rows show a calibrated model to lie within the margin with a probability of 80 %.

    Parameters
    ----------
    rows, information : float
        Number of rows and their information, above 0; further rows are assumed to be like them.
    margin, alpha : float

    Returns
    -------
    int or None
        Rounded up to two significant digits; 0 where the given rows are enough, None where 2**53 rows are too few.

    Examples
    --------
    >>> rows_to_decide(1_000, 47.5, margin=0.1, alpha=0.05)
    42000
    """
    per_row = information / rows
    typical = (1 - math.sqrt(max(1 - 4 * per_row, 0.0))) / 2  # the score with this information
    needed = information_needed(margin, alpha=alpha, power=0.8, scores=typical)
    return None if needed / per_row > MOST_ROWS else round_up(max(needed / per_row - rows, 0.0))


def table_of_scores(scores: Column | None, name: str) -> ScoreTable:
    """Return the table of scores whose outcomes are not known, as rows without events."""
    column = _columns.read(scores, name)
    _columns.refuse_missing([column])
    values = _columns.scores(column).values
    ones = np.ones(values.size, dtype=np.int64)
    return ScoreTable.from_counts(values, ones, 0 * ones)
