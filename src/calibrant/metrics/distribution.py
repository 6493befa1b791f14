"""Metrics of predictive distributions: coverage and width of intervals, PIT values, CRPS, log score, interval score."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError, Note, check_share, join_notes, warn_notes
from calibrant._support.formatting import html_table, text_table
from calibrant._support.plain_data import number
from calibrant._support.random_streams import RandomState, generator
from calibrant.forecasts.distributions import as_levels
from calibrant.forecasts.forecast_table import ForecastTable, as_forecast, read_forecast_table, read_outcomes
from calibrant.metrics import significance
from calibrant.metrics.metric import Direction, MetricFunction, MetricValue, UnbinnedMetric, metric_function
from calibrant.tables.rows import Missing, TableReader


@dataclass(frozen=True, eq=False, repr=False)
class Coverage:
    """Coverage of central intervals; see `coverage`.

    Attributes
    ----------
    per_level : dict of arrays
        level (nominal), expected (coverage if calibrated: the level, or more for discrete distributions, whose
        intervals end at whole numbers), observed (share of outcomes inside), low and high (Clopper-Pearson interval of
        that share), pvalue (exact binomial test) and width (mean width of the intervals).
    size : int
        Number of rows.
    confidence_level : float
        Level of the intervals of coverage.

    See Also
    --------
    coverage

    Examples
    --------
    >>> from calibrant.regression import Gaussian, coverage
    >>> result = coverage([9.0, 12.0, 13.5, 10.5], Gaussian([10.0] * 4, 2.0), levels=[0.5, 0.9])
    >>> result.per_level["observed"], round(result.mean_absolute, 3)
    (array([0.5 , 0.75]), 0.075)
    """

    per_level: Mapping[str, Any]
    size: int
    confidence_level: float

    @property
    def mean_absolute(self) -> float:
        """Mean absolute coverage error: distance of observed and expected coverage."""
        return float(np.mean(np.abs(self.per_level["observed"] - self.per_level["expected"])))

    def without_inference(self) -> "Coverage":
        """Return the shares without tests and intervals, for rows in too few clusters.

        Returns
        -------
        Coverage
            Limits and p-values are NaN.
        """
        unknown = np.full(len(self.per_level["level"]), np.nan)
        return replace(self, per_level={**self.per_level, **dict.fromkeys(("low", "high", "pvalue"), unknown)})

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        columns = {name: values.tolist() for name, values in self.per_level.items()}
        return {
            "schema_version": 1,
            "size": self.size,
            "confidence_level": self.confidence_level,
            **number("mean_absolute", self.mean_absolute),
            "per_level": columns,
        }

    def cells(self) -> list[list[str]]:
        """Return the table as text; its first row is the header.

        Returns
        -------
        list of lists of str
            One row per level.
        """
        level = f"{100 * self.confidence_level:g} % interval"
        columns = self.per_level
        same = np.array_equal(columns["level"], columns["expected"])
        rows = [["nominal", *([] if same else ["expected"]), "observed", level, "p", "mean width"]]
        for nominal, expected, observed, low, high, p, width in zip(*columns.values(), strict=True):
            shares = [f"{100 * nominal:g} %", *([] if same else [f"{100 * expected:.1f} %"]), f"{100 * observed:.1f} %"]
            tested = ["", ""] if np.isnan(p) else [f"{100 * low:.1f} to {100 * high:.1f} %", f"{p:.2g}"]
            rows.append([*shares, *tested, f"{width:.4g}"])
        return rows

    def __repr__(self) -> str:
        return "\n".join([f"Coverage of central intervals, {self.size:,} rows", *text_table(self.cells())])

    def _repr_html_(self) -> str:
        return f"<p>Coverage of central intervals, {self.size:,} rows</p>{html_table(self.cells())}"


def coverage(
    y_true: Column, forecast: Any, *, levels: Sequence[float] | None = None, confidence_level: float = 0.95
) -> Coverage:
    """Coverage of central intervals, with confidence intervals and tests, and their mean width.

    The central interval of level L reaches from the (1 - L)/2 to the (1 + L)/2 quantile; an outcome at an end is
    inside. Discrete forecasts therefore cover more than L if calibrated: by P(low <= X <= high), which is ``expected``
    and takes the place of L in tests. For m samples the levels are rounded to those of intervals
    between two samples, (m + 1 - 2 i) / (m + 1), because the expected coverage between samples is unknown.

    Parameters
    ----------
    y_true : column of n outcomes
    forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
    levels : numbers between 0 and 1
        By default 0.5, 0.8, 0.9 and 0.95, as far as an ensemble has samples for them; for quantile forecasts the
        intervals between pairs of their levels.
    confidence_level : float, default=0.95

    Returns
    -------
    Coverage
        Nominal and observed coverage of each level.

    See Also
    --------
    Coverage, CoverageDisplay, sharpness

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> result = coverage([9.0, 12.0, 13.5, 10.5], Gaussian([10.0] * 4, 2.0), levels=[0.5, 0.9])
    >>> result.per_level["observed"]
    array([0.5 , 0.75])
    """
    y, known = read_outcomes(y_true, forecast)
    check_share("confidence_level", confidence_level)
    wanted = coverage_levels(known, levels)
    inside, width, expected = np.empty(wanted.size), np.empty(wanted.size), wanted.copy()
    for i, level in enumerate(wanted):
        low, high = central_interval(known, level)
        inside[i] = np.count_nonzero((y >= low) & (y <= high))
        width[i] = np.mean(high - low)
        if known.is_discrete:
            expected[i] = np.mean(expected_coverage(known, low, high))
    limits = significance.clopper_pearson(inside, y.size, confidence_level=confidence_level)
    per_level = {
        "level": wanted,
        "expected": expected,
        "observed": inside / y.size,
        "low": limits[0],
        "high": limits[1],
        "pvalue": significance.binomial(inside, y.size, np.minimum(expected, 1.0)),
        "width": width,
    }
    return Coverage(per_level, y.size, confidence_level)


def coverage_levels(forecast: Any, levels: Sequence[float] | None) -> Floats:
    """Return the levels of central intervals that are measured; an error if there are none."""
    wanted = None if levels is None else as_levels(levels)[0]
    if wanted is not None and not wanted.size:
        raise InputError("levels must hold at least one number between 0 and 1; got none.")
    found: Floats = forecast.interval_levels(wanted)
    if not found.size:
        raise InputError(
            "forecast must hold two quantiles that are the ends of a central interval; got "
            f"levels {', '.join(f'{level:g}' for level in forecast.known_levels)}.",
            hint="Pass levels=, or predict quantiles in pairs such as 0.05 and 0.95.",
        )
    return found


def central_interval(forecast: Any, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the central interval of each row."""
    low, high = forecast.quantile([(1 - level) / 2, (1 + level) / 2]).T
    return low, high


