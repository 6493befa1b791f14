"""One line of a result: a metric with its interval and its null, as people, frames and JSON want it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant._json import number
from calibrant.inference.intervals import Interval, Null
from calibrant.table import ScoreTable

__all__ = ["MetricResult"]


@dataclass(frozen=True)
class MetricResult:
    """One metric of an evaluation: its value with a confidence interval and its null distribution.

    Attributes
    ----------
    name : str
    interval : Interval
        NaN limits where no interval exists; a note says why.
    null : Null
        The metric if the model is calibrated, with the p-value of this metric alone.
    pvalue : float
        That of the null, but never below that of the omnibus test; NaN where there is no null.
    """

    name: str
    interval: Interval
    null: Null
    pvalue: float = float("nan")

    @property
    def value(self) -> float:
        return self.interval.value

    @property
    def unit(self) -> str:
        return self.interval.unit

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        parts = {"interval": self.interval.to_dict(), "null": self.null.to_dict()}
        return {"name": self.name, **parts, **number("pvalue", self.pvalue)}

    def to_row(self) -> dict[str, Any]:
        """The numbers, one row of a frame."""
        return {
            "metric": self.name,
            "unit": self.unit,
            "value": self.value,
            "low": self.interval.low,
            "high": self.interval.high,
            "expected": self.null.expected,
            "null_low": self.null.low,
            "null_high": self.null.high,
            "excess": self.null.excess,
            "pvalue": self.pvalue,
        }

    def cells(self) -> list[str]:
        """The same for people: value, interval, null range, adjusted p-value; empty where one does not exist."""
        form = Form.of(self.unit, self.null.high - self.null.low, signed=self.null.low < 0)
        return [
            form.amount(self.value),
            form.span(self.interval.low, self.interval.high),
            form.span(self.null.low, self.null.high),
            chance(self.pvalue),
        ]


@dataclass(frozen=True)
class Form:
    """How the numbers of one line are written: all alike."""

    unit: str
    decimals: int
    signed: bool

    @classmethod
    def of(cls, unit: str, spread: float, *, signed: bool) -> "Form":
        """One decimal of a percentage; of others four, or as many as show two digits of the spread."""
        if unit == "%":
            return cls(unit, 1, signed)
        needed = 4 if not 0 < spread < math.inf else 1 + math.ceil(-math.log10(spread))
        return cls(unit, min(max(needed, 4), 9), signed)

    def amount(self, value: float) -> str:
        """A value with its unit."""
        number = f"{value:{'+' if self.signed else ''}.{self.decimals}f}"
        return f"{number} %" if self.unit == "%" else number

    def span(self, low: float, high: float) -> str:
        """From low to high, the unit once; empty where the limits do not exist."""
        if math.isnan(low) or math.isnan(high):
            return ""
        return f"{self.amount(low).removesuffix(' %')} to {self.amount(high)}"


def chance(pvalue: float) -> str:
    """A p-value; empty where there is none."""
    if math.isnan(pvalue):
        return ""
    if pvalue < 1e-300:
        return "< 1e-300"
    return f"{pvalue:.3f}" if pvalue >= 0.001 else f"{pvalue:.0e}"


def p_is(pvalue: float) -> str:
    """A p-value in a sentence: "p = 0.012", "p < 1e-300"."""
    text = chance(pvalue)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def sizes(table: ScoreTable) -> dict[str, Any]:
    """Numbers of rows and events, mean score and event rate."""
    return {
        "n_in": table.n_in,
        "n_used": table.n_used,
        "n_dropped": table.n_dropped,
        "size": table.size,
        "positives": table.positives,
        "prevalence": table.prevalence,
        "mean_score": float(table.n @ table.score / table.size),
    }


def rows_in_words(table: ScoreTable) -> str:
    """How many rows there are."""
    if table.importance:
        return f"{table.n_used:,} rows with a total weight of {table.size:,.6g}"
    return f"{table.size:,} row{'s' if table.size != 1 else ''}"


def bins_in_words(count: int) -> str:
    """How many bins there are."""
    return f"{count:,} bin{'s' if count != 1 else ''}"


def sizes_in_words(table: ScoreTable) -> str:
    """Number of rows, mean score and event rate."""
    predicted, happened = (100 * sizes(table)[name] for name in ("mean_score", "prevalence"))
    weighted = "weighted " if table.importance else ""
    return f"{rows_in_words(table)}; {weighted}mean score {predicted:.4g} %, {weighted}event rate {happened:.4g} %"


def frame(rows: list[dict[str, Any]], backend: Any) -> Any:
    """Rows as a frame of the library that the user names."""
    return frame_of({name: [row[name] for row in rows] for name in rows[0]}, backend)


def frame_of(columns: Mapping[str, Any], backend: Any) -> Any:
    """Columns of equal length as such a frame."""
    import narwhals as nw

    try:
        return nw.from_dict(dict(columns), backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{backend} is not installed: pip install {backend}, or name another backend: pandas, polars, pyarrow."
        ) from error
