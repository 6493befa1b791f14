"""The decision about calibration: is a deviation significant, is it relevant, and which way does it go?"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from calibrant._support.errors import Argument, InputError
from calibrant._support.options import check_share
from calibrant.inference.components import Component, components, over_bins
from calibrant.inference.design import Design
from calibrant.inference.intervals import Equivalence, Interval, Null
from calibrant.inference.multiplicity import holm
from calibrant.inference.relevance import LogOddsDeviation
from calibrant.metrics.log_odds import LogOddsError
from calibrant.tables.score_table import ScoreTable

__all__ = ["AbsoluteMargin", "Decision", "Margin", "check_margin"]


@dataclass(frozen=True)
class AbsoluteMargin:
    """A margin for ACE, in probability, in the place of the margin for the log-odds error.

    Examples
    --------
    >>> AbsoluteMargin(0.01)
    AbsoluteMargin(value=0.01)
    """

    value: float

    def __post_init__(self) -> None:
        if not (isinstance(self.value, Real) and not isinstance(self.value, bool) and 0 < self.value < 1):
            raise InputError(
                Argument("absolute_margin", python="AbsoluteMargin")
                + f" must lie between 0 and 1; got {self.value!r}.",
                hint="0.01 is one percentage point.",
                argument="margin",
                value=self.value,
            )


Margin: TypeAlias = float | AbsoluteMargin


def check_margin(margin: Margin, alpha: float) -> Margin:
    """A positive margin and an alpha below 0.5."""
    number: Any = 1.0 if isinstance(margin, AbsoluteMargin) else margin
    if not isinstance(number, Real) or isinstance(number, bool) or not 0 < float(number) < np.inf:
        raise InputError(
            Argument("margin") + f" must be a positive number in log-odds; got {margin!r}.",
            hint="0.1 means odds that are accurate to about 10 %. For a margin of ACE use "
            + Argument("absolute_margin", python="cb.AbsoluteMargin")
            + ".",
            value=margin,
        )
    if check_share("alpha", alpha) >= 0.5:
        raise InputError(Argument("alpha") + f" must lie below 0.5; got {alpha!r}.", value=alpha)
    return margin if isinstance(margin, AbsoluteMargin) else float(margin)


@dataclass(frozen=True)
class Decision:
    """The tests behind a verdict.

    Attributes
    ----------
    components : tuple of Component
        The tests, each with its own p-value.
    adjusted : tuple of float
        Their p-values adjusted by Holm: that some calibrated model has one of at most alpha happens with a probability
        of at most alpha.
    log_odds_error : Interval
        Estimate with confidence interval.
    null : Null
        The log-odds error if the model is calibrated.
    equivalence : Equivalence
        Whether the deviation is shown to lie within the margin.
    information : float
        Effective information of the rows: for rare events about the expected number of events.
    fine_bound : float
        Upper limit of the log-odds error over fine bins, where it alone is beyond the margin; else 0.
    n_clusters : int or None
        Number of clusters; None where rows are independent.
    """

    components: tuple[Component, ...]
    adjusted: tuple[float, ...]
    log_odds_error: Interval
    null: Null
    equivalence: Equivalence
    information: float
    fine_bound: float = 0.0
    n_clusters: int | None = None

    @property
    def pvalue(self) -> float:
        """p-value of the omnibus test: the smallest adjusted one."""
        return min(self.adjusted, default=1.0)

    def direction(self, alpha: float, factor: float = 1.0) -> str:
        """Directions whose tests are significant; `factor` adjusts their p-values further, for several groups."""
        return directions(self.components, tuple(p * factor for p in self.adjusted), alpha)

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        tests = [{**c.to_dict(), "adjusted_pvalue": p} for c, p in zip(self.components, self.adjusted, strict=True)]
        return {
            "pvalue": self.pvalue,
            "components": tests,
            "log_odds_error": self.log_odds_error.to_dict(),
            "equivalence": self.equivalence.to_dict(),
            "information": self.information,
            "fine_bound": self.fine_bound,
            "n_clusters": self.n_clusters,
        }


NAME = "log-odds error"
_SMALL_MARGIN = 0.5

_DIRECTIONS = {
    "calibration in the large": {1: "underestimates", -1: "overestimates"},
    "slope": {1: "underconfident", -1: "overconfident"},
}


def directions(found: tuple[Component, ...], adjusted: tuple[float, ...], alpha: float) -> str:
    """The directions of the significant components, comma-joined; "local" for a significant test without one."""
    significant = [component for component, p in zip(found, adjusted, strict=True) if p <= alpha]
    named = [_DIRECTIONS[c.name][c.side] for c in significant if c.name in _DIRECTIONS and c.side]
    return ", ".join(named) or ("local" if significant else "")


def decide(design: Design, *, margin: float, alpha: float, confidence_level: float) -> Decision:
    """All tests of a design, and its log-odds error with the equivalence test at a margin in log-odds."""
    tested = Tested.of(design)
    deviation, tail = tested.deviation, (1 - confidence_level) / 2
    value, spec = deviation.value, LogOddsError().spec
    low, high = min(deviation.lower(tail), value), max(deviation.upper(tail), value)
    estimate = Interval(NAME, value, low, high, confidence_level, "inversion", "1", 0, spec)
    pvalue, bound = tested.equivalence(margin, alpha), tested.bound(margin, alpha)
    within = Equivalence(NAME, value, margin, pvalue, alpha, bound, "1", 0, spec)
    null = _null(deviation, confidence_level)
    fine = tested.fine_bound(margin, alpha) if deviation.pvalue(margin) <= alpha else 0.0
    numbers = (design.information, fine, design.n_clusters)
    return Decision(tested.components, tested.adjusted, estimate, null, within, *numbers)


@dataclass(frozen=True, eq=False)
class Tested:
    """The components of a design with adjusted p-values, and its log-odds error."""

    __test__ = False  # not a test case of pytest

    components: tuple[Component, ...]
    adjusted: tuple[float, ...]
    deviation: LogOddsDeviation

    @classmethod
    def of(cls, design: Design) -> "Tested":
        """All tests of a design."""
        found = components(design)
        adjusted = holm([component.pvalue for component in found]).tolist()
        return cls(tuple(found), tuple(adjusted), LogOddsDeviation(design))

    def equivalence(self, margin: float, alpha: float) -> float:
        """p-value of the equivalence test; 1 where an outcome is impossible or fine bins see more than the margin."""
        if self._is_significant("impossible outcomes", alpha) or self.fine_bound(margin, alpha) > margin:
            return 1.0
        return self.deviation.pvalue(margin)

    def bound(self, margin: float, alpha: float) -> float:
        """Upper limit of the log-odds error."""
        if self._is_significant("impossible outcomes", alpha):
            return float("inf")
        value = self.deviation.value
        # Far from the margin its ends say nothing about the error.
        near = margin if margin <= _SMALL_MARGIN and value <= 2 * margin else None
        return max(self.deviation.upper(alpha, near), value)

    def fine_bound(self, margin: float, alpha: float) -> float:
        """Upper limit over fine bins, where their deviation is significant and beyond the margin; else 0."""
        if not self._is_significant("deviation over fine bins", alpha):
            return 0.0
        limit = self.deviation.upper_over_fine_bins(alpha, margin)
        return limit if limit > margin else 0.0

    def _is_significant(self, name: str, alpha: float) -> bool:
        return any(c.name == name and p <= alpha for c, p in zip(self.components, self.adjusted, strict=True))


def undecided(table: ScoreTable, *, margin: float, alpha: float, confidence_level: float) -> Decision:
    """The decision where rows are in too few clusters for any test."""
    value, spec, nan = LogOddsError().value(table), LogOddsError().spec, float("nan")
    estimate = Interval(NAME, value, nan, nan, confidence_level, "none", "1", 0, spec)
    null = Null(NAME, value, nan, nan, nan, nan, "greater", confidence_level, "1", 0, spec)
    within = Equivalence(NAME, value, margin, 1.0, alpha, float("inf"), "1", 0, spec)
    return Decision((), (), estimate, null, within, 0.0)


def _null(deviation: LogOddsDeviation, level: float) -> Null:
    """The estimate if the model is calibrated, with the p-value of the deviation over the same bins."""
    low, high = deviation.null_quantiles(np.array([(1 - level) / 2, (1 + level) / 2])).tolist()
    expected = float(np.mean(deviation.null_quantiles((np.arange(200) + 0.5) / 200)))
    pvalue = over_bins(deviation.design, deviation.bins, "").pvalue if deviation.design.information > 0 else 1.0
    return Null(NAME, deviation.value, expected, low, high, pvalue, "greater", level, "1", 0, LogOddsError().spec)
