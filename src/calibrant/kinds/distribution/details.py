"""`DistributionDetails`: results that only evaluations of predictive distributions have."""

from dataclasses import dataclass, field, replace

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.formatting import short_repr
from calibrant.kinds.point.details import PointDetails
from calibrant.results.verdict import TestResult


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
    pit : ndarray
        PIT values of the rows.

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
    pit: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    def without_inference(self, n_clusters: int) -> "DistributionDetails":
        """Return the estimates without tests and intervals, for rows in too few clusters."""
        line = None if self.line is None else self.line.without_inference()
        return replace(self, line=line, n_clusters=n_clusters, other_tests=())
