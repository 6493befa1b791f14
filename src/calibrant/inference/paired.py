"""Differences between two models on the same rows, with robust variances or by the paired bootstrap."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.arrays import Floats, Ints, Weights, dot, in_pieces
from calibrant._support.lazy import cached_property
from calibrant.inference.design import Design
from calibrant.inference.log_odds_deviation import MIN_INFORMATION
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.resampling import ReplicateValues, draw_replicates, drop_missing, metric_values, one_by_one
from calibrant.inference.table_replicates import SharedDraws
from calibrant.inference.tails import student_quantile, student_tail, student_two_sided
from calibrant.metrics.log_odds import LogOddsBins
from calibrant.metrics.metric import Metric
from calibrant.tables.score_table import ScoreTable

_MIN_WEIGHTED_INFORMATION = 100.0  # with importance weights
_OBJECTION_LEVEL = 0.05
_LEAST_SKEWNESS = 1e-6
_MODELS_AT_ONCE = 4  # more of them have smaller blocks of replicates, so that an interruption takes effect soon


@dataclass(frozen=True)
class SquaredPair:
    """Two debiased squared deviations, and parts of the variance of their difference.

    Attributes
    ----------
    values : (float, float)
        The debiased squared deviations of the model and of the baseline.
    first : float
        First-order variance of the difference at the deviations of the data. Chance makes them larger, so it is too
        large on average.
    observed : float
        Sum of both with the part that chance adds.
    further : float
        The other parts of the variance.
    """

    values: tuple[float, float]
    first: float
    observed: float
    further: float

    def at(self, difference: float) -> float:
        """Return a variance for the test of this true difference.

        The first-order variance is proportional to the squared deviations, whose sum is at least their difference: if
        it is smaller in the data, this is chance, and the variance is that of the larger sum.
        """
        if not self.observed > 0:
            return self.further
        return self.first * max(1.0, abs(difference) / self.observed) + self.further


@dataclass(frozen=True)
class PairedDifference:
    """A difference between two predictions of the same rows, with its variance.

    Attributes
    ----------
    value, variance : float
    degrees : float
        Degrees of freedom of the variance; infinite where it counts as known.
    information : float
        The smaller effective information of the two; infinite where it is not required.
    others : tuple of PairedDifference
        Differences that must be significant in the same direction for this one to be significant.
    objections : tuple of PairedDifference
        Differences that must not be significant (at 5 %) in the other direction for this one to be significant.
    squares : SquaredPair or None
        Where the value is a difference of squared deviations: the parts of its variance.
    skewness : float
        Skewness of the value; 0 where it is not known.
    """

    value: float
    variance: float
    degrees: float
    information: float = math.inf
    others: "tuple[PairedDifference, ...]" = ()
    objections: "tuple[PairedDifference, ...]" = ()
    squares: SquaredPair | None = None
    skewness: float = 0.0

    @property
    def has_little_information(self) -> bool:
        """Whether too few events are expected to show a difference."""
        return self.information < MIN_INFORMATION

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of "no difference"; 1 where there is little information.

        With others the largest of all p-values, and 1 if directions differ (an intersection-union test). Also 1 if an
        objection is significant.
        """
        if self.has_little_information or not self.variance > 0:
            return 1.0
        own = student_two_sided(self.value / math.sqrt(self.variance), self.degrees)
        if any(other.value * self.value <= 0 for other in self.others):
            return 1.0
        if any(each.value * self.value < 0 and each.pvalue <= _OBJECTION_LEVEL for each in self.objections):
            return 1.0
        return max([own, *(other.pvalue for other in self.others)])

    def interval(self, level: float) -> tuple[float, float]:
        """Return the confidence interval of the difference; NaN where there is little information."""
        if self.has_little_information:
            return math.nan, math.nan
        reach = student_quantile((1 + level) / 2, self.degrees) * math.sqrt(self.variance)
        return self.value - reach, self.value + reach

    def below(self, limit: float, level: float) -> tuple[float, float]:
        """Test whether the difference is below a limit; return its upper confidence bound, and the one-sided p-value.

        Squares that are small by chance have a small variance: that of squares which differ by the limit is used. The
        statistic of a skewed mean is transformed as by Hall (1992), "On the removal of skewness by transformation". The
        p-value is at most 1 - `level` exactly if the bound is at most the limit. Without information the bound is NaN
        and the p-value 1.
        """
        if math.isinf(self.value):  # the mean loss of one model is infinite
            return self.value, 0.0 if self.value < 0 else 1.0
        if self.has_little_information or math.isnan(self.value):
            return math.nan, 1.0
        variance = self.variance if self.squares is None else max(self.variance, self.squares.at(limit))
        if not variance > 0:
            return self.value, 0.0 if self.value <= limit else 1.0
        spread, a, shift = math.sqrt(variance), self.skewness / 3, self.skewness / 6
        least, statistic = -student_quantile(level, self.degrees), (self.value - limit) / spread
        if abs(a) > _LEAST_SKEWNESS:
            least = float(np.cbrt(1 + 3 * a * (least - shift)) - 1) / a
            statistic = ((1 + a * statistic) ** 3 - 1) / (3 * a) + shift
        return self.value - least * spread, student_tail(-statistic, self.degrees)


