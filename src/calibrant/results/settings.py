"""`Settings`: the options of an evaluation, as its result stores them; and margins."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeAlias

from calibrant._support.errors import Argument, InputError
from calibrant._support.plain_data import plain
from calibrant.metrics.gce import part_to_spec
from calibrant.metrics.metric import Metric


@dataclass(frozen=True)
class AbsoluteMargin:
    """A margin for ACE, in probability, instead of the margin for the log-odds error.

    Parameters
    ----------
    value : float
        Largest ACE that counts as negligible, in (0, 1).

    See Also
    --------
    evaluate, equivalence, sample_size

    Examples
    --------
    >>> AbsoluteMargin(0.01)
    AbsoluteMargin(value=0.01)
    """

    value: float

    def __post_init__(self) -> None:
        if not (isinstance(self.value, Real) and not isinstance(self.value, bool) and 0 < self.value < 1):
            raise InputError(
                Argument("absolute_margin", python="AbsoluteMargin")
                + f" must lie between 0 and 1; got {self.value!r}.",
                hint="0.01 is one percentage point.",
                argument="margin",
                value=self.value,
            )


Margin: TypeAlias = float | AbsoluteMargin


@dataclass(frozen=True)
class Settings:
    """Options of an evaluation.

    Attributes
    ----------
    margin : float or AbsoluteMargin
    alpha, confidence_level : float
    n_resamples : int
    random_state : int or None
        None if a generator or no seed was given.
    metrics : mapping of name to metric object
        Those of the evaluation of probabilities, and those that were given for points and distributions. Empty for the
        fixed metrics of other kinds.
    bins : object or None
        Bins of point predictions, if they were given.

    See Also
    --------
    Evaluation, evaluate

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> settings = cb.evaluate(table, alpha=0.01).settings
    >>> settings.alpha, settings.margin, list(settings.metrics)[:2]
    (0.01, 0.1, ['bias', 'ECE'])
    """

    margin: Margin
    alpha: float
    confidence_level: float
    n_resamples: int
    random_state: int | None
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    bins: Any = None

    @property
    def is_absolute(self) -> bool:
        """Whether the margin is in absolute probability (ACE)."""
        return isinstance(self.margin, AbsoluteMargin)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts; metrics and bins by their specification.
        """
        margin = {"absolute": self.margin.value} if isinstance(self.margin, AbsoluteMargin) else self.margin
        rest = plain(self, skip=("metrics", "margin", "bins"))
        metrics = {name: metric.spec for name, metric in self.metrics.items()}
        return {**rest, "margin": margin, "metrics": metrics, "bins": part_to_spec(self.bins)}
