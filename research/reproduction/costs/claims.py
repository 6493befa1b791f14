"""The claims of Yang & Bi, tested on the reproduced splits: effect, interval, number of splits, and a verdict.

A claim is a set of comparisons of two methods on the same splits. The p-values of a claim are adjusted by Holm. A
comparison is shown if its adjusted p-value is at most 5 % and its sign is the claimed one, opposite if the sign is the
other one, and open else. Intervals and p-values describe means over random splits of the same rows, as those of the
paper; they do not describe other data.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import t as student

from calibrant.inference.multiplicity import holm
from research.reproduction.costs.data import TABULAR
from research.reproduction.costs.tables import Cell, Results, together

__all__ = [
    "CLAIMS",
    "OUTCOMES",
    "Claim",
    "Comparison",
    "by_set",
    "changes",
    "details",
    "split_counts",
    "summary",
    "z_values",
]

Measure = Literal["cost", "spread", "equal"]
OUTCOMES = ("shown", "open", "opposite")
_ALPHA = 0.05
_SCALINGS = ("TS", "PS", "CATS", "CAPS")
_UNAWARE = ("NoCal", "IR", "TS", "PS")
_NONLINEAR = ("sqrt", "exp", "log")
_MARGIN = 0.1  # relative difference below which two mean costs count as equal


@dataclass(frozen=True)
class Comparison:
    """Two columns of results on the splits of one set.

    Attributes
    ----------
    effect, low, high : float
        Relative difference of mean costs, or of standard deviations, with its 95 % interval: (left - right) / right.
    """

    set: str
    model: str
    left: str
    right: str
    splits: int
    effect: float
    low: float
    high: float
    pvalue: float


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper as comparisons: the first method of each pair has the lower cost, or spread.

    For the measure "equal" the costs of both differ by at most 10 %.
    """

    text: str
    model: str
    pairs: tuple[tuple[str, str], ...]
    sets: tuple[str, ...] = tuple(TABULAR)
    measure: Measure = "cost"

    def comparisons(self, results: Results) -> list[Comparison]:
        """Return the comparisons that at least three splits allow."""
        found = (_compare(results, name, self, *pair) for name in self.sets for pair in self.pairs)
        return [each for each in found if each is not None]

    def outcomes(self, results: Results) -> list[tuple[Comparison, float, str]]:
        """Return each comparison with its adjusted p-value, and whether it shows the claim."""
        own = self.comparisons(results)
        adjusted = holm([each.pvalue for each in own])
        return [(each, float(p), self._outcome(each, float(p))) for each, p in zip(own, adjusted, strict=True)]

    def _outcome(self, found: Comparison, adjusted: float) -> str:
        if self.measure == "equal":
            if adjusted <= _ALPHA:
                return "shown"
            return "opposite" if found.low > _MARGIN or found.high < -_MARGIN else "open"
        if adjusted > _ALPHA:
            return "open"
        return "shown" if found.effect < 0 else "opposite"

    def verdict(self, results: Results) -> str:
        """Return whether the claim is reproduced."""
        counts = Counter(outcome for *_, outcome in self.outcomes(results))
        if not counts.total():
            return "not tested"
        if counts["opposite"]:
            return "not reproduced"
        return "reproduced" if counts["shown"] == counts.total() else "in part"


def _pairs(
    first: tuple[str, ...], others: tuple[str, ...], costs: tuple[str, ...] = ("linear",)
) -> tuple[tuple[str, str], ...]:
    return tuple((f"{cost}: {one}", f"{cost}: {other}") for cost in costs for one in first for other in others)


