"""Distances of scores to their isotonic recalibration: ICI, Emax, and percentiles."""

from dataclasses import dataclass

import numpy as np

from calibrant._support.errors import Note
from calibrant.metrics.bins import PAVA
from calibrant.metrics.gce import GCE
from calibrant.metrics.losses import max_distance, mean_distance
from calibrant.metrics.metric import metric_function
from calibrant.metrics.norms import sup, weighted_l1
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.table_functions import takes_rows

__all__ = ["ICI", "Emax", "IsotonicErrors", "emax", "ici", "isotonic_errors"]


class ICI(GCE):
    """Integrated calibration index: mean distance of scores to their isotonic recalibration, in [0, 1]; 0 is best.

    Austin and Steyerberg (2019), with PAV instead of a smoother; `isotonic_errors` gives the percentiles too.

    See Also
    --------
    ici, Emax, isotonic_errors

    Examples
    --------
    >>> round(ici([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]), 4)
    0.175
    """

    def __init__(self) -> None:
        super().__init__(PAVA(), mean_distance, weighted_l1, name="ICI")


class Emax(GCE):
    """Largest distance of a score to its isotonic recalibration, in [0, 1]; 0 is best.

    See Also
    --------
    emax, ICI, isotonic_errors

    Examples
    --------
    >>> round(emax([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]), 4)
    0.3
    """

    def __init__(self) -> None:
        super().__init__(PAVA(), max_distance, sup, name="Emax")


ici = metric_function(ICI)
emax = metric_function(Emax)


@dataclass(frozen=True)
class IsotonicErrors:
    """Distances of scores to their isotonic recalibration, over rows; see `isotonic_errors`.

    Attributes
    ----------
    ici, e50, e90, emax : float
        Mean, median, 90th percentile and maximum of the distances.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    isotonic_errors, SmoothErrors

    Examples
    --------
    >>> from calibrant.metrics import isotonic_errors
    >>> errors = isotonic_errors([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(errors.e90, 3), round(errors.emax, 3)
    (0.3, 0.3)
    """

    ici: float
    e50: float
    e90: float
    emax: float
    notes: tuple[Note, ...] = ()


@takes_rows
def isotonic_errors(table: ScoreTable) -> IsotonicErrors:
    """Distances of scores to their isotonic recalibration: mean (ICI), median, 90th percentile and maximum.

    Harrell's E-statistics and the integrated calibration index of Austin and Steyerberg (2019), with the isotonic fit
    (PAV) instead of a smoother. A percentile is the smallest distance that is not exceeded by at least that share of
    rows.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    IsotonicErrors
        The four distances.

    See Also
    --------
    IsotonicErrors, loess_errors, ici

    Examples
    --------
    >>> errors = isotonic_errors([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(errors.ici, 3), round(errors.e50, 3), round(errors.emax, 3)
    (0.175, 0.1, 0.3)
    """
    blocks = PAVA()(table)
    distance = np.abs(table.score - blocks.rate[blocks.labels])
    order = np.argsort(distance, kind="stable")
    share = np.cumsum(table.n[order]) / table.size

    def percentile(q: float) -> float:
        # 1e-12: 0.9 of ten rows are nine rows, however 9 / 10 is rounded
        return float(distance[order][np.searchsorted(share, q - 1e-12)])

    mean = float(np.sum(table.n * distance) / table.size)
    return IsotonicErrors(mean, percentile(0.5), percentile(0.9), float(distance.max()), table.notes)
