"""Smooth ECE: the calibration error with a Gaussian kernel instead of bins."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._support.roots import find_root
from calibrant._support.typing import Floats
from calibrant.metrics.metric import UnbinnedMetric, metric_function
from calibrant.tables.score_table import ScoreTable

__all__ = ["SmoothECE", "smooth_ece"]

_GRID = 2**16  # scores are split between the two nearest points of this grid
_MIN_BANDWIDTH = 2.0**-12


@dataclass(frozen=True)
class SmoothECE(UnbinnedMetric):
    r"""Smooth ECE: ECE with a kernel smoother instead of bins, and a bandwidth determined by the data; 0 is best.

    .. math::

       \mathrm{smECE}_\sigma = \int_0^1 \left| \frac1N \sum_i (y_i - p_i) K_\sigma(p_i, t) \right| \mathrm d t

    with the Gaussian kernel reflected at 0 and 1; the value is that of the bandwidth :math:`\sigma^*` at which
    :math:`\mathrm{smECE}_{\sigma^*} = \sigma^*`. Błasiok and Nakkiran (2023).

    Notes
    -----
    A reflected Gaussian multiplies the j-th cosine coefficient by :math:`e^{-(\pi j \sigma)^2 / 2}`, so one cosine
    transform suffices for all bandwidths. Scores are first split between the two nearest points of a grid with the
    spacing 2^-16. Bandwidths below 2^-12 are not used: smaller values are those of this bandwidth.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> smooth_ece(rng.random(5000) < p, p) < 0.02 < smooth_ece(rng.random(5000) < p**2, p)
    True
    """

    name: ClassVar[str] = "smooth_ece"
    measures_gaps: ClassVar[bool] = True
    interval_method: ClassVar[str] = "triangle"

    def value(self, table: ScoreTable) -> float:
        """Return the value."""
        coefficients = _cosine_coefficients(table)
        # smECE decreases with the bandwidth, and is at most 1 at bandwidth 1: there is one crossing. Small bandwidths
        # are the slowest, so the crossing is bracketed from above.
        high = 1.0
        if smooth_ece_at(coefficients, high) >= high:
            return 1.0
        while True:
            low = max(high / 8, _MIN_BANDWIDTH)
            at_low = smooth_ece_at(coefficients, low)
            if at_low > low:
                break
            if low == _MIN_BANDWIDTH:
                return at_low
            high = low
        return find_root(lambda sigma: smooth_ece_at(coefficients, sigma) - sigma, low, high, xtol=1e-13)


smooth_ece = metric_function(SmoothECE)


def _cosine_coefficients(table: ScoreTable) -> Floats:
    """Return the mean of (y - p) cos(pi j p) over rows for each j that the smallest bandwidth does not suppress."""
    from scipy.fft import dct

    residual = (table.k - table.n * table.score) / table.size
    # Scores are sorted, so each cell of the grid is a run of them; its mass is split between its two ends.
    start = np.searchsorted(table.score, np.arange(_GRID) / _GRID)
    cell = np.flatnonzero(np.diff(np.append(start, len(table))))
    total = np.add.reduceat(residual, start[cell])
    moment = np.add.reduceat(residual * table.score, start[cell]) * _GRID - cell * total
    mass = np.zeros(_GRID + 1)
    mass[cell] += total - moment
    mass[cell + 1] += moment
    mass[[0, -1]] *= 2  # this transform counts its two ends half
    coefficients: Floats = dct(mass, type=1)[: _coefficient_count(_MIN_BANDWIDTH)] / 2
    # Splitting between two points damps the j-th coefficient by sinc^2: this is undone here.
    return coefficients / np.sinc(np.arange(coefficients.size) / (2 * _GRID)) ** 2


def _coefficient_count(sigma: float) -> int:
    """Return the number of coefficients that the bandwidth multiplies by more than 1e-17."""
    return int(np.sqrt(2 * 39.2) / (np.pi * sigma)) + 2


def smooth_ece_at(coefficients: Floats, sigma: float) -> float:
    """Return smooth ECE with the bandwidth `sigma`."""
    from scipy.fft import dct, next_fast_len

    kept = coefficients[: _coefficient_count(sigma)]
    j = np.arange(kept.size)
    damped = kept * np.exp(-((np.pi * sigma * j) ** 2) / 2)
    points = max(512, next_fast_len(16 * kept.size))
    padded = np.zeros(points + 1)
    padded[: kept.size] = damped
    smoothed = np.abs(dct(padded, type=1))  # f(t) = a_0 + 2 sum a_j cos(pi j t) at t = 0, 1/points, ..., 1
    return float((smoothed.sum() - (smoothed[0] + smoothed[-1]) / 2) / points)
