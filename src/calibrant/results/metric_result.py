"""`MetricResult`: one metric of an evaluation with its interval and null distribution."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support.formatting import NumberFormat, ResultMapping, format_pvalue, line_html, metric_key, p_text
from calibrant._support.plain_data import number
from calibrant.results.uncertainty import Interval, Null

__all__ = ["MetricMapping", "MetricResult"]


@dataclass(frozen=True)
class MetricResult:
    """One metric of an evaluation: its value with a confidence interval and its null distribution.

    Attributes
    ----------
    name : str
    interval : Interval
        NaN limits where no interval exists; a note gives the reason.
    null : Null
        Distribution of the metric if the model is calibrated, and the p-value of this metric alone; NaN where it does
        not exist. The limits of the null range are NaN where only the expected value is known.
    pvalue : float
        Adjusted p-value, at least that of the omnibus test, so that it cannot contradict the verdict. NaN where the
        metric is not tested.

    See Also
    --------
    Evaluation, Interval, Null

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> ece = cb.evaluate(table, n_resamples=99)["ECE"]
    >>> bool(ece.interval.low <= ece.value <= ece.interval.high)
    True
    """

    name: str
    interval: Interval
    null: Null
    pvalue: float = float("nan")

    @property
    def value(self) -> float:
        """Value of the metric."""
        return self.interval.value

    @property
    def unit(self) -> str:
        """Unit of the value: "1", "%", or the unit of the outcome ("y", "y^2")."""
        return self.interval.unit

    def __repr__(self) -> str:
        value, interval, expected, pvalue = self.cells()
        level = f"{100 * self.interval.level:g}% CI"
        texts = [f"{self.name} = {value}", f"{level} {interval}" if interval else "no interval"]
        texts += [f"expected if calibrated {expected}"] if expected else []
        texts += [f"adjusted {p_text(self.pvalue)}"] if pvalue else []
        return f"MetricResult({', '.join(texts)})"

    _repr_html_ = line_html

    def without_inference(self) -> "MetricResult":
        """Return the metric without interval and null distribution, for rows in too few clusters.

        Returns
        -------
        MetricResult
            The same value; the limits, the null distribution and the p-value are NaN.
        """
        nan = math.nan
        interval = replace(self.interval, low=nan, high=nan, method="none", n_resamples=0)
        null = replace(self.null, expected=nan, low=nan, high=nan, pvalue=nan, n_resamples=0, replicates=np.empty(0))
        return MetricResult(self.name, interval, null)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        parts = {"interval": self.interval.to_dict(), "null": self.null.to_dict()}
        return {
            "name": self.name,
            **number("value", self.value),
            "unit": self.unit,
            **parts,
            **number("pvalue", self.pvalue),
        }

    def to_row(self) -> dict[str, Any]:
        """Return the numbers as one row of a frame.

        Returns
        -------
        dict
            Values by name of the column of `Evaluation.to_frame`.
        """
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
        """Return value, interval, null range and adjusted p-value as text; empty where one does not exist.

        Returns
        -------
        list of str
            Four texts.
        """
        low, high = self.null.low, self.null.high
        form: NumberFormat | _FourDigits = _FourDigits()
        if self.unit in ("1", "%"):
            spread = self.interval.high - self.interval.low if math.isnan(low) else high - low
            form = NumberFormat.for_spread(self.unit, spread, signed=low < 0)
        expected = form.range(low, high)
        if math.isnan(low) and not math.isnan(self.null.expected):
            expected = f"{self.null.expected:g}{' %' if self.unit == '%' else ''}"
        return [
            form.value(self.value),
            form.range(self.interval.low, self.interval.high),
            expected,
            format_pvalue(self.pvalue),
        ]


class MetricMapping(ResultMapping):
    """Results by the displayed names of metrics, which are also found under their names in `METRICS`, in any case.

    >>> MetricMapping({"Brier": 0.2, "log loss": 0.5})["log_loss"]
    0.5
    """

    def __missing__(self, name: object) -> Any:
        same = [other for other in self if isinstance(name, str) and metric_key(str(other)) == metric_key(name)]
        if len(same) != 1:
            raise KeyError(name)
        return self[same[0]]

    def __contains__(self, name: object) -> bool:
        return self.get(name, _ABSENT) is not _ABSENT

    def get(self, name: object, default: Any = None) -> Any:
        """Return the result of a metric, or `default` where it does not exist."""
        try:
            return self[name]
        except KeyError:
            return default


_ABSENT = object()


class _FourDigits:
    """Format of numbers in the unit of the outcome: four significant digits."""

    def value(self, value: float) -> str:
        return f"{value:.4g}"

    def range(self, low: float, high: float) -> str:
        return "" if math.isnan(low) else f"{low:.4g} to {high:.4g}"
