"""`Settings`: the options of an evaluation, checked once and stored in its result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.json_values import plain
from calibrant._support.option_checks import check_count, check_share
from calibrant._support.random_streams import RandomState
from calibrant.inference.decision import AbsoluteMargin, Margin, check_margin
from calibrant.inference.resampling import check_resamples
from calibrant.metrics.bins import PAVABC
from calibrant.metrics.calibration_errors import ACE, ECC, ECE, TCE
from calibrant.metrics.calibration_in_the_large import Bias
from calibrant.metrics.costs import Cost
from calibrant.metrics.metric import Metric
from calibrant.metrics.proper_scores import Brier
from calibrant.metrics.registry import MetricLike, as_metrics
from calibrant.metrics.specification import part_to_spec

__all__ = ["LOG_ODDS_MARGIN", "Settings", "check_settings", "default_metrics"]

LOG_ODDS_MARGIN = 0.1


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
        Empty for point predictions and distributions, whose metrics are fixed.
    bins : object or None
        Bins of point predictions, if they were given.
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
        """Return all fields as plain data for JSON."""
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
    n_resamples: int,
    random_state: RandomState,
) -> Settings:
    """Check the options of an evaluation of probabilities and return them."""
    checked = check_margin(LOG_ODDS_MARGIN if margin is None else margin, alpha)
    if isinstance(checked, AbsoluteMargin):  # its test uses resampling
        check_resamples(n_resamples, alpha)
    check_count("n_resamples", n_resamples)
    check_share("confidence_level", confidence_level)
    panel: dict[str, Metric] = {**(default_metrics() if metrics is None else as_metrics(metrics))}
    panel.update({f"ECC ({name})": ECC(cost) for name, cost in _named_costs(costs).items()})
    seed = integer_seed(random_state)
    return Settings(checked, float(alpha), float(confidence_level), n_resamples, seed, panel)


def integer_seed(random_state: RandomState) -> int | None:
    """Return the seed if it is an integer, which settings can store."""
    return int(random_state) if isinstance(random_state, (int, np.integer)) else None


def _named_costs(costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None) -> dict[str, Cost]:
    if costs is None:
        return {}
    if isinstance(costs, Mapping):
        return dict(costs)
    several = list(costs) if isinstance(costs, Sequence) else [costs]
    named = {_cost_name(cost): cost for cost in several}
    if len(named) < len(several):
        raise InputError(
            f"costs must have distinct names; got {', '.join(map(_cost_name, several))}.",
            hint='Pass a mapping: {"name": cost, ...}.',
            argument="costs",
            value=costs,
        )
    return named


def _cost_name(cost: Any) -> str:
    name = str(getattr(cost, "__name__", cost))
    return name.removesuffix(")").replace("LinearCost(", "").replace("(", " ")
