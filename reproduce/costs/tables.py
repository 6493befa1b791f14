"""Tables 1 to 7 of Yang & Bi, cell by cell: what is printed, what comes out here, and what to think of it."""

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from scipy.stats import t as student

from reproduce.costs.experiment import METHODS
from reproduce.costs.results import Key
from reproduce.tables import HERE

Results = dict[Key, dict[str, float]]
Verdict = Literal["agrees", "differs", "cannot be right", "other data", "not run"]

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
_LEVEL = 0.0027  # of a test: what lies beyond three standard errors if these are known
_PRINTED = re.compile(r"(?P<mean>[\d.]+)(?P<stars>\**) \((?P<sd>[\d.]+)\)")
_THEIR_SPLITS = 100
_LEVELS = (0.001, 0.01, 0.05)


@dataclass(frozen=True)
class Printed:
    """A cell as the paper prints it: mean, stars of a t-test, and standard deviation over 100 splits."""

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
    """One published mean, and ours over the splits that are done."""

    table: int
    set: str
    method: str
    printed: Printed
    ours: np.ndarray
    gap: np.ndarray  # MetaCal less this method, split by split; empty in Table 4
    change: np.ndarray  # this method less no calibration
    printed_change: float
    impossible: str = ""

    @property
    def mean(self) -> float:
        return float(self.ours.mean()) if self.ours.size else math.nan

    @property
    def error(self) -> float:
        """The standard error of our mean over splits."""
        return float(self.ours.std(ddof=1) / math.sqrt(self.ours.size)) if self.ours.size > 1 else math.nan

    @property
    def z(self) -> float:
        """Our mean less theirs, in standard errors of that difference. Both come from draws of the same rows."""
        return (self.mean - self.printed.mean) / math.hypot(self.error, self.printed.error)

    @property
    def same_mean(self) -> float:
        """P-value of Welch's test of "both means are the same", which knows how few our splits are."""
        ours, theirs = self.error**2, self.printed.error**2
        freedom = (ours + theirs) ** 2 / (ours**2 / (self.ours.size - 1) + theirs**2 / (_THEIR_SPLITS - 1))
        return float(2 * student.sf(abs(self.z), freedom))

    @property
    def same_sign(self) -> bool | None:
        """Whether the change from no calibration has the printed sign; None for no calibration itself."""
        if self.method == "NoCal" or not self.change.size:
            return None
        return bool((self.change.mean() < 0) == (self.printed_change < 0))

    @property
    def pvalues(self) -> tuple[float, float] | None:
        """Paired t-tests of MetaCal against this method: is it cheaper (one side), is there a difference (two)?"""
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
    def verdict(self) -> Verdict:
        if self.ours.size < 2:
            return "not run"
        if self.impossible:
            return "cannot be right"
        if self.set == "Sentiment":
            return "other data"
        return "agrees" if self.same_mean >= _LEVEL else "cannot be right" if self.method == "IR" else "differs"

    @property
    def reason(self) -> str:
        """Why it is not as printed."""
        if self.verdict in ("agrees", "not run"):
            return ""
        if self.verdict == "other data":
            word = {True: "the same sign as", False: "another sign than", None: "nothing to be compared with"}
            return f"Other reviews and another model: the change has {word[self.same_sign]} the printed one."
        if self.impossible:
            return self.impossible
        if self.method == "IR":
            return "Isotonic regression that is fitted and applied as it should be does not cost that (see below)."
        return _WHY.get((self.table, self.set, self.method), "Open: not found.")


_WHY: dict[tuple[int, str, str], str] = {}


def cells(results: Results) -> list[Cell]:
    """All 218 of them, in the paper's order."""
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
            # A mean is over all splits of the method; what is compared with it, over the splits that have both.
            alone, nocal = together(results, name, model, [own, _column(table, "NoCal")])
            paired, metacal = together(results, name, model, [own, _column(table, "MetaCal")])
            change, printed_change = alone - nocal, text.mean - row["NoCal"].mean
            yield Cell(table, name, method, text, ours, metacal - paired, change, printed_change, why)


def _column(table: int, method: str) -> str:
    if method in METHODS or method == "R = 100":
        return f"{_COST[table]}: {'MetaCal' if method == 'R = 100' else method}"
    return f"{_COST[table]}: MetaCal, {method}"


def together(results: Results, name: str, model: str, columns: list[str]) -> list[np.ndarray]:
    """Columns of the splits of a set that have all of them, in the order of seeds."""
    rows = [
        [found[column] for column in columns]
        for split, found in sorted(results.items())
        if split[:2] == (name, model) and all(column in found for column in columns)
    ]
    return list(np.array(rows).reshape(-1, len(columns)).T)


def printed(table: int) -> dict[str, dict[str, Printed]]:
    """A table as printed, by set and method."""
    with open(HERE / "published" / f"costs{table}.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {row.pop("set"): {method: Printed.read(text) for method, text in row.items()} for row in rows}


# What the cost of the same predictions can be under other distances, when the linear one is x: for d in [0, 1]
# ln 2 d <= ln(1 + d) <= d <= exp(d) - 1 <= (e - 1) d, and d <= sqrt(d), whose mean is at most sqrt(5 x) by
# Cauchy and Schwarz, as the dearer side costs 5.
def bounds(linear: float) -> dict[int, tuple[float, float]]:
    """The range of the cells of Tables 5 to 7 for predictions that do not depend on the cost."""
    return {
        5: (linear, math.sqrt(5 * linear)),
        6: (linear, (math.e - 1) * linear),
        7: (math.log(2) * linear, linear),
    }


def impossible() -> dict[tuple[int, str, str], str]:
    """Cells of Tables 5 to 7 that contradict the linear cost printed for the same predictions, by more than chance.

    No calibration, IR, TS and PS do not know the cost: their predictions are the same in all tables. If the tables come
    from other splits, means move: three standard errors are allowed.
    """
    linear = printed(1) | printed(3)
    found = {}
    for table in (5, 6, 7):
        for name, row in printed(table).items():
            for method in ("NoCal", "IR", "TS", "PS"):
                base, own = linear[name][method], row[method]
                low, high = bounds(base.mean)[table]
                slack = _WITHIN * math.hypot(base.error, own.error)
                if not low - slack <= own.mean <= high + slack:
                    found[table, name, method] = (
                        f"The same predictions cost {base.mean:.4f} with a linear distance, so here between {low:.4f} "
                        f"and {high:.4f}, whatever the data."
                    )
    return found
