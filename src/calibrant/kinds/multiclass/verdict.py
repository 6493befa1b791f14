"""The verdict on class probabilities: omnibus test, class-wise log-odds error, classes, confusions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.lazy import cached_property
from calibrant._support.plain_data import PlainResult
from calibrant.inference.binary_components import IMPOSSIBLE
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.log_odds_deviation import MIN_INFORMATION, LogOddsDeviation
from calibrant.inference.multiplicity import holm, join_tests
from calibrant.inference.paired_rows import MIN_CLUSTERS
from calibrant.inference.region_tests import Limit, NamedRegions, join_regions, joint_test
from calibrant.kinds.log_odds import LogOddsEstimate
from calibrant.kinds.multiclass.components import (
    BinsOfClass,
    Cells,
    impossible_outcomes,
    temperature,
    top_label_deviation,
)
from calibrant.kinds.multiclass.confusions import Confusion, confusions
from calibrant.kinds.multiclass.design import ClassRows
from calibrant.kinds.multiclass.relevance import ClasswiseDeviation
from calibrant.metrics.bins import EqualInformation
from calibrant.metrics.log_odds import LogOddsError
from calibrant.results.uncertainty import Interval, Null
from calibrant.results.verdict import Claim, Deviation, OmnibusTest, TestResult, Verdict

NAME = "class-wise log-odds error"
FINE_BINS = "class-wise deviation over fine bins"
# Up to this margin the variance is also taken at its ends; those of larger margins lie far from most errors.
_LARGEST_NEAR_MARGIN = 0.5
# For clustered rows: clusters per cell (but one cell per class at least), and the largest number of cells.
_CLUSTERS_PER_CELL = 5
_MAX_CLUSTERED_CELLS = 2000
# With more classes, single classes are one of the tests. With fewer, the tests of all classes detect single ones too.
_FEW_CLASSES = 10
# Shifts of classes that are significant at this level are estimated freely before the temperature is tested.
_SHIFT_LEVEL = 0.05
_MAX_CONFUSIONS = 100


@dataclass(frozen=True)
class ClassDeviation(PlainResult):
    """One class against the rest.

    Attributes
    ----------
    label : int
        The column of the class.
    n, predicted, observed : float
        Rows of this class (or their weight), its mean probability and its rate.
    log_odds_error, low, high : float
        Estimate with confidence interval, of this class alone.
    pvalue : float
        p-value of the omnibus test of this class alone.
    adjusted_pvalue : float
        The same, adjusted by Holm over classes and at least the p-value of the omnibus test of all classes.
    in_the_large : float
        The p-value of the class's calibration in the large, adjusted in the same way.
    side : str
        "underestimates" where the class is more frequent than predicted, "overestimates" where less.

    See Also
    --------
    MulticlassDetails, Confusion

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([2, 2, 2], 1000)
    >>> y = (proba.cumsum(axis=1) > rng.random((1000, 1)) ** 2).argmax(axis=1)
    >>> details = cb.evaluate(y, proba, n_resamples=99).details
    >>> [(each.label, each.side) for each in details.classes]
    [(0, 'underestimates'), (1, 'overestimates'), (2, 'overestimates')]
    """

    label: int
    n: float
    predicted: float
    observed: float
    log_odds_error: float
    low: float
    high: float
    pvalue: float
    adjusted_pvalue: float
    in_the_large: float
    side: str

    def direction(self, alpha: float, factor: float = 1.0) -> str:
        """Return "overestimates" or "underestimates" if that is shown, else ''; `factor` adjusts further.

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
        return self.side if self.in_the_large * factor <= alpha else ""

    def without_inference(self) -> Self:
        """Return the estimates without tests and intervals, for rows in too few clusters.

        Returns
        -------
        ClassDeviation
            Limits and p-values are NaN.
        """
        nan = math.nan
        return replace(self, low=nan, high=nan, pvalue=nan, adjusted_pvalue=nan, in_the_large=nan)


class ClassesVerdict(NamedTuple):
    """The verdict on class probabilities, with the estimate, each class, and confused pairs of classes."""

    verdict: Verdict
    estimate: LogOddsEstimate
    classes: tuple[ClassDeviation, ...]
    confusions: tuple[Confusion, ...]
    n_confusions: int