@dataclass(frozen=True, eq=False)
class ModelPair:
    """Two models on the same rows: their coarse bins and the covariance of the errors of all bins."""

    rows: PairedRows
    tables: Sequence[ScoreTable]
    model: int
    baseline: int
    known: Sequence[Design] | None = None  # of all tables

    @cached_property
    def designs(self) -> list[Design]:
        both = (self.model, self.baseline)
        if self.known is not None:
            return [self.known[i] for i in both]
        cluster = self.rows.cluster
        return [Design(self.tables[i], None if cluster is None else self.rows.only(i)) for i in both]

    @cached_property
    def bins(self) -> list[LogOddsBins]:
        return [design.coarse_bins for design in self.designs]

    @property
    def places(self) -> list[Ints]:
        return [self.rows.places[i] for i in (self.model, self.baseline)]

    @cached_property
    def covariance(self) -> Floats:
        return joint_covariance(self.rows, self.places, self.bins)


def log_odds_difference(pair: ModelPair) -> PairedDifference:
    r"""Return the difference of the debiased squared log-odds errors of two models on the same rows.

    Each model has its own bins of equal information, with log-odds errors d and shares of information V / I. With
    C the joint covariance of both vectors of errors, and W the shares, negative for the baseline,

    .. math::

       D = d' W d - \operatorname{tr}(W C), \qquad
       \operatorname{Var}(D) = \max\bigl(4 d' W C W d - 2 \operatorname{tr}((W C)^2), 2 \operatorname{tr}((W C)^2)\bigr)

    The second variance is that of two calibrated models. The variance of the scores is added, because another sample of
    scores would give other shares of information to large and to small errors. C is estimated from the residuals of
    rows, or of clusters, around the scores shifted by d, so it holds for miscalibrated models and for any dependence
    between the two models.
    """
    designs, bins = pair.designs, pair.bins
    information = min(design.information for design in designs)
    if pair.tables[0].importance:  # heavy weights make the distribution of D skewed
        information *= MIN_INFORMATION / _MIN_WEIGHTED_INFORMATION
    if min(float(each.information.sum()) for each in bins) <= 0:  # scores of 0 and 1 alone
        return PairedDifference(math.nan, math.nan, math.inf, 0.0)
    d = np.concatenate([each.error for each in bins])
    shares = [each.information / each.information.sum() for each in bins]
    weight, split = np.concatenate([shares[0], -shares[1]]), shares[0].size
    covariance = pair.covariance
    debiased = weight * (d**2 - np.diag(covariance))
    squared = float(weight @ covariance**2 @ weight)
    moved = weight * d
    first, second = 4 * float(moved @ covariance @ moved), 2 * squared
    of_scores = _score_variance(pair.rows, pair.places, bins)
    values = float(debiased[:split].sum()), -float(debiased[split:].sum())
    squares = SquaredPair(values, first, float(np.abs(weight) @ d**2), second + of_scores)
    variance = max(first - second, second, 0.0)
    degrees = min(design.degrees for design in designs)
    return PairedDifference(float(debiased.sum()), variance + of_scores, degrees, information, squares=squares)


def calibration_difference(pair: ModelPair) -> PairedDifference:
    """Return the difference that decides a comparison: of squared log-odds errors, confirmed by gaps of probabilities.

    Models with equal errors on one scale may differ on the other. A difference is shown only if the squared log-odds
    errors, the mean absolute gaps and the mean squared gaps differ significantly in the same direction.
    """
    found = log_odds_difference(pair)
    if found.has_little_information:
        return found
    return replace(found, others=gap_differences(pair))


