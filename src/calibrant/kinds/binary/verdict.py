"""The decision behind a verdict on probabilities: joint test, log-odds error and its equivalence test."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from calibrant._support.workers import run_together
from calibrant.inference.binary_components import FINE_BINS, IMPOSSIBLE, binary_components
from calibrant.inference.design import Design
from calibrant.inference.log_odds_deviation import LogOddsDeviation
from calibrant.inference.multiplicity import join_tests
from calibrant.inference.resampling import uses_threads
from calibrant.inference.residual_tests import residual_test
from calibrant.metrics.log_odds import LogOddsError
from calibrant.results.hypothesis_tests import OmnibusTest
from calibrant.results.uncertainty import Equivalence, Interval, Null
from calibrant.tables.score_table import ScoreTable

__all__ = ["BinaryTests", "Decision", "decide", "decide_without_tests"]


@dataclass(frozen=True, repr=False)
class Decision:
    """The tests behind a verdict.

    Attributes
    ----------
    omnibus : OmnibusTest
        The tests of calibration, each with its own p-value and the one adjusted by Holm: the probability that one of
        them is at most alpha for a calibrated model is at most alpha.
    log_odds_error : Interval
        Estimate with confidence interval.
    null : Null
        The log-odds error if the model is calibrated.
    equivalence : Equivalence
        Whether the deviation is shown to lie within the margin.
    information : float
        Effective information of the rows: for rare events about the expected number of events.
    fine_bound : float
        Upper limit of the log-odds error over fine bins, if only this one is beyond the margin; else 0.
    n_clusters : int or None
        Number of clusters; None where rows are independent.

    See Also
    --------
    BinaryDetails, Equivalence

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [500, 500, 500], [90, 190, 330])
    >>> decision = cb.evaluate(table).decision
    >>> decision.pvalue < 0.001, decision.direction(alpha=0.05)
    (True, 'overconfident')
    """

    omnibus: OmnibusTest
    log_odds_error: Interval
    null: Null
    equivalence: Equivalence
    information: float
    fine_bound: float = 0.0
    n_clusters: int | None = None

    @property
    def pvalue(self) -> float:
        """p-value of the joint test: the smallest adjusted one; 1 without any test."""
        return self.omnibus.pvalue if self.omnibus.components else 1.0

    def direction(self, alpha: float, factor: float = 1.0) -> str:
        """Return the directions whose tests are significant.

        Parameters
        ----------
        alpha : float
            Significance level.
        factor : float, default=1
            Factor of the adjusted p-values, for several groups.

        Returns
        -------
        str
            '' if no direction is shown.
        """
        return self.omnibus.scale(factor).direction(alpha)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "pvalue": self.pvalue,
            "components": [component.to_dict() for component in self.omnibus.components.values()],
            "log_odds_error": self.log_odds_error.to_dict(),
            "equivalence": self.equivalence.to_dict(),
            "information": self.information,
            "fine_bound": self.fine_bound,
            "n_clusters": self.n_clusters,
        }

    def __repr__(self) -> str:
        return f"Decision({self.omnibus!r}, {self.log_odds_error!r}, {self.equivalence!r})"


NAME = "log-odds error"
# Up to this margin the variance is also taken at its ends; those of larger margins lie far from most errors.
_LARGEST_NEAR_MARGIN = 0.5


def decide(design: Design, *, margin: float, alpha: float, confidence_level: float) -> Decision:
    """Return the tests of a design, and its log-odds error with the equivalence test at a margin in log-odds."""
    tests = BinaryTests.from_design(design)
    deviation, tail = tests.deviation, (1 - confidence_level) / 2
    value, spec = deviation.value, LogOddsError().spec
    low, high = min(deviation.lower(tail), value), max(deviation.upper(tail), value)
    estimate = Interval(NAME, value, low, high, confidence_level, "inversion", "1", 0, spec)
    pvalue, bound = tests.equivalence_pvalue(margin, alpha), tests.bound(margin, alpha)
    within = Equivalence(NAME, value, margin, pvalue, alpha, bound, "1", 0, spec)
    fine = tests.fine_bound(margin, alpha) if deviation.pvalue(margin) <= alpha else 0.0
    null = _null(deviation, confidence_level)
    return Decision(tests.omnibus, estimate, null, within, design.information, fine, design.n_clusters)


@dataclass(frozen=True, eq=False)
class BinaryTests:
    """The joint test of a design, and its log-odds error."""

    omnibus: OmnibusTest
    deviation: LogOddsDeviation

    @classmethod
    def from_design(cls, design: Design) -> "BinaryTests":
        """Return all tests of a design."""
        deviation, threads = LogOddsDeviation(design), uses_threads(design.table)
        estimate = partial(getattr, deviation, "value")  # kept by the deviation
        components, _ = run_together(partial(binary_components, design), estimate, threads=threads)
        return cls(join_tests(components), deviation)

    def equivalence_pvalue(self, margin: float, alpha: float) -> float:
        """Return the p-value of the equivalence test.

        1 where an outcome is impossible, or the deviation over fine bins is significant and beyond the margin.
        """
        if self.omnibus.is_significant(IMPOSSIBLE, alpha) or self.fine_bound(margin, alpha) > margin:
            return 1.0
        return self.deviation.pvalue(margin)

    def bound(self, margin: float, alpha: float) -> float:
        """Return the upper limit of the log-odds error."""
        if self.omnibus.is_significant(IMPOSSIBLE, alpha):
            return float("inf")
        value = self.deviation.value
        near = margin if margin <= _LARGEST_NEAR_MARGIN and value <= 2 * margin else None
        return max(self.deviation.upper(alpha, near), value)

    def fine_bound(self, margin: float, alpha: float) -> float:
        """Return the upper limit over fine bins if their deviation is significant and beyond the margin; else 0."""
        if not self.omnibus.is_significant(FINE_BINS, alpha):
            return 0.0
        limit = self.deviation.upper_over_fine_bins(alpha, margin)
        return limit if limit > margin else 0.0


def decide_without_tests(table: ScoreTable, *, margin: float, alpha: float, confidence_level: float) -> Decision:
    """Return the decision where rows are in too few clusters for any test."""
    value, spec, nan = LogOddsError().value(table), LogOddsError().spec, float("nan")
    estimate = Interval(NAME, value, nan, nan, confidence_level, "none", "1", 0, spec)
    null = Null(NAME, value, nan, nan, nan, nan, "greater", confidence_level, "1", 0, spec)
    within = Equivalence(NAME, value, margin, 1.0, alpha, float("inf"), "1", 0, spec)
    return Decision(OmnibusTest(), estimate, null, within, 0.0)


def _null(deviation: LogOddsDeviation, level: float) -> Null:
    """Return the null distribution of the estimate, with the p-value of the deviation over the same bins."""
    low, high = deviation.null_quantiles(np.array([(1 - level) / 2, (1 + level) / 2])).tolist()
    expected = float(np.mean(deviation.null_quantiles((np.arange(200) + 0.5) / 200)))
    pvalue = residual_test(deviation.design, deviation.bins, "").pvalue if deviation.design.information > 0 else 1.0
    return Null(NAME, deviation.value, expected, low, high, pvalue, "greater", level, "1", 0, LogOddsError().spec)
