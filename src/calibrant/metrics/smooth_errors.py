"""Smooth ECE: the calibration error with a Gaussian kernel instead of bins."""

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np

from calibrant._support.arrays import Column, Floats, Ints
from calibrant._support.errors import InputError, Note, is_number, wrong_value
from calibrant._support.roots import find_root
from calibrant.metrics.metric import MetricFunction, UnbinnedMetric, metric_function
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable, read_score_table

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

    name: ClassVar[str] = "smooth ECE"
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


smooth_ece: MetricFunction = metric_function(SmoothECE)


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


_POINTS = 2000  # of the loess curve: tables with more scores have straight lines between them


@dataclass(frozen=True)
class SmoothErrors:
    """Distances of scores to a calibration curve, over rows: mean (ICI), median, 90th percentile and maximum.

    `curve` says which curve: loess, spline, isotonic or belt.

    Attributes
    ----------
    ici, e50, e90, emax : float
        Mean, median, 90th percentile and maximum of the distances.
    curve : str
        Name of the curve.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    loess_errors, IsotonicErrors

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.inference import calibration_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> errors = calibration_curve(rng.random(2000) < p**2, p).errors
    >>> errors.curve, round(errors.ici, 3), round(errors.emax, 3)
    ('spline', 0.169, 0.257)
    """

    ici: float
    e50: float
    e90: float
    emax: float
    curve: str
    notes: tuple[Note, ...] = ()


def loess_errors(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    span: float = 0.75,
    degree: int = 2,
    **rows: Unpack[RowOptions],
) -> SmoothErrors:
    """ICI, E50, E90 and Emax of Austin and Steyerberg (2019): distances of scores to their loess curve.

    Parameters
    ----------
    span, degree
        Of the local regression; see `LocalRegression`. The defaults are those of R's ``loess`` and of the paper.
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    SmoothErrors
        The four distances.

    See Also
    --------
    SmoothErrors, isotonic_errors, calibration_curve

    Notes
    -----
    Percentiles are those of R's ``quantile`` (type 7) over rows; with importance weights the smallest distance that at
    least that share of the weight does not exceed. The isotonic curve of `isotonic_errors` follows noise more closely,
    so its distances are larger: about 0.045 for a calibrated model of 500 rows, where the loess curve gives 0.03.
    Neither is 0 for a calibrated model. The curve is not clipped to [0, 1]. Tables with more than 2,000 scores have
    straight lines between 2,000 points of the curve, and more than 8,192 scores are grouped.

    References
    ----------
    .. [1] Austin & Steyerberg (2019), "The Integrated Calibration Index (ICI) and related metrics for quantifying the
       calibration of logistic regression models".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> errors = loess_errors(rng.random(500) < p, p)
    >>> round(errors.ici, 3), round(errors.e90, 3)
    (0.018, 0.038)
    """
    table = read_score_table(y_true, y_prob, rows)
    return smooth_errors(table, LocalRegression(span, degree).fitted_scores(table, _POINTS), "loess")


def smooth_errors(table: ScoreTable, fitted: Floats, curve: str) -> SmoothErrors:
    """Return the distances of the scores of a table to a curve, whose values at the scores are given."""
    distance = np.abs(table.score - fitted)
    order = np.argsort(distance, kind="stable")
    ranked, upto = distance[order], np.cumsum(table.n[order])

    def percentile(share: float) -> float:
        if table.importance:
            return float(ranked[min(np.searchsorted(upto, (share - 1e-12) * upto[-1]), ranked.size - 1)])
        place = share * (upto[-1] - 1)
        low, high = (ranked[np.searchsorted(upto, whole, side="right")] for whole in (np.floor(place), np.ceil(place)))
        return float(low + (place - np.floor(place)) * (high - low))

    mean = float(np.sum(table.n * distance) / table.size)
    return SmoothErrors(mean, percentile(0.5), percentile(0.9), float(ranked[-1]), curve, table.notes)


MOST_SCORES = 8192  # beyond, neighbouring scores are grouped