METACAL_SAVES = Claim("MetaCal costs less than no calibration.", "tree", _pairs(("MetaCal",), ("NoCal",)))
METACAL_FORESTS = Claim("MetaCal costs less than no calibration.", "forest", _pairs(("MetaCal",), ("NoCal",)))
CLAIMS = (
    Claim("Isotonic regression costs more than no calibration.", "tree", _pairs(("NoCal",), ("IR",))),
    METACAL_SAVES,
    Claim(
        "CATS and CAPS cost less than no calibration on CTG and Churn.",
        "tree",
        _pairs(("CATS", "CAPS"), ("NoCal",)),
        ("CTG", "Churn"),
    ),
    Claim(
        "CATS and CAPS cost more than no calibration on the other sets.",
        "tree",
        _pairs(("NoCal",), ("CATS", "CAPS")),
        ("Cancer", "Default", "Bank"),
    ),
    Claim(
        "MetaCal costs less than the scaling methods, except on CTG.",
        "tree",
        _pairs(("MetaCal",), _SCALINGS),
        ("Cancer", "Churn", "Default", "Bank"),
    ),
    Claim(
        "The costs of MetaCal vary less than those of the scaling methods.",
        "tree",
        _pairs(("MetaCal",), _SCALINGS),
        measure="spread",
    ),
    Claim(
        "50 and 200 bootstrap models give MetaCal the same cost.",
        "tree",
        (("linear: MetaCal, R = 50", "linear: MetaCal, R = 200"),),
        measure="equal",
    ),
    Claim(
        "With nonlinear costs MetaCal costs less than no calibration.",
        "tree",
        _pairs(("MetaCal",), ("NoCal",), _NONLINEAR),
    ),
    Claim(
        "With the square root MetaCal costs less than all other methods.",
        "tree",
        _pairs(("MetaCal",), ("NoCal", "IR", *_SCALINGS), ("sqrt",)),
    ),
    Claim(
        "With nonlinear costs the costs of MetaCal vary least.",
        "tree",
        _pairs(("MetaCal",), ("NoCal", "IR", *_SCALINGS), _NONLINEAR),
        measure="spread",
    ),
    Claim(
        "With forests CATS, CAPS and MetaCal cost less than the four other methods, except on Default.",
        "forest",
        _pairs(("CATS", "CAPS", "MetaCal"), _UNAWARE),
        ("Cancer", "CTG", "Churn", "Bank"),
    ),
    Claim(
        "With forests CATS and CAPS cost less than MetaCal on Default.",
        "forest",
        _pairs(("CATS", "CAPS"), ("MetaCal",)),
        ("Default",),
    ),
    Claim(
        "With forests the costs of MetaCal vary least.",
        "forest",
        _pairs(("MetaCal",), (*_UNAWARE, "CATS", "CAPS")),
        measure="spread",
    ),
)


def _compare(results: Results, name: str, claim: Claim, left: str, right: str) -> Comparison | None:
    one, other = together(results, name, claim.model, [left, right])
    if one.size < 3 or not np.std(one - other):
        return None
    measure = _spread_ratio if claim.measure == "spread" else _mean_ratio
    effect, low, high, pvalue = measure(one, other)
    if claim.measure == "equal":
        pvalue = _equivalence(one, other)
    names = (left.replace("linear: ", ""), right.replace("linear: ", ""))
    return Comparison(name, claim.model, *names, one.size, effect, low, high, pvalue)


def _mean_ratio(one: np.ndarray, other: np.ndarray) -> tuple[float, float, float, float]:
    """Return the mean difference relative to the second mean, its interval, and the p-value of the paired t-test."""
    gap, base, freedom = one - other, float(other.mean()), one.size - 1
    error = float(gap.std(ddof=1)) / math.sqrt(gap.size)
    mean, reach = float(gap.mean()), float(student.isf(0.025, freedom)) * error
    return mean / base, (mean - reach) / base, (mean + reach) / base, float(2 * student.sf(abs(mean) / error, freedom))


def _equivalence(one: np.ndarray, other: np.ndarray) -> float:
    """Return the larger p-value of the two tests that the means differ by the margin or more."""
    gap, margin, freedom = one - other, _MARGIN * float(other.mean()), one.size - 1
    error = float(gap.std(ddof=1)) / math.sqrt(gap.size)
    return float(
        max(student.sf((gap.mean() + margin) / error, freedom), student.cdf((gap.mean() - margin) / error, freedom))
    )


