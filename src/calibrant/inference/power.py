"""Power of the exact binomial test: the smallest deviation that a bin of n rows detects."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._kernels import binomial_pvalue
from calibrant._support.errors import InputError
from calibrant._support.json_values import plain
from calibrant._support.option_checks import check_count, check_share, known_keywords
from calibrant._support.roots import find_root
from calibrant._support.typing import Ints

__all__ = ["Detectable", "detectable"]

_MAX_ROWS = 10**8  # beyond, the accuracy of the test is not known


@dataclass(frozen=True, repr=False)
class Detectable:
    """The smallest deviations from a predicted rate that the exact binomial test detects; see `detectable`.

    Attributes
    ----------
    n, rate : int, float
        Number of rows and predicted rate.
    alpha, power : float
        Significance level and power of the test.
    above, below : float
        Smallest deviations above and below `rate` that the test detects with this power; NaN if there is none.

    See Also
    --------
    detectable

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.detectable(100, 0.2)
    Detectable(100 rows with a predicted rate of 0.2: at least 0.1246 above, at least 0.09981 below)
    """

    n: int
    rate: float
    alpha: float
    power: float
    above: float
    below: float

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return plain(self)

    def __repr__(self) -> str:
        rows = f"{self.n:,} rows with a predicted rate of {self.rate:.4g}"
        return f"Detectable({rows}: at least {self.above:.4g} above, at least {self.below:.4g} below)"


@known_keywords
def detectable(n: int, rate: float, *, alpha: float = 0.05, power: float = 0.8) -> Detectable:
    """Return the smallest deviation that a bin of `n` rows detects when the model predicts `rate`.

    The exact two-sided binomial test of TCE rejects the prediction `rate` with a probability of at least `power` where
    the true rate is at least ``rate + above`` or at most ``rate - below``. NaN where no true rate is far enough away: a
    model that predicts 1 % cannot be shown to overestimate with 50 rows.

    Parameters
    ----------
    n : int
        Number of rows in the bin.
    rate : float
        Predicted event rate, in [0, 1].
    alpha : float, default=0.05
        Level of the test; a p-value equal to it rejects.
    power : float, default=0.8

    Returns
    -------
    Detectable
        ``above`` and ``below``.

    See Also
    --------
    sample_size, Detectable, equivalence

    Notes
    -----
    Compare it with the width of a bin: TCE tests each score of a bin against the rate of the whole bin, so scores whose
    distance exceeds the detectable deviation are rejected even if all of them are calibrated. With N rows spread evenly
    over [0, 1], the paper's bins of N/20 rows or more are at least 0.05 wide, and detect less than that from n = 800
    on, which is N = 16,000. The detectable deviation decreases with n^(-1/2), so it exceeds the width of a bin only
    while n is below about N^(2/3). See "Inference" in the documentation.

    Examples
    --------
    >>> found = detectable(100, 0.2)
    >>> round(found.above, 3), round(found.below, 3)
    (0.125, 0.1)
    """
    check_count("n", n, _MAX_ROWS)
    if not 0 <= rate <= 1:
        raise InputError(f"rate must lie in [0, 1]; got {rate!r}.", argument="rate", value=rate)
    check_share("alpha", alpha)
    check_share("power", power)
    last_low, first_high = _rejections(int(n), float(rate), alpha)
    above = _root(int(n), last_low, first_high, float(rate), 1.0, power)
    below = _root(int(n), last_low, first_high, float(rate), 0.0, power)
    return Detectable(int(n), float(rate), alpha, power, above - rate, rate - below)


def _rejections(n: int, rate: float, alpha: float) -> tuple[int, int]:
    """Return the limits of rejection: at most `last_low` events (-1: never), at least `first_high` (n + 1: never).

    From the expected number of events the p-value decreases on both sides, so each limit is found by bisection.
    """

    def rejects(k: int) -> bool:
        one: Ints = np.array([k])
        return bool(binomial_pvalue(one, np.array([n]), np.array([rate]))[0] <= alpha)

    middle = min(n, int((n + 1) * rate))  # the mode, whose p-value is 1
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
    """Return the true rate nearest to `rate`, towards `end`, at which the test rejects with probability `power`."""
    from scipy.stats import binom

    def missing(true: float) -> float:
        return float(power - binom.cdf(last_low, n, true) - binom.sf(first_high - 1, n, true))

    if rate == end or missing(end) > 0:
        return float("nan")
    if missing(rate) <= 0:
        return rate
    return find_root(missing, rate, end, xtol=1e-14, rtol=1e-14)
