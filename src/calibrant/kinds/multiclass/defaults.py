"""The default metrics, margin and number of replicates of class probabilities."""

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.kinds.base import ROW_OPTIONS, Defaults
from calibrant.metrics.metric import Metric
from calibrant.metrics.multiclass import as_multiclass_metrics
from calibrant.metrics.registry import MetricLike

DEFAULTS = Defaults(
    margin=0.1, unit="in log-odds", largest_margin=2.0, n_resamples=199, options=("classes", "metrics", *ROW_OPTIONS)
)


def panel(metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None, **options: Any) -> dict[str, Metric]:
    """Return the given metrics by name; the default ones depend on the table, and so are chosen by its evaluation."""
    return {} if metrics is None else as_multiclass_metrics(metrics)
