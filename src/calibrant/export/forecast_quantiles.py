"""Recalibrated quantiles of forecasts as linear forms of their columns, for SQL and ONNX.

A normal forecast has the columns mean and sd, a quantile forecast one column per level. The quantile of a level is then
a weighted sum of the columns plus a shift, or the n-th smallest of several such sums.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.errors import Argument, InputError, check_share
from calibrant.calibrators import maps
from calibrant.forecasts.distributions import Quantiles
from calibrant.forecasts.transformed import ONE_SD

__all__ = ["NORMAL", "QuantileForms", "quantile_forms"]

NORMAL = ("mean", "sd")


@dataclass(frozen=True, eq=False)
class QuantileForms:
    """Weighted sums of columns, of which the one at `place` in rising order is the recalibrated quantile.

    Attributes
    ----------
    inputs : tuple
        Keys of the columns, in order: "mean" and "sd", or levels.
    weights : ndarray of shape (columns, sums)
    shifts : ndarray of shape (sums,)
    place : int
    """

    inputs: tuple[Any, ...]
    weights: Floats
    shifts: Floats
    place: int = 0

    @property
    def of_normal(self) -> bool:
        """Whether the columns are mean and standard deviation."""
        return self.inputs == NORMAL


def quantile_forms(calibrator: Any, keys: Sequence[Any], level: float | None) -> QuantileForms:
    """Return the recalibrated quantile of this level as a form of the columns."""
    if level is None:
        raise InputError(
            Argument("level") + f" must be given for {type(calibrator).__name__}: the level of the quantile to export."
        )
    check_share("level", level)
    inputs = _inputs(keys)
    return _FORMS[calibrator.map_.kind](calibrator.map_, inputs, level)


def _inputs(keys: Sequence[Any]) -> tuple[Any, ...]:
    if sorted(map(str, keys)) == sorted(NORMAL):
        return NORMAL
    try:
        levels = tuple(sorted(float(key) for key in keys))
        Quantiles(levels, np.zeros((1, len(levels))))  # checks the levels
    except (TypeError, ValueError) as error:
        raise InputError(
            Argument("columns") + f" must have the keys 'mean' and 'sd', or levels of quantiles; got {list(keys)!r}.",
        ) from error
    return levels


def _base(inputs: tuple[Any, ...], level: Any) -> Floats:
    """Return the weights with which the columns give the quantiles of the forecast itself, one column per level."""
    from scipy.special import ndtri

    levels = np.atleast_1d(np.asarray(level, dtype=np.float64))
    if inputs == NORMAL:
        return np.vstack([np.ones(levels.size), ndtri(levels)])
    # Quantiles are linear in the values, so differences of the quantiles of step vectors are the weights.
    corners = np.triu(np.ones((len(inputs), len(inputs))))  # zeros, then ones: rows that do not fall
    steps: Floats = Quantiles(inputs, corners).quantile(levels)
    return -np.diff(steps, axis=0, append=np.zeros((1, levels.size)))


def _stretched(map_: maps.Linear, inputs: tuple[Any, ...], level: float) -> QuantileForms:
    middle = _base(inputs, 0.5)
    weights = middle + map_.slope * (_base(inputs, level) - middle)
    if map_.intercept:
        weights = weights + map_.intercept * (_base(inputs, ONE_SD) - middle)
    return QuantileForms(inputs, weights, np.zeros(1))


def _warped(map_: Any, inputs: tuple[Any, ...], level: float) -> QuantileForms:
    from scipy.special import ndtri

    if inputs != NORMAL:
        raise InputError(
            f"A {map_.kind} map of normal scores has no closed form for quantile forecasts, whose distribution is not "
            "known between the levels.",
            hint="Use QuantileRecalibrator or VarianceScaling.",
            argument="columns",
        )
    score = map_.inverse(np.array([ndtri(level)]))
    return QuantileForms(inputs, np.vstack([np.ones(1), score]), np.zeros(1))


def _shifted(map_: maps.QuantileShifts, inputs: tuple[Any, ...], level: float) -> QuantileForms:
    place = np.flatnonzero(np.isclose(map_.levels, level, rtol=0, atol=1e-9))
    if not place.size:
        known = ", ".join(f"{each:g}" for each in map_.levels)
        raise InputError(
            Argument("level") + f" must be one of the recalibrated levels {known}; got {level:g}.", value=level
        )
    return QuantileForms(inputs, _base(inputs, map_.levels), map_.shifts, int(place[0]))


_FORMS: dict[str, Callable[[Any, tuple[Any, ...], float], QuantileForms]] = {
    "linear": _stretched,
    "segments": _warped,
    "sinh_arcsinh": _warped,
    "quantile_shifts": _shifted,
}
