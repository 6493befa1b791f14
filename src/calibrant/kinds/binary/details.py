"""`BinaryDetails`: results that only evaluations of predicted probabilities have."""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import SeedSequence

from calibrant._support.arrays import Weights
from calibrant._support.errors import InputError
from calibrant._support.formatting import p_text, short_percent, short_repr
from calibrant._support.lazy import cached_property
from calibrant._support.plain_data import plain
from calibrant._support.workers import run_together
from calibrant.inference.bands import Band, cumulative_band
from calibrant.inference.calibration_tests import TESTS_OF_FITS, TESTS_OF_SUMS, ecce_test
from calibrant.inference.design import Design
from calibrant.inference.levels import CalibrationLevels, calibration_levels, coefficients
from calibrant.inference.region_tests import usual_shares
from calibrant.kinds.log_odds import LogOddsDetails, LogOddsEstimate, consequence, explanation
from calibrant.metrics.bins import EqualInformation, EqualSize
from calibrant.metrics.calibration_errors import Ecce, ecce
from calibrant.metrics.costs import LinearCost
from calibrant.metrics.gce import GCE, Breakdown, RejectionProfile
from calibrant.metrics.losses import CostLoss, absolute_gap
from calibrant.metrics.norms import weighted_l1
from calibrant.metrics.proper_scores import CorpDecomposition, corp_decomposition
from calibrant.results.regions import Region
from calibrant.results.sentences import differences_text, groups_differ
from calibrant.results.settings import Settings
from calibrant.results.text import mean_score, n_rows, rows_text
from calibrant.results.uncertainty import Estimate
from calibrant.results.verdict import TestResult
from calibrant.tables.score_table import ScoreTable

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation


@dataclass(frozen=True, eq=False)
class CumulativeDifferences:
    """ECCE with its null band and test, for the diagram of cumulative differences.

    Attributes
    ----------
    ecce : Ecce
    band : Band
    test : TestResult or None
        None where it is undefined: with importance weights, or with scores of 0 and 1 only.

    See Also
    --------
    ecce, CumulativeDisplay

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> found = cb.evaluate(table).details.cumulative
    >>> round(found.ecce.mad, 3), round(found.test.pvalue, 2)
    (0.03, 0.37)
    """

    __repr__ = short_repr

    ecce: Ecce
    band: Band
    test: TestResult | None

    @classmethod
    def measure(cls, table: ScoreTable) -> "CumulativeDifferences":
        """Compute ECCE, its band and its test for a table.

        Parameters
        ----------
        table : ScoreTable
            Table of the rows.

        Returns
        -------
        CumulativeDifferences
            Its test is None where the data do not allow one.
        """
        try:
            test: TestResult | None = ecce_test(table, kind="mad")
        except InputError:
            test = None
        return cls(ecce(table), cumulative_band(table), test)