def expected_coverage(forecast: Any, low: Floats, high: Floats) -> Floats:
    """Return the probability of an outcome from `low` to `high`, both included, for each row of a discrete forecast."""
    return np.asarray(forecast.cells(high)[1] - forecast.cells(low)[0])


def sharpness(forecast: Any, *, level: float = 0.9) -> float:
    """Sharpness: mean width of the central intervals of this level.

    Of two calibrated forecasts the sharper one is better.

    Parameters
    ----------
    forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
        The predictive distributions.
    level : float, default=0.9
        Level of the central intervals.

    Returns
    -------
    float
        In the unit of the outcome.

    See Also
    --------
    coverage, interval_score

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(sharpness(Gaussian([10.0, 20.0], [1.0, 3.0])), 3)
    6.579
    """
    check_share("level", level)
    low, high = central_interval(as_forecast(forecast), level)
    return float(np.mean(high - low))


NEAREST = 2.0**-54  # a PIT value nearer to 1 rounds to 1; values nearer to 0 count as that far from it


def pit(y_true: Column, forecast: Any, *, random_state: RandomState = 0, randomized: bool = True) -> Floats:
    """Probability integral transforms, F(y) of each row: uniform on [0, 1] if the forecasts are calibrated.

    Parameters
    ----------
    y_true : column of n outcomes
    forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
        One distribution per row.
    random_state : int, Generator or None
    randomized : bool, default=True
        Where only an interval of F(y) is known (between two quantiles, between two samples, at an atom of a discrete
        distribution), return a uniform random number in it: only then are PITs of calibrated forecasts uniform. False
        returns its midpoint.

    Returns
    -------
    ndarray of n numbers in [0, 1]

    See Also
    --------
    anderson_darling, kolmogorov_smirnov, PITDisplay

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> pit([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)).round(4)
    array([0.5   , 0.9772])
    """
    y, known = read_outcomes(y_true, forecast)
    return transforms(y, known, random_state=random_state, randomized=randomized)


def transforms(y: Floats, forecast: Any, *, random_state: RandomState = 0, randomized: bool = True) -> Floats:
    """Return the PIT values of outcomes and forecasts that were read already."""
    low, high = forecast.cells(y)
    if not (low < high).any():
        return np.array(high)
    place = generator(random_state).random(y.size) if randomized else 0.5
    return np.asarray(low + place * (high - low))


