"""`Settings`: the options of an evaluation, checked once and stored in its result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant._support.errors import Argument, InputError, Text
from calibrant._support.json_values import plain
from calibrant._support.option_checks import check_resample_count, check_share
from calibrant._support.random_streams import RandomState
from calibrant.inference.decision import AbsoluteMargin, Margin
from calibrant.inference.resampling import check_resamples
from calibrant.metrics.bins import PAVABC
from calibrant.metrics.calibration_errors import ACE, ECC, ECE, TCE
from calibrant.metrics.calibration_in_the_large import Bias
from calibrant.metrics.costs import Cost, cost_name
from calibrant.metrics.metric import Metric
from calibrant.metrics.proper_scores import Brier
from calibrant.metrics.registry import MetricLike, as_metrics
from calibrant.metrics.specification import part_to_spec

__all__ = [
    "DISTRIBUTION_MARGIN",
    "FEWER_RESAMPLES",
    "LOG_ODDS_MARGIN",
    "POINT_MARGIN",
    "PROPORTION_MARGIN",
    "Settings",
    "check_settings",
    "default_metrics",
]

LOG_ODDS_MARGIN, PROPORTION_MARGIN = 0.1, 0.01
POINT_MARGIN, DISTRIBUTION_MARGIN = 0.05, 0.01
# The default number of replicates where each is slow.
FEWER_RESAMPLES = 99


@dataclass(frozen=True)
class _Defaults:
    """The margin of a kind of forecast (default, unit, largest) and the number of replicates (default, smallest)."""

    margin: float
    unit: str
    largest_margin: float
    n_resamples: int
    least_resamples: int = 1
    takes_absolute: bool = False


_DEFAULTS: Mapping[str, _Defaults] = MappingProxyType(
    {
        "binary": _Defaults(LOG_ODDS_MARGIN, "in log-odds", 2.0, 499, takes_absolute=True),
        "multiclass": _Defaults(LOG_ODDS_MARGIN, "in log-odds", 2.0, 199),
        "labels": _Defaults(PROPORTION_MARGIN, "in units of a class proportion", 0.5, 0, 0),  # nothing is resampled
        "point": _Defaults(POINT_MARGIN, "in standard deviations of the outcome", 2.0, 199, 0),
        "distribution": _Defaults(DISTRIBUTION_MARGIN, "in units of coverage", 0.5, 199, 0),
    }
)


def default_metrics(*, n_bins: int = 10, alpha: float = 0.05) -> dict[str, Metric]:
    """Return the metrics of an evaluation, with the number of bins of ECE and ACE and the level of TCE."""
    return {
        "bias": Bias(),
        "ECE": ECE(n_bins=n_bins),
        "ACE": ACE(n_bins=n_bins),
        "TCE": TCE(alpha=alpha),
        "TCE (consistent)": TCE(alpha=alpha, bins=PAVABC.consistent()),
        "Brier": Brier(),
    }


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


def check_settings(
    margin: Margin | None,
    alpha: float,
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None,
    confidence_level: float,
    n_resamples: int | None,
    random_state: RandomState,
    *,
    kind: str = "binary",
    bins: Any = None,
) -> Settings:
    """Check the options of an evaluation of one kind of forecast and return them; None stands for the default.

    The default metrics of class probabilities depend on the table, and so are filled in by its evaluation.
    """
    defaults = _DEFAULTS[kind]
    checked = _check_margin(defaults.margin if margin is None else margin, kind)
    if check_share("alpha", alpha) >= 0.5:
        raise InputError(Argument("alpha") + f" must lie below 0.5; got {alpha!r}.", value=alpha)
    level = float(check_share("confidence_level", confidence_level))
    count = defaults.n_resamples if n_resamples is None else n_resamples
    count = check_resample_count(count, least=defaults.least_resamples)
    if isinstance(checked, AbsoluteMargin):  # its test uses resampling
        check_resamples(count, alpha)
    used = count if defaults.n_resamples else 0
    panel = _panel(kind, metrics, costs)
    return Settings(checked, float(alpha), level, used, integer_seed(random_state), panel, bins)


def _check_margin(margin: Margin, kind: str) -> Margin:
    """Return the margin if it is a positive number, or an absolute margin where the kind has one."""
    defaults = _DEFAULTS[kind]
    if isinstance(margin, AbsoluteMargin) and defaults.takes_absolute:
        return margin
    number: Any = margin
    if isinstance(number, Real) and not isinstance(number, bool) and 0 < float(number) <= defaults.largest_margin:
        return float(number)
    hint: str | Text = f"The default is {defaults.margin:g}."
    if defaults.takes_absolute:
        hint = (
            "0.1 means odds that are accurate to about 10 %. For a margin of ACE use "
            + Argument("absolute_margin", python="cb.AbsoluteMargin")
            + "."
        )
    condition = f" must be a positive number {defaults.unit}, at most {defaults.largest_margin:g}; got {margin!r}."
    raise InputError(Argument("margin") + condition, hint=hint, value=margin)


def _panel(
    kind: str,
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None,
) -> dict[str, Metric]:
    """Return the metrics of an evaluation by name; empty where they are fixed or depend on the table."""
    if kind == "multiclass":
        from calibrant.metrics.classwise import as_multiclass_metrics  # loaded for this kind alone

        return {} if metrics is None else as_multiclass_metrics(metrics)
    if kind in ("point", "distribution") and metrics is not None:
        return as_metrics(metrics, kind)
    if kind != "binary":
        return {}
    panel: dict[str, Metric] = {**(default_metrics() if metrics is None else as_metrics(metrics, "binary"))}
    return panel | {f"ECC ({name})": ECC(cost) for name, cost in _named_costs(costs).items()}


def integer_seed(random_state: RandomState) -> int | None:
    """Return the seed if it is an integer, which settings can store."""
    return int(random_state) if isinstance(random_state, (int, np.integer)) else None


def _named_costs(costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None) -> dict[str, Cost]:
    if costs is None:
        return {}
    if isinstance(costs, Mapping):
        return dict(costs)
    several = list(costs) if isinstance(costs, Sequence) else [costs]
    named = {cost_name(cost): cost for cost in several}
    if len(named) < len(several):
        raise InputError(
            Argument("costs") + f" must have distinct names; got {', '.join(map(cost_name, several))}.",
            hint='Pass a mapping: {"name": cost, ...}.',
            value=costs,
        )
    return named
