"""Beta calibration."""

import math
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant._support import logistic
from calibrant._support.arrays import Floats, Weights
from calibrant._support.errors import InputError
from calibrant._support.logistic import EPS, check_eps
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.calibrators.sigmoid import SEPARATED, smoothed_events
from calibrant.metrics.log_odds import count_clipped
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.table_functions import need_both_classes

__all__ = ["Beta"]


class Beta(ScoreMap):
    r"""Beta calibration: a logistic regression on ln p and -ln(1 - p), the family of ratios of beta densities.

    .. math::

       \operatorname{logit} q = a \ln p - b \ln (1 - p) + c, \qquad a, b \ge 0

    The family contains the identity (a = b = 1, c = 0), unlike Platt scaling on probabilities. Unlike Platt scaling on
    logits, it can correct scores near 0 and scores near 1 differently.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}
        Free parameters: all three; a = b (Platt scaling on logits without smoothing); or m = 1/2, that is
        c = (a - b) ln 2. As in betacal, m is the score with q = 1/2.
    eps : float, default=2**-24
        Scores are clipped to [eps, 1 - eps], as for `Platt`.

    Attributes
    ----------
    a_, b_, c_ : float
    n_clipped_ : float
        Number (or weight) of rows whose score was clipped.

    See Also
    --------
    Platt, Isotonic

    Notes
    -----
    Fitted by maximum likelihood under a, b >= 0, to rounding error: the likeliest feasible fit with none, one or both
    of a and b fixed at 0. betacal stops its optimiser early and considers one of these fits only, so its coefficients
    differ from about the third digit on. If a threshold separates the classes, Platt's smoothed targets are used, with
    a warning.

    References
    ----------
    .. [1] Kull, Silva Filho & Flach (2017), "Beta calibration".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p
    >>> cal = Beta().fit(p, y)
    >>> round(cal.a_, 1), round(cal.b_, 1), abs(round(cal.c_, 1))
    (1.0, 1.0, 0.0)
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("beta",)
    saved_attributes: ClassVar[tuple[str, ...]] = ("n_clipped_",)

    def __init__(self, *, parameters: Literal["abm", "am", "ab"] = "abm", eps: float = EPS) -> None:
        self.parameters = parameters
        self.eps = eps

    def accepts_map(self, map_: Any) -> bool:
        wanted = {"am": map_.b - map_.a, "ab": map_.c - (map_.a - map_.b) * math.log(2)}.get(self.parameters, 0.0)
        return bool(map_.eps == self.eps and abs(wanted) <= 1e-9 * (1 + abs(map_.c)))

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        check_eps(self.eps)
        if self.parameters not in ("abm", "am", "ab"):
            raise InputError(
                f"parameters must be 'abm', 'am' or 'ab'; got {self.parameters!r}.",
                argument="parameters",
                value=self.parameters,
            )
        need_both_classes(table, "Beta")
        self.n_clipped_, notes = count_clipped(table, self.eps)
        self.notes_ += notes
        inside, n, k = logistic.clip_and_merge(table.score, table.n, table.k, self.eps)
        shift = math.log(2) if self.parameters == "ab" else 0.0  # both logarithms are then 0 at 1/2
        columns = np.log(inside) + shift, -np.log1p(-inside) - shift
        fits = []
        if not _is_separated(inside, n, k, self.parameters):
            fits = _feasible_fits(*columns, n, k, self.parameters)
        if not fits:  # no finite maximum, or none that doubles can distinguish from infinity
            self._note("separated", SEPARATED, warn=True)
            _, n, k = logistic.clip_and_merge(table.score, table.n, smoothed_events(table), self.eps)
            fits = _feasible_fits(*columns, n, k, self.parameters)
        if not fits:
            raise logistic.NotConvergedError(
                "Beta calibration did not converge: the classes are almost separated, or weights differ too much.",
                hint="Use Isotonic.",
            )
        a, b, c = fits[0] if len(fits) == 1 else max(fits, key=lambda fit: _likelihood(fit, *columns, n, k))
        return maps.BetaMap(a, b, c + (a - b) * shift, self.eps)

    @property
    def a_(self) -> float:
        """Coefficient of log(p)."""
        return float(self.map_.a)

    @property
    def b_(self) -> float:
        """Coefficient of -log(1 - p)."""
        return float(self.map_.b)

    @property
    def c_(self) -> float:
        """Intercept."""
        return float(self.map_.c)


Fit = tuple[float, float, float]  # a, b, c


def _feasible_fits(low: Floats, high: Floats, n: Weights, events: Weights, parameters: str) -> list[Fit]:
    """Return the unconstrained fit if a, b >= 0, otherwise the feasible fits with a, b or both fixed at 0.

    Return no fit if the unconstrained one does not converge although the bounds are inactive: it has no finite maximum.
    """
    # Two distinct scores do not identify three coefficients, so a = b; one score identifies the constant only.
    distinct = 1 + np.count_nonzero(np.diff(low))
    tied, intercept = bool(parameters == "am" or distinct < len(parameters)), parameters != "ab"
    constant = distinct == 1
    fits = []
    for use_a, use_b in sorted(product((True, False), repeat=2), key=lambda used: -sum(used)):
        if (tied and use_a != use_b) or (constant and intercept and (use_a or use_b)):
            continue
        try:
            fit = _fit(low, high, n, events, (use_a, use_b), tied=tied, intercept=intercept)
        except logistic.NotConvergedError:
            if use_a and use_b and _is_increasing(low, high, n, events, tied=tied, intercept=intercept):
                return []
            continue
        if fit[0] >= 0 and fit[1] >= 0:
            fits.append(fit)
            if use_a and use_b:
                break
    return fits


def _is_increasing(low: Floats, high: Floats, n: Weights, events: Weights, *, tied: bool, intercept: bool) -> bool:
    """Return whether the unconstrained fit has a, b >= 0, judged by targets shrunk so little that the fit exists."""
    rate = float(events.sum() / n.sum())
    shrunk = events * (1 - 1e-3) + n * rate * 1e-3
    try:
        a, b, _ = _fit(low, high, n, shrunk, (True, True), tied=tied, intercept=intercept)
    except logistic.NotConvergedError:
        return True
    return a >= 0 and b >= 0


def _is_separated(score: Floats, n: Weights, k: Weights, parameters: str) -> bool:
    """Return whether the likelihood increases without bound as the map gets steeper."""
    if parameters != "ab":
        return logistic.find_separation(n, k)[0]
    # All these maps keep 1/2, so they separate only outcomes on different sides of 1/2.
    return not (((score < 0.5) & (k > 0)) | ((score > 0.5) & (k < n))).any()


def _fit(
    low: Floats, high: Floats, n: Weights, events: Weights, used: tuple[bool, bool], *, tied: bool, intercept: bool
) -> Fit:
    columns = [low + high] if tied and any(used) else [x for x, use in zip((low, high), used, strict=True) if use]
    if not columns and not intercept:
        return 0.0, 0.0, 0.0
    found = logistic.fit(columns, n, events, [1.0] * len(columns) + [0.0] * intercept, intercept=intercept).tolist()
    c = found.pop() if intercept else 0.0
    a, b = (found * 2 if tied and any(used) else [found.pop(0) if use else 0.0 for use in used]) or (0.0, 0.0)
    return a, b, c


def _likelihood(fit: Fit, low: Floats, high: Floats, n: Weights, events: Weights) -> float:
    a, b, c = fit
    return logistic.log_likelihood(a * low + b * high + c, n, events)
