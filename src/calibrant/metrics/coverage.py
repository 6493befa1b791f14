"""Coverage and width of the central intervals of predictive distributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.json_values import number
from calibrant._support.option_checks import check_share
from calibrant._support.text_tables import html_table, text_table
from calibrant._support.typing import Bools, Column, Floats
from calibrant.forecasts.distributions import as_levels
from calibrant.forecasts.reading import as_forecast, read_outcomes
from calibrant.metrics import significance

__all__ = ["Coverage", "coverage", "sharpness"]


@dataclass(frozen=True, eq=False, repr=False)
class Coverage:
    """Coverage of central intervals; see `coverage`.

    Attributes
    ----------
    per_level : dict of arrays
        level (nominal), observed (share of outcomes inside), low and high (Clopper-Pearson interval of that share),
        pvalue (exact binomial test) and width (mean width of the intervals).
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
        """Mean absolute coverage error: distance of observed and nominal coverage."""
        return float(np.mean(np.abs(self.per_level["observed"] - self.per_level["level"])))

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
        rows = [["nominal", "observed", level, "p", "mean width"]]
        for nominal, observed, low, high, p, width in zip(*self.per_level.values(), strict=True):
            span = f"{100 * low:.1f} to {100 * high:.1f} %"
            rows.append([f"{100 * nominal:g} %", f"{100 * observed:.1f} %", span, f"{p:.2g}", f"{width:.4g}"])
        return rows

    def __repr__(self) -> str:
        return "\n".join([f"Coverage of central intervals, {self.size:,} rows", *text_table(self.cells())])

    def _repr_html_(self) -> str:
        return f"<p>Coverage of central intervals, {self.size:,} rows</p>{html_table(self.cells())}"


def coverage(
    y_true: Column,
    forecast: Any,
    *,
    levels: Sequence[float] | None = None,
    confidence_level: float = 0.95,
) -> Coverage:
    """Coverage of central intervals, with confidence intervals and tests, and their mean width.

    The central interval of level L reaches from the (1 - L)/2 to the (1 + L)/2 quantile; an outcome at an end is
    inside. (Discrete forecasts therefore cover more than L.) For m samples the levels are rounded to those of intervals
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
    inside, width = np.empty(wanted.size), np.empty(wanted.size)
    for i, level in enumerate(wanted):
        low, high = central_interval(known, level)
        inside[i] = np.count_nonzero((y >= low) & (y <= high))
        width[i] = np.mean(high - low)
    limits = significance.clopper_pearson(inside, y.size, confidence_level=confidence_level)
    per_level = {
        "level": wanted,
        "observed": inside / y.size,
        "low": limits[0],
        "high": limits[1],
        "pvalue": significance.binomial(inside, y.size, wanted),
        "width": width,
    }
    return Coverage(per_level, y.size, confidence_level)


def coverage_levels(forecast: Any, levels: Sequence[float] | None) -> Floats:
    """Return the levels of central intervals that are measured; an error if there are none."""
    wanted = None if levels is None else as_levels(levels)[0]
    if wanted is not None and not wanted.size:
        raise InputError("levels must hold at least one number between 0 and 1; got none.", argument="levels")
    found: Floats = forecast.interval_levels(wanted)
    if not found.size:
        raise InputError(
            "forecast must hold two quantiles that are the ends of a central interval; got "
            f"levels {', '.join(f'{level:g}' for level in forecast.known_levels)}.",
            hint="Pass levels=, or predict quantiles in pairs such as 0.05 and 0.95.",
            argument="forecast",
        )
    return found


def central_interval(forecast: Any, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the central interval of each row."""
    low, high = forecast.quantile([(1 - level) / 2, (1 + level) / 2]).T
    return low, high


def is_covered(y: Floats, forecast: Any, level: float) -> Bools:
    """Return whether each outcome lies in its central interval; an outcome at an end is inside."""
    low, high = central_interval(forecast, level)
    return np.asarray((y >= low) & (y <= high))


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
