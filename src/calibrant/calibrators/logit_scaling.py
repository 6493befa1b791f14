"""Calibrators that change the log-odds of scores by a few parameters: Platt, temperature, beta, prior shift."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from numbers import Real
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from calibrant._support import logistic
from calibrant._support.arrays import Column, Floats, Weights
from calibrant._support.errors import CalibrantWarning, InputError, check_option
from calibrant._support.formatting import p_text
from calibrant._support.logistic import EPS, check_eps, logit
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.inference.event_rates import DOUBTFUL, EventRate, estimate_event_rate
from calibrant.tables.score_table import ScoreTable, need_both_classes

SEPARATED = "A threshold separates the two classes, so no finite slope is optimal; Platt's smoothed targets were used."


class LogisticMap(ScoreMap):
    """The base of calibrators whose map is a line of the logit, or of the score."""

    map_kinds: ClassVar[tuple[str, ...]] = ("logistic",)
    saved_attributes: ClassVar[tuple[str, ...]] = ("n_clipped_",)

    @property
    def slope_(self) -> float:
        """Slope A of the map."""
        return float(self.map_.slope)

    @property
    def intercept_(self) -> float:
        """Intercept B of the map."""
        return float(self.map_.intercept)


@dataclass(eq=False, repr=False, kw_only=True)
class Platt(LogisticMap):
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

    is_increasing: ClassVar[bool] = False

    on: Literal["logit", "score"] = "logit"
    smoothing: bool = True
    eps: float = EPS

    @property
    def accepts_any_score(self) -> bool:
        return bool(self.on == "score")

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.on == self.on and map_.eps == self.eps)

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        maps.Logistic(1.0, 0.0, self.on, self.eps)  # raises for unknown settings
        self.n_clipped_ = 0.0
        x, n, events = table.score, table.n, smoothed_events(table) if self.smoothing else table.k
        if self.on == "logit":
            self._count_clipped(table, self.eps)
            inside, n, events = logistic.clip_and_merge(x, n, events, self.eps)
            x = logit(inside, self.eps)
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


@dataclass(eq=False, repr=False, kw_only=True)
class Temperature(LogisticMap):
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

    eps: float = EPS

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.on == "logit" and map_.intercept == 0 and map_.eps == self.eps)

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        check_eps(self.eps)
        need_both_classes(table, "Temperature")
        self._count_clipped(table, self.eps)
        x = logit(table.score, self.eps)
        events: Weights = table.k
        # If all outcomes agree with the side of 1/2 of their score, the likelihood increases with the slope.
        if _side_decides(x, table.n, table.k) and (x != 0).any():
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


@dataclass(eq=False, repr=False, kw_only=True)
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
    suits_each_class: ClassVar[bool] = True
    saved_attributes: ClassVar[tuple[str, ...]] = ("n_clipped_",)

    parameters: Literal["abm", "am", "ab"] = "abm"
    eps: float = EPS

    def accepts_map(self, map_: Any) -> bool:
        excess = {"am": map_.b - map_.a, "ab": map_.c - (map_.a - map_.b) * math.log(2)}.get(self.parameters, 0.0)
        return bool(map_.eps == self.eps and abs(excess) <= 1e-9 * (1 + abs(map_.c)))

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        check_eps(self.eps)
        check_option("parameters", self.parameters, ("abm", "am", "ab"))
        need_both_classes(table, "Beta")
        self._count_clipped(table, self.eps)
        inside, n, k = logistic.clip_and_merge(table.score, table.n, table.k, self.eps)
        shift = math.log(2) if self.parameters == "ab" else 0.0  # both logarithms are then 0 at 1/2
        columns = np.log(inside) + shift, -np.log1p(-inside) - shift
        fits = []
        separated = logistic.find_separation(n, k)[0]
        if self.parameters == "ab":  # these maps keep 1/2, so they separate only outcomes on different sides of 1/2
            separated = _side_decides(inside - 0.5, n, k)
        if not separated:
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


Fit: TypeAlias = tuple[float, float, float]  # a, b, c


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


def _side_decides(x: Floats, n: Weights, k: Weights) -> bool:
    """Return whether all rows below 0 are without the event, and all rows above 0 with it."""
    return not (((x < 0) & (k > 0)) | ((x > 0) & (k < n))).any()


def _fit(
    low: Floats, high: Floats, n: Weights, events: Weights, used: tuple[bool, bool], *, tied: bool, intercept: bool
) -> Fit:
    columns = [low + high] if tied and any(used) else [x for x, use in zip((low, high), used, strict=True) if use]
    if not columns and not intercept:
        return 0.0, 0.0, 0.0
    start = [1.0] * len(columns) + [0.0] * intercept
    values = logistic.fit(columns, n, events, start, intercept=intercept).tolist()
    c = values.pop() if intercept else 0.0
    a, b = values * 2 if tied and any(used) else [values.pop(0) if use else 0.0 for use in used]
    return a, b, c


def _likelihood(fit: Fit, low: Floats, high: Floats, n: Weights, events: Weights) -> float:
    a, b, c = fit
    return logistic.log_likelihood(a * low + b * high + c, n, events)


@dataclass(eq=False, repr=False, kw_only=True)
class PriorShift(ScoreMap):
    r"""Correction for a prevalence that differs from that of the training rows: odds times a known ratio.

    .. math::

       \frac{q}{1 - q} = \frac{p}{1 - p} \cdot \frac{\pi' / (1 - \pi')}{\pi / (1 - \pi)}
       \qquad\text{or}\qquad
       \frac{q}{1 - q} = \frac{p}{1 - p} \cdot \text{sampling rate}

    Correct if only the class proportions differ and the features of each class have the same distribution. Nothing is
    estimated except the prevalence of the fitted rows, if it is not given. Scores of exactly 0 and 1 do not change.

    Parameters
    ----------
    prevalence : float, optional
        Event rate where the model will be used, π'.
    trained_prevalence : float, optional
        Event rate of the training rows of the model, π; by default that of the rows given to `fit`.
    sampling_rate : float, optional
        Instead of both: the share of non-events that were kept in the training rows, if all events were kept.

    Attributes
    ----------
    odds_ratio_ : float
    event_rate_ : EventRate
        The estimate, after `from_scores`.

    See Also
    --------
    estimate_event_rate, Platt

    References
    ----------
    .. [1] Saerens, Latinne & Decaestecker (2002), "Adjusting the outputs of a classifier to new a priori
       probabilities".

    Examples
    --------
    >>> PriorShift(sampling_rate=0.1).fit([0.5, 0.9], [0, 1])([0.5, 0.9]).round(3)
    array([0.091, 0.474])
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("odds",)
    needs_settings: ClassVar[bool] = True
    event_rate_: EventRate = field(init=False)

    prevalence: float | None = None
    trained_prevalence: float | None = None
    sampling_rate: float | None = None

    @classmethod
    def from_scores(
        cls, y_true: Column | ScoreTable, y_prob: Column | None = None, *, new_scores: Column, **options: Any
    ) -> "PriorShift":
        """Return the fitted correction for the event rate that is estimated from the scores of new rows.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and scores of reference rows; or one `ScoreTable`.
        new_scores : column
            Scores of the rows to correct, whose outcomes are not known.
        **options
            Of `calibrant.inference.estimate_event_rate`. Its result is kept as ``event_rate_``. A warning is issued if
            the check of its assumption has a p-value below 0.01 or is not possible, and if the scores of the reference
            rows are miscalibrated: a change of the event rate does not correct that.

        Returns
        -------
        PriorShift
            It is fitted.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> p = rng.beta(2, 6, 4000)
        >>> y = rng.random(4000) < p
        >>> kept = y | (rng.random(4000) < 0.25)  # three quarters of the non-events are missing in the new rows
        >>> shift = PriorShift.from_scores(y, p, new_scores=p[kept])
        >>> round(shift.event_rate_.value, 2), round(float(y[kept].mean()), 2)
        (0.57, 0.56)
        """
        rate = estimate_event_rate(y_true, y_prob, new_scores=new_scores, **options)
        if doubts := list(_doubts(rate)):
            warnings.warn(f"PriorShift: {' '.join(doubts)}", CalibrantWarning, stacklevel=2)
        if not 0 < rate.value < 1:
            raise InputError(
                f"The event rate estimated from new_scores must lie strictly between 0 and 1; got {rate.value:g}, with "
                f"the interval {rate.low:.3g} to {rate.high:.3g}.",
                hint="Pass more new rows, or PriorShift(prevalence=) with a rate inside the interval.",
                argument="new_scores",
            )
        shift = cls(prevalence=rate.value, trained_prevalence=rate.reference_rate)
        shift.fit([0.5, 0.5], [0, 1])  # the map depends on the two rates only
        shift.event_rate_ = rate
        return shift

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        if (self.prevalence is None) == (self.sampling_rate is None):
            given = "neither" if self.prevalence is None else "both"
            raise InputError(
                f"Exactly one of prevalence and sampling_rate must be given; got {given}.", argument="prevalence"
            )
        if self.prevalence is None:
            if self.trained_prevalence is not None:
                raise InputError(
                    f"trained_prevalence must be None with sampling_rate; got {self.trained_prevalence!r}.",
                    hint="Pass prevalence instead of sampling_rate.",
                )
            return maps.Odds(_share("sampling_rate", self.sampling_rate, most=1.0))
        trained = table.prevalence if self.trained_prevalence is None else self.trained_prevalence
        if not 0 < trained < 1 and self.trained_prevalence is None:
            raise InputError(
                f"y must have both classes without trained_prevalence; got one class, an event rate of {trained:g}.",
                hint="Pass trained_prevalence.",
            )
        return maps.Odds(_odds("prevalence", self.prevalence) / _odds("trained_prevalence", trained))

    @property
    def odds_ratio_(self) -> float:
        """Factor of the odds."""
        return float(self.map_.ratio)


def _doubts(rate: EventRate) -> Iterator[str]:
    """Yield why a correction by an estimated event rate may be wrong."""
    if math.isnan(rate.check.pvalue):
        yield "The assumption of the estimated event rate cannot be checked with so few rows."
    elif rate.check.pvalue < DOUBTFUL:
        changed = f"The scores of events or of other rows have changed ({p_text(rate.check.pvalue)})"
        yield f"{changed}, so the estimated event rate is not valid."
    if rate.miscalibrated_reference:
        note = next(note.text for note in rate.notes if note.code == "miscalibrated_reference")
        yield f"{note} Calibrate them first, for example with Platt; a change of the event rate does not."


def _odds(name: str, share: float) -> float:
    value = _share(name, share)
    return value / (1 - value)


def _share(name: str, value: float | None, most: float = 1 - 2.0**-53) -> float:
    if not isinstance(value, Real) or not 0 < value <= most:
        raise InputError(f"{name} must lie between 0 and 1; got {value!r}.", argument=name, value=value)
    return float(value)
