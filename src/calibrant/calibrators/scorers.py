"""Scorers for scikit-learn's ``cross_validate``, ``cross_val_score`` and ``GridSearchCV``."""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column
from calibrant._support.errors import InputError, nearest, wrong_value
from calibrant.forecasts.distributions import Gaussian, is_frozen
from calibrant.forecasts.forecast_table import ForecastTable
from calibrant.forecasts.predictions import Point
from calibrant.metrics.metric import Metric, declared
from calibrant.metrics.registry import METRICS, MetricLike, as_metric
from calibrant.tables.mean_table import MeanTable
from calibrant.tables.rows import declared_kind
from calibrant.tables.score_table import ScoreTable, read_score_table

__all__ = ["MetricScorer", "Scorers", "scorers"]


class Scorers(Mapping[str, Any]):
    """Scikit-learn scorers, one for each metric: ``scorers.tce``, ``scorers["tce"]``; greater is better.

    Metrics whose lower values are better are negated, like scikit-learn's ``neg_brier_score``. For metrics with a
    target value, 0 for ``bias`` and 1 for ``oe_ratio``, the scorer is the negated distance from it.
    ``scorers.select("ece", "brier")`` is a dict for ``scoring`` of ``cross_validate``, and ``scorers.of(metric)`` makes
    a scorer of any metric. `MetricScorer` says which forecast of the model is measured.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> X, y = make_classification(500, random_state=0)
    >>> scores = cross_validate(LogisticRegression(), X, y, scoring=scorers.select("ece", "brier"))
    >>> sorted(scores), bool((scores["test_brier"] < 0).all())
    (['fit_time', 'score_time', 'test_brier', 'test_ece'], True)
    """

    def __getitem__(self, name: str) -> Any:
        if name not in METRICS:
            raise KeyError(_Unknown(f"scorers has no metric {name!r}; {_metrics_and_nearest(name)}"))
        return self.of(METRICS[name]())

    def __getattr__(self, name: str) -> Any:
        if name not in METRICS:
            raise AttributeError(f"scorers has no attribute {name!r}; {_metrics_and_nearest(name)}")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(METRICS)

    def __len__(self) -> int:
        return len(METRICS)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def select(self, *names: str) -> dict[str, "MetricScorer"]:
        """Return the scorers of these metrics by name, for ``scoring`` of ``cross_validate`` and ``GridSearchCV``."""
        for name in names:
            if name not in METRICS:
                raise wrong_value(
                    "names", f"must be among {', '.join(METRICS)}", name, hint=nearest(str(name), list(METRICS)).strip()
                )
        return {name: self[name] for name in names}

    def of(self, metric: MetricLike) -> "MetricScorer":
        """Return the scorer of a metric, for example of ``ECC(cost=LinearCost(over=1, under=5))``."""
        measured = as_metric(metric)
        if _table_of(measured) not in _MEASURES:
            raise InputError(
                f"metric must measure probabilities of an event, points or distributions; got {measured.name}, whose "
                f"kind is {declared(measured, 'kind')!r}.",
                value=metric,
            )
        return MetricScorer(measured)


class _Unknown(str):
    """The message of a `KeyError`, which shows its argument by `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _metrics_and_nearest(name: object) -> str:
    return f"its metrics are {', '.join(METRICS)}.{nearest(str(name), list(METRICS))}"


class MetricScorer(BaseEstimator):  # type: ignore[misc]
    """A scorer with the interface of scikit-learn, ``scorer(estimator, X, y)``; weights can be routed to it.

    A metric of probabilities measures ``predict_proba`` of a model with two classes; the event is the second class,
    whatever labels `y` holds. A metric of points measures ``predict``. A metric of distributions measures the normal
    distributions of ``predict(X, return_std=True)``, or the forecasts that ``predict`` returns (`Gaussian`,
    `Quantiles`, `Samples`).

    Attributes
    ----------
    metric : Metric
        The metric.

    See Also
    --------
    scorers

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import calibrant as cb
    >>> X, y = make_classification(500, random_state=0)
    >>> scorer = MetricScorer(cb.metrics.Brier())
    >>> round(scorer(GaussianNB().fit(X, y), X, y), 3)
    -0.137
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def score(
        self, estimator: Any, X: Any, y: Column, sample_weight: Column | None = None, *, frequency: Column | None = None
    ) -> float:
        """Return the metric, negated where lower is better; weights as in `ScoreTable.from_arrays`.

        Parameters
        ----------
        estimator : fitted model
            For metrics of scores a classifier of two classes; the event is the second of its `classes_`.
        X : array or frame of n rows
            Features, as its `predict_proba` or `predict` takes them.
        y : column of n outcomes
        sample_weight, frequency : column, optional
            Importance of each row, or the number of equal rows; not both.

        Returns
        -------
        float
            Greater is better. For a metric with a target value, minus the distance from it.
        """
        given = {"sample_weight": sample_weight, "frequency": frequency}
        options = {name: column for name, column in given.items() if column is not None}
        value = _MEASURES[_table_of(self.metric)](self.metric, estimator, X, y, options)
        direction: Any = getattr(self.metric, "direction", "lower")
        if direction == "higher":
            return value
        return -value if direction == "lower" else -math.fabs(value - direction)

    __call__ = score


def _of_event(metric: Metric, estimator: Any, X: Any, y: Column, options: dict[str, Column]) -> float:
    classes = np.asarray(estimator.classes_).tolist()
    if len(classes) != 2:
        raise wrong_value(
            "estimator",
            f"must have two classes for {metric.name}",
            len(classes),
            hint="Use calibrant.metrics.classwise.",
        )
    column = _columns.read(y, "y")
    _columns.refuse_missing([column])
    p = np.asarray(estimator.predict_proba(X))[:, 1]
    return metric.value(ScoreTable.from_arrays(_columns.codes(column, classes), p, **options))


def _of_point(metric: Any, estimator: Any, X: Any, y: Column, options: dict[str, Column]) -> float:
    return float(metric(y, Point(estimator.predict(X)), **options))


def _of_distribution(metric: Any, estimator: Any, X: Any, y: Column, options: dict[str, Column]) -> float:
    if options:
        raise InputError(
            f"{next(iter(options))} must be None for {metric.name}; metrics of distributions take no weights.",
            argument=next(iter(options)),
        )
    last = estimator
    while hasattr(last, "steps"):  # a pipeline passes the option to its last step
        last = last.steps[-1][1]
    if "return_std" in inspect.signature(last.predict).parameters:
        forecast: Any = Gaussian(*estimator.predict(X, return_std=True))
    else:
        forecast = estimator.predict(X)
    if not is_frozen(forecast) and declared_kind(forecast) != declared(metric, "kind"):
        raise InputError(
            f"estimator must predict distributions for {metric.name}; got {type(forecast).__name__} from its predict.",
            hint="Its predict takes return_std, or returns Gaussian, Quantiles or Samples.",
        )
    return float(metric(y, forecast, **options))


# How the forecasts of an estimator are measured, by the table that a metric reads.
_MEASURES: dict[type, Callable[..., float]] = {
    ScoreTable: _of_event,
    MeanTable: _of_point,
    ForecastTable: _of_distribution,
}


def _table_of(metric: Metric) -> type:
    return getattr(metric, "reader", read_score_table).table


scorers: Scorers = Scorers()
