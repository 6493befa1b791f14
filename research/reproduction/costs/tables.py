"""Tables 1 to 7 of Yang & Bi, cell by cell: printed value, reproduced value, and verdict."""

import csv
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from scipy.stats import t as student

from research.reproduction.costs.experiment import METHODS, UNDER
from research.reproduction.costs.results import Key
from research.reproduction.tables import HERE

Results = dict[Key, dict[str, float]]
Verdict = Literal["agrees", "differs", "cannot be right", "too few splits", "other data", "not run"]

TITLES = {
    1: "Table 1: decision trees, linear cost",
    2: "Table 2: random forests, linear cost",
    3: "Table 3: reviews, linear cost",
    4: "Table 4: MetaCal with 50, 100 and 200 bootstrap models",
    5: "Table 5: the square root of the distance",
    6: "Table 6: the exponential distance",
    7: "Table 7: the logarithmic distance",
}
_COST = {1: "linear", 2: "linear", 3: "linear", 4: "linear", 5: "sqrt", 6: "exp", 7: "log"}
_WITHIN = 3.0  # standard errors of a difference
_LEVEL = 0.0027  # level of a test: beyond three standard errors
_PRINTED = re.compile(r"(?P<mean>[\d.]+)(?P<stars>\**) \((?P<sd>[\d.]+)\)")
_THEIR_SPLITS = 100
_LEVELS = (0.001, 0.01, 0.05)


@dataclass(frozen=True)
class Printed:
    """A printed cell: mean, stars of a t-test, and standard deviation over 100 splits."""

    text: str
    mean: float
    sd: float
    stars: str

    @classmethod
    def read(cls, text: str) -> Self:
        found = _PRINTED.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no mean with its standard deviation.")
        return cls(text, float(found["mean"]), float(found["sd"]), found["stars"])

    @property
    def error(self) -> float:
        return self.sd / math.sqrt(_THEIR_SPLITS)


@dataclass(frozen=True)
class Cell:
    """One published mean, and the reproduced values over the finished splits."""

    table: int
    set: str
    method: str
    printed: Printed
    ours: np.ndarray
    gap: np.ndarray  # MetaCal minus this method, per split; empty in Table 4
    change: np.ndarray  # this method minus no calibration
    printed_change: float
    impossible: str = ""

    @property
    def mean(self) -> float:
        return float(self.ours.mean()) if self.ours.size else math.nan

    @property
    def error(self) -> float:
        """Standard error of the reproduced mean over splits."""
        return float(self.ours.std(ddof=1) / math.sqrt(self.ours.size)) if self.ours.size > 1 else math.nan

    @property
    def z(self) -> float:
        """Reproduced minus printed mean, in standard errors of the difference; splits are of the same rows."""
        return (self.mean - self.printed.mean) / math.hypot(self.error, self.printed.error)

    @property
    def same_mean(self) -> float:
        """p-value of Welch's test that both means are equal, for the given number of splits."""
        return float(2 * student.sf(abs(self.z), self._freedom))

    @property
    def _freedom(self) -> float:
        ours, theirs = self.error**2, self.printed.error**2
        return (ours + theirs) ** 2 / (ours**2 / (self.ours.size - 1) + theirs**2 / (_THEIR_SPLITS - 1))

    @property
    def same_sign(self) -> bool | None:
        """Whether the change from no calibration has the printed sign; None for no calibration itself."""
        if self.method == "NoCal" or not self.change.size:
            return None
        return bool((self.change.mean() < 0) == (self.printed_change < 0))

    @property
    def pvalues(self) -> tuple[float, float] | None:
        """Paired t-tests of MetaCal against this method, one-sided (lower cost) and two-sided."""
        gap = self.gap
        if gap.size < 2 or not gap.std():
            return None
        value = gap.mean() / (gap.std(ddof=1) / math.sqrt(gap.size))
        return float(student.cdf(value, gap.size - 1)), float(2 * student.sf(abs(value), gap.size - 1))

    @property
    def our_stars(self) -> tuple[str, str]:
        if self.pvalues is None:
            return "", ""
        one, two = (sum(p < level for level in _LEVELS) * "*" for p in self.pvalues)
        return one, two

    @property
    def detectable_difference(self) -> float:
        """The smallest difference that the test of means could detect."""
        return float(student.isf(_LEVEL / 2, self._freedom) * math.hypot(self.error, self.printed.error))

    @property
    def verdict(self) -> Verdict:
        if self.ours.size < 2:
            return "not run"
        if self.impossible:
            return "cannot be right"
        if self.set == "Sentiment":
            return "other data"
        if self.same_mean < _LEVEL:
            return "differs"
        return "agrees" if self.detectable_difference <= self.printed.mean else "too few splits"

    @property
    def reason(self) -> str:
        """The reason why the cell differs from the printed one, or why this is not decided."""
        if self.verdict == "cannot be right":
            return self.impossible
        if self.verdict == "other data":
            return _SIGNS[self.same_sign]
        if self.verdict == "too few splits":
            return "Twice the printed mean would not have been told from it."
        if self.verdict == "differs":
            model = "forest" if self.table == 2 else "tree"
            return _WHY.get((self.set, model, self.method)) or _WHY.get(("", model, self.method)) or "Open."
        return ""


_SIGNS = {
    True: "Other reviews and another model: the change from no calibration has the printed sign.",
    False: "Other reviews and another model: the change from no calibration has another sign.",
    None: "Other reviews and another model: not comparable.",
}
_ISOTONIC = "The paper does not state how isotonic regression was fitted and applied; variants are compared below."
_FOREST = "R's forests stop splitting earlier than scikit-learn's and cost more on indicators of categories: see below."
_WHY = {
    ("", "tree", "IR"): _ISOTONIC,
    ("", "forest", "IR"): _ISOTONIC,
    **{("Bank", "forest", method): _FOREST for method in METHODS if method != "IR"},
}


