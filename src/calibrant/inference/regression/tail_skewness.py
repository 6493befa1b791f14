"""Skewness that the upper tail of non-negative outcomes implies: a sample without its largest outcomes hides it."""

import math
from dataclasses import dataclass

import numpy as np

from calibrant._support.arrays import Floats, Ints, dot
from calibrant._support.roots import find_root
from calibrant.tables.mean_table import MeanTable

_FEWEST = 5  # outcomes above their predictions that determine the shape of a tail
_ERROR = 0.25  # of the Gini index of one outcome, for tails between normal and lognormal


@dataclass(frozen=True)
class Tail:
    """Shape of the errors p - y of non-negative outcomes, as their long tail implies it.

    Attributes
    ----------
    power : float
        The power of the prediction to which the variance of an error is proportional.
    skewness : float
        Of errors divided by their standard deviation; negative, 0 if unknown.
    skewness_of_sum : float
        That of errors as they are: their sum over n rows has this skewness divided by the root of n.
    """

    power: float = 0.0
    skewness: float = 0.0
    skewness_of_sum: float = 0.0


NO_TAIL = Tail()


def tail_skewness(table: MeanTable, cluster: Ints | None) -> Tail:
    r"""Return the skewness of the errors p - y that the outcomes above their predictions imply; 0 if unknown.

    Non-negative outcomes with a long upper tail, such as losses or durations, seldom contain the outcomes that
    determine their mean: most samples lie below it, and their own skewness is small. The shape of the tail shows in the
    outcomes that were observed. Errors are divided by a power of the prediction that makes their variance constant. The
    Gini index of those above 0 is that of an exponential distribution at 1/2; it determines the :math:`\sigma` of the
    lognormal distribution whose outcomes above the mean have the same index, and its skewness

    .. math::

       \gamma = (e^{\sigma^2} + 2) \sqrt{e^{\sigma^2} - 1}

    which is about right for gamma and exponential errors too.
    """
    p, y = table.prediction, table.mean
    if cluster is not None or table.importance or table.m2.any() or not ((y >= 0).all() and (p > 0).all()):
        return NO_TAIL
    # Relative to predictions with the right mean: those that are much too high have no outcomes above them.
    n, error = table.n.astype(np.float64), y - p * (table.mean_outcome / table.mean_prediction)
    power = _variance_power(p, error, n)
    relative = p / math.exp(dot(n, np.log(p)) / float(n.sum()))  # powers of predictions of any size exist
    scaled = error / relative ** (power / 2)
    above = scaled > 0
    count = float(n[above].sum())
    if count < _FEWEST:  # too few to show that the tail is short, unless they are a usual share of the rows
        unknown = -math.inf if 0 < count < n.sum() / 4 else 0.0
        return Tail(power, unknown, unknown)
    index = _gini(scaled[above], n[above]) + _ERROR / math.sqrt(count)
    # Within 0.02 for sigma up to 2; the index is sqrt(2) - 1 for a normal distribution.
    sigma = 6 * max(index - (math.sqrt(2) - 1), 0.0)
    square = math.expm1(sigma**2)
    skewness = -(square + 3) * math.sqrt(square)
    spread = dot(n, relative**power) / float(n.sum())
    factor = dot(n, relative ** (1.5 * power)) / float(n.sum()) / spread**1.5
    return Tail(power, skewness, skewness * factor)


def _variance_power(p: Floats, error: Floats, n: Floats) -> float:
    """Return the power of the prediction, from 0 to 2, to which the squared errors are proportional."""
    away = np.log(p)
    away = away - dot(n, away) / float(n.sum())
    if not float(np.ptp(away)) > 1e-9:
        return 0.0

    def slope(power: float) -> float:
        squares = error**2 * np.exp(-power * away)
        return dot(n, squares * away) / max(dot(n, squares), 1e-300)

    if slope(0.0) <= 0:
        return 0.0
    return 2.0 if slope(2.0) >= 0 else find_root(slope, 0.0, 2.0, xtol=1e-3)


def _gini(values: Floats, n: Floats) -> float:
    """Return the Gini index of positive values with frequencies, without bias for equal chances of all values."""
    order = np.argsort(values)
    values, n = values[order], n[order]
    total = float(n.sum())
    below = np.cumsum(n) - n + (n - 1) / 2  # mean number of values below, ties in any order
    mean = dot(n, values) / total
    return (2 * dot(n, below * values) / (total * (total - 1)) - mean) / mean
