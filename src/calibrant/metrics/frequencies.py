"""`count_frequencies`: how often each count occurs, and how often forecasts expect it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.arrays import Column, Floats
from calibrant._support.errors import InputError, check_count
from calibrant._support.formatting import line_html
from calibrant.forecasts.forecast_table import read_outcomes

_MOST_COUNTS = 60
_MOST_NUMBERS = 1 << 22  # rows that are looked at together


@dataclass(frozen=True, eq=False, repr=False)
class CountFrequencies:
    """Observed and expected numbers of rows with each count; see `count_frequencies`.

    Attributes
    ----------
    count : ndarray
        0, 1, 2, ...; the last one stands for itself and all higher counts.
    observed, expected : ndarray
        Numbers of rows.
    error : ndarray
        Standard deviation of the observed number if the forecasts are calibrated and rows independent.

    See Also
    --------
    count_frequencies, RootogramDisplay

    Examples
    --------
    >>> from calibrant import Poisson
    >>> count_frequencies([0, 0, 1, 3], Poisson([0.5, 0.5, 1.0, 2.0])).observed
    array([2., 1., 0., 1.])
    """

    count: Floats
    observed: Floats
    expected: Floats
    error: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return the columns as plain data for JSON.

        Returns
        -------
        dict
            Lists of numbers.
        """
        columns = {name: getattr(self, name).tolist() for name in ("count", "observed", "expected", "error")}
        return {"schema_version": 1, **columns}

    _repr_html_ = line_html

    def __repr__(self) -> str:
        return f"CountFrequencies({int(self.observed.sum()):,} rows, counts 0 to {int(self.count[-1])} or more)"


def count_frequencies(y_true: Column, forecast: Any, *, max_count: int | None = None) -> CountFrequencies:
    """Count how many rows have each count, beside the number that the forecasts expect.

    Parameters
    ----------
    y_true : column of counts
    forecast : Poisson, NegativeBinomial, or a frozen discrete distribution of scipy.stats
    max_count : int, optional
        Higher counts are added up; by default the highest that occurs, at most 60.

    Returns
    -------
    CountFrequencies

    See Also
    --------
    RootogramDisplay, pit

    Examples
    --------
    >>> from calibrant import Poisson
    >>> found = count_frequencies([0, 0, 1, 3], Poisson([0.5, 0.5, 1.0, 2.0]))
    >>> found.expected.round(2)
    array([1.72, 1.25, 0.61, 0.43])
    """
    y, known = read_outcomes(y_true, forecast)
    if not known.is_discrete or (y < 0).any() or (y != np.floor(y)).any():
        raise InputError(
            "forecast must be a distribution of counts, and outcomes whole numbers from 0.",
            hint="For example calibrant.Poisson(mean).",
            argument="forecast",
        )
    most = min(int(y.max()), _MOST_COUNTS) if max_count is None else check_count("max_count", max_count, 10_000)
    observed = np.bincount(np.minimum(y, most).astype(np.int64), minlength=most + 1).astype(np.float64)
    expected, variance = np.zeros(most + 1), np.zeros(most + 1)
    for first in range(0, y.size, _MOST_NUMBERS):
        part = known.part(slice(first, first + _MOST_NUMBERS))
        below = np.zeros(len(part))
        for k in range(most + 1):
            upto = part.cells(np.full(len(part), float(k)))[1] if k < most else np.ones(len(part))
            share = np.maximum(upto - below, 0.0)
            expected[k] += share.sum()
            variance[k] += np.sum(share * (1 - share))
            below = upto
    return CountFrequencies(np.arange(most + 1, dtype=np.float64), observed, expected, np.sqrt(variance))
