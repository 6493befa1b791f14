"""Experts: recalibrations of the scores, learnt from earlier windows, against which calibration is tested."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant._support.logits import expit
from calibrant._support.typing import Floats
from calibrant.inference.sequential.windows import Window

__all__ = ["EXPERTS", "Expert", "Floor", "Memory"]

PRIOR_SD = 0.3  # of each coefficient: an expert begins at "calibrated" and needs data to leave it
RECENT_WINDOWS = 10  # the length of a recent memory, in windows ...
RECENT_INFORMATION = 100.0  # ... and at least this much Fisher information, for windows with few events
LARGEST_LOGIT = 30.0


@dataclass(frozen=True)
class Memory:
    """What an expert has learnt: the information and the moment of a weighted least-squares fit, with decay.

    The last axes hold the coefficients; leading axes, if any, hold streams that are watched side by side.
    """

    information: Floats
    moment: Floats

    def coefficients(self) -> Floats:
        """Return the coefficients of the recalibration, shrunk towards 0."""
        d = self.moment.shape[-1]
        # The second term keeps the matrix regular where the information of many rows swallows the prior.
        ridge = 1 / PRIOR_SD**2 + 1e-12 * np.trace(self.information, axis1=-2, axis2=-1)
        regular = self.information + np.eye(d) * np.asarray(ridge)[..., None, None]
        return np.asarray(np.linalg.solve(regular, self.moment[..., None])[..., 0])


@dataclass(frozen=True)
class Expert:
    """A recalibration of log-odds with a few coefficients, refitted after each window.

    Parameters
    ----------
    name : str
        Its name.
    features : callable
        Maps log-odds to columns; the recalibrated log-odds are logit(score) + features @ coefficients.
    recent : bool
        Forget old windows, so that a change is learnt fast; otherwise all windows count alike.
    """

    name: str
    features: Callable[[Floats], Floats]
    recent: bool

    def start(self, streams: tuple[int, ...] = ()) -> Memory:
        """Return an empty memory."""
        d = self.features(np.zeros(1)).shape[1]
        return Memory(np.zeros((*streams, d, d)), np.zeros((*streams, d)))

    def predict(self, memory: Memory, window: Window) -> Floats:
        """Return the recalibrated scores of a window, from the windows before it."""
        change = memory.coefficients() @ self.features(window.logit).T
        return expit(np.clip(window.logit + change, -LARGEST_LOGIT, LARGEST_LOGIT))

    def learn(self, memory: Memory, window: Window, predicted: Floats) -> Memory:
        """Return the memory after a window: one step of iterated least squares from the predicted rates."""
        x = self.features(window.logit)
        d = x.shape[1]
        weight = window.n * predicted * (1 - predicted)
        added = (weight @ (x[:, :, None] * x[:, None, :]).reshape(-1, d * d)).reshape(*weight.shape[:-1], d, d)
        score = (window.k - window.n * predicted) @ x
        working = score + (added @ memory.coefficients()[..., None])[..., 0]
        keep = self._keep(weight.sum(axis=-1))
        return Memory(keep[..., None, None] * memory.information + added, keep[..., None] * memory.moment + working)

    def _keep(self, information: Floats) -> Floats:
        if not self.recent:
            return np.ones_like(information)
        return np.asarray(1 - np.minimum(1 / RECENT_WINDOWS, information / RECENT_INFORMATION))


@dataclass(frozen=True)
class Floor:
    """An expert that learns nothing: no event rate is below `rate` or above 1 - `rate`.

    It notices events at scores of 0, which no finite change of the log-odds explains, in their first window.
    """

    rate: float = 0.01

    def start(self, streams: tuple[int, ...] = ()) -> Memory:
        """Return an empty memory."""
        return Memory(np.zeros((*streams, 0, 0)), np.zeros((*streams, 0)))

    def predict(self, memory: Memory, window: Window) -> Floats:
        """Return the scores, moved away from 0 and 1."""
        rates = np.clip(expit(window.logit), self.rate, 1 - self.rate)
        return np.broadcast_to(rates, (*memory.moment.shape[:-1], rates.size))

    def learn(self, memory: Memory, window: Window, predicted: Floats) -> Memory:
        """Return the memory as it is."""
        return memory


def _shift(logit: Floats) -> Floats:
    return np.ones((logit.size, 1))


def _line(logit: Floats) -> Floats:
    return np.column_stack([np.ones_like(logit), logit])


def _beta(logit: Floats) -> Floats:
    # log p and -log(1 - p), as in beta calibration: each end of the scale bends on its own.
    return np.column_stack([np.ones_like(logit), -np.logaddexp(0, -logit), np.logaddexp(0, logit)])


EXPERTS: tuple[Expert | Floor, ...] = (
    Expert("shift", _shift, recent=False),
    Expert("recent shift", _shift, recent=True),
    Expert("line", _line, recent=False),
    Expert("recent line", _line, recent=True),
    Expert("beta", _beta, recent=False),
    Floor(),
)
