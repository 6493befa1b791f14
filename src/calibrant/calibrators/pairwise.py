"""Pairwise coupling of binary calibrators."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from calibrant._support.arrays import Floats, Ints
from calibrant._support.logistic import EPS, check_eps
from calibrant.calibrators.binary import as_score_map
from calibrant.calibrators.class_maps import ClassMap, Coupling
from calibrant.calibrators.multiclass import ProbabilityMap
from calibrant.calibrators.score_map import ScoreMap

__all__ = ["PairwiseCoupling"]


class PairwiseCoupling(ProbabilityMap):
    r"""Pairwise calibration: a binary calibrator per pair of classes, coupled to class probabilities.

    For classes i < j, the rows of either class and their scores :math:`p_i / (p_i + p_j)` fit a binary calibrator,
    which predicts :math:`r_{ij} = P(y = i \mid y \in \{i, j\})`. The probabilities of all pairs are coupled: q
    minimises the weighted Kullback-Leibler divergence between :math:`r_{ij}` and :math:`q_i / (q_i + q_j)`,

    .. math::

       \sum_{i < j} n_{ij} \left[ r_{ij} \ln \frac{r_{ij}}{\mu_{ij}} + (1 - r_{ij}) \ln \frac{1 - r_{ij}}{1 - \mu_{ij}}
       \right], \qquad \mu_{ij} = \frac{q_i}{q_i + q_j}

    with :math:`n_{ij}` the number of rows of the pair.

    Parameters
    ----------
    calibrator : binary calibrator or its name in `CALIBRATORS`, default=Platt()
        Cloned for each pair.
    eps : float, default=2**-24
        Probabilities below `eps` are clipped to it; calibrated probabilities of pairs are clipped to
        [eps, 1 - eps].

    Attributes
    ----------
    calibrators_ : list of fitted binary calibrators, in the order of the pairs (0, 1), (0, 2), ..., (1, 2), ...
    n_clipped_ : float
        Rows, by weight, with a clipped probability.
    map_, classes_, notes_
        As for all multiclass calibrators.

    See Also
    --------
    OneVsRest, Dirichlet

    Notes
    -----
    Fits K (K - 1) / 2 binary calibrators. Each class must have rows. Scores must be probabilities. If each pair keeps
    its score, the result is the original probabilities. The coupling is an optimisation per row, so it has no SQL and
    no ONNX form; `calibrant.save` works.

    References
    ----------
    .. [1] Hastie & Tibshirani (1998), "Classification by pairwise coupling".
    .. [2] Zadrozny & Elkan (2002), "Transforming classifier scores into accurate multiclass probability estimates".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 1, 1], 3000)
    >>> y = (proba.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    >>> cal = PairwiseCoupling("beta").fit(proba, y)
    >>> len(cal.calibrators_), bool(np.abs(cal(proba) - proba).mean() < 0.02)
    (3, True)
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("coupling",)
    saved_attributes: ClassVar[tuple[str, ...]] = ("n_clipped_",)
    needs_all_classes: ClassVar[bool] = True

    def __init__(self, calibrator: ScoreMap | str | None = None, *, eps: float = EPS) -> None:
        self.calibrator = calibrator
        self.eps = eps

    def accepts_map(self, map_: Any) -> bool:
        return bool(super().accepts_map(map_) and map_.eps == self.eps)

    def _fit_rows(self, matrix: Floats, code: Ints, weight: Floats) -> ClassMap:
        check_eps(self.eps)
        calibrator = as_score_map(self.calibrator)
        self.n_clipped_ = float(weight[(matrix < self.eps).any(axis=1)].sum())
        p = np.maximum(matrix, self.eps)
        self.calibrators_, sizes = [], []
        for i, j in zip(*np.triu_indices(matrix.shape[1], 1), strict=True):
            rows = (code == i) | (code == j)
            score = p[rows, i] / (p[rows, i] + p[rows, j])
            self.calibrators_.append(clone(calibrator).fit(score, (code[rows] == i).astype(np.int8), weight[rows]))
            sizes.append(weight[rows].sum())
        return Coupling([each.map_ for each in self.calibrators_], np.array(sizes), self.eps)