def _pvalue(omnibus: OmnibusTest) -> float:
    return omnibus.pvalue if omnibus.components else 1.0


def decide_classes(
    proba: Floats,
    code: Ints,
    *,
    weight: Floats | None = None,
    frequency: Ints | None = None,
    cluster: Ints | None = None,
    margin: float = 0.1,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    labels: Sequence[Any] = (),
) -> ClassesVerdict:
    """Return the tests of class probabilities, and their class-wise log-odds error with its equivalence test.

    Parameters
    ----------
    proba : ndarray of shape (n, K)
        Predicted probabilities, checked; rows sum to 1.
    code : ndarray of int
        The column of each row's class.
    weight, frequency : ndarray, optional
        Importance weights, or numbers of equal rows; not both.
    cluster : ndarray of int, optional
        Codes of clusters, at least 10; rows of a cluster may depend on each other.
    margin : float
        In log-odds.
    alpha, confidence_level : float
        Level of the lists of confusions and of the equivalence test, and of intervals.
    labels : sequence, optional
        The classes, as regions are named; by default their columns.

    Notes
    -----
    The components of the omnibus test are: impossible outcomes; calibration in the large over classes; temperature; the
    deviation of the highest probability over bins; the class-wise deviation over coarse and over fine bins; the
    deviation in regions of the scores of a class, adjusted by Holm over classes; with more than 10 classes instead of
    it the smallest p-value of a single class, whose test has its regions. A class or a confusion is significant only if
    the omnibus test is.
    """
    rows = ClassRows.from_arrays(proba, code, weight, frequency, cluster)
    tests = ClassTests.from_rows(rows, labels or range(rows.n_classes), margin, alpha, confidence_level)
    parts = [each.regions for each in tests.each]
    omnibus = join_tests(tests.components())
    classes = tests.classes(_pvalue(omnibus))
    pairs = confusions(rows, _pvalue(omnibus), alpha)
    deviations = _Deviations.from_tests(tests, omnibus, np.array([each.adjusted_pvalue <= alpha for each in classes]))
    error, null, deviation = deviations.results(margin, alpha, confidence_level)
    fine = deviations.fine_bound(margin, alpha)
    claims = tuple(Claim(each.side, each.in_the_large) for each in classes)
    verdict = Verdict(omnibus, deviation, alpha, claims)
    regions = join_regions(parts, alpha, is_small=deviations.error_pvalue(margin, alpha) <= alpha)
    estimate = LogOddsEstimate(error, null, tests.information, fine, rows.n_clusters, regions)
    return ClassesVerdict(verdict, estimate, tuple(classes), tuple(pairs[:_MAX_CONFUSIONS]), len(pairs))


@dataclass(frozen=True, eq=False)
class ClassTest:
    """One class against the rest: its entry in the table of classes, its regions and its bins."""

    decision: ClassDeviation
    in_the_large: float
    regions: NamedRegions
    information: float
    whole: BinsOfClass
    coarse: BinsOfClass
    fine: BinsOfClass

    @classmethod
    def from_column(
        cls, rows: ClassRows, label: int, p: Floats, name: Any, limit: Limit, alpha: float, confidence_level: float
    ) -> "ClassTest":
        """Count one class against the rest and test it; messages call it `name`."""
        design, place = rows.design(rows.code == label, p)
        tests, table = BinaryTests.from_design(design), design.table
        large = tests.omnibus.components["calibration in the large"]
        deviation = tests.deviation
        size, events, expected = (float(np.sum(each)) for each in (table.n, table.k, table.n * table.score))
        numbers = (events, expected / size, events / size, *_estimate(deviation, (1 - confidence_level) / 2))
        decision = ClassDeviation(label, *numbers, tests.omnibus.pvalue, 1.0, 1.0, large.direction)
        coarse, fine = deviation.bins, None
        if rows.n_clusters is None:
            fine = design.fine_bins
        elif len(coarse) > _max_bins(rows):
            coarse = design.logits.bins(EqualInformation(_max_bins(rows))(table).start)
        whole, some = (BinsOfClass.from_design(rows, design, bins, place) for bins in (design.logits.whole, coarse))
        more = some if fine is None else BinsOfClass.from_design(rows, design, fine, place)
        regions = NamedRegions.measure(f"class {name}", tests.regions, large, limit, alpha, confidence_level)
        return cls(decision, large.pvalue, regions, design.information, whole, some, more)