def gap_differences(pair: ModelPair) -> tuple[PairedDifference, PairedDifference]:
    """Return the differences of the mean absolute and the mean squared gap of two models, over their coarse bins.

    Both are weighted by rows. The squared gap is debiased like the log-odds error. The variance of the absolute gap
    uses its derivative: the probability of a normal estimate above 0 less that below 0, so that bins whose gap may be 0
    have little weight.
    """
    from scipy.special import ndtr

    bins = pair.bins
    gap = np.concatenate([each.residual / each.n for each in bins])
    size = np.concatenate([each.n for each in bins])
    weight = np.concatenate([bins[0].n / bins[0].n.sum(), -bins[1].n / bins[1].n.sum()])
    curvature = np.concatenate([each.fitted_curvature for each in bins])
    scale = curvature / size
    covariance = pair.covariance * np.outer(scale, scale)
    degrees = min(design.degrees for design in pair.designs)
    deviation = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    slope = weight * (1 - 2 * ndtr(-gap / deviation))
    absolute = PairedDifference(float(weight @ np.abs(gap)), float(slope @ covariance @ slope), degrees)
    squared = float(weight @ covariance**2 @ weight)
    moved = weight * gap
    variance = max(4 * float(moved @ covariance @ moved) - 2 * squared, 2 * squared, 0.0)
    value = float(weight @ gap**2 - weight @ np.diag(covariance))
    return absolute, PairedDifference(value, variance, degrees)


def _score_variance(rows: PairedRows, places: Sequence[Ints], bins: Sequence[LogOddsBins]) -> float:
    """Return the variance of D over samples of scores: that of the sum of p (1 - p) (d^2 - mean of d^2) / I."""
    terms: Floats = np.zeros(rows.event.size)
    for sign, place, each in zip((1, -1), places, bins, strict=True):
        p, total = each.table.score, each.information.sum()
        mean = each.information @ each.error**2 / total
        terms += sign * (p * (1 - p) * (each.error[each.labels] ** 2 - mean) / total)[place]
    if rows.weight is not None:
        terms *= rows.weight
    if rows.cluster is not None:
        terms = np.bincount(rows.cluster, weights=terms, minlength=rows.n_draws).astype(np.float64)
    return dot(terms, terms)


def joint_covariance(rows: PairedRows, places: Sequence[Ints], bins: Sequence[LogOddsBins]) -> Floats:
    """Return the covariance of the log-odds errors of two sets of bins of the same rows, stacked.

    Residuals w (y - q), with q the scores shifted by the log-odds errors, are summed per bin and divided by the sum of
    q (1 - q) of the bin. Rows are independent, or their clusters are.
    """
    sizes = [len(each) for each in bins]
    labels = [each.labels[place] for each, place in zip(bins, places, strict=True)]
    residuals = []
    for each, place in zip(bins, places, strict=True):
        residual = rows.event - each.fitted[place]
        residuals.append(residual if rows.weight is None else residual * rows.weight)

    def sums(label: Ints, values: Floats, *shape: int) -> Floats:
        found = np.bincount(label, weights=values, minlength=math.prod(shape))
        return found.astype(np.float64).reshape(shape)

    if rows.cluster is None:
        own = [
            np.diag(sums(label, residual**2, size))
            for label, residual, size in zip(labels, residuals, sizes, strict=True)
        ]
        cross = sums(labels[0] * sizes[1] + labels[1], residuals[0] * residuals[1], *sizes)
        found = np.block([[own[0], cross], [cross.T, own[1]]])
    else:
        per_cluster = np.hstack(
            [
                sums(rows.cluster * size + label, residual, rows.n_draws, size)
                for label, residual, size in zip(labels, residuals, sizes, strict=True)
            ]
        )
        centred = per_cluster - per_cluster.mean(axis=0)
        found = centred.T @ centred * (rows.n_draws / (rows.n_draws - 1))
    found[np.diag_indices_from(found)] += np.concatenate([half_events(each) for each in bins])
    curvature = np.concatenate([each.fitted_curvature for each in bins])
    scaled: Floats = found / np.outer(curvature, curvature)
    return scaled


def half_events(bins: LogOddsBins) -> Floats:
    """Return the variance of the half event, or half other row, that is added to bins without one."""
    without = (bins.k <= 0) | (bins.k >= bins.n)
    return np.where(without, bins.fitted_variance, 0.0)


