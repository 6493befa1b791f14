"""A confidence sequence for calibration-in-the-large: shifts of the log-odds that the data have not refuted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant._support.logits import expit
from calibrant._support.typing import Floats
from calibrant.inference.sequential.windows import Window

__all__ = ["ShiftSequence"]

SHIFTS = np.linspace(-2.0, 2.0, 81)  # in log-odds
BLOCK = 1_000_000  # entries (shift x stream x score) at a time, which bounds memory


@dataclass(frozen=True)
class ShiftSequence:
    """One e-process per shift d on a grid, against "the log-odds of every score are off by d".

    Attributes
    ----------
    log_e : array
        Logarithms of the e-processes; the last axis runs over the grid.
    log_e_max : array
        Their largest values so far: a shift once refuted stays refuted.
    estimate : float
        The shift fitted to all windows but the last, shrunk towards 0.
    """

    log_e: Floats
    log_e_max: Floats
    estimate: Floats

    @classmethod
    def start(cls, streams: tuple[int, ...]) -> Self:
        """Return the sequence before the first window."""
        nothing = np.zeros((*streams, SHIFTS.size))
        return cls(nothing, nothing, np.zeros(streams))

    def update(self, window: Window, estimate: Floats, e_value: Callable[[Window, Floats], Floats]) -> Self:
        """Return the sequence after a window; `e_value` compares a window with the rates fitted to earlier ones."""
        rates = expit(window.logit + np.asarray(estimate)[..., None])[..., None, :]
        n, k = window.n[..., None, :], window.k[..., None, :]
        step = max(1, BLOCK // n.size)
        added = []
        for first in range(0, SHIFTS.size, step):
            null = expit(window.logit + SHIFTS[first : first + step, None])
            added.append(e_value(Window(window.logit, null, null, n, k), rates))
        log_e = self.log_e + np.concatenate(added, axis=-1)
        return type(self)(log_e, np.maximum(self.log_e_max, log_e), np.asarray(estimate))

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the ends of the shifts that have not been refuted at `alpha`.

        If one shift holds in all windows, it lies within all these intervals with a probability of at least
        1 - alpha. Between grid points the logarithm of the e-process is interpolated. The ends are infinite where the
        grid ends, and NaN if all shifts are refuted: then no single shift describes all windows.
        """
        limit = -np.log(alpha)
        inside = np.flatnonzero(self.log_e_max < limit)
        if inside.size == 0:
            return np.nan, np.nan
        return self._end(inside[0], -1, limit), self._end(inside[-1], 1, limit)

    def _end(self, index: int, direction: int, limit: float) -> float:
        beyond = index + direction
        if not 0 <= beyond < SHIFTS.size:
            return direction * np.inf
        here, there = self.log_e_max[index], self.log_e_max[beyond]
        share = (limit - here) / (there - here)
        return float(SHIFTS[index] + share * (SHIFTS[beyond] - SHIFTS[index]))

    def to_dict(self) -> dict[str, Any]:
        """Return the sequence as values for JSON."""
        return {"log_e": self.log_e.tolist(), "log_e_max": self.log_e_max.tolist(), "estimate": float(self.estimate)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Return the sequence that `to_dict` described."""
        return cls(np.array(values["log_e"]), np.array(values["log_e_max"]), np.asarray(values["estimate"]))