def cells(results: Results) -> list[Cell]:
    """Return all 218 cells in the order of the paper."""
    contradictions = impossible()
    return [cell for table in TITLES for cell in _cells(table, results, contradictions)]


def _cells(table: int, results: Results, contradictions: dict[tuple[int, str, str], str]) -> Iterator[Cell]:
    for name, row in printed(table).items():
        model = "softmax" if name == "Sentiment" else "forest" if table == 2 else "tree"
        for method, text in row.items():
            why = contradictions.get((table, name, method), "")
            own = _column(table, method)
            (ours,) = together(results, name, model, [own])
            if table == 4:  # MetaCal alone
                yield Cell(table, name, method, text, ours, np.array([]), np.array([]), math.nan, why)
                continue
            # A mean is over all splits of the method; a comparison is over the splits that have both.
            alone, nocal = together(results, name, model, [own, _column(table, "NoCal")])
            paired, metacal = together(results, name, model, [own, _column(table, "MetaCal")])
            change, printed_change = alone - nocal, text.mean - row["NoCal"].mean
            yield Cell(table, name, method, text, ours, metacal - paired, change, printed_change, why)


def _column(table: int, method: str) -> str:
    if method in METHODS or method == "R = 100":
        return f"{_COST[table]}: {'MetaCal' if method == 'R = 100' else method}"
    return f"{_COST[table]}: MetaCal, {method}"


def together(results: Results, name: str, model: str, columns: list[str]) -> list[np.ndarray]:
    """Return columns of the splits that have all of them, in the order of seeds."""
    rows = [
        [found[column] for column in columns]
        for split, found in sorted(results.items())
        if split[:2] == (name, model) and all(column in found for column in columns)
    ]
    return list(np.array(rows).reshape(-1, len(columns)).T)


def printed(table: int) -> dict[str, dict[str, Printed]]:
    """Return a table as printed, by data set and method."""
    with open(HERE / "published" / f"costs{table}.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {row.pop("set"): {method: Printed.read(text) for method, text in row.items()} for row in rows}


# Range of the cost of the same predictions with other distances if the linear cost is x: for d in [0, 1]
# ln 2 d <= ln(1 + d) <= d <= exp(d) - 1 <= (e - 1) d, and d <= sqrt(d), whose mean is at most sqrt(5 x) by
# Cauchy and Schwarz, as the larger unit cost is 5.
def bounds(linear: float) -> dict[int, tuple[float, float]]:
    """Return the range of the cells of Tables 5 to 7 for predictions that do not depend on the cost."""
    return {
        5: (linear, math.sqrt(UNDER * linear)),
        6: (linear, (math.e - 1) * linear),
        7: (math.log(2) * linear, linear),
    }


def impossible() -> dict[tuple[int, str, str], str]:
    """Return the cells that contradict others beyond sampling error.

    No calibration, IR, TS and PS do not use the cost: their predictions are equal for all costs. Tables may have
    different splits, so three standard errors of either mean are allowed.
    """
    linear = printed(1) | printed(3)
    found = {}
    for table in (5, 6, 7):
        for name, row in printed(table).items():
            for method in ("NoCal", "IR", "TS", "PS"):
                base, own = linear[name][method], row[method]
                low = bounds(max(base.mean - _WITHIN * base.error, 0))[table][0]
                high = bounds(base.mean + _WITHIN * base.error)[table][1]
                if own.mean + _WITHIN * own.error < low or own.mean - _WITHIN * own.error > high:
                    least, most = bounds(base.mean)[table]
                    found[table, name, method] = (
                        f"The same predictions cost {base.mean:.4f} with a linear distance, so here {least:.4f} to "
                        f"{most:.4f}, up to sampling error."
                    )
    for table in (1, 5, 6, 7):
        found[table, "Bank", "IR"] = (
            f"Mean and deviation imply that {two_points(table, 'Bank')[0]:.0f} splits predicted 0 for the large leaf, "
            "and that the others have no cost: see below."
        )
    return found


_INVERSE: dict[int, Callable[[float], float]] = {1: float, 5: lambda v: v * v, 6: math.log1p, 7: math.expm1}


def two_points(table: int, name: str) -> tuple[float, float]:
    """Return the number of splits and d, if IR cost 0 in the other splits and underestimated all rows by d in these.

    Solved from the printed mean and standard deviation (99 degrees of freedom).
    """
    own = printed(table)[name]["IR"]
    square = own.mean**2 + own.sd**2 * (_THEIR_SPLITS - 1) / _THEIR_SPLITS
    return _THEIR_SPLITS * own.mean**2 / square, _INVERSE[table](square / own.mean / UNDER)


def sides() -> tuple[int, int, int]:
    """Return the number of cells with a lower cost than MetaCal, with stars, and with stars of two-sided tests."""
    cheaper = [
        (cell, row["MetaCal"])
        for table in (1, 2, 3, 5, 6, 7)
        for row in printed(table).values()
        for cell in row.values()
        if cell.mean < row["MetaCal"].mean
    ]
    apart = [(b.mean - a.mean) / math.hypot(a.error, b.error) for a, b in cheaper]
    return len(cheaper), sum(bool(a.stars) for a, _ in cheaper), sum(2 * student.sf(z, 150) < 0.05 for z in apart)
