"""`DistributionDetails`: results that only evaluations of predictive distributions have."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.formatting import short_repr
from calibrant.kinds.point.details import PointDetails
from calibrant.metrics.frequencies import CountFrequencies
from calibrant.results.verdict import Deviation, TestResult

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation


@dataclass(frozen=True, eq=False)
class DistributionDetails(PointDetails):
    """Results that only evaluations of predictive distributions have, in addition to those of their means.

    Attributes
    ----------
    line : LinearFit or None
        Regression of outcomes on predicted means; None where all are equal, or where forecasts have no means.
    decomposition : MSEDecomposition
        CORP decomposition of the mean squared error.
    n_clusters : int or None
    other_tests : tuple of TestResult
        Tests of the PIT values: Anderson-Darling, Kolmogorov-Smirnov and chi-squared, with p-values for independent
        rows.
    deviations : tuple of Deviation
        Coverage error; the bias by bin of the means, if there are means; and the coverage error by predicted width, if
        widths differ. All must lie within their margins; the verdict shows the one that is farthest from it.
    pit : ndarray
        PIT values of the rows; random in the interval of those that are known up to one.
    pit_low, pit_high : ndarray
        Bounds of the PIT values of discrete distributions; elsewhere both are `pit`.
    has_means : bool
        Whether the point predictions are means, not medians.
    is_discrete : bool
        Whether the distributions are discrete.
    counts : CountFrequencies or None
        Observed and expected frequencies of counts, for discrete distributions.

    See Also
    --------
    Evaluation, PointDetails, Verdict

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> m = rng.normal(size=500)
    >>> details = cb.evaluate(m + rng.normal(size=500), cb.Gaussian(m, np.full(500, 2.0))).details
    >>> details.pit.size, [test.name for test in details.other_tests]
    (500, ['Anderson-Darling', 'Kolmogorov-Smirnov', 'chi-squared'])
    """

    __repr__ = short_repr

    other_tests: tuple[TestResult, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    pit: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    pit_low: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    pit_high: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    has_means: bool = True
    is_discrete: bool = False
    counts: CountFrequencies | None = field(default=None, repr=False)

    directions: ClassVar[Mapping[str, str]] = {
        "heavy tails": "has tails that are too light (heavy tails of the outcomes)",
        "light tails": "has tails that are too heavy (light tails of the outcomes)",
    }

    @property
    def point_name(self) -> str:
        """What the point predictions of the rows are."""
        return "prediction" if self.has_means else "predicted median"

    def bounded(self, e: "Evaluation") -> tuple[Deviation, ...]:
        """Return the deviations that must lie within their margins."""
        return self.deviations

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON, without the values of rows."""
        return {
            **super().to_dict(),
            "deviations": [each.to_dict() for each in self.deviations],
            "has_means": self.has_means,
            "counts": None if self.counts is None else self.counts.to_dict(),
        }

    def without_inference(self, n_clusters: int) -> "DistributionDetails":
        """Return the estimates without tests and intervals, for rows in too few clusters."""
        line = None if self.line is None else self.line.without_inference()
        deviations = tuple(each.without_bounds() for each in self.deviations)
        return replace(self, line=line, n_clusters=n_clusters, other_tests=(), deviations=deviations)
