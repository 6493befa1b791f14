"""Calibrators of the papers' related work, as published, compared in the study of calibrators.

Each takes scores and outcomes and returns a function of scores. They are written for one study, not for speed.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import betaln, logsumexp

import calibrant as cb
from calibrant.calibrators import maps

Fitted = Callable[[np.ndarray], np.ndarray]


def bbq(p: np.ndarray, y: np.ndarray) -> Fitted:
    """Bayesian binning into quantiles (Naeini, Cooper & Hauskrecht 2015): binnings averaged by their posterior.

    Numbers of bins from n^(1/3) / 10 to 10 n^(1/3); each bin has a beta prior of strength 2 / bins around its middle.
    """
    table = cb.ScoreTable.from_arrays(y, p)
    root = table.size ** (1 / 3)
    fits = []
    for n_bins in range(max(1, int(root / 10)), int(10 * root) + 1):
        bins = cb.bins.EqualSize(n_bins)(table)
        middle = np.clip((bins.lower + bins.upper) / 2, 1e-6, 1 - 1e-6)
        a, b = 2 / n_bins * middle, 2 / n_bins * (1 - middle)
        score = float(np.sum(betaln(bins.k + a, bins.n - bins.k + b) - betaln(a, b)))
        values = (bins.k + a) / (bins.n + a + b)
        fits.append((score, maps.Steps(maps.between(table.score, bins.start), values)))
    scores = np.array([score for score, _ in fits])
    weight = np.exp(scores - logsumexp(scores))
    return lambda new: sum(w * f(new) for w, (_, f) in zip(weight, fits, strict=True) if w > 1e-9)


def near_isotonic(p: np.ndarray, y: np.ndarray) -> Fitted:
    """Ensemble of near-isotonic regressions (Naeini & Cooper 2016): the path of mPAVA, averaged by BIC."""
    table = cb.ScoreTable.from_arrays(y, p)
    n, k = table.n.astype(float), table.k.astype(float)
    start = np.arange(len(table))
    value, penalty = k / n, 0.0
    fits = []
    while True:
        labels = np.repeat(np.arange(start.size), np.diff(np.append(start, len(table))))
        q = np.clip(value, 1e-9, 1 - 1e-9)[labels]
        likelihood = float(np.sum(k * np.log(q) + (n - k) * np.log(1 - q)))
        fits.append(
            (
                2 * likelihood - start.size * np.log(table.size),
                maps.Steps(maps.between(table.score, start), np.clip(value, 0, 1)),
            )
        )
        fall = value[:-1] > value[1:]
        if not fall.any():
            break
        # Slopes of the values of groups as the penalty increases, and the penalty at which the first two become equal.
        size = np.add.reduceat(n, start)
        slope = (np.append(0.0, fall) * 1.0 - np.append(fall, 0.0)) / size
        with np.errstate(divide="ignore", invalid="ignore"):
            meet = (value[1:] - value[:-1]) / (slope[:-1] - slope[1:])
        meet[~(meet > 1e-15)] = np.inf
        step = float(meet.min())
        if not np.isfinite(step):
            break
        value, penalty = value + slope * step, penalty + step
        keep = np.append(True, np.abs(np.diff(value)) > 1e-12)
        start, value = start[keep], value[keep]
    scores = np.array([score for score, _ in fits]) / 2
    weight = np.exp(scores - logsumexp(scores))
    return lambda new: sum(w * f(new) for w, (_, f) in zip(weight, fits, strict=True) if w > 1e-9)


RELATED: dict[str, Callable[[np.ndarray, np.ndarray], Fitted]] = {
    "BBQ": bbq,
    "near-isotonic": near_isotonic,
}
