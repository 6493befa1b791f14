"""The smallest deviation that a bin of n rows detects, and the rows that an inconclusive verdict lacks."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._kernels import binomial_pvalue
from calibrant._support.errors import InputError
from calibrant._support.formatting import round_up
from calibrant._support.json_values import plain
from calibrant._support.options import check_count, check_share
from calibrant._support.typing import Ints
from calibrant.inference.relevance import information_needed

__all__ = ["Detectable", "detectable", "rows_to_decide"]

_MOST_ROWS = 10**8  # beyond, the accuracy of the test itself is not known


@dataclass(frozen=True)
class Detectable:
    """The smallest deviations from a predicted rate that the exact binomial test detects; see `detectable`."""

    n: int
    rate: float
    alpha: float
    power: float
    above: float
    below: float

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return plain(self)


def detectable(n: int, rate: float, *, alpha: float = 0.05, power: float = 0.8) -> Detectable:
    """The smallest deviation that a bin of `n` rows detects when the model predicts `rate`.

    The exact two-sided binomial test of TCE rejects the prediction `rate` with a chance of at least `power` where the
    true rate is at least ``rate + above`` or at most ``rate - below``. NaN where no true rate is far enough away: a
    model that predicts 1 % can never be shown to overestimate with 50 rows.

    Parameters
    ----------
    n : int
        Rows in the bin.
    rate : float
        The prediction, in [0, 1].
    alpha : float, default=0.05
        Level of the test; a p-value equal to it rejects.
    power : float, default=0.8

    Returns
    -------
    Detectable
        ``above`` and ``below``.

    Notes
    -----
    Read it against the width of a bin: TCE tests every score of a bin against the rate of the whole bin, so scores
    that lie further apart than a bin detects are rejected even if all of them are right. With N rows spread evenly over
    [0, 1], the paper's bins of N/20 rows or more are at least 0.05 wide, and detect less than that from n = 800 on,
    which is N = 16,000; the detectable deviation goes with n^(-1/2), so bins stay clear of it only while n is below
    about N^(2/3). See "Inference" in the documentation.

    Examples
    --------
    >>> found = detectable(100, 0.2)
    >>> round(found.above, 3), round(found.below, 3)
    (0.125, 0.1)
    """
    check_count("n", n, _MOST_ROWS)
    if not 0 <= rate <= 1:
        raise InputError(f"rate must lie in [0, 1]; it is {rate!r}.", argument="rate", value=rate)
    check_share("alpha", alpha)
    check_share("power", power)
    last_low, first_high = _rejections(int(n), float(rate), alpha)
    above = _root(int(n), last_low, first_high, float(rate), 1.0, power)
    below = _root(int(n), last_low, first_high, float(rate), 0.0, power)
    return Detectable(int(n), float(rate), alpha, power, above - rate, rate - below)


def _rejections(n: int, rate: float, alpha: float) -> tuple[int, int]:
    """The test rejects at most `last_low` events (-1: never) and at least `first_high` (n + 1: never).

    Seen from the expected number of events the p-value falls on both sides, so each border is found by halving.
    """

    def rejects(k: int) -> bool:
        one: Ints = np.array([k])
        return bool(binomial_pvalue(one, np.array([n]), np.array([rate]))[0] <= alpha)

    middle = min(n, int((n + 1) * rate))  # the likeliest number of events, whose p-value is 1
    low, high = -1, middle  # rejected at and below `low`, accepted at `high`
    while high - low > 1:
        k = (low + high) // 2
        low, high = (k, high) if rejects(k) else (low, k)
    last_low = low
    low, high = middle, n + 1
    while high - low > 1:
        k = (low + high) // 2
        low, high = (low, k) if rejects(k) else (k, high)
    return last_low, high


def _root(n: int, last_low: int, first_high: int, rate: float, end: float, power: float) -> float:
    """The true rate nearest to `rate`, on the side of `end`, at which the test rejects with the chance `power`."""
    from scipy.optimize import brentq
    from scipy.stats import binom

    def missing(true: float) -> float:
        return float(power - binom.cdf(last_low, n, true) - binom.sf(first_high - 1, n, true))

    if rate == end or missing(end) > 0:
        return float("nan")
    if missing(rate) <= 0:
        return rate
    return float(brentq(missing, rate, end, xtol=1e-14, rtol=1e-14))


def rows_to_decide(rows: float, information: float, margin: float, alpha: float) -> int:
    """Rows to add so that a calibrated model would be shown to lie within the margin with a probability of 80 %.

    Parameters
    ----------
    rows, information : float
        Rows at hand and their information, above 0; new rows are taken to be like them.
    margin, alpha : float

    Returns
    -------
    int
        Rounded up to two significant digits; 0 where the rows at hand are enough.

    Examples
    --------
    >>> rows_to_decide(1_000, 47.5, margin=0.1, alpha=0.05)
    42000
    """
    each = information / rows
    typical = (1 - math.sqrt(max(1 - 4 * each, 0.0))) / 2  # the score with this information
    needed = information_needed(margin, alpha=alpha, power=0.8, scores=typical)
    return round_up(max(needed / each - rows, 0.0))