def mean_difference(
    losses: Floats, others: Floats, weight: Weights | None = None, cluster: Ints | None = None
) -> PairedDifference:
    """Return the difference of the mean losses of two models, given those of rows: a paired t test.

    With clusters it is a test of their sums. Infinite, without a test, where one model has infinite losses; NaN where
    both have, or where losses are undefined.
    """
    if not (np.isfinite(losses).all() and np.isfinite(others).all()):
        with np.errstate(invalid="ignore"):
            model, baseline = float(losses.mean()), float(others.mean())
            value = math.nan if math.isinf(model) and math.isinf(baseline) else model - baseline
        return PairedDifference(value, math.nan, math.inf)
    w = np.ones(losses.size) if weight is None else weight.astype(np.float64)
    total = float(w.sum())
    value = float(np.sum(w * (losses - others))) / total
    terms = w * (losses - others - value)
    if cluster is not None:
        terms = np.bincount(cluster, weights=terms).astype(np.float64)
        effective = float(terms.size)
    else:
        effective = total**2 / float(np.sum(w**2))
    if effective <= 1:
        return PairedDifference(value, 0.0, math.inf)
    squares = float(np.sum(terms**2))
    variance = squares / total**2 * effective / (effective - 1)
    skewness = float(np.sum(terms**3)) / squares**1.5 if squares > 0 else 0.0
    return PairedDifference(value, variance, effective - 1, skewness=skewness)


def brier_losses(rows: PairedRows, model: int) -> Floats:
    """Return the squared error of each row."""
    return _row_losses(rows, model, lambda p, event: (p - event) ** 2)


def log_losses(rows: PairedRows, model: int) -> Floats:
    """Return the log loss of each row, which may be infinite."""
    with np.errstate(divide="ignore"):
        return _row_losses(rows, model, lambda p, event: np.where(event == 1, -np.log(p), -np.log1p(-p)))


def _row_losses(rows: PairedRows, model: int, loss: Callable[[Floats, Ints], Floats]) -> Floats:
    score = rows.scores[model]
    return in_pieces(lambda place, event: loss(score[place], event), rows.places[model], rows.event)


def paired_replicates(
    rows: PairedRows,
    metrics: Sequence[Metric],
    *,
    n_resamples: int,
    seed: SeedSequence,
    show: bool | None = None,
    draws: SharedDraws | None = None,
) -> Floats:
    """Return bootstrap values of shape (replicates, models, metrics); a replicate has the same rows for all models.

    `draws` are those of these rows and metrics, if they are known.
    """
    size, models, in_kernel = float(rows.event.size), len(rows.scores), rows.weight is None and rows.cluster is None
    if in_kernel:
        function: ReplicateValues = draws or SharedDraws(rows, metrics)
        # As many replicates at once as for one model: only draws, and sums over few bins, of all of them are in memory.
        size = max(size, size * models / _MODELS_AT_ONCE)
    else:
        function = one_by_one(lambda stream: [v for table in rows(stream) for v in metric_values(metrics, table)])
    values = draw_replicates(
        function, purpose="bootstrap", n_resamples=n_resamples, seed=seed, rows=size, in_kernel=in_kernel, show=show
    )
    return values.reshape(n_resamples, models, len(metrics))


def bootstrap_difference(value: float, replicates: Floats, level: float) -> tuple[float, float, float]:
    """Return limits and two-sided p-value of a difference, by the spread of its replicates about their mean."""
    kept, _ = drop_missing(replicates, "the difference")
    offset = kept - kept.mean()
    low, high = np.quantile(offset, ((1 - level) / 2, (1 + level) / 2))
    pvalue = (1 + np.count_nonzero(np.abs(offset) >= abs(value))) / (1 + offset.size)
    return float(value - high), float(value - low), float(pvalue)


def stepdown_pvalues(values: Floats, replicates: Floats) -> Floats:
    """Return one-sided p-values of "each value is at most 0", adjusted for their number, from shared replicates.

    Values over their standard deviations are compared with the largest of the centred replicates, for the values that
    are no larger than it (Romano and Wolf's step-down): strongly dependent values cost little. A value that does not
    vary has the p-value 1. Where a value or one of its replicates is infinite, its p-value is the share of replicates
    that are not above 0, times the number of values (Bonferroni).
    """
    size = len(replicates)
    finite = np.isfinite(values) & np.isfinite(replicates).all(axis=0)
    adjusted: Floats = np.minimum(1.0, values.size * (1 + np.count_nonzero(~(replicates > 0), axis=0)) / (1 + size))
    adjusted[~(values > 0)] = 1.0
    spread = np.std(replicates[:, finite], axis=0)
    varies = np.flatnonzero(finite)[spread > 0]
    adjusted[finite] = 1.0
    if varies.size:
        deviation = spread[spread > 0]
        standard = values[varies] / deviation
        order = np.argsort(-standard, kind="stable")
        centred = (replicates[:, varies] - replicates[:, varies].mean(axis=0)) / deviation
        largest = np.maximum.accumulate(centred[:, order[::-1]], axis=1)[:, ::-1]  # of this value and all below it
        found = (1 + np.count_nonzero(largest >= standard[order], axis=0)) / (1 + size)
        adjusted[varies[order]] = np.maximum.accumulate(found)
    return adjusted
