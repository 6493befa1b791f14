"""The default metrics, margin and number of replicates of predicted probabilities of one event."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from calibrant._support.errors import Argument, InputError
from calibrant.kinds.base import ROW_OPTIONS, Defaults
from calibrant.metrics.bins import PANEL_BINS
from calibrant.metrics.calibration_errors import ACE, ECC, ECE, TCE, Bias
from calibrant.metrics.costs import Cost, cost_name
from calibrant.metrics.metric import Metric
from calibrant.metrics.proper_scores import Brier

if TYPE_CHECKING:
    from calibrant.metrics.registry import MetricLike

DEFAULTS = Defaults(
    margin=0.1,
    unit="in log-odds",
    largest_margin=2.0,
    n_resamples=499,
    takes_absolute_margin=True,
    options=("costs", "focus", "metrics", "n_bins", "pos_label", *ROW_OPTIONS),
)


def panel(
    metrics: "Mapping[str, MetricLike] | Sequence[MetricLike] | None",
    *,
    alpha: float = 0.05,
    n_bins: int | None = None,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None = None,
) -> dict[str, Metric]:
    """Return the metrics of an evaluation by name, with the expected calibration cost of each cost.

    `alpha` is the level of TCE among the default metrics, and `n_bins` the number of bins of their ECE and ACE.
    """
    if metrics is not None and n_bins is not None:
        raise InputError(
            Argument("n_bins") + " must not be given with " + Argument("metrics") + "; got both.",
            hint="Give the number of bins to the metrics: calibrant.ECE(n_bins=15).",
        )
    chosen = _default_metrics(alpha, 10 if n_bins is None else n_bins)
    if metrics is not None:
        from calibrant.metrics.registry import as_metrics  # the default metrics need no registry

        chosen = {**as_metrics(metrics, "binary")}
    return chosen | {f"ECC ({name})": ECC(cost) for name, cost in _named(costs).items()}


def _default_metrics(alpha: float, n_bins: int) -> dict[str, Metric]:
    return {
        "bias": Bias(),
        "ECE": ECE(n_bins=n_bins),
        "ACE": ACE(n_bins=n_bins),
        "TCE": TCE(alpha=alpha, bins=PANEL_BINS),
        "Brier": Brier(),
    }


def _named(costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None) -> dict[str, Cost]:
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
