"""Boosting of residual log-odds in folds: how many rounds lower the loss of rows that were not fitted on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils.parallel import Parallel, delayed

from calibrant._support.arrays import Floats, Ints
from calibrant._support.errors import InputError, check_count
from calibrant._support.logistic import expit
from calibrant._support.progress import progress_bar
from calibrant.calibrators.tree_fits import Backend, TreeRows, TreeSettings, fit_round
from calibrant.calibrators.tree_rounds import BoostedLogOdds, TreeRound, rescaled

__all__ = ["HeldOut", "boost_in_folds", "slope_and_intercept", "split_rows"]

MOST_SCALE = 2.0
PATIENCE = 3  # rounds without a lower held-out loss
_PRIOR = 1.0  # precision of slope and intercept around 1 and 0: the fit exists for separated classes too
_NEWTON_STEPS = 50


def split_rows(
    cv: Any, event: Ints, cluster: Ints | None, seed: int, used: Ints | None = None
) -> list[tuple[Ints, Ints]]:
    """Return fitted rows and held-out rows of each fold; rows of a cluster stay together.

    `used` are the rows that `event` and `cluster` describe, if they are not all: splits that are given count all rows.
    """
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        check_count("cv", int(cv), least=2)
        splitter = StratifiedKFold if cluster is None else StratifiedGroupKFold
        cv = splitter(int(cv), shuffle=True, random_state=seed)
    if hasattr(cv, "get_n_splits"):
        folds = _as_folds(cv.split(np.zeros((event.size, 1)), event, cluster))
    else:
        listed = isinstance(cv, Iterable) and not isinstance(cv, str)
        folds = _as_folds(cv) if listed else []
        folds = folds if used is None else [(_places(a, used), _places(b, used)) for a, b in folds]
    tested = np.concatenate([test for _, test in folds]) if folds else np.empty(0, dtype=np.int64)
    if not tested.size or np.unique(tested).size < tested.size:
        raise InputError(
            f"cv must be a number of folds, or splits that hold out each row at most once; got {cv!r}.",
            argument="cv",
            value=cv,
        )
    return folds


def _as_folds(found: Iterable[Any]) -> list[tuple[Ints, Ints]]:
    return [(np.asarray(train), np.asarray(test)) for train, test in found]


def _places(rows: Ints, used: Ints) -> Ints:
    """Return the places of rows among those in use; others are left out."""
    return np.searchsorted(used, rows[np.isin(rows, used)])


def slope_and_intercept(log_odds: Floats, event: Ints, weight: Floats) -> tuple[float, float]:
    """Return slope and intercept of a logistic regression with a weak prior around 1 and 0, by Newton's method."""
    design = np.column_stack([log_odds, np.ones(log_odds.size)])
    beta = centre = np.array([1.0, 0.0])
    loss = _penalised(design, beta, centre, event, weight)
    for _ in range(_NEWTON_STEPS):
        p = expit(design @ beta)
        gradient = (design * (weight * (p - event))[:, None]).sum(axis=0) + _PRIOR * (beta - centre)
        spread = design * (weight * p * (1 - p))[:, None]
        hessian = np.array([[(spread[:, i] * design[:, j]).sum() for j in (0, 1)] for i in (0, 1)])
        step = np.linalg.solve(hessian + _PRIOR * np.eye(2), gradient)
        while (lower := _penalised(design, beta - step, centre, event, weight)) > loss and np.abs(step).max() > 1e-9:
            step /= 2
        if np.abs(step).max() <= 1e-9:
            break
        beta, loss = beta - step, lower
    return float(beta[0]), float(beta[1])


def _penalised(design: Floats, beta: Floats, centre: Floats, event: Ints, weight: Floats) -> float:
    penalty = _PRIOR / 2 * float(np.square(beta - centre).sum())
    return float((weight * row_losses(design[:, 0] * beta[0] + beta[1], event)).sum()) + penalty


def row_losses(log_odds: Floats, event: Ints) -> Floats:
    """Return the log loss of each row."""
    return np.asarray(np.logaddexp(0, np.where(event == 1, -log_odds, log_odds)))