@dataclass(frozen=True)
class LocalRegression:
    """Loess: at each point a weighted least-squares polynomial of the outcomes near it (Cleveland 1979).

    The nearest ``floor(span * N)`` rows have tricube weights (1 - (d / h)^3)^3, where h is the distance of the farthest
    of them. These are the conventions of R's ``loess`` with ``family="gaussian"`` and ``surface="direct"``.
    Where tied scores or large weights leave fewer than ``degree + 1`` distinct scores with a weight, for which R has no
    value or an arbitrary one, h reaches the next scores.
    R's default surface interpolates between few points and differs in
    the third decimal. Importance weights multiply the tricube weights, and `span` is a share of their sum.

    Parameters
    ----------
    span : float, default=0.75
    degree : {1, 2}, default=2
        Of the local polynomial.

    See Also
    --------
    calibration_curve, loess_errors

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.5, 0.8], [50, 50, 50, 50], [9, 16, 27, 38])
    >>> LocalRegression(span=1.0, degree=1).fitted(table, np.array([0.2, 0.6])).round(3)
    array([0.256, 0.602])
    """

    span: float = 0.75
    degree: int = 2

    def __post_init__(self) -> None:
        if not (is_number(self.span) and 0 < self.span <= 1):
            raise wrong_value("span", "must be above 0 and at most 1", self.span)
        if self.degree not in (1, 2):
            raise InputError(f"degree must be 1 or 2; got {self.degree!r}.", value=self.degree)

    def weights(self, table: ScoreTable, at: Floats) -> Floats:
        """Return for each point the numbers by which the events of each score are multiplied and added up.

        Parameters
        ----------
        table : ScoreTable
            Scores with their counts.
        at : array of m numbers
            Points of the curve.

        Returns
        -------
        array of shape (m, number of distinct scores)
        """
        found = np.zeros((at.size, len(table)))
        reach = self._reach(table, at)
        for i, (x, h) in enumerate(zip(at, reach, strict=True)):
            first, last = np.searchsorted(table.score, (x - h, x + h), side="left")
            near = slice(int(first), min(int(last) + 1, len(table)))
            found[i, near] = self._row(table.score[near] - x, table.n[near].astype(np.float64), h)
        return found

    def fitted(self, table: ScoreTable, at: Floats) -> Floats:
        """Return the curve at these points.

        Parameters
        ----------
        table : ScoreTable
            Scores with their counts.
        at : array of m numbers
            Points of the curve.

        Returns
        -------
        array of shape (m,)
        """
        return self.weights(table, at) @ table.k.astype(np.float64)

    def fitted_scores(self, table: ScoreTable, points: int) -> Floats:
        """Return the curve at each score: exact for at most so many scores, else straight lines between so many.

        Parameters
        ----------
        table : ScoreTable
            Scores with their counts.
        points : int
            Largest number of scores at which the curve is fitted.

        Returns
        -------
        array
            One value per distinct score.
        """
        ranks = np.unique(np.linspace(0, len(table) - 1, min(len(table), points)).astype(np.int64))
        at = table.score[ranks]
        return np.interp(table.score, at, self.fitted(group_scores(table), at))

    def _reach(self, table: ScoreTable, at: Floats) -> Floats:
        """Return the distance h within which rows have a weight, at each point."""
        size = float(table.size)
        count = size * self.span if table.importance else max(np.floor(size * self.span + 1e-5), 1.0)
        before = np.concatenate([[0.0], np.cumsum(table.n, dtype=np.float64)])
        stop = np.searchsorted(before, before[:-1] + count - 1e-9)
        whole = stop < before.size
        far = _nearest(table.score[whole], table.score[stop[whole] - 1], at)
        near = far * (1 - 1e-9)
        inside = np.searchsorted(table.score, at + near) - np.searchsorted(table.score, at - near, side="right")
        least = self.degree + 1
        if len(table) > least:
            wider = _nearest(table.score[:-least], table.score[least:], at)
            far = np.where(inside < least, np.maximum(far, 1.05 * wider), far)
        return np.maximum(far, 1e-300)

    def _row(self, away: Floats, n: Floats, h: float) -> Floats:
        share = np.abs(away) / h
        kernel = n * np.where(share < 1, (1 - np.minimum(share, 1) ** 3) ** 3, 0.0)
        scaled = np.clip(away / h, -1, 1)  # powers of rows without a weight do not overflow
        basis = np.stack([scaled**j for j in range(self.degree + 1)])
        gram = (basis * kernel) @ basis.T
        size = np.linalg.eigvalsh(gram)
        if size[0] > 1e-9 * size[-1]:
            found: Floats = np.linalg.solve(gram, basis)[0] * (kernel / n)
            return found
        # Few distinct scores near the point do not determine a polynomial: the pseudo-inverse takes the shortest one
        # that fits, as R does.
        root = np.sqrt(kernel)
        return np.asarray(np.linalg.pinv((basis * root).T, rcond=1e-10)[0] * root / n)


def _nearest(low: Floats, high: Floats, at: Floats) -> Floats:
    """Return for each point the smallest distance that contains one of these ranges."""
    return np.array([np.maximum(x - low, high - x).min() for x in at])


def score_groups(size: int, most: int) -> Ints:
    """Return the first scores of at most `most` groups of neighbouring scores, of equal numbers of scores."""
    return np.arange(min(most, size)) * size // min(most, size)


def group_scores(table: ScoreTable, most: int = MOST_SCORES) -> ScoreTable:
    """Return a table with at most `most` scores: the means of the groups of neighbouring scores."""
    if len(table) <= most:
        return table
    start = score_groups(len(table), most)
    n = np.add.reduceat(table.n, start)
    score = np.add.reduceat(table.n * table.score, start) / n
    squares = [None if column is None else np.add.reduceat(column, start) for column in (table.w2, table.k2)]
    return ScoreTable(score, n, np.add.reduceat(table.k, start), *squares)
