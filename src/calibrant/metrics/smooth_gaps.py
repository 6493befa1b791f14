"""Distances of scores to a smooth calibration curve: ICI, E50, E90 and Emax of Austin and Steyerberg."""

from dataclasses import dataclass

import numpy as np

from calibrant._support.errors import Note
from calibrant._support.typing import Floats
from calibrant.metrics.local_regression import LocalRegression
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.table_functions import takes_rows

__all__ = ["SmoothErrors", "loess_errors", "smooth_errors"]

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


@takes_rows
def loess_errors(table: ScoreTable, *, span: float = 0.75, degree: int = 2) -> SmoothErrors:
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
