"""Roots of functions of one number, without the import time of `scipy.optimize`."""

import math
from collections.abc import Callable

_MAX_STEPS = 100
_RELATIVE = 4 * 2.0**-52  # four units in the last place


def find_root(
    function: Callable[[float], float], low: float, high: float, *, xtol: float = 2e-12, rtol: float = _RELATIVE
) -> float:
    """Return a root of a continuous function with different signs at `low` and `high`, by Brent's method.

    Interpolation through the last two or three points where it halves the step of two steps before, bisection otherwise
    (Brent 1973, chapter 4). The points are those of `scipy.optimize.brentq`, so results are bitwise identical.

    Parameters
    ----------
    function : callable
    low, high : float
        Ends of an interval that contains a root.
    xtol, rtol : float
        The result is within ``xtol + rtol * abs(root)`` of a root.

    Examples
    --------
    >>> round(find_root(lambda x: x * x - 2, 0.0, 2.0), 12)
    1.414213562373
    """
    last, best = float(low), float(high)
    f_last, f_best = float(function(last)), float(function(best))
    if f_last == 0 or f_best == 0:
        return last if f_last == 0 else best
    if not (f_last < 0 < f_best or f_best < 0 < f_last):
        raise ValueError(f"function must have different signs at low and high; got {f_last!r} and {f_best!r}.")
    other, f_other, step, before = last, f_last, 0.0, 0.0
    for _ in range(_MAX_STEPS):
        if f_last != 0 and (f_last < 0) != (f_best < 0):  # the root lies between the last two points
            other, f_other = last, f_last
            step = before = best - last
        if abs(f_other) < abs(f_best):
            last, best, other = best, other, best
            f_last, f_best, f_other = f_best, f_other, f_best
        delta = (xtol + rtol * abs(best)) / 2
        half = (other - best) / 2
        if f_best == 0 or abs(half) < delta:
            return best
        proposed = math.inf
        if abs(before) > delta and abs(f_best) < abs(f_last):
            proposed = _interpolate((last, f_last), (best, f_best), (other, f_other))
        short = 2 * abs(proposed) < min(abs(before), 3 * abs(half) - delta)
        before, step = (step, proposed) if short else (half, half)
        last, f_last = best, f_best
        best += step if abs(step) > delta else math.copysign(delta, half)
        f_best = float(function(best))
    raise RuntimeError(f"no root was found in {_MAX_STEPS} steps; the last point is {best!r}.")


def _interpolate(last: tuple[float, float], best: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the step from `best` to the root of the line through two points, or of a parabola through three."""
    (x, fx), (b, fb), (o, f_old) = last, best, other
    if x == o:
        return -fb * (b - x) / (fb - fx)
    slope, far_slope = (fx - fb) / (x - b), (f_old - fb) / (o - b)
    divisor = far_slope * slope * (f_old - fx)
    return -fb * (f_old * far_slope - fx * slope) / divisor if divisor != 0 else math.inf


def first_integer(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the first integer above `low` at which a condition holds, which goes on to hold up to `high`.

    >>> first_integer(0, 100, lambda k: k * k >= 50)
    8
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
