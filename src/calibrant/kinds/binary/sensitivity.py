"""`Sensitivity`: TCE at other significance levels and ECC at other cost ratios, which the report shows by sliders."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support.arrays import Weights
from calibrant.metrics.costs import LinearCost
from calibrant.metrics.gce import Breakdown
from calibrant.metrics.losses import CostLoss
from calibrant.metrics.norms import weighted_l1

__all__ = ["ALPHAS", "RATIOS", "Sensitivity"]

_USUAL = (0.01, 0.05)
# Significance levels: 58 in geometric progression, and the usual two.
ALPHAS: tuple[float, ...] = tuple(sorted({*(float(f"{a:.3g}") for a in np.geomspace(1e-6, 0.4, 58)), *_USUAL}))
# Cost of underestimation by one point if overestimation by one point costs 1.
RATIOS: tuple[float, ...] = tuple(float(f"{r:.3g}") for r in np.geomspace(0.05, 20, 41))


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """TCE as a function of the significance level, and ECC as a function of the cost ratio.

    Attributes
    ----------
    alphas : tuple of float
        `ALPHAS` and the level of the test-based breakdown.
    tce : tuple of float
        The test-based metric at each level, in percent, over the bins of the breakdown.
    rejected : ndarray of shape (number of levels, number of bins)
        Number of rejected rows (or their weight) per level and bin.
    ecc : tuple of float
        ECC at each of `RATIOS`, over the bins of ECE.

    See Also
    --------
    Evaluation, AbsoluteMargin

    Examples
    --------
    >>> import calibrant as cb
    >>> from calibrant.results import Sensitivity
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> found = Sensitivity.measure(cb.TCE(bins=cb.EqualWidth(2))(table), cb.ECE()(table))
    >>> min(found.alphas), max(found.alphas), round(min(found.tce), 1), round(max(found.tce), 1)
    (1e-06, 0.4, 33.3, 100.0)
    """

    alphas: tuple[float, ...]
    tce: tuple[float, ...]
    rejected: Weights
    ecc: tuple[float, ...]

    @classmethod
    def measure(cls, tested: Breakdown, ece: Breakdown) -> "Sensitivity":
        """Compute both functions from the test-based breakdown and that of ECE.

        Parameters
        ----------
        tested : Breakdown
            Result of TCE.
        ece : Breakdown
            Result of ECE, whose bins ECC uses.

        Returns
        -------
        Sensitivity
            TCE at several significance levels, and ECC at several cost ratios.
        """
        loss: Any = tested.definition.loss
        alphas = tuple(sorted({*ALPHAS, float(loss.alpha)}))
        partition = tested.partition
        losses = np.array([replace(loss, alpha=alpha)(partition) for alpha in alphas])
        rejected = losses / 100 * partition.n
        if not partition.table.importance:
            rejected = np.rint(rejected).astype(np.int64)
        tce = tuple(float(row @ partition.n / partition.n.sum()) for row in losses)
        return cls(alphas, tce, rejected, tuple(_ecc(ece, ratio) for ratio in RATIOS))


def _ecc(ece: Breakdown, ratio: float) -> float:
    loss = CostLoss(LinearCost(over=1, under=ratio))
    return float(weighted_l1(loss(ece.partition), ece.partition.n))
