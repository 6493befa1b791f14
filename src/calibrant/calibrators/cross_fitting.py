"""Cross-fitted scores: each row is calibrated by a calibrator that was fitted to other rows."""

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant._support.typing import Floats
from calibrant.calibrators.score_map import ScoreMap

__all__ = ["cross_fit"]


def cross_fit(
    calibrator: ScoreMap,
    scores: Floats,
    outcomes: NDArray[np.bool_],
    *,
    sample_weight: Floats | None = None,
    n_folds: int = 5,
    random_state: int = 0,
) -> Floats:
    """Return the calibrated scores of random folds, each by a clone that is fitted to the other folds.

    Warnings of the fits are not shown: the fit to all rows issues them.
    """
    order = np.random.default_rng(random_state).permutation(len(scores))
    calibrated: Floats = np.zeros(len(scores))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fold in np.array_split(order, n_folds):
            rest = np.setdiff1d(order, fold, assume_unique=True)
            weight = None if sample_weight is None else sample_weight[rest]
            fitted = clone(calibrator).fit(scores[rest], outcomes[rest], sample_weight=weight)
            calibrated[fold] = fitted.map_(scores[fold])  # all scores were read: a fold has no domain of its own
    return calibrated
