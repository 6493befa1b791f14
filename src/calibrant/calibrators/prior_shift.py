"""Correction for a change of the event rate (prior shift), which is known or estimated from scores."""

import math
import warnings
from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

from calibrant._support.arrays import Column
from calibrant._support.errors import CalibrantWarning, InputError
from calibrant._support.formatting import p_text
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.inference.event_rates import DOUBTFUL, EventRate, estimate_event_rate
from calibrant.tables.score_table import ScoreTable

__all__ = ["PriorShift"]


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
    event_rate_: EventRate

    def __init__(
        self,
        *,
        prevalence: float | None = None,
        trained_prevalence: float | None = None,
        sampling_rate: float | None = None,
    ) -> None:
        self.prevalence = prevalence
        self.trained_prevalence = trained_prevalence
        self.sampling_rate = sampling_rate

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
                    argument="trained_prevalence",
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