_USUAL = (0.01, 0.05)
# Significance levels: 58 in geometric progression, and the usual two.
ALPHAS: tuple[float, ...] = tuple(sorted({*(float(f"{a:.3g}") for a in np.geomspace(1e-6, 0.4, 58)), *_USUAL}))
# Cost of underestimation by one point if overestimation by one point costs 1.
RATIOS: tuple[float, ...] = tuple(float(f"{r:.3g}") for r in np.geomspace(0.05, 20, 41))


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """TCE as a function of the significance level, and ECC as a function of the cost ratio.

    Attributes
    ----------
    alphas : tuple of float
        `ALPHAS` and the level of the test-based breakdown.
    tce : tuple of float
        The test-based metric at each level, in percent, over the bins of the breakdown.
    rejected : ndarray of shape (number of levels, number of bins)
        Number of rejected rows (or their weight) per level and bin.
    ecc : tuple of float
        ECC at each of `RATIOS`, over the bins of ECE.
    alpha : float
        Level of the test-based breakdown.
    n : ndarray
        Number of rows of each bin (or their weight).

    See Also
    --------
    Evaluation, AbsoluteMargin

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.results import Sensitivity
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> found = Sensitivity.measure(cb.TCE(bins=cb.bins.EqualWidth(2))(table), cb.ECE()(table))
    >>> min(found.alphas), max(found.alphas), round(min(found.tce), 1), round(max(found.tce), 1)
    (1e-06, 0.4, 33.3, 100.0)
    """

    alphas: tuple[float, ...]
    tce: tuple[float, ...]
    rejected: Weights
    ecc: tuple[float, ...]
    alpha: float
    n: Weights

    @property
    def ratios(self) -> tuple[float, ...]:
        """Costs of underestimation, where overestimation costs 1."""
        return RATIOS

    @classmethod
    def measure(cls, tested: Breakdown, ece: Breakdown) -> "Sensitivity":
        """Compute both functions from the test-based breakdown and that of ECE.

        Parameters
        ----------
        tested : Breakdown
            Result of TCE.
        ece : Breakdown
            Result of ECE, whose bins ECC uses.

        Returns
        -------
        Sensitivity
            TCE at several significance levels, and ECC at several cost ratios.
        """
        loss: Any = tested.definition.loss
        alphas = tuple(sorted({*ALPHAS, float(loss.alpha)}))
        partition = tested.partition
        losses = np.array([replace(loss, alpha=alpha)(partition) for alpha in alphas])
        rejected = losses / 100 * partition.n
        if not partition.table.importance:
            rejected = np.rint(rejected).astype(np.int64)
        tce = tuple(float(row @ partition.n / partition.n.sum()) for row in losses)
        losses_by_ratio = (CostLoss(LinearCost(over=1, under=ratio))(ece.partition) for ratio in RATIOS)
        costs = tuple(float(weighted_l1(each, ece.partition.n)) for each in losses_by_ratio)
        return cls(alphas, tce, rejected, costs, float(loss.alpha), partition.n)


