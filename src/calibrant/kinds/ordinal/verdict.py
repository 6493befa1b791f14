"""The verdict on probabilities of ordered classes: shift, slope, and the cumulative probabilities one by one."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant._support.arrays import Floats
from calibrant.inference.binary_components import IMPOSSIBLE, IN_THE_LARGE
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.log_odds_deviation import MIN_INFORMATION
from calibrant.inference.multiplicity import holm, join_tests
from calibrant.inference.paired_rows import MIN_CLUSTERS
from calibrant.inference.region_tests import Limit, NamedRegions, join_regions
from calibrant.kinds.log_odds import LogOddsEstimate
from calibrant.kinds.multiclass.components import impossible_outcomes
from calibrant.kinds.multiclass.design import ClassRows
from calibrant.kinds.multiclass.verdict import ClassDeviation
from calibrant.metrics.log_odds import LogOddsError
from calibrant.results.uncertainty import Interval, Null
from calibrant.results.verdict import Deviation, OmnibusTest, TestResult, Verdict
from calibrant.tables.class_table import ClassTable

NAME = "cumulative log-odds error"
_LEAST_PROBABILITY = 1e-300  # of a class, by which scores are divided


@dataclass(frozen=True)
class Threshold(ClassDeviation):
    """The event that the outcome is at most a class, and its cumulative probability.

    Attributes
    ----------
    label : object
        The class.
    n, predicted, observed : float
        Rows at or below the class (or their weight), mean cumulative probability and share.
    log_odds_error, low, high : float
        Estimate with confidence interval, of this threshold alone.
    pvalue, adjusted_pvalue : float
        p-value of the omnibus test of this threshold alone; and adjusted by Holm over thresholds, at least that of the
        omnibus test of all of them.
    in_the_large : float
        The p-value of its calibration in the large, adjusted in the same way.
    side : str
        "overestimates" where predicted classes are too high: more outcomes than predicted are at or below the class.
        "underestimates" where they are too low: fewer outcomes than predicted are at or below the class.

    See Also
    --------
    OrdinalDetails, Verdict

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([2, 2, 2], 1000)
    >>> y = (proba.cumsum(axis=1) > rng.random((1000, 1)) ** 2).argmax(axis=1)
    >>> details = cb.evaluate(y, cb.Ordinal(proba), n_resamples=99).details
    >>> [(threshold.label, threshold.side) for threshold in details.thresholds]
    [(0, 'overestimates'), (1, 'overestimates')]
    """

    label: Any


class OrdinalVerdict(NamedTuple):
    """The verdict on ordered classes, with the estimate and each threshold."""

    verdict: Verdict
    estimate: LogOddsEstimate
    thresholds: tuple[Threshold, ...]


def decide(table: ClassTable, cluster: Any, *, margin: float, alpha: float, confidence_level: float) -> OrdinalVerdict:
    r"""Return the verdict on probabilities of ordered classes, and their cumulative log-odds error.

    With :math:`F_c = p_1 + ... + p_c` the components of the omnibus test are: outcomes of probability 0; the score test
    of a shift of all :math:`\mathrm{logit} F_c` by the same amount, whose terms are :math:`1 - F_y - F_{y-1}`; the
    score test of their slope, given the shift; and the smallest p-value of the thresholds, each of which is the omnibus
    test of a binary forecast, adjusted by Holm. The cumulative log-odds error is the root of the mean square over
    thresholds, weighted by information. Its limits are those of the thresholds, each at a level divided by their number
    (Bonferroni), so they hold for any dependence between them. To lie within the margin, each judged region of each
    threshold must be shown to lie within its factor too.
    """
    weight, frequency = (table.weight, None) if table.importance else (None, table.weight)
    rows = ClassRows.from_arrays(table.proba, table.code, weight, frequency, cluster)
    cumulative = np.minimum(np.cumsum(rows.proba, axis=1, dtype=np.float64), 1.0)
    tests = [
        BinaryTests.from_design(rows.design(rows.code <= c, cumulative[:, c])[0]) for c in range(rows.n_classes - 1)
    ]
    raw = np.array([test.omnibus.pvalue if test.omnibus.components else 1.0 for test in tests])
    single = TestResult(float(raw.min()), float(holm(raw).min()), "single thresholds")
    known = any(test.deviation.design.information > 0 for test in tests)
    components = [*impossible_outcomes(rows), *(_shift_and_slope(rows, cumulative) if known else []), single]
    omnibus = join_tests(components if known else components[:-1])
    pvalue = omnibus.pvalue if omnibus.components else 1.0
    thresholds = _thresholds(table, rows, tests, cumulative, raw, pvalue, (1 - confidence_level) / 2)
    limit = Limit(margin, len(tests))
    regions = [
        NamedRegions.measure(
            f"outcomes of at most {label}",
            test.regions,
            test.omnibus.components[IN_THE_LARGE],
            limit,
            alpha,
            confidence_level,
        )
        for label, test in zip(table.labels[:-1], tests, strict=True)
    ]
    deviation, estimate = _size(tests, regions, rows, omnibus, margin, alpha, confidence_level)
    # The thresholds claim no direction: those of overconfident forecasts deviate in both.
    verdict = Verdict(omnibus, deviation, alpha)
    return OrdinalVerdict(verdict, estimate, tuple(thresholds))


def _shift_and_slope(rows: ClassRows, cumulative: Floats) -> list[TestResult]:
    """Return the score tests of a shift and of a slope of all cumulative log-odds."""
    edges = np.hstack([np.zeros((len(cumulative), 1)), cumulative[:, :-1], np.ones((len(cumulative), 1))])
    spread = edges * (1 - edges)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(spread > 0, spread * (np.log(edges) - np.log1p(-edges)), 0.0)
    p = np.maximum(np.diff(edges, axis=1), _LEAST_PROBABILITY)
    possible = np.diff(edges, axis=1) > 0
    terms = [np.where(possible, np.diff(each, axis=1) / p, 0.0) for each in (spread, slope)]
    place = np.arange(rows.code.size)
    scores = np.stack([each[place, rows.code] for each in terms])
    sums = scores @ rows.counts
    covariance, degrees = _covariance(
        rows, scores, np.stack([np.where(possible, p, 0.0) * each for each in terms]), terms
    )
    if not covariance[0, 0] > 0:
        return []
    ratio = covariance[0, 1] / covariance[0, 0]
    rest = covariance[1, 1] - ratio * covariance[0, 1]
    found = [_score_test(sums[0], covariance[0, 0], degrees, "shift", ("overestimates", "underestimates"))]
    if rest > 1e-9 * covariance[1, 1]:
        words = ("underconfident", "overconfident")
        found.append(_score_test(sums[1] - ratio * sums[0], rest, degrees, "slope", words))
    return found


def _covariance(rows: ClassRows, scores: Floats, weighted: Floats, terms: list[Floats]) -> tuple[Floats, float]:
    """Return the covariance of the sums of scores, and its degrees of freedom.

    Of counts it is that of the predicted probabilities; of importance weights and clusters that of the data.
    """
    if rows.cluster is not None:
        sums = np.stack([np.bincount(rows.cluster, each * rows.counts) for each in scores])
        m = sums.shape[1]
        return sums @ sums.T * m / (m - 1), m - 1.0
    if rows.importance:
        residuals = scores * rows.counts
        size = float(rows.counts.sum() ** 2 / (rows.counts @ rows.counts))
        return residuals @ residuals.T, max(size - 1, 1.0)
    expected = np.array([[np.sum((a * b).sum(axis=1) * rows.counts) for b in terms] for a in weighted])
    return expected, math.inf


def _score_test(total: float, variance: float, degrees: float, name: str, words: tuple[str, str]) -> TestResult:
    from scipy.special import ndtr, stdtr

    z = float(total / math.sqrt(variance))
    pvalue = 2 * float(ndtr(-abs(z)) if math.isinf(degrees) else stdtr(degrees, -abs(z)))
    return TestResult(z, pvalue, name, direction=words[0] if z > 0 else words[1])


def _thresholds(
    table: ClassTable,
    rows: ClassRows,
    tests: list[BinaryTests],
    cumulative: Floats,
    raw: Floats,
    pvalue: float,
    tail: float,
) -> list[Threshold]:
    """Return each threshold, with p-values that are at least that of the omnibus test."""
    large = [test.omnibus.components.get("calibration in the large") for test in tests]
    adjusted_large = np.maximum(holm([1.0 if each is None else each.pvalue for each in large]), pvalue)
    adjusted, total = np.maximum(holm(raw), pvalue), float(rows.counts.sum())
    found = []
    for c, test in enumerate(tests):
        size = test.deviation
        value = size.value if size.design.information > 0 else math.nan
        known = size.design.information > 0
        limits = (min(size.lower(tail), value), max(size.upper(tail), value)) if known else (math.nan, math.nan)
        n = float(rows.counts @ (rows.code <= c))
        predicted = float(rows.counts @ cumulative[:, c]) / total
        side = "overestimates" if n / total > predicted else "underestimates"
        numbers = (float(raw[c]), float(adjusted[c]), float(adjusted_large[c]))
        found.append(Threshold(table.labels[c], n, predicted, n / total, value, *limits, *numbers, side))
    return found


def _size(
    tests: list[BinaryTests],
    regions: list[NamedRegions],
    rows: ClassRows,
    omnibus: OmnibusTest,
    margin: float,
    alpha: float,
    level: float,
) -> tuple[Deviation, LogOddsEstimate]:
    """Return the cumulative log-odds error with limits, and whether it is shown to lie within the margin."""
    share = np.array([test.deviation.design.information for test in tests])
    information, tail = float(share.mean()), (1 - level) / 2
    known = [test for test, own in zip(tests, share, strict=True) if own > 0]

    def mean(values: list[float]) -> float:
        return math.sqrt(float(np.average(np.square(values), weights=share[share > 0]))) if known else 0.0

    value = mean([test.deviation.value for test in known])
    low = min(mean([test.deviation.lower(tail / len(tests)) for test in known]), value)
    high = max(mean([test.deviation.upper(tail / len(tests)) for test in known]), value) if known else math.inf
    bound = max(mean([test.bound(margin, alpha / len(tests)) for test in known]), value) if known else math.inf
    fine = max((test.fine_bound(margin, alpha) for test in known), default=0.0)
    few = information < MIN_INFORMATION or (rows.cluster is not None and rows.degrees + 1 < MIN_CLUSTERS)
    contradicted = omnibus.is_significant(IMPOSSIBLE, alpha)
    bound = math.inf if contradicted else bound
    is_small = bound <= margin and not few and fine <= margin
    within = is_small and all(each.within <= alpha for each in regions)
    spec = LogOddsError().spec
    error = Interval(NAME, value, low, high, level, "inversion", "1", 0, spec)
    nan = math.nan
    null = Null(NAME, value, nan, nan, nan, nan, "greater", level, "1", 0, spec)
    deviation = Deviation(NAME, "", value, low, high, level, margin, bound, within)
    return deviation, LogOddsEstimate(
        error,
        null,
        information,
        fine if fine > margin else 0.0,
        rows.n_clusters,
        join_regions(regions, alpha, is_small=is_small),
    )
