"""The tests of a binary forecast: one omnibus test, and the equivalence test of its log-odds error.

Kinds that judge several classes, or several thresholds of ordered classes, apply the same tests to each of them.
"""

from dataclasses import dataclass

from calibrant.inference.binary_components import (
    FINE_BINS,
    IMPOSSIBLE,
    IN_THE_LARGE,
    binary_components,
    component_shares,
)
from calibrant.inference.design import Design
from calibrant.inference.log_odds_deviation import LogOddsDeviation
from calibrant.inference.multiplicity import join_tests
from calibrant.inference.region_tests import Limit, RegionTests
from calibrant.results.regions import Regions
from calibrant.results.verdict import OmnibusTest

# Up to this margin the variance is also taken at its ends; those of larger margins lie far from most errors.
_LARGEST_NEAR_MARGIN = 0.5


@dataclass(frozen=True, eq=False)
class BinaryTests:
    """The omnibus test of a design, its log-odds error, and its regions if it has any."""

    omnibus: OmnibusTest
    deviation: LogOddsDeviation
    regions: RegionTests | None

    @classmethod
    def from_design(cls, design: Design) -> "BinaryTests":
        """Return all tests of a design."""
        regions = RegionTests.from_design(design)
        omnibus = join_tests(binary_components(design, regions), component_shares(design))
        return cls(omnibus, LogOddsDeviation(design), regions)

    def equivalence_pvalue(self, margin: float, alpha: float, limit: Limit | None = None) -> float:
        """Return the p-value of the equivalence test.

        The larger one of that of the log-odds error and, if this one is small, that of the regions. 1 where an outcome
        is impossible, or the deviation over fine bins is significant and beyond the margin.
        """
        pvalue = self.error_pvalue(margin, alpha)
        if self.regions is None or pvalue > alpha:
            return pvalue
        return max(pvalue, self.regions.equivalence_pvalue(alpha, limit or Limit(margin)))

    def error_pvalue(self, margin: float, alpha: float) -> float:
        """Return the p-value of the equivalence test of the log-odds error alone, without the regions."""
        if self.omnibus.is_significant(IMPOSSIBLE, alpha) or self.fine_bound(margin, alpha) > margin:
            return 1.0
        return self.deviation.pvalue(margin)

    def region_results(self, margin: float, alpha: float, level: float, limit: Limit | None = None) -> Regions | None:
        """Return which regions deviate, and which ones are not shown to lie within their factor."""
        if self.regions is None:
            return None
        is_small = self.error_pvalue(margin, alpha) <= alpha
        whole = self.omnibus.components[IN_THE_LARGE]
        return self.regions.summary(alpha, level, limit or Limit(margin), is_small=is_small, whole=whole)

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
