"""Decompositions of the Brier score: Murphy's over bins, and CORP by isotonic recalibration."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant._support.errors import Note
from calibrant._support.short_text import line_html, short_repr
from calibrant.metrics.bins import PAVA, Bins, EqualWidth, check_bins
from calibrant.metrics.metric import UnbinnedMetric, metric_function
from calibrant.metrics.proper_scores import Brier
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.table_functions import takes_rows

__all__ = ["MCB", "CorpDecomposition", "MurphyDecomposition", "corp_decomposition", "mcb", "murphy_decomposition"]


@dataclass(frozen=True)
class MurphyDecomposition:
    """Five terms that add up to the Brier score; see `murphy_decomposition`.

    Attributes
    ----------
    reliability, resolution, uncertainty : float
        The terms of Murphy (1973).
    within_variance, within_covariance : float
        The terms of the scores that differ within bins.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    murphy_decomposition, CorpDecomposition

    Examples
    --------
    >>> import calibrant as cb
    >>> y, p = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]
    >>> parts = cb.murphy_decomposition(y, p)
    >>> round(parts.reliability - parts.resolution + parts.uncertainty, 4), round(cb.brier(y, p), 4)
    (0.1875, 0.1875)
    """

    __repr__ = short_repr
    _repr_html_ = line_html

    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float
    notes: tuple[Note, ...] = ()

    @property
    def brier(self) -> float:
        """reliability - resolution + uncertainty + within_variance + within_covariance."""
        return self.reliability - self.resolution + self.uncertainty + self.within_variance + self.within_covariance


@takes_rows
def murphy_decomposition(table: ScoreTable, *, bins: Bins = EqualWidth(10)) -> MurphyDecomposition:  # noqa: B008  (frozen)
    r"""Murphy's decomposition of the Brier score over bins, exact also where scores vary inside a bin.

    .. math::

       \mathrm{BS} = \tfrac1N \sum_b N_b (\bar p_b - \bar y_b)^2 - \tfrac1N \sum_b N_b (\bar y_b - \bar y)^2
       + \bar y (1 - \bar y) + \tfrac1N \sum_i (p_i - \bar p_b)^2 - \tfrac2N \sum_i (p_i - \bar p_b)(y_i - \bar y_b)

    The terms are reliability (lower is better), resolution (higher is better), uncertainty, and Stephenson's two terms
    for the spread inside bins, which are 0 if each bin contains one score.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    bins : callable, default=EqualWidth(10)
        The bins.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    MurphyDecomposition
        The five terms.

    See Also
    --------
    MurphyDecomposition, corp_decomposition, brier

    Examples
    --------
    >>> from calibrant import EqualWidth, brier
    >>> parts = murphy_decomposition([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9], bins=EqualWidth(10))
    >>> round(parts.reliability, 4), round(parts.resolution, 4), parts.uncertainty
    (0.01, 0.125, 0.25)
    >>> abs(parts.brier - brier([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9])) < 1e-15
    True
    """
    partition = check_bins(bins)(table)
    n, rate, mean, size = partition.n, partition.rate, partition.mean_score, table.size
    offset = table.score - mean[partition.labels]
    residual = table.k - table.n * rate[partition.labels]
    return MurphyDecomposition(
        reliability=float(np.sum(n * (mean - rate) ** 2) / size),
        resolution=float(np.sum(n * (rate - table.prevalence) ** 2) / size),
        uncertainty=table.prevalence * (1 - table.prevalence),
        within_variance=float(np.sum(table.n * offset**2) / size),
        within_covariance=float(-2 * np.sum(offset * residual) / size),
        notes=table.notes,
    )


@dataclass(frozen=True)
class CorpDecomposition:
    """Miscalibration, discrimination and uncertainty; see `corp_decomposition`.

    Attributes
    ----------
    mcb, dsc, unc : float
        Miscalibration, discrimination and uncertainty.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    corp_decomposition, MurphyDecomposition

    Examples
    --------
    >>> import calibrant as cb
    >>> parts = cb.corp_decomposition([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(parts.mcb, 4), parts.dsc, parts.unc
    (0.0625, 0.125, 0.25)
    """

    __repr__ = short_repr
    _repr_html_ = line_html

    mcb: float
    dsc: float
    unc: float
    notes: tuple[Note, ...] = ()

    @property
    def brier(self) -> float:
        """mcb - dsc + unc."""
        return self.mcb - self.dsc + self.unc


@takes_rows
def corp_decomposition(table: ScoreTable) -> CorpDecomposition:
    """CORP decomposition of the Brier score, by isotonic recalibration: brier = mcb - dsc + unc.

    mcb (miscalibration) is the decrease of the Brier score by isotonic recalibration (0 is best; CalLoss over segments
    of the ROC convex hull), dsc (discrimination) the further decrease relative to the constant forecast (higher is
    better), unc (uncertainty) the Brier score of that constant. Dimitriadis, Gneiting and Jordan (2021).

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    CorpDecomposition
        The three terms.

    See Also
    --------
    CorpDecomposition, murphy_decomposition, mcb, brier

    Examples
    --------
    >>> parts = corp_decomposition([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(parts.mcb, 4), round(parts.dsc, 4), parts.unc
    (0.0625, 0.125, 0.25)
    """
    blocks = PAVA()(table)
    recalibrated = float(np.sum(blocks.n * blocks.rate * (1 - blocks.rate)) / table.size)
    unc = table.prevalence * (1 - table.prevalence)
    return CorpDecomposition(Brier().value(table) - recalibrated, unc - recalibrated, unc, table.notes)


@dataclass(frozen=True)
class MCB(UnbinnedMetric):
    """Miscalibration: the decrease of the Brier score by isotonic recalibration, in [0, 1]; 0 is best.

    `corp_decomposition` gives discrimination and uncertainty too.

    See Also
    --------
    mcb, corp_decomposition

    Examples
    --------
    >>> round(mcb([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]), 4)
    0.0625
    """

    name: ClassVar[str] = "mcb"
    measures_gaps: ClassVar[bool] = True
    degree: ClassVar[float] = 2.0
    interval_method: ClassVar[str] = "triangle"

    def value(self, table: ScoreTable) -> float:
        return corp_decomposition(table).mcb


mcb = metric_function(MCB)
