"""`METRICS`, the registry of metrics by name, and the resolvers of metrics that users give."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from calibrant._support.errors import InputError, nearest
from calibrant.metrics.calbin_calloss import CalBin, CalLoss
from calibrant.metrics.calibration_errors import ACE, ECC, ECE, MCE, RMSCE, TCE, DebiasedSCE
from calibrant.metrics.calibration_in_the_large import Bias, OERatio
from calibrant.metrics.cumulative import EcceMad, EcceR
from calibrant.metrics.decompositions import MCB
from calibrant.metrics.discrimination import AUC
from calibrant.metrics.distribution import CRPS, NLL, CoverageError, IntervalScore
from calibrant.metrics.gce import GCE
from calibrant.metrics.isotonic_gaps import ICI, Emax
from calibrant.metrics.log_odds import LogOddsError
from calibrant.metrics.metric import Metric, UnbinnedMetric, declared
from calibrant.metrics.point import MAE, MSE, RMSE, MeanError, MeanQuotient, Pinball, Ratio, RelativeMSE
from calibrant.metrics.proper_scores import Brier, LogLoss, StratifiedBrier
from calibrant.metrics.rec_curve import ErrorTolerance
from calibrant.metrics.smooth_calibration import SmoothECE

__all__ = ["METRICS", "MetricLike", "as_metric", "as_metrics", "from_spec", "metric_names"]

# A metric object, its class, its lower-case function, or its name in METRICS.
MetricLike: TypeAlias = Metric | Callable[..., Any] | str

METRICS: dict[str, Callable[..., GCE | UnbinnedMetric]] = {
    "ece": ECE,
    "ace": ACE,
    "mce": MCE,
    "rmsce": RMSCE,
    "tce": TCE,
    "ecc": ECC,
    "bias": Bias,
    "oe_ratio": OERatio,
    "debiased_sce": DebiasedSCE,
    "smooth_ece": SmoothECE,
    "ecce_mad": EcceMad,
    "ecce_r": EcceR,
    "ici": ICI,
    "emax": Emax,
    "calbin": CalBin,
    "log_odds_error": LogOddsError,
    "calloss": CalLoss,
    "mcb": MCB,
    "brier": Brier,
    "stratified_brier": StratifiedBrier,
    "log_loss": LogLoss,
    "auc": AUC,
    "mean_error": MeanError,
    "ratio": Ratio,
    "mean_quotient": MeanQuotient,
    "mse": MSE,
    "rmse": RMSE,
    "mae": MAE,
    "relative_mse": RelativeMSE,
    "error_tolerance": ErrorTolerance,
    "pinball": Pinball,
    "crps": CRPS,
    "nll": NLL,
    "interval_score": IntervalScore,
    "coverage_error": CoverageError,
}


def metric_names(kind: str) -> list[str]:
    """Return the names in `METRICS` of the metrics of one kind of forecast.

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
    return [name for name, cls in METRICS.items() if getattr(cls, "kind", "binary") == kind]


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
    >>> from calibrant import Brier, brier
    >>> as_metric(Brier()) == as_metric(Brier) == as_metric(brier) == as_metric("brier")
    True
    """
    if not isinstance(metric, type) and isinstance(metric, Metric):
        return metric
    known = METRICS.get(metric, metric) if isinstance(metric, str) else getattr(metric, "metric", metric)
    try:
        found = known() if isinstance(known, type) else known
    except TypeError:  # a class whose settings have no defaults, such as GCE
        found = None
    if isinstance(found, Metric):
        return found
    meant = nearest(metric, list(METRICS)).strip() if isinstance(metric, str) else ""
    raise InputError(
        f"{argument} must be a metric object (cb.Brier()), its class, its function (cb.brier), or one of the names "
        f"{', '.join(METRICS)}; got {metric!r}.",
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
    {'ECE': ECE(), 'brier': Brier()}
    """
    found = _named_metrics(metrics)
    for metric in found.values():
        own = declared(metric, "kind")
        if kind not in (None, own):
            raise InputError(
                f"metrics must measure forecasts of kind {kind!r}; got {metric.name}, whose kind is {own!r}.",
                hint=f"Metrics of this kind are {', '.join(metric_names(str(kind)))}.",
                argument="metrics",
                value=metric.name,
            )
    return found


def _named_metrics(metrics: Mapping[str, MetricLike] | Sequence[MetricLike]) -> dict[str, Metric]:
    if isinstance(metrics, str) or not isinstance(metrics, (Mapping, Sequence)) or not metrics:
        raise InputError(
            f"metrics must be a list of metrics or a mapping of names to metrics, not empty; got {metrics!r}.",
            hint='For example ["ece", cb.brier] or {"ECE": cb.ECE()}.',
            argument="metrics",
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
            argument="metrics",
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
            argument="spec",
            value=spec,
        )
    try:
        return METRICS[spec["name"]](**settings)
    except TypeError as error:
        raise InputError(
            f"spec must hold settings of {spec['name']}; got {settings}.", argument="spec", value=spec
        ) from error
