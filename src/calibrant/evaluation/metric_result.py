"""One line of a result: a metric with its interval and its null, as people, frames and JSON want it."""

from dataclasses import dataclass
from typing import Any

from calibrant._support.formatting import Form, chance
from calibrant._support.json_values import number
from calibrant.inference.intervals import Interval, Null

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
