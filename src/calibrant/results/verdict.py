"""`Verdict`: the conclusion from the omnibus test and the size of the deviation, for every kind of forecast."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from calibrant._support.errors import Note
from calibrant._support.formatting import line_html
from calibrant._support.plain_data import PlainResult
from calibrant.results.text import format_pvalues
from calibrant.results.uncertainty import Estimate


@dataclass(frozen=True, repr=False)
class TestResult(PlainResult):
    """A statistic with its p-value; ``statistic, pvalue = result`` unpacks it.

    Attributes
    ----------
    statistic, pvalue : float
        NaN where the data do not allow the test.
    name : str
    df : float or None
        Degrees of freedom, where the statistic has a chi-squared distribution.
    resampling_pvalue : float or None
        The p-value by resampling, where there are too few rows for `pvalue`. A note gives the reason.
    notes : tuple of Note
    adjusted_pvalue : float or None
        For a test behind a verdict: its p-value adjusted for the number of tests by Holm, in a group for the number of
        groups too. None for other tests.
    direction : str
        The direction that the test shows if it is significant: overestimates, underestimates, overconfident or
        underconfident; '' if it shows none.
    method : str
        How the p-value was computed, where a test has several ways.

    See Also
    --------
    OmnibusTest, spiegelhalter

    Examples
    --------
    >>> import calibrant as cb
    >>> result = cb.inference.spiegelhalter([0, 1, 0, 1] * 50, [0.1, 0.6, 0.3, 0.9] * 50)
    >>> statistic, pvalue = result
    >>> result.name, round(statistic, 2), pvalue < 0.001
    ('Spiegelhalter', -6.4, True)
    """

    __test__ = False  # not a test case of pytest

    statistic: float
    pvalue: float
    name: str
    df: float | None = None
    resampling_pvalue: float | None = None
    notes: tuple[Note, ...] = ()
    adjusted_pvalue: float | None = None
    direction: str = ""
    method: str = ""

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    def is_significant(self, alpha: float) -> bool:
        """Return whether the adjusted p-value is at most alpha.

        Parameters
        ----------
        alpha : float
            Significance level.

        Returns
        -------
        bool
            False for a test without an adjusted p-value.
        """
        return self.adjusted_pvalue is not None and self.adjusted_pvalue <= alpha

    _repr_html_ = line_html

    def __repr__(self) -> str:
        texts = [f"statistic {self.statistic:.4g}"] + ([] if self.df is None else [f"df {self.df:.4g}"])
        texts += format_pvalues(self.pvalue, self.adjusted_pvalue, self.resampling_pvalue)
        return f"TestResult({self.name}: {', '.join(texts)})"


@dataclass(frozen=True, repr=False)
class OmnibusTest:
    """Several tests of calibration with p-values adjusted by Holm.

    Attributes
    ----------
    components : mapping of name to TestResult
        Each test of one consequence of calibration, with its own and its adjusted p-value.

    See Also
    --------
    TestResult, Deviation

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [500, 500, 500], [90, 190, 330])
    >>> omnibus = cb.evaluate(table).decision.omnibus
    >>> [test.name for test in omnibus.significant(alpha=0.05)]
    ['slope', 'deviation over bins', 'deviation in regions']
    """

    __test__ = False  # not a test case of pytest

    components: Mapping[str, TestResult] = field(default_factory=dict)

    @property
    def pvalue(self) -> float:
        """The smallest adjusted p-value; NaN where no component can be tested."""
        adjusted = (component.adjusted_pvalue for component in self.components.values())
        return min((p for p in adjusted if p is not None and not math.isnan(p)), default=math.nan)

    def scale(self, factor: float) -> "OmnibusTest":
        """Multiply the adjusted p-values by a factor, at most to 1, as Holm's adjustment for several groups does.

        Parameters
        ----------
        factor : float
            Factor of the adjusted p-values.

        Returns
        -------
        OmnibusTest
        """

        def scaled(component: TestResult) -> TestResult:
            p = component.adjusted_pvalue
            return component if p is None or math.isnan(p) else replace(component, adjusted_pvalue=min(1.0, factor * p))

        return replace(self, components={name: scaled(component) for name, component in self.components.items()})

    def significant(self, alpha: float) -> list[TestResult]:
        """Return the components whose adjusted p-values are at most alpha.

        Parameters
        ----------
        alpha : float
            Significance level.

        Returns
        -------
        list of TestResult
        """
        return [component for component in self.components.values() if component.is_significant(alpha)]

    def is_significant(self, name: str, alpha: float) -> bool:
        """Return whether a component exists and is significant.

        Parameters
        ----------
        name : str
            Name of the component.
        alpha : float
            Significance level.

        Returns
        -------
        bool
        """
        return name in self.components and self.components[name].is_significant(alpha)

    _repr_html_ = line_html

    def __repr__(self) -> str:
        texts = {name: format_pvalues(c.pvalue, c.adjusted_pvalue) for name, c in self.components.items()}
        parts = [f"{name}: {', '.join(text) or 'not tested'}" for name, text in texts.items()]
        return f"OmnibusTest({'; '.join([*format_pvalues(self.pvalue), *parts]) or 'no test'})"


MISCALIBRATED = "miscalibrated"  # the verdict at which a gate fails

OF_THE_MEAN = "of the mean outcome"  # unit of a deviation that is printed as a percentage

_MOST_ROWS = 2**53  # that a table counts exactly


class Claim(NamedTuple):
    """A direction that a test of its own shows if its adjusted p-value is small: one class is overestimated."""

    direction: str
    adjusted_pvalue: float


@dataclass(frozen=True, repr=False)
class Deviation(PlainResult):
    """Size of the deviation from calibration, and whether it is shown to lie within the margin.

    Attributes
    ----------
    name, unit : str
        Probabilities: the log-odds error, or ACE with an absolute margin. Labels: the largest difference of a class
        proportion. Points: the root mean square of the bias by bin, in standard deviations of the outcome.
        Distributions: the mean absolute difference between the share of outcomes at or below a predicted quantile and
        its level.
    value : float
        The estimate.
    low, high, level : float
        Interval at `level`; NaN limits where none exists.
    margin : float
        Largest deviation that does not matter.
    bound : float
        Upper confidence limit at level 1 - alpha, which is compared with the margin; NaN or infinite without one.
    within : bool
        Whether the deviation is shown to lie within the margin.
    pvalue : float
        p-value of the equivalence test; NaN where `within` follows from the bound alone.

    See Also
    --------
    Verdict, Equivalence

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.normal(size=2000)
    >>> deviation = cb.evaluate(p + rng.normal(size=2000), cb.Point(p + 0.2)).decision.deviation
    >>> deviation.name, deviation.margin, deviation.within
    ('bias by bin', 0.05, False)
    """

    name: str
    unit: str
    value: float
    low: float
    high: float
    level: float
    margin: float
    bound: float
    within: bool
    pvalue: float = math.nan

    @classmethod
    def from_bounds(
        cls, name: str, unit: str, value: float, low: float, high: float, margin: float, alpha: float
    ) -> "Deviation":
        """Return the deviation with one-sided limits, each at level 1 - alpha.

        Parameters
        ----------
        name, unit : str
            Name and unit of the deviation.
        value, low, high : float
            The estimate and its limits.
        margin, alpha : float
            Margin, and the level of the test.

        Returns
        -------
        Deviation
            It lies within the margin if the upper limit is at most the margin.
        """
        return cls(name, unit, value, low, high, 1 - 2 * alpha, margin, high, high <= margin)

    def without_bounds(self) -> "Deviation":
        """Return the estimate alone, where nothing can be tested.

        Returns
        -------
        Deviation
            It is not shown to lie within the margin.
        """
        nan = math.nan
        return replace(self, low=nan, high=nan, bound=nan, within=False, pvalue=nan)

    def further_rows(self, rows: float) -> float:
        """Return about how many further rows bring the bound to the margin, given the number of rows.

        The bound decreases with the root of the number of rows. NaN where no rows are needed, no bound exists, or
        2**53 rows are too few.

        Parameters
        ----------
        rows : float
            Number of rows of the evaluation.

        Returns
        -------
        float
            Number of rows in addition to these.
        """
        if not self.bound > self.margin:
            return math.nan
        more = rows * (min(self.bound / self.margin, float(_MOST_ROWS)) ** 2 - 1)
        return more if more <= _MOST_ROWS else math.nan

    def text(self) -> str:
        """Format the estimate with its interval and the margin.

        Returns
        -------
        str
            One phrase, such as "bias by bin 0.1 (90 % CI 0.05 to 0.2), margin 0.05".
        """
        if math.isnan(self.value):
            return f"{self.name} unknown, margin {self.amount(self.margin)}"
        margin = f"{100 * self.margin:g} %" if self.unit == OF_THE_MEAN else f"{self.margin:g}"
        if math.isnan(self.high):
            return f"{self.name} {self.amount(self.value)} (no interval), margin {margin}"
        low, high = (self._digits(each) for each in (self.low, self.high))
        span = f"{100 * self.level:g} % CI {low} to {high}{' %' if self.unit == OF_THE_MEAN else ''}"
        return f"{self.name} {self.amount(self.value)} ({span}), margin {margin}"

    def amount(self, value: float, digits: int = 2) -> str:
        """Format a deviation of this unit, a share of the mean outcome as a percentage.

        Parameters
        ----------
        value : float
            The number.
        digits : int, default=2
            Significant digits.

        Returns
        -------
        str
            Such as "0.1 standard deviations of the outcome" or "15 % of the mean outcome".
        """
        sign = " %" if self.unit == OF_THE_MEAN else ""
        return f"{self._digits(value, digits)}{sign}{' ' if self.unit else ''}{self.unit}"

    def _digits(self, value: float, digits: int = 2) -> str:
        if self.unit == OF_THE_MEAN:
            value *= 100
        return f"{value:.0f}" if self.unit == OF_THE_MEAN and 100 <= abs(value) < 1e6 else f"{value:.{digits}g}"

    _repr_html_ = line_html

    def __repr__(self) -> str:
        return f"Deviation({self.text()})"


@dataclass(frozen=True, repr=False)
class Verdict:
    """The omnibus test of calibration and the size of the deviation, and what both say together.

    =================  ====================================  ==================
    omnibus test       deviation shown within the margin     not shown
    =================  ====================================  ==================
    significant        negligible                            miscalibrated
    not significant    calibrated                            inconclusive
    =================  ====================================  ==================

    Attributes
    ----------
    omnibus : OmnibusTest
        The tests of calibration, each with its own p-value and the one adjusted by Holm.
    deviation : Deviation
        Estimate with interval, and the margin.
    alpha : float
        Significance level.
    claims : tuple of Claim
        Directions that single classes show.
    undirected : tuple of str
        Components of the omnibus test whose direction is not that of the forecast.
    adjusted_pvalue : float or None
        In a group the p-value of the omnibus test, adjusted by Holm for the number of groups.
    group_factor : float
        Factor of the p-values of components and claims in a group.

    See Also
    --------
    Evaluation, OmnibusTest, Deviation

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [500, 500, 500], [90, 190, 330])
    >>> decision = cb.evaluate(table).decision
    >>> decision.verdict, decision.direction, decision.pvalue < 0.001, decision.deviation.within
    ('miscalibrated', 'overconfident', True, False)
    """

    omnibus: OmnibusTest
    deviation: Deviation
    alpha: float
    claims: tuple[Claim, ...] = ()
    undirected: tuple[str, ...] = ()
    adjusted_pvalue: float | None = None
    group_factor: float = 1.0

    @property
    def own_pvalue(self) -> float:
        """p-value of the omnibus test, not adjusted for groups; NaN if there is no test."""
        return self.omnibus.pvalue

    @property
    def pvalue(self) -> float:
        """p-value of the omnibus test; in a group, adjusted for the number of groups. NaN if there is no test."""
        return self.own_pvalue if self.adjusted_pvalue is None else self.adjusted_pvalue

    @property
    def is_significant(self) -> bool:
        """Whether the omnibus test rejects calibration."""
        return self.pvalue <= self.alpha

    @property
    def verdict(self) -> str:
        """calibrated, negligible, miscalibrated or inconclusive."""
        if self.deviation.within:
            return "negligible" if self.is_significant else "calibrated"
        return MISCALIBRATED if self.is_significant else "inconclusive"

    @property
    def direction(self) -> str:
        """The directions that are shown, comma-joined; "local" if a deviation is significant without one, '' if none.

        Those of single classes come first, then those of the components of the omnibus test.
        """
        shown = [c.direction for c in sorted(self.claims) if c.adjusted_pvalue * self.group_factor <= self.alpha]
        significant = self.adjusted_omnibus.significant(self.alpha)
        shown += [test.direction for test in significant if test.direction and test.name not in self.undirected]
        return ", ".join(dict.fromkeys(shown)) or ("local" if significant else "")

    @property
    def adjusted_omnibus(self) -> OmnibusTest:
        """The omnibus test with p-values that are adjusted for the number of groups too."""
        return self.omnibus if self.group_factor == 1 else self.omnibus.scale(self.group_factor)

    def without_tests(self, mean: Estimate | None = None) -> "Verdict":
        """Return the verdict where nothing but a mean can be tested: the estimate alone; other p-values are NaN.

        Parameters
        ----------
        mean : Estimate, optional
            Mean deviation over few clusters, observed less predicted; its test is then the omnibus test.

        Returns
        -------
        Verdict
            It is inconclusive, or miscalibrated if the mean is significant.
        """
        components = {}
        if mean is not None and mean.pvalue is not None and not math.isnan(mean.pvalue):
            direction = "underestimates" if mean.value > 0 else "overestimates"
            method, t = "mean over clusters, t", mean.value / mean.standard_error
            test = TestResult(t, mean.pvalue, mean.name, mean.df, direction=direction, method=method)
            components[mean.name] = replace(test, adjusted_pvalue=mean.pvalue)
        return Verdict(OmnibusTest(components), self.deviation.without_bounds(), self.alpha)

    def in_group(self, adjusted_pvalue: float, n_groups: int) -> "Verdict":
        """Return the verdict on one of several groups.

        Parameters
        ----------
        adjusted_pvalue : float
            The p-value of the omnibus test, adjusted by Holm for the number of groups.
        n_groups : int
            Number of groups that were tested.

        Returns
        -------
        Verdict
        """
        pvalue = self.own_pvalue
        factor = adjusted_pvalue / pvalue if pvalue > 0 else float(n_groups)
        return replace(self, adjusted_pvalue=adjusted_pvalue, group_factor=factor)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "verdict": self.verdict,
            "direction": self.direction,
            "pvalue": self.pvalue,
            "omnibus": [test.to_dict() for test in self.omnibus.components.values()],
            "deviation": self.deviation.to_dict(),
            "alpha": self.alpha,
        }

    _repr_html_ = line_html

    def __repr__(self) -> str:
        shown = f"{self.verdict} ({self.direction})" if self.direction else self.verdict
        tested = "not tested" if math.isnan(self.pvalue) else f"omnibus test p = {self.pvalue:.0e}"
        return f"Verdict({shown}: {tested}, {self.deviation.text()})"
