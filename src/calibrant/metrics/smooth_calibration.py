"""Smooth ECE: the calibration error with a Gaussian kernel instead of bins."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._support.roots import find_root
from calibrant._support.typing import Floats
from calibrant.metrics.metric import UnbinnedMetric, metric_function
from calibrant.tables.score_table import ScoreTable

__all__ = ["SmoothECE", "smooth_ece"]

_MIN_BANDWIDTH = 2.0**-12
# Numbers of cells of the grids to whose points scores are split, by the smallest bandwidth for which each is used.
_GRIDS = {2.0**-8: 2**14, _MIN_BANDWIDTH: 2**16}
_FEW_SCORES = 2**14  # with more, splitting the scores takes longer than the transform, and is done once


@dataclass(frozen=True)
class SmoothECE(UnbinnedMetric):
    r"""Smooth ECE: ECE with a kernel smoother instead of bins, and a bandwidth determined by the data; 0 is best.

    .. math::

       \mathrm{smECE}_\sigma = \int_0^1 \left| \frac1N \sum_i (y_i - p_i) K_\sigma(p_i, t) \right| \mathrm d t

    with the Gaussian kernel reflected at 0 and 1; the value is that of the bandwidth :math:`\sigma^*` at which
    :math:`\mathrm{smECE}_{\sigma^*} = \sigma^*`. Błasiok and Nakkiran (2023).

    See Also
    --------
    smooth_ece, ECE

    Notes
    -----
    A reflected Gaussian multiplies the j-th cosine coefficient by :math:`e^{-(\pi j \sigma)^2 / 2}`, so one cosine
    transform suffices for all bandwidths. Scores are first split between the two nearest points of a grid with the
    spacing 2^-16; 2^-14 for bandwidths of at least 2^-8 and at most 2^14 distinct scores, which changes values by less
    than 1e-6 of themselves. Bandwidths below 2^-12 are not used: smaller values are those of this bandwidth.

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
        # smECE decreases with the bandwidth, and is at most 1 at bandwidth 1: there is one crossing. Small bandwidths
        # are the slowest, so the crossing is bracketed from above.
        high, value = 1.0, 1.0
        for least in _GRIDS if len(table) <= _FEW_SCORES else (_MIN_BANDWIDTH,):
            value = _crossing(_cosine_coefficients(table, least), least, high)
            if value > least:
                break
            high = least
        return value


smooth_ece = metric_function(SmoothECE)


def _crossing(coefficients: Floats, least: float, high: float) -> float:
    """Return the bandwidth at which smooth ECE equals it, at most `high`; if it is below `least`, the value there."""

    def excess(sigma: float) -> float:
        return smooth_ece_at(coefficients, sigma) - sigma

    if excess(high) >= 0:
        return high
    low = high
    while low > least:
        high, low = low, max(low / 4, least)
        if excess(low) > 0:
            return find_root(excess, low, high, xtol=1e-13)
    return smooth_ece_at(coefficients, least)


def _cosine_coefficients(table: ScoreTable, least: float = _MIN_BANDWIDTH) -> Floats:
    """Return the mean of (y - p) cos(pi j p) over rows for each j that the bandwidth `least` does not suppress."""
    from scipy.fft import dct

    grid = _GRIDS[least]
    residual = (table.k - table.n * table.score) / table.size
    place = table.score * grid
    cell = place.astype(np.int64)
    cell[-1:] = np.minimum(cell[-1:], grid - 1)  # the last score may be 1, which ends the last cell
    above = np.subtract(place, cell, out=place)  # the mass of a score is split between the two ends of its cell
    above *= residual
    residual -= above
    mass = np.bincount(cell, residual, minlength=grid + 1)
    mass[1:] += np.bincount(cell, above, minlength=grid)
    mass[[0, -1]] *= 2  # this transform counts its two ends half
    coefficients: Floats = dct(mass, type=1)[: _coefficient_count(least)] / 2
    # Splitting between two points damps the j-th coefficient by sinc^2: this is undone here.
    return coefficients / np.sinc(np.arange(coefficients.size) / (2 * grid)) ** 2


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