@dataclass
class _Fold:
    """The rows of a fold with their current log-odds, fitted and held out, and the rounds so far."""

    fitted: TreeRows
    current: Floats
    held_out: TreeRows
    predicted: Floats
    slope: float
    intercept: float
    rounds: list[TreeRound] = field(default_factory=list)

    @classmethod
    def begin(cls, rows: TreeRows, log_odds: Floats, train: Ints, test: Ints) -> "_Fold":
        fitted = rows.part(train)
        slope, intercept = slope_and_intercept(log_odds[train], fitted.event, fitted.weight)
        current, predicted = (slope * log_odds[part] + intercept for part in (train, test))
        return cls(fitted, current, rows.part(test), predicted, slope, intercept)

    def advance(self, settings: TreeSettings, backend: Backend) -> "_Fold":
        """Return the fold after one more round."""
        settings = replace(settings, seed=settings.seed + len(self.rounds))  # other draws of features in each round
        found = fit_round(self.fitted, self.current, settings, backend)
        current = self.current + found(self.fitted.codes, self.current)
        predicted = self.predicted + found(self.held_out.codes, self.predicted)
        return _Fold(self.fitted, current, self.held_out, predicted, self.slope, self.intercept, [*self.rounds, found])

    def model(self, n_rounds: int, scale: float) -> BoostedLogOdds:
        return BoostedLogOdds(self.slope, self.intercept, scale, tuple(self.rounds[:n_rounds]))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Models of the folds with the number of rounds of least held-out loss.

    Attributes
    ----------
    models : tuple of BoostedLogOdds
        One per fold.
    losses : array
        Mean held-out log loss of the scores, of slope and intercept, and after each round.
    n_rounds : int
    scale : float
        Factor of the sum of all rounds.
    gain, standard_error : float
        Mean decrease of the held-out loss with this number of rounds, before it is scaled.
    """

    models: tuple[BoostedLogOdds, ...]
    losses: Floats
    n_rounds: int
    scale: float
    gain: float
    standard_error: float


def boost_in_folds(
    rows: TreeRows,
    log_odds: Floats,
    folds: Sequence[tuple[Ints, Ints]],
    cluster: Ints | None,
    settings: TreeSettings,
    backend: Backend,
    *,
    max_rounds: int,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> HeldOut:
    """Boost in each fold until the mean loss of all held-out rows stops to decrease."""
    tested = np.concatenate([test for _, test in folds])
    event, weight = rows.event[tested], rows.weight[tested]
    before = row_losses(log_odds[tested], event)
    states = [_Fold.begin(rows, log_odds, train, test) for train, test in folds]
    path = [np.concatenate([each.predicted for each in states])]
    means = [float(np.average(before, weights=weight)), _mean_loss(path[0], event, weight)]
    with Parallel(n_jobs=n_jobs) as parallel:
        for _ in progress_bar(range(max_rounds), max_rounds, "rounds", show=progress):
            states = parallel(delayed(each.advance)(settings, backend) for each in states)
            path.append(np.concatenate([each.predicted for each in states]))
            means.append(_mean_loss(path[-1], event, weight))
            if len(path) - 1 - int(np.argmin(means[1:])) >= PATIENCE:
                break
    best = int(np.argmin(means[1:]))
    gains = before - row_losses(path[best], event)
    gain, error = _mean_and_error(gains, weight, None if cluster is None else cluster[tested])
    scale = _best_scale(path[0], path[best], event, weight)
    return HeldOut(tuple(each.model(best, scale) for each in states), np.array(means), best, scale, gain, error)


def _mean_loss(log_odds: Floats, event: Ints, weight: Floats) -> float:
    return float(np.average(row_losses(log_odds, event), weights=weight))


def _best_scale(start: Floats, end: Floats, event: Ints, weight: Floats) -> float:
    """Return the scale of least held-out loss of what trees add.

    Trees are shrunk, and stop before all of a deviation is corrected, so it is at least 1. Below 1 it would shrink each
    fold's model because of noise of which their mean has less.
    """
    found = minimize_scalar(
        lambda scale: _mean_loss(rescaled(start, end, scale), event, weight), bounds=(1.0, MOST_SCALE), method="bounded"
    )
    return (
        float(found.x)
        if _mean_loss(rescaled(start, end, found.x), event, weight) < _mean_loss(end, event, weight)
        else 1.0
    )


def _mean_and_error(values: Floats, weight: Floats, cluster: Ints | None) -> tuple[float, float]:
    """Return the weighted mean and its standard error; rows of a cluster are one unit."""
    mean = float(np.average(values, weights=weight))
    parts = weight * (values - mean)
    if cluster is not None:
        code = np.unique(cluster, return_inverse=True)[1]
        parts = np.asarray(np.bincount(code, weights=parts), dtype=np.float64)
    if parts.size < 2:
        return mean, np.inf
    return mean, float(np.sqrt(np.square(parts).sum() * parts.size / (parts.size - 1)) / weight.sum())