def _estimate(deviation: LogOddsDeviation, tail: float) -> tuple[float, float, float]:
    """Return the log-odds error with its limits; where all scores are 0 or 1 it is 0, or infinite."""
    if deviation.design.information == 0:
        return 0.0 if np.all(deviation.bins.residual == 0) else float("inf"), 0.0, float("inf")
    value = deviation.value
    return value, min(deviation.lower(tail), value), max(deviation.upper(tail), value)


def _max_bins(rows: ClassRows) -> int:
    """Return the number of bins of a class for which the covariance of clusters can be estimated and stored."""
    assert rows.n_clusters is not None
    by_clusters = rows.n_clusters // (_CLUSTERS_PER_CELL * rows.n_classes)
    by_memory = min(rows.n_rows // (2 * rows.n_clusters), _MAX_CLUSTERED_CELLS // rows.n_classes)
    return max(min(by_clusters, by_memory), 1)


@dataclass(frozen=True, eq=False)
class ClassTests:
    """The tests of all classes, and the cells of their bins: whole classes, coarse bins and fine bins."""

    rows: ClassRows
    each: Sequence[ClassTest]

    @classmethod
    def from_rows(
        cls, rows: ClassRows, names: Sequence[Any], margin: float, alpha: float, confidence_level: float
    ) -> "ClassTests":
        """Count each class against the rest and test it."""
        settings = Limit(margin, rows.n_classes), alpha, confidence_level
        return cls(rows, [ClassTest.from_column(rows, c, p, names[c], *settings) for c, p in rows.columns()])

    @cached_property
    def whole(self) -> Cells:
        """One cell per class."""
        return Cells.from_classes(self.rows, [each.whole for each in self.each])

    @cached_property
    def coarse(self) -> Cells:
        """Bins of equal information of each class."""
        return Cells.from_classes(self.rows, [each.coarse for each in self.each])

    @cached_property
    def fine(self) -> Cells | None:
        """Fine bins of each class; None where they would be at most twice as many as coarse ones."""
        count = sum(each.fine.bins.residual.size for each in self.each)
        return (
            Cells.from_classes(self.rows, [each.fine for each in self.each]) if count > 2 * len(self.coarse) else None
        )

    @cached_property
    def information(self) -> float:
        """Effective information of all classes."""
        return sum(each.information for each in self.each) / 2

    @cached_property
    def pvalues(self) -> Floats:
        """p-values of the omnibus tests of classes, adjusted by Holm over classes."""
        return holm([each.decision.pvalue for each in self.each])

    @cached_property
    def in_the_large(self) -> Floats:
        """p-values of the calibration in the large of classes, adjusted by Holm over classes."""
        return holm([each.in_the_large for each in self.each])

    def components(self) -> list[TestResult]:
        """Return the tests that exist for these rows."""
        found = impossible_outcomes(self.rows)
        if not self.information > 0:
            return found
        found.append(self.whole.component("calibration in the large"))
        found += temperature(self.rows, self.whole, self.in_the_large <= _SHIFT_LEVEL)
        found += top_label_deviation(self.rows)
        if len(self.coarse) > len(self.whole):
            found.append(self.coarse.component("class-wise deviation over bins"))
        if self.fine is not None:
            found.append(self.fine.component(FINE_BINS))
        if self.rows.n_classes <= _FEW_CLASSES:
            found += joint_test([each.regions for each in self.each])
        else:
            smallest = min(each.decision.pvalue for each in self.each)
            found.append(TestResult(smallest, float(self.pvalues.min()), "single classes"))
        return found

    def classes(self, pvalue: float) -> list[ClassDeviation]:
        """Return the table of classes, whose adjusted p-values are at least that of the omnibus test."""
        adjusted, large = (np.maximum(each, pvalue).tolist() for each in (self.pvalues, self.in_the_large))
        lines = zip(self.each, adjusted, large, strict=True)
        return [replace(each.decision, adjusted_pvalue=a, in_the_large=b) for each, a, b in lines]


@dataclass(frozen=True, eq=False)
class _Deviations:
    """The class-wise log-odds error over coarse and fine bins, with its equivalence test."""

    tests: ClassTests
    omnibus: OmnibusTest
    coarse: ClasswiseDeviation
    fine: ClasswiseDeviation | None

    @classmethod
    def from_tests(cls, tests: ClassTests, omnibus: OmnibusTest, miscalibrated: Bools) -> "_Deviations":
        """Return the deviations, given the classes that are shown to be miscalibrated."""
        largest = _largest_eigenvalue(tests.rows)
        fine = None if tests.fine is None else ClasswiseDeviation(tests.fine, miscalibrated, largest)
        return cls(tests, omnibus, ClasswiseDeviation(tests.coarse, miscalibrated, largest), fine)

    def fine_bound(self, margin: float, alpha: float) -> float:
        """Return the upper limit over fine bins if their deviation is significant and beyond the margin; else 0."""
        if self.fine is None or not self.omnibus.is_significant(FINE_BINS, alpha):
            return 0.0
        limit = self.fine.upper(alpha, margin)
        return limit if limit > margin else 0.0

    def results(self, margin: float, alpha: float, level: float) -> tuple[Interval, Null, Deviation]:
        """Return the estimate with its interval, its null distribution, and the equivalence test."""
        spec, tail, value = LogOddsError().spec, (1 - level) / 2, self.coarse.value
        low, high = min(self.coarse.lower(tail), value), max(self.coarse.upper(tail), value)
        estimate = Interval(NAME, value, low, high, level, "inversion", "1", 0, spec)
        least, most = self.coarse.null_quantiles(np.array([tail, 1 - tail])).tolist()
        expected = float(np.mean(self.coarse.null_quantiles((np.arange(200) + 0.5) / 200)))
        over_bins = self.tests.coarse.component("").pvalue
        null = Null(NAME, value, expected, least, most, over_bins, "greater", level, "1", 0, spec)
        pvalue, bound = self._equivalence(margin, alpha)
        deviation = Deviation(NAME, "", value, low, high, level, margin, bound, pvalue <= alpha, pvalue)
        return estimate, null, deviation

    def _equivalence(self, margin: float, alpha: float) -> tuple[float, float]:
        """Return p-value and upper limit; each region of each class must be shown to lie within its factor."""
        if self.omnibus.is_significant(IMPOSSIBLE, alpha):
            return 1.0, float("inf")
        near = margin if margin <= _LARGEST_NEAR_MARGIN and self.coarse.value <= 2 * margin else None
        bound = max(self.coarse.upper(alpha, near), self.coarse.value)
        pvalue = self.error_pvalue(margin, alpha)
        return pvalue if pvalue > alpha else max(pvalue, *(each.regions.within for each in self.tests.each)), bound

    def error_pvalue(self, margin: float, alpha: float) -> float:
        """Return the p-value of the class-wise error alone.

        1 where an outcome is impossible, where information or clusters are too few, or where fine bins deviate.
        """
        rows = self.tests.rows
        few = self.tests.information < MIN_INFORMATION or (rows.cluster is not None and rows.degrees + 1 < MIN_CLUSTERS)
        if few or self.omnibus.is_significant(IMPOSSIBLE, alpha) or self.fine_bound(margin, alpha) > margin:
            return 1.0
        return self.coarse.pvalue(margin)


def _largest_eigenvalue(rows: ClassRows) -> float:
    """Return a bound of the eigenvalues of the covariance of residual sums, divided by their variances.

    It is 2 for counts. For importance weights it is that of the sums of whole classes, if larger.
    """
    if not rows.importance:
        return 2.0
    covariance = rows.class_covariance
    root = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    return max(2.0, float(np.linalg.eigvalsh(covariance / np.outer(root, root))[-1]))
