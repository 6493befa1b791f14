"""`Difference`: the difference of a metric between a model and the baseline, with its test."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from calibrant._support.errors import InputError
from calibrant._support.formatting import NumberFormat, format_pvalue
from calibrant._support.json_values import plain
from calibrant.inference.multiplicity import holm
from calibrant.inference.paired import PairedDifference

__all__ = ["DECIDING_TEST", "PAIRED_TEST", "Difference", "adjust_differences", "check_score_names"]

DECIDING_TEST, PAIRED_TEST = "decides", "paired t test"


@dataclass(frozen=True)
class Difference:
    """Difference of a metric between a model and the baseline, on the same rows.

    Attributes
    ----------
    model, baseline, metric, unit : str
    value : float
        For the metric that decides the difference of the debiased squares; for others the difference of the values.
    low, high, level : float
        Confidence interval; NaN for metrics of gaps, whose difference has no interval of known coverage, and for the
        metric that decides if there is little information.
    pvalue, adjusted_pvalue : float
        p-value of "no difference": of this pair alone, and adjusted by Holm for the number of models. NaN for metrics
        of gaps.
    test : str
        Source of the p-value: "decides", "paired t test", "bootstrap", or "" without one.

    See Also
    --------
    Comparison, compare

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = cb.compare(rng.random(2000) < p, {"squared": p**2, "plain": p}).differences[0]
    >>> found.model, found.baseline, found.metric, found.value < 0, found.adjusted_pvalue < 0.05
    ('plain', 'squared', 'log-odds error', True, True)
    """

    model: str
    baseline: str
    metric: str
    value: float
    low: float
    high: float
    level: float
    pvalue: float
    unit: str
    test: str = ""
    adjusted_pvalue: float = math.nan

    @classmethod
    def from_test(
        cls,
        model: str,
        baseline: str,
        metric: str,
        found: PairedDifference,
        level: float,
        *,
        test: str,
        unit: str = "1",
    ) -> "Difference":
        """Return the difference of a paired test.

        Parameters
        ----------
        model, baseline, metric : str
            Names of the model, of the model that it is compared with and of the metric.
        found : PairedDifference
            Result of the paired test.
        level : float
            Confidence level of the interval.
        test : str
            Name of the test.
        unit : str, default="1"
            Unit of the difference; "%" for percentage points.

        Returns
        -------
        Difference
            Value, interval and p-value of the test; the p-value is not adjusted.
        """
        low, high = found.interval(level)
        return cls(model, baseline, metric, found.value, low, high, level, found.pvalue, unit, test)

    @classmethod
    def without_test(
        cls, model: str, baseline: str, metric: str, value: float, level: float, unit: str
    ) -> "Difference":
        """Return the difference of a metric without interval and p-value.

        Parameters
        ----------
        model, baseline, metric : str
            Names of the model, of the model that it is compared with and of the metric.
        value : float
            The difference.
        level : float
            Confidence level of the comparison.
        unit : str
            Unit of the difference.

        Returns
        -------
        Difference
            Its interval and p-value are NaN.
        """
        return cls(model, baseline, metric, value, math.nan, math.nan, level, math.nan, unit)

    def cells(self) -> list[str]:
        """Return difference, interval and adjusted p-value with its test as text; empty where they do not exist.

        Returns
        -------
        list of str
            Three texts.
        """
        form: NumberFormat | _SignedDigits = _SignedDigits()
        if self.unit in ("1", "%"):
            form = NumberFormat.for_spread(self.unit, self.high - self.low, signed=True)
        value = "" if math.isnan(self.value) else form.value(self.value)
        if value and self.test == DECIDING_TEST:
            value += " (squares)"
        if math.isnan(self.low):
            return [value, "", ""]
        return [value, form.range(self.low, self.high), f"{format_pvalue(self.adjusted_pvalue)} ({self.test})"]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return plain(self)


class _SignedDigits:
    """Format of differences in the unit of the outcome: a sign and four significant digits."""

    def value(self, value: float) -> str:
        return f"{value:+.4g}"

    def range(self, low: float, high: float) -> str:
        return f"{low:+.4g} to {high:+.4g}"


def adjust_differences(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """Return differences with p-values adjusted for the number of models by Holm, metric by metric."""
    by_metric: dict[str, list[Difference]] = {}
    for d in differences:
        by_metric.setdefault(d.metric, []).append(d)
    found = []
    for same in by_metric.values():
        adjusted = holm([d.pvalue for d in same]) if same[0].test else [math.nan] * len(same)
        found += [replace(d, adjusted_pvalue=float(p)) for d, p in zip(same, adjusted, strict=True)]
    return tuple(found)


def check_score_names(metrics: Mapping[str, Any], scores: Mapping[str, Any]) -> None:
    """Check that no other metric has the name of a score that is always compared."""
    for name, score in scores.items():
        if metrics.get(name, score) != score:
            raise InputError(
                f"metrics must not call another metric {name!r}; got {metrics[name]!r}.",
                hint="Use another name for it.",
                argument="metrics",
                value=name,
            )
