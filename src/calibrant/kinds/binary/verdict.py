"""The verdict on probabilities: omnibus test, log-odds error and its equivalence test."""

import numpy as np

from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.log_odds_deviation import LogOddsDeviation
from calibrant.inference.residual_tests import residual_test
from calibrant.kinds.log_odds import NAME, LogOddsEstimate
from calibrant.metrics.log_odds import LogOddsError
from calibrant.results.uncertainty import Interval, Null
from calibrant.results.verdict import Deviation, Verdict


def decide(
    tests: BinaryTests, *, margin: float, alpha: float, confidence_level: float
) -> tuple[Verdict, LogOddsEstimate]:
    """Return the verdict on the tests of a design, at a margin in log-odds, and the log-odds error."""
    deviation, tail = tests.deviation, (1 - confidence_level) / 2
    value, spec = deviation.value, LogOddsError().spec
    low, high = min(deviation.lower(tail), value), max(deviation.upper(tail), value)
    error = Interval(NAME, value, low, high, confidence_level, "inversion", "1", 0, spec)
    pvalue, bound = tests.equivalence_pvalue(margin, alpha), tests.bound(margin, alpha)
    fine = tests.fine_bound(margin, alpha) if deviation.pvalue(margin) <= alpha else 0.0
    regions = tests.region_results(margin, alpha, confidence_level)
    null = _null(deviation, confidence_level)
    size = Deviation(NAME, "", value, low, high, confidence_level, margin, bound, pvalue <= alpha, pvalue)
    estimate = LogOddsEstimate(error, null, deviation.design.information, fine, deviation.design.n_clusters, regions)
    return Verdict(tests.omnibus, size, alpha), estimate


def _null(deviation: LogOddsDeviation, level: float) -> Null:
    """Return the null distribution of the estimate, with the p-value of the deviation over the same bins."""
    low, high = deviation.null_quantiles(np.array([(1 - level) / 2, (1 + level) / 2])).tolist()
    expected = float(np.mean(deviation.null_quantiles((np.arange(200) + 0.5) / 200)))
    pvalue = residual_test(deviation.design, deviation.bins, "").pvalue if deviation.design.information > 0 else 1.0
    return Null(NAME, deviation.value, expected, low, high, pvalue, "greater", level, "1", 0, LogOddsError().spec)
