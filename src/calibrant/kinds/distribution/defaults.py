"""The margin and number of replicates of predictive distributions."""

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.kinds.base import ROW_OPTIONS, Defaults
from calibrant.metrics.metric import Metric
from calibrant.metrics.registry import MetricLike, as_metrics

DEFAULTS = Defaults(
    margin=0.01,
    unit="in units of coverage",
    largest_margin=0.5,
    n_resamples=199,
    least_resamples=0,
    takes_relative_margin=True,
    options=("metrics", "n_bins", "bins", *ROW_OPTIONS),
    resamples_groups=False,
)


def panel(metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None, **options: Any) -> dict[str, Metric]:
    """Return the given metrics by name; the default ones are fixed."""
    return {} if metrics is None else as_metrics(metrics, "distribution")
