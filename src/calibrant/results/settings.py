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


@dataclass(frozen=True)
class RelativeMargin:
    """A margin for the bias of non-negative outcomes, such as counts, amounts or durations, as a share of their mean.

    Parameters
    ----------
    value : float
        Largest bias by bin, divided by the mean outcome, that counts as negligible, in (0, 1).

    See Also
    --------
    evaluate, Point, Poisson, AbsoluteMargin

    Examples
    --------
    >>> RelativeMargin(0.05)
    RelativeMargin(value=0.05)
    """

    value: float

    def __post_init__(self) -> None:
        if not (isinstance(self.value, Real) and not isinstance(self.value, bool) and 0 < self.value < 1):
            raise InputError(
                Argument("relative_margin", python="RelativeMargin")
                + f" must lie between 0 and 1; got {self.value!r}.",
                hint="0.05 is 5 % of the mean outcome.",
                argument="margin",
                value=self.value,
            )


Margin: TypeAlias = float | AbsoluteMargin | RelativeMargin


@dataclass(frozen=True)
class Settings:
    """Options of an evaluation.

    Attributes
    ----------
    margin : float, AbsoluteMargin or RelativeMargin
    alpha, confidence_level : float
    n_resamples : int
    random_state : int or None
        None if a generator or no seed was given.
    metrics : mapping of name to metric object
        Those of the evaluation of probabilities, and those that were given for points and distributions. Empty for the
        fixed metrics of other kinds.
    bins : object or None
        Bins of point predictions, if they were given.
    is_default_margin : bool
        Whether no margin was given, so that the outcomes may decide about its unit.

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
    is_default_margin: bool = field(default=False, repr=False)

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
        margin: Any = self.margin
        if isinstance(margin, AbsoluteMargin | RelativeMargin):
            margin = {"absolute" if self.is_absolute else "relative": margin.value}
        rest = plain(self, skip=("metrics", "margin", "bins", "is_default_margin"))
        metrics = {name: metric.spec for name, metric in self.metrics.items()}
        return {**rest, "margin": margin, "metrics": metrics, "bins": part_to_spec(self.bins)}
