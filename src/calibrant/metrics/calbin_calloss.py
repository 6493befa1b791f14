"""CalBin and CalLoss, the measures of Bella et al.: overlapping windows, and distinct scores."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant import _kernels
from calibrant._support.errors import InputError
from calibrant._support.option_checks import check_count
from calibrant.metrics.metric import UnbinnedMetric, metric_function
from calibrant.tables.residuals import row_squares
from calibrant.tables.score_table import ScoreTable

__all__ = ["CalBin", "CalLoss", "calbin", "calloss"]

_MAX_ROWS = 10**9
_MAX_SINGLE = 0.1  # share of rows without ties, above which CalLoss is mostly noise


@dataclass(frozen=True)
class CalBin(UnbinnedMetric):
    r"""CalBin: mean distance between scores and event rate in overlapping windows, in [0, 1]; 0 is best.

    Rows are sorted by score; each run of s rows is a window, so there are N - s + 1 windows:

    .. math::

       \mathrm{CalBin} = \frac{1}{N - s + 1} \sum_b \frac1s \sum_{i=b}^{b+s-1} \left| p_i - \hat f_b \right|

    with :math:`\hat f_b` the mean outcome in the window. Rows with equal scores each have the rate of all of them, so
    the order of rows does not matter. The chapter of Bella et al. prints it without 1/s and with one window fewer.

    Parameters
    ----------
    window : int, optional
        s; by default max(1, N // 10).

    See Also
    --------
    calbin, CalLoss

    Examples
    --------
    >>> round(calbin([0, 0, 1, 1], [0.1, 0.4, 0.5, 0.9], window=2), 4)
    0.2
    """

    window: int | None = None
    name: ClassVar[str] = "calbin"
    measures_gaps: ClassVar[bool] = True
    needs_counts: ClassVar[bool] = True
    interval_method: ClassVar[str] = "anchored"

    def __post_init__(self) -> None:
        if self.window is not None:
            object.__setattr__(self, "window", check_count("window", self.window))

    def value(self, table: ScoreTable) -> float:
        if table.importance:
            raise InputError(
                "sample_weight must be omitted for calbin, whose windows contain whole rows; got importance weights.",
                hint="Pass frequency for numbers of equal rows, or use calibrant.ace.",
                argument="sample_weight",
            )
        size = int(table.size)
        if size > _MAX_ROWS:
            raise InputError(
                f"y_true must have at most {_MAX_ROWS:,} rows for calbin, which has a window for each; got {size:,}.",
                hint="Use calibrant.ace, or calibrant.calloss.",
            )
        s = max(1, size // 10) if self.window is None else check_count("window", self.window, size)
        rates = table.k / table.n
        tied = len(table) < size
        p, f = (np.repeat(table.score, table.n), np.repeat(rates, table.n)) if tied else (table.score, rates)
        return float(np.mean(_kernels.window_distances(p, f, s)) / s)


@dataclass(frozen=True)
class CalLoss(UnbinnedMetric):
    """CalLoss: mean squared distance between each distinct score and the rate of its rows, in [0, 1]; 0 is best.

    The sum of n (p - k/n)^2 / N over distinct scores: Murphy's reliability with one bin per score. The chapter of
    Bella et al. prints it without the square and without 1/N. The version over segments of the ROC convex hull is
    ``corp_decomposition(...).mcb``.

    See Also
    --------
    calloss, CalBin

    Examples
    --------
    >>> round(calloss([0, 1, 1, 1], [0.4, 0.4, 0.9, 0.9]), 4)
    0.01
    """

    name: ClassVar[str] = "calloss"
    measures_gaps: ClassVar[bool] = True
    degree: ClassVar[float] = 2.0
    interval_method: ClassVar[str] = "triangle"

    def value(self, table: ScoreTable) -> float:
        return float(np.sum(table.n * (table.score - table.k / table.n) ** 2) / table.size)

    def interval_refusal(self, table: ScoreTable) -> str:
        """Return why no interval exists if many rows have no ties; else an empty text.

        Parameters
        ----------
        table : ScoreTable, MeanTable or ForecastTable
            Table of the kind of the metric.

        Returns
        -------
        str
            One or two sentences, or ''.
        """
        single = float(np.sum(table.n[table.n**2 <= row_squares(table) * (1 + 1e-9)]))
        if single <= _MAX_SINGLE * table.size:
            return ""
        return (
            f"calloss needs tied scores for an interval; got {100 * single / table.size:.0f} % of rows without ties, "
            "for which it is the Brier score. Use mcb or ace instead."
        )


calbin = metric_function(CalBin)
calloss = metric_function(CalLoss)