def _spread_ratio(one: np.ndarray, other: np.ndarray) -> tuple[float, float, float, float]:
    """Return the relative difference of standard deviations with interval and p-value (Pitman and Morgan, 1939)."""
    ratio, freedom = float(one.std(ddof=1) / other.std(ddof=1)), one.size - 2
    r = float(np.corrcoef(one, other)[0, 1])
    value = (ratio**2 - 1) * math.sqrt(freedom) / (2 * ratio * math.sqrt(1 - r**2))
    k = 1 + 2 * (1 - r**2) * float(student.isf(0.025, freedom)) ** 2 / freedom
    reach = math.sqrt(k**2 - 1)
    low, high = (ratio * math.sqrt(k + side * reach) - 1 for side in (-1, 1))
    return ratio - 1, low, high, float(2 * student.sf(abs(value), freedom))


def changes(
    results: Results, columns: Iterable[tuple[str, str]], groups: Iterable[tuple[str, str]]
) -> list[tuple[Comparison, str]]:
    """Return the comparisons of two columns for each set and model: lower, higher or open, adjusted by Holm for all."""
    found = [
        each
        for name, model in groups
        for pair in columns
        if (each := _compare(results, name, Claim("", model, ()), *pair))
    ]
    adjusted = holm([each.pvalue for each in found])
    return [
        (each, "open" if p > _ALPHA else "lower" if each.effect < 0 else "higher")
        for each, p in zip(found, adjusted, strict=True)
    ]


def summary(results: Results) -> Iterator[list[str]]:
    """Yield the verdict on each claim, with the number of comparisons and the range of their splits."""
    for claim in CLAIMS:
        outcomes = claim.outcomes(results)
        counts = Counter(outcome for *_, outcome in outcomes)
        splits = [found.splits for found, *_ in outcomes]
        reach = (
            "" if not splits else f"{min(splits)}" if min(splits) == max(splits) else f"{min(splits)} to {max(splits)}"
        )
        numbers = [str(counts[outcome]) for outcome in OUTCOMES]
        yield [claim.text, claim.model, claim.verdict(results), *numbers, reach]


def details(results: Results) -> Iterator[list[str]]:
    """Yield each comparison of each claim, as text."""
    for claim in CLAIMS:
        for found, adjusted, outcome in claim.outcomes(results):
            effect = [f"{100 * value:+.1f} %" for value in (found.effect, found.low, found.high)]
            named = [claim.text, found.set, found.model, found.left, found.right, str(found.splits)]
            yield [*named, *effect, f"{adjusted:.2g}", outcome]


def split_counts(results: Results) -> Iterator[list[str]]:
    """Yield the number of splits of each set and model: of the methods that map scores, and of MetaCal."""
    for name, model in sorted({key[:2] for key in results}):
        columns = [together(results, name, model, [column])[0].size for column in ("linear: NoCal", "linear: MetaCal")]
        yield [name, model, *map(str, columns)]


def z_values(found: list[Cell]) -> np.ndarray:
    """Return the differences from the printed means, in standard errors, of the cells that can be compared."""
    return np.array([cell.z for cell in found if cell.verdict in ("agrees", "differs")])


def by_set(found: list[Cell]) -> Iterator[list[str]]:
    """Yield for each set, and for isotonic regression apart, how the differences from printed means are distributed."""
    names = dict.fromkeys(cell.set for cell in found)
    groups = {name: [c for c in found if c.set == name and c.method != "IR"] for name in names}
    groups |= {"all but isotonic regression": [c for c in found if c.method != "IR"]}
    groups |= {"isotonic regression": [c for c in found if c.method == "IR"]}
    for name, own in groups.items():
        z = z_values(own)
        if z.size:
            beyond = [int(np.count_nonzero(np.abs(z) > limit)) for limit in (1.96, 3)]
            expected = f"{0.05 * z.size:.1f}"
            yield [name, str(z.size), f"{z.mean():+.2f}", f"{z.std():.2f}", str(beyond[0]), expected, str(beyond[1])]
