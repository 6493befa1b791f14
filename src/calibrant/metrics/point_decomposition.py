"""Decomposition of the squared error of point predictions into miscalibration, discrimination and uncertainty."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.errors import Note
from calibrant._support.json_values import plain
from calibrant._support.short_text import line_html, short_repr
from calibrant._support.typing import Floats
from calibrant.metrics.point import MSE, MeanError, variance, within_variance
from calibrant.tables.mean_table import MeanTable, take_rows

__all__ = ["MSEDecomposition", "corp_decomposition", "isotonic_means", "mse_decomposition"]


@dataclass(frozen=True)
class MSEDecomposition:
    """Miscalibration, discrimination and uncertainty: mse = mcb - dsc + unc.

    `bias` and `slope` are the parts of mcb that a shift, and then a straight line, would remove.

    Attributes
    ----------
    mcb, dsc, unc : float
        Miscalibration, discrimination and uncertainty.
    bias, slope : float
        Parts of mcb.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    mse_decomposition

    Examples
    --------
    >>> from calibrant.regression import mse_decomposition
    >>> parts = mse_decomposition([1.0, 2.0, 6.0, 7.0], [2.0, 3.0, 9.0, 8.0])
    >>> parts.mcb - parts.dsc + parts.unc, parts.bias
    (3.0, 2.25)
    """

    __repr__ = short_repr
    _repr_html_ = line_html

    mcb: float
    dsc: float
    unc: float
    bias: float
    slope: float
    notes: tuple[Note, ...] = ()

    @property
    def mse(self) -> float:
        """mcb - dsc + unc."""
        return self.mcb - self.dsc + self.unc

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {**plain(self), "mse": self.mse}


@take_rows
def mse_decomposition(table: MeanTable) -> MSEDecomposition:
    r"""CORP decomposition of the squared error, by isotonic recalibration: mse = mcb - dsc + unc.

    mcb is the reduction of the squared error by the best rising map of the predictions (0 is best), dsc the further
    reduction against the mean outcome (higher is better), unc the variance of the outcomes. A shift would remove
    :math:`(E \hat y - E y)^2` of mcb (`bias`), and a rising line :math:`\mathrm{Var}(\hat y)(1 - b)^2` (`slope`), with
    b the slope of the regression of outcomes on predictions; where b < 0 the line is level.

    Parameters
    ----------
    y_true, y_pred : columns
        Outcomes and predictions; or one `MeanTable` instead of both.
    sample_weight, frequency, missing
        Options for reading rows; see `MeanTable.from_rows`.

    Returns
    -------
    MSEDecomposition
        The terms.

    See Also
    --------
    CorpDecomposition, murphy_decomposition, mcb, brier

    Examples
    --------
    >>> parts = mse_decomposition([1.0, 2.0, 6.0, 7.0], [2.0, 3.0, 9.0, 8.0])
    >>> parts.mcb, parts.dsc, parts.unc, parts.mse
    (2.875, 6.375, 6.5, 3.0)
    """
    merged = table.merged()
    fitted = isotonic_means(merged)
    error = MSE().value(merged)
    best = merged.average((fitted - merged.mean) ** 2) + within_variance(merged)
    unc = variance(merged)
    bias = MeanError().value(merged)
    offset = merged.prediction - merged.mean_prediction
    spread = merged.average(offset**2)
    together = merged.average(offset * (merged.mean - merged.mean_outcome))
    # Among rising lines: from slope 1 to the best slope, or to 0 where the best slope is negative.
    saved = spread * (1 - together / spread) ** 2 if together > 0 and spread > 0 else spread - 2 * together
    return MSEDecomposition(error - best, unc - best, unc, bias**2, saved, table.notes)


corp_decomposition = mse_decomposition  # the name of the same decomposition for probabilities


def isotonic_means(merged: MeanTable) -> Floats:
    """Return the isotonic regression of the outcomes at each entry of a merged table."""
    from scipy.optimize import isotonic_regression

    fitted: Floats = isotonic_regression(merged.mean, weights=merged.n.astype(np.float64)).x
    return fitted
