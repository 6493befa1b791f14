"""`Settings`: the options of an evaluation, as its result stores them; and margins."""

import math
import re
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

_TOP = re.compile(r"top\s+([0-9.]+(?:e-?[0-9]+)?)\s*%")


@dataclass(frozen=True)
class Focus:
    """The scores at which decisions are taken: those of at least a threshold, or the highest share of the rows.

    Attributes
    ----------
    lowest : float or None
        The threshold.
    share : float or None
        Share of the rows with the highest scores, in (0, 1); rows with equal scores stay together.

    See Also
    --------
    evaluate

    Examples
    --------
    >>> from calibrant.results import Focus
    >>> Focus.parse(0.5).text, Focus.parse("top 5%").text
    ('scores of at least 0.5', 'the top 5 % of rows')
    """

    lowest: float | None = None
    share: float | None = None

    @classmethod
    def parse(cls, given: Any) -> "Focus":
        """Return the focus that a score, or a text such as "top 5%", states.

        Parameters
        ----------
        given : float or str
            Lowest score, or "top", a number and "%".

        Returns
        -------
        Focus
        """
        top = _TOP.fullmatch(given.strip()) if isinstance(given, str) else None
        try:
            if top is not None and 0 < float(top[1]) < 100:
                return cls(share=float(top[1]) / 100)
            lowest = float(given) if isinstance(given, (Real, str)) and not isinstance(given, bool) else math.nan
        except ValueError:
            lowest = math.nan
        if 0 < lowest <= 1:
            return cls(lowest=lowest)
        raise InputError(
            Argument("focus") + f' must be a score in (0, 1] or a text such as "top 5%"; got {given!r}.',
            argument="focus",
            value=given,
        )

    @property
    def text(self) -> str:
        """The focus in words."""
        if self.lowest is not None:
            return f"scores of at least {self.lowest:g}"
        return f"the top {100 * (self.share or 0):g} % of rows"


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
    focus : Focus or None
        The scores at which decisions are taken, if they were given.

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
    focus: Focus | None = None

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
        rest = plain(self, skip=("metrics", "margin", "bins", "is_default_margin", "focus"))
        metrics = {name: metric.spec for name, metric in self.metrics.items()}
        focus = None if self.focus is None else self.focus.text
        return {**rest, "margin": margin, "metrics": metrics, "bins": part_to_spec(self.bins), "focus": focus}
