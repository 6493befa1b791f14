"""Cross-fitted scores: each row is calibrated by a calibrator that was fitted to other rows."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant._support.arrays import Floats, Ints
from calibrant.calibrators.multiclass import ProbabilityMap
from calibrant.calibrators.point_map import PointMap
from calibrant.calibrators.score_map import ScoreMap

__all__ = ["cross_fit"]


def cross_fit(
    calibrator: ScoreMap | ProbabilityMap | PointMap,
    scores: Floats,
    outcomes: NDArray[Any],
    *,
    sample_weight: Floats | None = None,
    cluster: Ints | None = None,
    n_folds: int = 5,
    random_state: int = 0,
    **options: Any,
) -> Floats:
    """Return the calibrated scores of random folds, each by a clone that is fitted to the other folds.

    Rows of one cluster, whose codes count from 0, are in one fold. `options` are passed to `fit`. Warnings of the fits
    are not shown: the fit to all rows issues them.
    """
    units = np.arange(len(scores)) if cluster is None else cluster
    order = np.random.default_rng(random_state).permutation(int(units.max()) + 1)
    calibrated: Floats = np.zeros(np.shape(scores))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in np.array_split(order, n_folds):
            inside = np.isin(units, part)
            fold, rest = np.flatnonzero(inside), np.flatnonzero(~inside)
            weight = None if sample_weight is None else sample_weight[rest]
            fitted = clone(calibrator).fit(scores[rest], outcomes[rest], sample_weight=weight, **options)
            calibrated[fold] = fitted.map_(scores[fold])  # all scores were read: a fold has no domain of its own
    return calibrated
