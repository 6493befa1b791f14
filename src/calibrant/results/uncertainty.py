"""Numbers with their uncertainty: estimates, intervals, nulls and equivalence tests of metrics; serial dependence."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.errors import Note
from calibrant._support.formatting import NumberFormat, ResultMapping, format_pvalue, line_html, metric_key, p_text
from calibrant._support.plain_data import PlainResult, number, plain
from calibrant.results.text import format_level, format_limits, format_pvalues

Alternative: TypeAlias = Literal["greater", "two-sided"]


@dataclass(frozen=True, repr=False)
class Estimate(PlainResult):
    """An estimate with its confidence interval and, where a calibrated model has a known value, the test against it.

    Attributes
    ----------
    name : str
    value, standard_error, low, high, level : float
        The interval is value -+ t standard_error, with Student's t of `df` degrees of freedom. With too few rows
        standard_error, low and high are NaN.
    df : float
        Infinite where the standard error is treated as known.
    null, pvalue : float or None
        Value expected if calibrated, and the two-sided p-value of the hypothesis that it is the true value.

    See Also
    --------
    Interval, TestResult

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> slope = next(each for each in cb.evaluate(table).coefficients if each.name == "calibration slope")
    >>> round(slope.value, 2), round(slope.low, 2), round(slope.high, 2)
    (0.78, 0.59, 0.97)
    """

    name: str
    value: float
    standard_error: float
    low: float
    high: float
    level: float
    df: float
    null: float | None = None
    pvalue: float | None = None

    def without_inference(self) -> "Estimate":
        """Return the estimate without interval and test, for rows in too few clusters.

        Returns
        -------
        Estimate
            Standard error, limits and p-value are NaN.
        """
        nan = math.nan
        pvalue = None if self.pvalue is None else nan
        return replace(self, standard_error=nan, low=nan, high=nan, pvalue=pvalue)

    _repr_html_ = line_html

    def __repr__(self) -> str:
        value, limits = format_limits("", self.value, self.low, self.high)
        shown = f"{format_level(self.level, 'CI')} {limits}" if limits else "no interval"
        return f"Estimate({', '.join([f'{self.name} = {value}', shown, *format_pvalues(self.pvalue)])})"


@dataclass(frozen=True, repr=False)
class Interval(PlainResult):
    """A value with its confidence interval; see `interval`.

    Attributes
    ----------
    metric : str
        Name of the metric.
    value : float
        Value of the metric.
    low, high : float
        Limits of the interval.
    level : float
        Confidence level.
    method : str
        Method of the interval.
    unit : str
        "%" or "1".
    n_resamples : int
        Number of replicates.
    spec : mapping
        Specification of the metric.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    interval, Estimate

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> found = cb.interval("ece", table, n_resamples=199, random_state=0)
    >>> found.low <= found.value <= found.high, found.level
    (True, 0.95)
    """

    metric: str
    value: float
    low: float
    high: float
    level: float
    method: str
    unit: str
    n_resamples: int
    spec: Mapping[str, Any]
    notes: tuple[Note, ...] = ()

    _repr_html_ = line_html

    def __repr__(self) -> str:
        value, limits = format_limits(self.unit, self.value, self.low, self.high, signed=self.low < 0)
        shown = f"{format_level(self.level, 'CI')} {limits}" if limits else "no interval"
        return f"Interval({self.metric} = {value}, {shown})"


@dataclass(frozen=True, repr=False)
class Null:
    """Null distribution of a metric; see `null`.

    Attributes
    ----------
    metric : str
        Name of the metric.
    value : float
        Value of the metric.
    expected : float
        Mean of the null distribution.
    low, high : float
        Null range.
    pvalue : float
        p-value of calibration.
    alternative : {"greater", "two-sided"}
        Deviations that count against calibration.
    level : float
        Share of the null distribution in the range.
    unit : str
        "%" or "1".
    n_resamples : int
        Number of replicates.
    spec : mapping
        Specification of the metric.
    notes : tuple of Note
        Notes about the input.
    replicates : ndarray
        Values of the replicates.

    See Also
    --------
    null, NullDisplay

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> found = cb.null("ece", table, n_resamples=199, random_state=0)
    >>> found.low <= found.expected <= found.high
    True
    """

    metric: str
    value: float
    expected: float
    low: float
    high: float
    pvalue: float
    alternative: Alternative
    level: float
    unit: str
    n_resamples: int
    spec: Mapping[str, Any]
    notes: tuple[Note, ...] = ()
    replicates: Floats = field(default_factory=lambda: np.empty(0), compare=False)

    @property
    def excess(self) -> float:
        """The value minus the value expected if the model is calibrated."""
        return self.value - self.expected

    def to_dict(self) -> dict[str, Any]:
        """Return all fields but the replicates as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {**plain(self), **number("excess", self.excess)}

    _repr_html_ = line_html

    def __repr__(self) -> str:
        value, limits = format_limits(self.unit, self.value, self.low, self.high, signed=self.low < 0)
        shown = f"{format_level(self.level, 'null range')} {limits}" if limits else "no null range"
        return f"Null({', '.join([f'{self.metric} = {value}', shown, *format_pvalues(self.pvalue)])})"


