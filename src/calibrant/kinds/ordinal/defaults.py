"""The default metrics, margin and number of replicates of probabilities of ordered classes."""

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.kinds.base import ROW_OPTIONS, Defaults
from calibrant.metrics.calibration_errors import ACE, ECE
from calibrant.metrics.metric import Metric
from calibrant.metrics.multiclass import MulticlassLogLoss, as_multiclass_metrics
from calibrant.metrics.ordinal import RPS, CumulativeMetric
from calibrant.metrics.registry import MetricLike

DEFAULTS = Defaults(
    margin=0.1, unit="in log-odds", largest_margin=2.0, n_resamples=199, options=("metrics", *ROW_OPTIONS)
)


def panel(
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None, costs: Any, **options: Any
) -> dict[str, Metric]:
    """Return the metrics of an evaluation by name; binary ones are means over the cumulative probabilities."""
    if metrics is not None:
        return as_multiclass_metrics(metrics, CumulativeMetric)
    default: list[Any] = [CumulativeMetric(ECE()), CumulativeMetric(ACE()), RPS()]
    return {metric.name: metric for metric in [*default, MulticlassLogLoss()]}
