"""The margin of predicted classes; their metrics are fixed, and nothing is resampled."""

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.kinds.base import Defaults
from calibrant.metrics.metric import Metric
from calibrant.metrics.registry import MetricLike

DEFAULTS = Defaults(
    margin=0.01, unit="in units of a class proportion", largest_margin=0.5, n_resamples=0, least_resamples=0
)


def panel(metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None, **options: Any) -> dict[str, Metric]:
    """Return no metrics: they are fixed."""
    return {}