def read_pit(u: Column) -> tuple[Floats, tuple[Note, ...]]:
    """Read PIT values, numbers in [0, 1], none missing; return them with their notes."""
    column = _columns.scores(_columns.read(u, "u", hint="Pass one column of PIT values."))
    _columns.refuse_missing([column])
    if not len(column):
        raise InputError("u must hold at least one value; got none.")
    ends = int(np.count_nonzero((column.values < NEAREST) | (column.values == 1)))
    text = "PIT values within 2^-54 of 0 or 1: {count}. The forecasts give these outcomes almost no probability."
    return column.values, join_notes(column.notes, [Note("pit_at_end", ends, text)] * (ends > 0))


def rising(u: Floats) -> Floats:
    """Return the values in rising order; several tests of the same values need not sort them again."""
    return u if bool((u[1:] >= u[:-1]).all()) else np.sort(u)


def miscalibration(u: Column) -> float:
    """Miscalibration area: between the distribution of the PIT values and the diagonal. 0 is best, 1/2 is worst.

    The integral over x of the distance between x and the share of u up to x, computed exactly. Where forecasts are
    overconfident or underconfident, the coverage of central intervals deviates by twice that, averaged over all levels.

    Parameters
    ----------
    u : column
        PIT values, in [0, 1]; see `pit`.

    Returns
    -------
    float
        In [0, 0.5].

    See Also
    --------
    pit, coverage

    Examples
    --------
    >>> round(miscalibration([0.25, 0.75]), 4)
    0.125
    """
    given, notes = read_pit(u)
    warn_notes(note for note in notes if note.code != "pit_at_end")  # 0 and 1 are valid ends here
    values = rising(given)
    x = np.concatenate([[0.0], values, [1.0]])
    share = np.arange(values.size + 1) / values.size
    # On each piece the gap |share - x| is linear, and may cross 0.
    left, right = share - x[:-1], share - x[1:]
    width = np.diff(x)
    crosses = left * right < 0
    with np.errstate(divide="ignore", invalid="ignore"):
        bent = (left**2 + right**2) / (2 * np.abs(left - right))
    area = np.where(crosses, bent, (np.abs(left) + np.abs(right)) / 2)
    return float(np.sum(width * np.where(width > 0, area, 0.0)))


@dataclass(frozen=True)
class DistributionMetric(UnbinnedMetric):
    """A metric of predictive distributions, computed from a `ForecastTable`; see `calibrant.metrics.Metric`.

    It is a function (`combine`) of the means over rows of one number per row or several (`row_values`), so that a
    bootstrap replicate averages the values of the rows that it contains.

    See Also
    --------
    Metric, PointMetric, CRPS

    Examples
    --------
    >>> from calibrant.regression import CRPS, Gaussian
    >>> metric = CRPS()
    >>> isinstance(metric, DistributionMetric), metric.kind
    (True, 'distribution')
    >>> round(metric([1.0, 2.0], Gaussian([1.5, 1.5], 1.0)).value, 4)
    0.3314
    """

    kind: ClassVar[str] = "distribution"
    reader: ClassVar[TableReader[Any]] = read_forecast_table
    unit: ClassVar[str] = "y"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    # Whether cells between quantiles decide the value, so that it has a null distribution for `Quantiles`.
    needs_cells_only: ClassVar[bool] = False

    def __call__(  # type: ignore[override]
        self, y_true: ForecastTable | Column, forecast: Any = None, *, missing: Missing = "raise"
    ) -> MetricValue:
        """Measure a table, or rows of outcomes and predictive distributions.

        Parameters
        ----------
        y_true : column, or a ForecastTable instead of both
        forecast : Gaussian, Quantiles, Samples, or a frozen distribution of scipy.stats
        missing : {"raise", "drop"}
            See `ForecastTable.from_arrays`.

        Returns
        -------
        MetricValue
            ``float(result)`` is the value.
        """
        return self.measured(read_forecast_table(y_true, forecast, {"missing": missing}))

    @abstractmethod
    def row_values(self, table: ForecastTable) -> Floats:
        """Return the number, or the numbers, of each row: (n,) or (n, k).

        Parameters
        ----------
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        array
        """

    def expected(self, table: ForecastTable) -> Floats:
        """Return the means of `row_values` if the forecasts are calibrated; only metrics of gaps know them.

        Parameters
        ----------
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        array
            One number per column of `row_values`.
        """
        raise NotImplementedError

    def combine(self, means: Floats, table: ForecastTable) -> float:
        """Return the value that belongs to the means of `row_values`.

        Parameters
        ----------
        means : array or float
            Means of `row_values` over rows.
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        float
        """
        return float(means)

    def value(self, table: ForecastTable) -> float:
        return self.combine(np.mean(self.row_values(table), axis=0), table)


