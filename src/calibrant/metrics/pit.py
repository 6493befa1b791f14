"""Probability integral transforms of predictive distributions, the RP kind of calibration.

Forecasts are calibrated if outcomes fall below their q quantile with probability q, for each q. Then the probability
integral transforms (PIT), F(y), are uniform.
"""

import warnings
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import CalibrantWarning, InputError, Note, join_notes
from calibrant._support.random_streams import RandomState, generator
from calibrant._support.typing import Column, Floats
from calibrant.forecasts.reading import read_outcomes

__all__ = ["NEAREST", "miscalibration", "pit", "read_pit", "rising", "transforms"]

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
    found: Floats = low + place * (high - low)
    return found


def read_pit(u: Column) -> tuple[Floats, tuple[Note, ...]]:
    """Read PIT values, numbers in [0, 1], none missing; return them with their notes."""
    column = _columns.scores(_columns.read(u, "u", hint="Pass one column of PIT values."))
    _columns.refuse_missing([column])
    if not len(column):
        raise InputError("u must hold at least one value; got none.", argument="u")
    return column.values, join_notes(column.notes, _at_the_ends(column.values))


def rising(u: Floats) -> Floats:
    """Return the values in rising order; several tests of the same values need not sort them again."""
    return u if bool((u[1:] >= u[:-1]).all()) else np.sort(u)


def _at_the_ends(values: Floats) -> tuple[Note, ...]:
    ends = int(np.count_nonzero((values < NEAREST) | (values == 1)))
    text = "PIT values within 2^-54 of 0 or 1: {count}. The forecasts give these outcomes almost no probability."
    return (Note("pit_at_end", ends, text),) if ends else ()


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
    for note in notes:
        if note.code != "pit_at_end":  # 0 and 1 are valid ends here
            warnings.warn(note.text, CalibrantWarning, stacklevel=2)
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
