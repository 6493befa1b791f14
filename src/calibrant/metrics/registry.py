"""`METRICS`, the registry of metrics by name, and the resolvers of metrics that users give."""

from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

from calibrant._support.errors import InputError, nearest
from calibrant._support.formatting import metric_key
from calibrant.metrics.gce import GCE
from calibrant.metrics.metric import Metric, UnbinnedMetric, declared

# A metric object, its class, its lower-case function, or its name in METRICS.
MetricLike: TypeAlias = Metric | Callable[..., Any] | str

MetricClass: TypeAlias = Callable[..., GCE | UnbinnedMetric]


class MetricRegistry(UserDict[str, MetricClass]):
    """Metric classes by name.

    A class may be given by the module in `calibrant.metrics` that has its function. The module is then loaded when the
    class is first used: no task needs all of them.
    """

    data: dict[str, Any]

    def __init__(self, classes: Mapping[str, MetricClass | str]) -> None:
        super().__init__()
        self.data = dict(classes)

    def __getitem__(self, name: str) -> MetricClass:
        known = self.data[name]
        if isinstance(known, str):
            known = self.data[name] = getattr(import_module(f"calibrant.metrics.{known}"), name).metric
        found: MetricClass = known
        return found


_MODULES = (
    ("calibration_errors", "ece ace mce rmsce tce ecc bias oe_ratio debiased_sce"),
    ("smooth_errors", "smooth_ece"),
    ("calibration_errors", "ecce_mad ecce_r ici emax calbin"),
    ("log_odds", "log_odds_error"),
    ("calibration_errors", "calloss"),
    ("proper_scores", "mcb brier stratified_brier log_loss auc"),
    ("point", "mean_error ratio mean_quotient mse rmse mae relative_mse error_tolerance pinball"),
    ("ordinal", "rps"),
    ("distribution", "crps nll interval_score coverage_error"),
)
METRICS = MetricRegistry({name: module for module, names in _MODULES for name in names.split()})


def metric_names(kind: str | None = None) -> list[str]:
    """Return the names in `METRICS` of the metrics of one kind of forecast, or of all kinds.

    Parameters
    ----------
    kind : str, optional
        Kind of forecast; by default all kinds.

    Returns
    -------
    list of str
        Names, as `evaluate` takes them in `metrics`.

    See Also
    --------
    METRICS, as_metric

    Examples
    --------
    >>> metric_names("distribution")
    ['crps', 'nll', 'interval_score', 'coverage_error']
    """
    return [name for name, cls in METRICS.items() if kind is None or declared(cls, "kind") == kind]


def as_metric(metric: MetricLike, argument: str = "metric") -> Metric:
    """Return the metric object that is meant by an object, a class, a lower-case function or a name.

    Parameters
    ----------
    metric : metric, class, metric function or name
        What is meant.
    argument : str, default="metric"
        Name of the caller's argument, for the error.

    Returns
    -------
    Metric
        The metric object.

    See Also
    --------
    as_metrics, from_spec, METRICS

    Examples
    --------
    >>> from calibrant import brier
    >>> from calibrant.metrics import Brier
    >>> as_metric(Brier()) == as_metric(Brier) == as_metric(brier) == as_metric("brier") == as_metric("Brier")
    True
    """
    if not isinstance(metric, type) and isinstance(metric, Metric):
        return metric
    known = METRICS.get(metric_key(metric), metric) if isinstance(metric, str) else getattr(metric, "metric", metric)
    try:
        found = known() if isinstance(known, type) else known
    except TypeError:  # a class whose settings have no defaults, such as GCE
        found = None
    if isinstance(found, Metric):
        return found
    meant = nearest(metric, list(METRICS)).strip() if isinstance(metric, str) else ""
    raise InputError(
        f"{argument} must be a metric object (cb.metrics.Brier()), its class, its function (cb.brier), or one of the "
        f"names {', '.join(METRICS)}; got {metric!r}.",
        hint=meant or "Where data follow, the metric comes first.",
        argument=argument,
        value=metric,
    )


def as_metrics(metrics: Mapping[str, MetricLike] | Sequence[MetricLike], kind: str | None = None) -> dict[str, Metric]:
    """Return metric objects by name, of a mapping, or of a list that uses the names of the metrics.

    With `kind`, a metric of another kind of forecast is an error.

    Parameters
    ----------
    metrics : mapping of name to metric, or list of metrics
        Each as `as_metric` takes it.
    kind : str, optional
        Kind of forecast that each metric must have.

    Returns
    -------
    dict of str to Metric
        Metric objects by name.

    See Also
    --------
    as_metric, metric_names

    Examples
    --------
    >>> as_metrics(["ece", "brier"])
    {'ECE': ECE(), 'Brier': Brier()}
    """
    found = _named_metrics(metrics)
    for metric in found.values():
        own = declared(metric, "kind")
        if kind not in (None, own):
            raise InputError(
                f"metrics must measure forecasts of kind {kind!r}; got {metric.name}, whose kind is {own!r}.",
                hint=f"Metrics of this kind are {', '.join(metric_names(str(kind)))}.",
                value=metric.name,
            )
    return found


def _named_metrics(metrics: Mapping[str, MetricLike] | Sequence[MetricLike]) -> dict[str, Metric]:
    if isinstance(metrics, str) or not isinstance(metrics, (Mapping, Sequence)) or not metrics:
        raise InputError(
            f"metrics must be a list of metrics or a mapping of names to metrics, not empty; got {metrics!r}.",
            hint='For example ["ece", cb.brier] or {"ECE": cb.ECE()}.',
            value=metrics,
        )
    if isinstance(metrics, Mapping):
        return {str(name): as_metric(metric, "metrics") for name, metric in metrics.items()}
    objects = [as_metric(metric, "metrics") for metric in metrics]
    named = {metric.name: metric for metric in objects}
    if len(named) < len(objects):
        raise InputError(
            f"metrics must have distinct names; got {', '.join(metric.name for metric in objects)}.",
            hint="Pass a mapping of names to metrics.",
            value=metrics,
        )
    return named


def from_spec(spec: Mapping[str, Any]) -> GCE | UnbinnedMetric:
    """Return the metric that a specification (``metric.spec``) describes, with bins or without.

    Parameters
    ----------
    spec : mapping
        Specification of a metric.

    Returns
    -------
    GCE or UnbinnedMetric
        The metric.

    See Also
    --------
    as_metric, GCE

    Examples
    --------
    >>> from_spec({"name": "brier"})
    Brier()
    """
    if not isinstance(spec, Mapping) or "bins" in spec:
        return GCE.from_spec(spec)
    settings = {key: value for key, value in spec.items() if key != "name"}
    if not isinstance(spec.get("name"), str) or spec["name"] not in METRICS:
        raise InputError(
            f"spec must name one of the metrics {', '.join(METRICS)}; got {spec.get('name')!r}.",
            hint=nearest(str(spec.get("name")), list(METRICS)).strip(),
            value=spec,
        )
    try:
        return METRICS[spec["name"]](**settings)
    except TypeError as error:
        raise InputError(f"spec must hold settings of {spec['name']}; got {settings}.", value=spec) from error
