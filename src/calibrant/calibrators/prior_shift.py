"""A known change of prevalence."""

from numbers import Real
from typing import ClassVar

from calibrant._support.errors import InputError
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.tables.score_table import ScoreTable

__all__ = ["PriorShift"]


class PriorShift(ScoreMap):
    r"""Probabilities for another prevalence than the model was trained on: odds multiplied by a known ratio.

    .. math::

       \frac{q}{1 - q} = \frac{p}{1 - p} \cdot \frac{\pi' / (1 - \pi')}{\pi / (1 - \pi)}
       \qquad\text{or}\qquad
       \frac{q}{1 - q} = \frac{p}{1 - p} \cdot \text{sampling rate}

    Right when the classes came in other proportions but look the same within each class. Nothing is estimated but,
    if it is not given, the prevalence of the rows fitted on. Scores of exactly 0 and 1 stay.

    Parameters
    ----------
    prevalence : float, optional
        Share of events where the model will be used, π'.
    trained_prevalence : float, optional
        Share of events that the model learned from, π; by default that of the rows it is fitted on.
    sampling_rate : float, optional
        Instead of both: the share of rows without the event that were kept when the training rows were drawn, all
        events having been kept.

    Attributes
    ----------
    odds_ratio_ : float

    References
    ----------
    .. [1] Saerens, Latinne & Decaestecker (2002), "Adjusting the outputs of a classifier to new a priori
       probabilities".

    Examples
    --------
    >>> PriorShift(sampling_rate=0.1).fit([0.5, 0.9], [0, 1])([0.5, 0.9]).round(3)
    array([0.091, 0.474])
    """

    learns: ClassVar[tuple[str, ...]] = ("odds",)

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

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        if (self.prevalence is None) == (self.sampling_rate is None):
            raise InputError("PriorShift needs either prevalence or sampling_rate.", argument="prevalence")
        if self.prevalence is None:
            if self.trained_prevalence is not None:
                raise InputError("trained_prevalence goes with prevalence, not with sampling_rate.")
            return maps.Odds(_share("sampling_rate", self.sampling_rate, most=1.0))
        trained = table.prevalence if self.trained_prevalence is None else self.trained_prevalence
        if not 0 < trained < 1 and self.trained_prevalence is None:
            raise InputError(
                f"The rows have the prevalence {trained:g}, one class only; it must lie between 0 and 1.",
                hint="Pass trained_prevalence.",
            )
        return maps.Odds(_odds("prevalence", self.prevalence) / _odds("trained_prevalence", trained))

    @property
    def odds_ratio_(self) -> float:
        return float(self.map_.ratio)


def _odds(name: str, share: float) -> float:
    value = _share(name, share)
    return value / (1 - value)


def _share(name: str, value: float | None, most: float = 1 - 2.0**-53) -> float:
    if not isinstance(value, Real) or not 0 < value <= most:
        raise InputError(f"{name} must lie between 0 and 1; it is {value!r}.", argument=name, value=value)
    return float(value)
