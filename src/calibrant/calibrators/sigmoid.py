"""Platt scaling and temperature scaling."""

import math
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant._support import logistic
from calibrant._support.arrays import Floats, Weights
from calibrant._support.errors import InputError
from calibrant._support.logistic import EPS, check_eps, logit
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.metrics.log_odds import count_clipped
from calibrant.tables.score_table import ScoreTable
from calibrant.tables.table_functions import need_both_classes

__all__ = ["Platt", "Temperature"]

SEPARATED = "A threshold separates the two classes, so no finite slope is optimal; Platt's smoothed targets were used."


class Platt(ScoreMap):
    r"""Platt scaling: a logistic regression of outcomes on scores.

    .. math::

       q = \frac{1}{1 + e^{-(A x + B)}}, \qquad x = \operatorname{logit} p = \ln \frac{p}{1 - p}

    Parameters
    ----------
    on : {"logit", "score"}
        x is the logit of the score, which must be a probability, or the score itself (Platt's paper), which may be any
        number. The identity (A = 1, B = 0) is possible on logits only.
    smoothing : bool, default=True
        Platt's targets: (N₊ + 1) / (N₊ + 2) for events and 1 / (N₋ + 2) for others, instead of 1 and 0.
    eps : float, default=2**-24
        Scores are clipped to [eps, 1 - eps] before the logit, which is infinite at 0 and 1.

    Attributes
    ----------
    slope_, intercept_ : float
        A and B. Platt writes 1 / (1 + exp(A x + B)), with the opposite signs.
    n_clipped_ : float
        Number (or weight) of rows whose score was clipped.

    See Also
    --------
    Temperature, Beta, Isotonic

    Notes
    -----
    Fitted by maximum likelihood, to rounding error. A negative slope (scores in reverse order) is kept, with a warning.
    Without smoothing both classes must occur, and no threshold may separate them.

    References
    ----------
    .. [1] Platt (1999), "Probabilistic outputs for support vector machines and comparisons to regularized likelihood
       methods".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> y = rng.random(10_000) < p**2 / (p**2 + (1 - p) ** 2)  # logits twice as large
    >>> round(Platt().fit(p, y).slope_, 1)
    2.0
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("logistic",)
    saved_attributes: ClassVar[tuple[str, ...]] = ("n_clipped_",)
    is_increasing: ClassVar[bool] = False

    def __init__(self, *, on: Literal["logit", "score"] = "logit", smoothing: bool = True, eps: float = EPS) -> None:
        self.on = on
        self.smoothing = smoothing
        self.eps = eps

    @property
    def accepts_any_score(self) -> bool:
        return bool(self.on == "score")

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.on == self.on and map_.eps == self.eps)

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        maps.Logistic(1.0, 0.0, self.on, self.eps)  # raises for unknown settings
        self.n_clipped_, notes = (0.0, ()) if self.on == "score" else count_clipped(table, self.eps)
        self.notes_ += notes
        score, n, events = table.score, table.n, smoothed_events(table) if self.smoothing else table.k
        if self.on == "logit":
            score, n, events = logistic.clip_and_merge(score, n, events, self.eps)
        x = score if self.on == "score" else logit(score, self.eps)
        if not self.smoothing:
            need_both_classes(table, "Platt without smoothing")
            if any(logistic.find_separation(n, events)) and x[0] < x[-1]:
                raise InputError(
                    "smoothing must be True if a threshold separates the two classes; got False.",
                    hint="Pass smoothing=True.",
                )
        if x[0] == x[-1] or not table.has_both_classes:  # with one class all targets are equal
            what = "scores" if x[0] == x[-1] else "outcomes"
            self._note("level", f"All {what} are equal: all scores are mapped to the same probability.", warn=True)
            rate = float(events.sum() / n.sum())
            slope, intercept = 0.0, math.log(rate) - math.log1p(-rate)
        else:
            begin = (1.0, 0.0) if self.on == "logit" else (0.0, 0.0)
            slope, intercept = logistic.fit([x], n, events, begin).tolist()
        if slope < 0:
            self._note("reversed", "The slope is negative: higher scores are mapped to lower probabilities.", warn=True)
        return maps.Logistic(slope, intercept, self.on, self.eps)

    @property
    def slope_(self) -> float:
        """Slope of the map."""
        return float(self.map_.slope)

    @property
    def intercept_(self) -> float:
        """Intercept of the map."""
        return float(self.map_.intercept)


class Temperature(ScoreMap):
    r"""Temperature scaling: logits divided by a temperature T > 0, fitted by maximum likelihood.

    .. math::

       q = \frac{1}{1 + e^{-\operatorname{logit}(p) / T}}

    T > 1 moves probabilities towards 1/2, T < 1 away from it; 1/2 and the ranking of scores stay the same.

    Parameters
    ----------
    eps : float, default=2**-24
        Scores are clipped to [eps, 1 - eps], as for `Platt`.

    Attributes
    ----------
    temperature_ : float
        T. Infinite, with a warning, if no T > 0 has a greater likelihood than the constant 1/2.
    n_clipped_ : float
        Number (or weight) of rows whose score was clipped.

    See Also
    --------
    Platt, SoftmaxTemperature

    Notes
    -----
    If the threshold 1/2 separates the classes, the likelihood increases as T goes to 0; Platt's smoothed targets are
    then used, with a warning. For several classes use `SoftmaxTemperature`.

    References
    ----------
    .. [1] Guo, Pleiss, Sun & Weinberger (2017), "On calibration of modern neural networks".

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> y = rng.random(10_000) < p**2 / (p**2 + (1 - p) ** 2)
    >>> round(Temperature().fit(p, y).temperature_, 1)
    0.5
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("logistic",)
    saved_attributes: ClassVar[tuple[str, ...]] = ("n_clipped_",)

    def __init__(self, *, eps: float = EPS) -> None:
        self.eps = eps

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.on == "logit" and map_.intercept == 0 and map_.eps == self.eps)

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        check_eps(self.eps)
        need_both_classes(table, "Temperature")
        self.n_clipped_, notes = count_clipped(table, self.eps)
        self.notes_ += notes
        x = logit(table.score, self.eps)
        events: Weights = table.k
        # If all outcomes agree with the side of 1/2 of their score, the likelihood increases with the slope.
        if not (((x < 0) & (table.k > 0)) | ((x > 0) & (table.k < table.n))).any() and (x != 0).any():
            self._note("separated", SEPARATED, warn=True)
            events = smoothed_events(table)
        slope = 0.0
        # The log-likelihood is concave: its maximum has a positive slope iff its derivative at slope 0 is positive.
        if float(np.sum((events - table.n / 2) * x)) > 0:
            (slope,) = logistic.fit([x], table.n, events, (1.0,), intercept=False).tolist()
        else:
            self._note(
                "level",
                "No finite temperature has a greater likelihood than the constant 1/2: T is infinite.",
                warn=True,
            )
        return maps.Logistic(slope, 0.0, "logit", self.eps)

    @property
    def temperature_(self) -> float:
        """Fitted temperature."""
        return float(1 / self.map_.slope) if self.map_.slope else math.inf


def smoothed_events(table: ScoreTable) -> Floats:
    """Return the number of events at each score with Platt's smoothed targets; weights are counts of rows."""
    positives, negatives = table.positives, table.size - table.positives
    low, high = 1 / (negatives + 2), (positives + 1) / (positives + 2)
    events: Floats = table.k * (high - low)
    events += table.n * low
    return events
