"""The tests of a binary forecast: one omnibus test, and the equivalence test of its log-odds error.

Kinds that judge several classes, or several thresholds of ordered classes, apply the same tests to each of them.
"""

from dataclasses import dataclass

from calibrant.inference.binary_components import FINE_BINS, IMPOSSIBLE, binary_components, component_shares
from calibrant.inference.design import Design
from calibrant.inference.log_odds_deviation import LogOddsDeviation
from calibrant.inference.multiplicity import join_tests
from calibrant.results.verdict import OmnibusTest

# Up to this margin the variance is also taken at its ends; those of larger margins lie far from most errors.
_LARGEST_NEAR_MARGIN = 0.5


@dataclass(frozen=True, eq=False)
class BinaryTests:
    """The omnibus test of a design, and its log-odds error."""

    omnibus: OmnibusTest
    deviation: LogOddsDeviation

    @classmethod
    def from_design(cls, design: Design) -> "BinaryTests":
        """Return all tests of a design."""
        return cls(join_tests(binary_components(design), component_shares(design)), LogOddsDeviation(design))

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