@dataclass(frozen=True, repr=False)
class Equivalence:
    """Whether a metric is shown to lie within a margin; see `equivalence`.

    Attributes
    ----------
    metric : str
        Name of the metric.
    value, margin : float
        Value of the metric and the margin.
    pvalue : float
        p-value of the hypothesis that the metric is at least the margin.
    alpha : float
        Significance level.
    bound : float
        Upper confidence limit of the metric.
    unit : str
        "%" or "1".
    n_resamples : int
        Number of replicates.
    spec : mapping
        Specification of the metric.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    equivalence, AbsoluteMargin

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> found = cb.equivalence("ace", table, margin=0.2, n_resamples=199, random_state=0)
    >>> found.within, found.bound < 0.2
    (True, True)
    """

    metric: str
    value: float
    margin: float
    pvalue: float
    alpha: float
    bound: float
    unit: str
    n_resamples: int
    spec: Mapping[str, Any]
    notes: tuple[Note, ...] = ()

    @property
    def within(self) -> bool:
        """Whether the data show that the metric lies within the margin: pvalue <= alpha."""
        return self.pvalue <= self.alpha

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {**plain(self), "within": self.within}

    _repr_html_ = line_html

    def __repr__(self) -> str:
        value, limits = format_limits(self.unit, self.value, self.value, self.bound, signed=self.value < 0)
        bound = f"upper bound {limits.partition(' to ')[2]}" if limits else "no bound"
        shown = "within" if self.within else "not shown within"
        margin = f"{self.margin:g}{' %' if self.unit == '%' else ''}"
        texts = [f"{self.metric} = {value}", bound, f"{shown} the margin of {margin}"]
        return f"Equivalence({', '.join(texts + format_pvalues(self.pvalue))})"


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
        own = {"name": self.name, **number("value", self.value), "unit": self.unit}
        parts = {"interval": self.interval.to_dict(), "null": self.null.to_dict()}
        return {**own, **parts, **number("pvalue", self.pvalue)}

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
        form = NumberFormat(self.unit, 4, signed=False, kind="g")  # the outcome may be of any size
        if self.unit in ("1", "%"):
            spread = self.interval.high - self.interval.low if math.isnan(low) else high - low
            form = NumberFormat.for_spread(self.unit, spread, signed=low < 0)
        expected = form.range(low, high)
        if math.isnan(low) and not math.isnan(self.null.expected):
            expected = f"{self.null.expected:.4g}{' %' if self.unit == '%' else ''}"
        return [
            form.value(self.value),
            form.range(self.interval.low, self.interval.high),
            expected,
            format_pvalue(self.pvalue),
        ]


@dataclass(frozen=True)
class SerialDependence:
    """Estimated dependence between errors of neighbouring times, and the blocks of consecutive times that follow.

    Attributes
    ----------
    n_times : int
        Number of distinct times.
    n_blocks : int
        Number of blocks of consecutive times, which are resampled and tested as clusters.
    autocorrelation : float
        Correlation of the errors of neighbouring times, summed per time.
    reach : float
        Over how many times errors depend on each other: the mean distance :math:`|k|` of two times, weighted by their
        autocorrelation; 0 for independent times.

    See Also
    --------
    evaluate

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> result = cb.evaluate(rng.random(2000) < p, p, time=np.arange(2000) // 10, n_resamples=99)
    >>> result.serial_dependence.n_times, result.serial_dependence.n_blocks > 20
    (200, True)
    """

    n_times: int
    n_blocks: int
    autocorrelation: float
    reach: float

    @property
    def block_length(self) -> float:
        """Mean number of times in a block."""
        return self.n_times / self.n_blocks

    @property
    def note(self) -> Note:
        """A note that states the blocks."""
        shown = round(self.autocorrelation, 2) + 0.0  # not -0.00
        if self.n_blocks == self.n_times:
            text = (
                "{count} times are resampled and tested as clusters; errors of neighbouring times are not shown to "
                f"depend on each other (autocorrelation {shown:.2f})."
            )
            return Note("time_blocks", self.n_blocks, text)
        text = (
            f"Errors of neighbouring times may depend on each other (autocorrelation {shown:.2f}): "
            f"{self.n_times:,} times are {{count}} blocks of about {self.block_length:.3g}, which are resampled and "
            "tested as clusters."
        )
        return Note("time_blocks", self.n_blocks, text)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON.

        Returns
        -------
        dict
            The attributes, and the mean number of times in a block.
        """
        return {
            "n_times": self.n_times,
            "n_blocks": self.n_blocks,
            "block_length": self.block_length,
            "autocorrelation": self.autocorrelation,
            "reach": self.reach,
        }
