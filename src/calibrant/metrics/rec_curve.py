"""Regression error characteristic: the share of rows within each error tolerance."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant._support.errors import InputError, Note
from calibrant._support.json_values import plain
from calibrant._support.option_checks import check_option, is_number
from calibrant._support.typing import Floats
from calibrant.metrics.metric import metric_function
from calibrant.metrics.point import PointMetric
from calibrant.tables.mean_table import MeanTable, need_rows, take_rows

__all__ = ["ErrorTolerance", "RECCurve", "error_tolerance", "rec_curve"]


def _check_share(share: float) -> None:
    if not (is_number(share) and 0 < share <= 1):
        raise InputError(f"share must lie in (0, 1]; got {share!r}.", argument="share", value=share)


@dataclass(frozen=True, eq=False)
class RECCurve:
    """Regression error characteristic; see `rec_curve`.

    Attributes
    ----------
    tolerance, accuracy : ndarray
        Each error that occurs, and the share of rows with at most that error.
    area_over : float
        Area over the curve: the mean error.
    loss : str
        absolute or squared.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    rec_curve

    Examples
    --------
    >>> from calibrant.regression import rec_curve
    >>> curve = rec_curve([1.0, 2.0, 6.0, 4.0], [2.0, 3.0, 9.0, 4.0])
    >>> curve.at(2), curve.needed(0.9), curve.area_over
    (0.75, 3.0, 1.25)
    """

    tolerance: Floats
    accuracy: Floats
    area_over: float
    loss: str
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        points = {"tolerance": self.tolerance.tolist(), "accuracy": self.accuracy.tolist()}
        return {**plain(self), **points}

    def at(self, tolerance: float) -> float:
        """Return the share of rows whose error is at most the tolerance.

        Parameters
        ----------
        tolerance : float
            Absolute or squared error, as the curve has it.

        Returns
        -------
        float
            In [0, 1].
        """
        place = int(np.searchsorted(self.tolerance, tolerance, side="right"))
        return float(self.accuracy[place - 1]) if place else 0.0

    def needed(self, share: float) -> float:
        """Return the least tolerance that covers this share of the rows.

        Parameters
        ----------
        share : float
            Share of the rows, in (0, 1].

        Returns
        -------
        float
            An error that occurs.
        """
        _check_share(share)
        place = int(np.searchsorted(self.accuracy, share * (1 - 1e-12)))
        return float(self.tolerance[min(place, self.tolerance.size - 1)])


@take_rows
def rec_curve(table: MeanTable, *, loss: Literal["absolute", "squared"] = "absolute") -> RECCurve:
    """Regression error characteristic: for each tolerance the share of rows whose error is at most that.

    The counterpart of the ROC curve (Bi and Bennett, 2003). The area over the curve is the mean error: MAE, or MSE
    with squared errors. The curve has one point for each error that occurs.

    Parameters
    ----------
    y_true, y_pred : columns
        Outcomes and predictions; or one `MeanTable` instead of both.
    loss : {"absolute", "squared"}, default="absolute"
        Error of a row.
    sample_weight, frequency, missing
        Options for reading rows; see `MeanTable.from_rows`.

    Returns
    -------
    RECCurve
        Tolerances and shares of rows.

    See Also
    --------
    RECCurve, RECDisplay, error_tolerance

    Examples
    --------
    >>> curve = rec_curve([1.0, 2.0, 6.0, 4.0], [2.0, 3.0, 9.0, 4.0])
    >>> curve.tolerance, curve.accuracy, curve.area_over
    (array([0., 1., 3.]), array([0.25, 0.75, 1.  ]), 1.25)
    >>> curve.at(2), curve.needed(0.9)
    (0.75, 3.0)
    """
    check_option("loss", loss, ("absolute", "squared"))
    need_rows(table, "rec_curve")
    error = np.abs(table.prediction - table.mean)
    error = error if loss == "absolute" else error**2
    tolerance, place = np.unique(error, return_inverse=True)
    share = np.bincount(place, weights=table.n) / table.size
    accuracy = np.minimum(np.cumsum(share), 1.0)
    accuracy[-1] = 1.0
    return RECCurve(tolerance, accuracy, table.average(error), loss, table.notes)


@dataclass(frozen=True)
class ErrorTolerance(PointMetric):
    """Error tolerance: the least tolerance that covers this share of the absolute errors.

    Parameters
    ----------
    share : float, default=0.9
        Share of the rows, in (0, 1].

    See Also
    --------
    error_tolerance, rec_curve

    Examples
    --------
    >>> error_tolerance([1.0, 2.0, 6.0, 4.0], [2.0, 3.0, 9.0, 4.0], share=0.75)
    1.0
    """

    share: float = 0.9

    name: ClassVar[str] = "error_tolerance"

    def __post_init__(self) -> None:
        _check_share(self.share)

    def value(self, table: MeanTable) -> float:
        found: RECCurve = rec_curve.of_table(table)
        return found.needed(self.share)


error_tolerance = metric_function(ErrorTolerance)