@dataclass(frozen=True, eq=False)
class BinaryDetails(LogOddsDetails):
    """Results that only evaluations of probabilities have; those that the verdict does not need are computed on demand.

    Attributes
    ----------
    estimate : LogOddsEstimate
        The log-odds error with interval and null distribution, and the information of the rows.
    table : ScoreTable
    design : Design or None
        None if nothing is tested.
    tested, ece : Breakdown
        The test-based breakdown, and that of ECE.
    settings : Settings
    seed : SeedSequence

    See Also
    --------
    Evaluation, CalibrationLevels, Verdict

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> details = cb.evaluate(table).details
    >>> round(details.log_odds_error.value, 2), round(details.decomposition.mcb, 4)
    (0.2, 0.0023)
    """

    __repr__ = short_repr
    coefficient_format = ".3f"

    table: ScoreTable
    design: Design | None
    tested: Breakdown
    ece: Breakdown
    settings: Settings
    seed: SeedSequence

    @classmethod
    def without_estimate(cls, *measured: Any) -> "BinaryDetails":
        """Return details whose estimate is given later, by `with_estimate`.

        Parameters
        ----------
        *measured
            The other fields in their order.

        Returns
        -------
        BinaryDetails
        """
        unknown: Any = None
        return cls(unknown, *measured)

    def with_estimate(self, estimate: LogOddsEstimate) -> "BinaryDetails":
        """Return the details with the estimate, which is known later than others; what was computed is kept.

        Parameters
        ----------
        estimate : LogOddsEstimate
            The log-odds error.

        Returns
        -------
        BinaryDetails
        """
        details = copy(self)
        object.__setattr__(details, "estimate", estimate)
        return details

    def without_inference(self, n_clusters: int) -> "BinaryDetails":
        """Return the estimates without tests and intervals, for rows in too few clusters."""
        return replace(self, estimate=self.estimate.without_inference(n_clusters), design=None)

    @cached_property
    def coefficients(self) -> tuple[Estimate, ...]:  # type: ignore[override]  # computed on demand
        """Calibration in the large, calibration slope and Cox's intercept, where they exist."""
        return () if self.design is None else coefficients(self.design, self.settings.confidence_level)

    @property
    def other_tests(self) -> tuple[TestResult, ...]:  # type: ignore[override]  # computed on demand
        """Tests that do not decide the verdict; some are undefined for few rows, or for scores of 0 and 1 only."""
        return self._tests_of_sums + self._tests_of_fits

    @cached_property
    def _tests_of_sums(self) -> tuple[TestResult, ...]:
        return self._tests(TESTS_OF_SUMS)

    @cached_property
    def _tests_of_fits(self) -> tuple[TestResult, ...]:
        return self._tests(TESTS_OF_FITS)

    def _tests(self, tests: Iterable[Callable[..., TestResult]]) -> tuple[TestResult, ...]:
        found: list[TestResult] = []
        for test in tests if self.design is not None else ():
            try:
                found.append(test(self.design, n_resamples=self.settings.n_resamples, random_state=self.seed))
            except InputError:
                continue
        return tuple(found)

    @cached_property
    def levels(self) -> CalibrationLevels | None:
        """Levels of calibration: mean, weak and moderate; None if nothing is tested."""
        design, level = self.design, self.settings.confidence_level
        return None if design is None else calibration_levels(design, self.coefficients, level)

    @cached_property
    def shares(self) -> tuple[Region, ...]:
        """O/E of the top 0.1, 1 and 5 % of the rows and of their bottom half, where they have at least 30 rows."""
        return () if self.design is None else usual_shares(self.design, self.settings.confidence_level)

    @cached_property
    def decomposition(self) -> CorpDecomposition:
        """CORP decomposition of the Brier score."""
        return corp_decomposition(self.table)

    @cached_property
    def cumulative(self) -> CumulativeDifferences:
        """ECCE with its null band and test."""
        return CumulativeDifferences.measure(self.table)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """TCE at other significance levels and ECC at other cost ratios, for the sliders of the report."""
        return Sensitivity.measure(self.tested, self.ece)

    @cached_property
    def reliability(self) -> Breakdown:
        """Bins of the reliability diagram of the report: of equal information where scores crowd an end, else ACE's."""
        bins = EqualInformation(10) if self.table.crowds_end else EqualSize(10)
        return GCE(bins, absolute_gap, weighted_l1, name="calibration gap")(self.table)

    @cached_property
    def rejection_profile(self) -> RejectionProfile | None:
        """Decisions of the test of TCE within each bin, for its diagram."""
        return RejectionProfile.measure(self.tested)

    def complete(self) -> None:
        """Compute all results now."""
        of_design = attrgetter(
            "_tests_of_fits", "coefficients", "levels", "shares"
        )  # the decision computes much of these
        of_table = attrgetter(
            "_tests_of_sums", "decomposition", "cumulative", "sensitivity", "reliability", "rejection_profile"
        )
        run_together(partial(of_design, self), partial(of_table, self), rows=len(self.table))

    @cached_property
    def rows_needed(self) -> int | None:
        """Number of further rows that would probably decide an inconclusive verdict, where it is known."""
        margin, alpha = self.settings.margin, self.settings.alpha
        if not isinstance(margin, float) or not self.information > 0:
            return None
        from calibrant.inference.power import rows_to_decide  # loaded when it is needed

        return rows_to_decide(n_rows(self.table), self.information, margin, alpha)

    def event_share(self, table: ScoreTable) -> float:
        """Return the expected events per row: the mean score."""
        return mean_score(table)

    def sentences(self, e: "Evaluation") -> list[str]:
        """Return the explanation of the verdict and its consequence at the mean score."""
        return [text for text in (explanation(e), consequence(e)) if text]

    def further_reasons(self, e: "Evaluation") -> Iterator[str]:
        """State the levels of calibration; groups have none, because a curve for each of many is slow."""
        if e.decision.adjusted_pvalue is None and self.shares:
            texts = (f"{region.name} {region.ratio_text().removeprefix('O/E ')}" for region in self.shares)
            yield f"Observed over expected events: {'; '.join(texts)}."
        if e.decision.adjusted_pvalue is None and self.levels is not None:
            levels = _levels(self.levels, is_significant=e.is_significant)
            yield f"Levels of calibration: {'; '.join([*levels, _strong(e)])}."

    def event_means(self, table: ScoreTable) -> tuple[float, float]:
        """Return the mean score and the event rate."""
        return mean_score(table), float(table.prevalence)

    def sizes(self, table: ScoreTable) -> dict[str, Any]:
        """Return the number of events, the event rate and the mean score."""
        return {"positives": table.positives, "event_rate": table.prevalence, "mean_score": mean_score(table)}

    def frame_columns(self, table: ScoreTable) -> dict[str, Any]:
        """Return the columns of a frame that describe the rows."""
        return {"rows": n_rows(table), "event_rate": table.prevalence}

    def region_text(self, e: "Evaluation") -> str:
        """Return where the deviation lies, as the end of a headline."""
        return f", mostly {self.regions.deviating[0].where}" if e.region and self.regions else ""

    def sizes_text(self, table: ScoreTable) -> str:
        """Format the number of rows, the mean score and the event rate."""
        predicted, observed = 100 * mean_score(table), 100 * table.prevalence
        weighted = "weighted " if table.importance else ""
        return f"{rows_text(table)}; {weighted}mean score {predicted:.4g} %, {weighted}event rate {observed:.4g} %"

    def mean_texts(self) -> dict[str, str]:
        """Return mean score and event rate."""
        return {"mean score": short_percent(mean_score(self.table)), "event rate": short_percent(self.table.prevalence)}

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        test = self.cumulative.test
        return {
            **self.estimate_dict(),
            "decomposition": plain(self.decomposition),
            "ecce": plain(self.cumulative.ecce),
            "ecce_test": None if test is None else test.to_dict(),
        }

    def slow_to_dict(self) -> dict[str, Any]:
        """Return O/E of shares of the rows, and the levels of calibration, whose curve is slow."""
        shares = {"shares": [region.to_dict() for region in self.shares]}
        return shares if self.levels is None else {**shares, "levels": self.levels.to_dict()}


