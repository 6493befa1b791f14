"""Results of hypothesis tests, and several tests joined by Holm's adjustment."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from calibrant._support.errors import Note
from calibrant._support.formatting import line_html
from calibrant._support.plain_data import plain
from calibrant.results.result_text import format_pvalues

__all__ = ["OmnibusTest", "TestResult"]


@dataclass(frozen=True, repr=False)
class TestResult:
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
    >>> result = cb.spiegelhalter([0, 1, 0, 1] * 50, [0.1, 0.6, 0.3, 0.9] * 50)
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

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return plain(self)

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
    >>> joint = cb.evaluate(table).decision.omnibus
    >>> [test.name for test in joint.significant(alpha=0.05)]
    ['slope', 'deviation over bins']
    """

    __test__ = False  # not a test case of pytest

    components: Mapping[str, TestResult] = field(default_factory=dict)

    @property
    def pvalue(self) -> float:
        """The smallest adjusted p-value; NaN where no component can be tested."""
        known = [p for p in self._adjusted if not math.isnan(p)]
        return min(known) if known else math.nan

    @property
    def _adjusted(self) -> list[float]:
        return [c.adjusted_pvalue for c in self.components.values() if c.adjusted_pvalue is not None]

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

    def direction(self, alpha: float, *, without: tuple[str, ...] = ()) -> str:
        """Return the directions of the significant components, comma-joined; "local" if none of them has one.

        Parameters
        ----------
        alpha : float
            Significance level.
        without : tuple of str, optional
            Names of components that show no direction.

        Returns
        -------
        str
            '' if no component is significant.
        """
        found = self.significant(alpha)
        shown = [component.direction for component in found if component.direction and component.name not in without]
        return ", ".join(dict.fromkeys(shown)) or ("local" if found else "")

    _repr_html_ = line_html

    def __repr__(self) -> str:
        texts = {name: format_pvalues(c.pvalue, c.adjusted_pvalue) for name, c in self.components.items()}
        parts = [f"{name}: {', '.join(text) or 'not tested'}" for name, text in texts.items()]
        return f"OmnibusTest({'; '.join([*format_pvalues(self.pvalue), *parts]) or 'no test'})"