@dataclass(frozen=True)
class NLL(DistributionMetric):
    """Mean negative log-likelihood of the outcomes; lower is better.

    It is infinite if a forecast gives an outcome density 0. Forecasts must have densities: `Gaussian`, distributions of
    scipy.stats, and recalibrated ones of these.

    See Also
    --------
    nll, CRPS

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(nll([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 4)
    2.6121
    """

    name: ClassVar[str] = "NLL"
    unit: ClassVar[str] = "nat"
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def row_values(self, table: ForecastTable) -> Floats:
        return np.asarray(-table.forecast.log_density(table.y))


@dataclass(frozen=True)
class CRPS(DistributionMetric):
    """Mean continuous ranked probability score, in the unit of the outcomes; lower is better.

    The integral of (F(x) - 1{x >= y})^2 over x, which generalises the absolute error to distributions. `Samples` are
    read as a distribution with probability 1/m each; for `Quantiles` it is twice the mean pinball loss.

    See Also
    --------
    crps, NLL

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(crps([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 4)
    1.6865
    """

    name: ClassVar[str] = "CRPS"

    def row_values(self, table: ForecastTable) -> Floats:
        return np.asarray(table.forecast.crps(table.y))


@dataclass(frozen=True)
class IntervalScore(DistributionMetric):
    """Mean interval score of central intervals (Gneiting and Raftery, 2007); lower is better.

    The width of the interval, plus 2 / (1 - level) times the distance of an outcome outside it.

    Parameters
    ----------
    level : float, default=0.9
        Level of the intervals.

    See Also
    --------
    interval_score, CoverageError

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> round(interval_score([10.0, 24.0], Gaussian([10.0, 20.0], 2.0)), 3)
    13.682
    """

    level: float = 0.9

    name: ClassVar[str] = "interval score"

    def __post_init__(self) -> None:
        check_share("level", self.level)

    def row_values(self, table: ForecastTable) -> Floats:
        y, tail = table.y, (1 - self.level) / 2
        low, high = table.forecast.quantile([tail, (1 + self.level) / 2]).T
        beyond = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        return np.asarray(high - low + 2 / (1 - self.level) * beyond)


@dataclass(frozen=True)
class CoverageError(DistributionMetric):
    """Mean absolute coverage error: distance of observed and nominal coverage of central intervals, over their levels.

    For discrete distributions the expected coverage takes the place of the nominal one; see `coverage`.

    Parameters
    ----------
    levels : tuple of floats, optional
        Levels of the intervals; by default as for `calibrant.regression.coverage`.

    See Also
    --------
    coverage_error, coverage

    Examples
    --------
    >>> from calibrant.regression import Gaussian
    >>> coverage_error([9.0, 12.0, 13.5, 10.5], Gaussian([10.0] * 4, 2.0), levels=(0.5, 0.9))
    0.07500000000000001
    """

    levels: tuple[float, ...] | None = None

    name: ClassVar[str] = "coverage error"
    unit: ClassVar[str] = "1"
    direction: ClassVar[Direction] = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    measures_gaps: ClassVar[bool] = True
    interval_method: ClassVar[str] = "anchored"
    needs_cells_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.levels is not None:
            levels: Iterable[float] = self.levels if isinstance(self.levels, Iterable) else [self.levels]
            object.__setattr__(self, "levels", tuple(check_share("levels", level) for level in levels))

    def expected(self, table: ForecastTable) -> Floats:
        """Return the nominal levels.

        Parameters
        ----------
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        array
            One number per column of `row_values`.
        """
        return coverage_levels(table.forecast, self.levels)

    def row_values(self, table: ForecastTable) -> Floats:
        """Return whether each row lies in its interval of each level, less what discrete intervals cover too much.

        Parameters
        ----------
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        array of shape (n, k)
            1 inside the interval, 0 outside.
        """
        forecast, levels = table.forecast, self.expected(table)
        ends = [central_interval(forecast, level) for level in levels]
        found = np.column_stack([(table.y >= low) & (table.y <= high) for low, high in ends]).astype(np.float64)
        if forecast.is_discrete:
            expected = [expected_coverage(forecast, low, high) for low, high in ends]
            found = found + levels - np.column_stack(expected)
        return found

    def combine(self, means: Floats, table: ForecastTable) -> float:
        """Return the mean distance from the nominal levels.

        Parameters
        ----------
        means : array or float
            Means of `row_values` over rows.
        table : ForecastTable
            Outcomes and forecasts.

        Returns
        -------
        float
        """
        return float(np.mean(np.abs(means - self.expected(table))))


nll: MetricFunction = metric_function(NLL)
crps: MetricFunction = metric_function(CRPS)
interval_score: MetricFunction = metric_function(IntervalScore)
coverage_error: MetricFunction = metric_function(CoverageError)
