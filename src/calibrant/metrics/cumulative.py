"""Empirical cumulative calibration errors (ECCE): no bins, no bandwidth."""

from dataclasses import dataclass
from typing import ClassVar

from calibrant import _kernels
from calibrant._support.errors import Note
from calibrant._support.short_text import line_html, short_repr
from calibrant.metrics.metric import UnbinnedMetric, metric_function
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.table_functions import takes_rows

__all__ = ["Ecce", "EcceMad", "EcceR", "ecce", "ecce_mad", "ecce_r"]


@dataclass(frozen=True)
class Ecce:
    """Largest deviations of the cumulative differences; `float` gives `mad`. See `ecce`.

    Attributes
    ----------
    mad : float
        Largest absolute cumulative difference.
    r : float
        Range of the cumulative differences.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    ecce, ecce_mad, ecce_r

    Examples
    --------
    >>> from calibrant.metrics import ecce
    >>> found = ecce([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(found.mad, 3), round(found.r, 3), float(found) == found.mad
    (0.175, 0.2, True)
    """

    __repr__ = short_repr
    _repr_html_ = line_html

    mad: float
    r: float
    notes: tuple[Note, ...] = ()

    def __float__(self) -> float:
        return self.mad


@takes_rows
def ecce(table: ScoreTable) -> Ecce:
    r"""Empirical cumulative calibration errors: no bins, no bandwidth.

    With rows in order of score, :math:`C_j = \frac1N \sum_{i \le j} (y_i - p_i)` and :math:`C_0 = 0`:

    - ``mad`` is the largest \|C_j\|, the statistic of Kolmogorov and Smirnov;
    - ``r`` is the range, max C - min C, that of Kuiper.

    C is evaluated between distinct scores only, so the order of tied rows does not matter. Arrieta-Ibarra, Gujral,
    Tannen, Tygert and Xu (2022).

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    Ecce
        Both statistics.

    See Also
    --------
    ecce_mad, ecce_r, ecce_test

    Examples
    --------
    >>> result = ecce([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9])
    >>> round(result.mad, 4), round(result.r, 4)
    (0.05, 0.075)
    """
    low, high = (end / table.size for end in _kernels.cumulative_extremes(table.score, table.n, table.k))
    return Ecce(max(-low, high), high - low, table.notes)


@dataclass(frozen=True)
class EcceMad(UnbinnedMetric):
    """ECCE-MAD, the largest cumulative difference (Kolmogorov-Smirnov), in [0, 1]; 0 is best. See `ecce`.

    See Also
    --------
    ecce_mad, EcceR, ecce

    Examples
    --------
    >>> round(ecce_mad([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9]), 4)
    0.05
    """

    name: ClassVar[str] = "ecce_mad"
    measures_gaps: ClassVar[bool] = True
    interval_method: ClassVar[str] = "anchored"

    def value(self, table: ScoreTable) -> float:
        return ecce(table).mad


@dataclass(frozen=True)
class EcceR(UnbinnedMetric):
    """ECCE-R, the range of cumulative differences (Kuiper), in [0, 1]; 0 is best. See `ecce`.

    See Also
    --------
    ecce_r, EcceMad, ecce

    Examples
    --------
    >>> round(ecce_r([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9]), 4)
    0.075
    """

    name: ClassVar[str] = "ecce_r"
    measures_gaps: ClassVar[bool] = True
    interval_method: ClassVar[str] = "anchored"

    def value(self, table: ScoreTable) -> float:
        return ecce(table).r


ecce_mad = metric_function(EcceMad)
ecce_r = metric_function(EcceR)