def _levels(levels: CalibrationLevels, *, is_significant: bool) -> Iterator[str]:
    """State mean, weak and moderate calibration; a band shows a deviation only if the omnibus test is significant."""
    if levels.mean is not None:
        yield f"mean, O/E {levels.mean.value:.3f} ({levels.mean.low:.3f} to {levels.mean.high:.3f})"
    slope = next((each for each in levels.weak if each.name == "calibration slope"), None)
    if slope is not None:
        yield f"weak, slope {slope.value:.3f} ({slope.low:.3f} to {slope.high:.3f})"
    curve = levels.moderate
    if curve is not None:
        errors = f"ICI {curve.errors.ici:.4f} and Emax {curve.errors.emax:.4f}"
        band = f"whose {100 * curve.level:g} % band"
        text = f"{band} contains the diagonal" if levels.contains_diagonal else f"{band} excludes the diagonal"
        if not (levels.contains_diagonal or is_significant):
            text = "whose deviation from the diagonal is not significant with the omnibus test"
        yield f"moderate, curve with {errors}, {text}"


def _strong(e: Any) -> str:
    """State how many groups are miscalibrated: no test shows strong calibration."""
    if not e.groups:
        return "strong, not tested without groups (by=)"
    found = f"strong, {e.n_miscalibrated_groups:,} of {len(e.groups):,} groups miscalibrated"
    if e.heterogeneity is None or not e.heterogeneity.is_known:
        return found
    if groups_differ(e):
        return f"{found} and {differences_text(e)}"
    return f"{found}, no difference between groups shown ({p_text(e.heterogeneity.pvalue)})"
