"""Scorers for scikit-learn's `cross_val_score` and `GridSearchCV`."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from calibrant._support import class_labels
from calibrant._support import columns as _columns
from calibrant._support.errors import InputError
from calibrant._support.typing import Column
from calibrant.metrics.metric import Metric, declared
from calibrant.metrics.registry import METRICS, MetricLike, as_metric, metric_names
from calibrant.tables.score_table import ScoreTable

__all__ = ["MetricScorer", "Scorers", "scorers"]


class Scorers(Mapping[str, Any]):
    """Scikit-learn scorers, one for each binary metric: ``scorers.tce``, ``scorers["tce"]``; greater is better.

    Metrics whose lower values are better are negated, like scikit-learn's ``neg_brier_score``. For metrics with a
    target value, 0 for ``bias`` and 1 for ``oe_ratio``, the scorer is the negated distance from it.
    ``scorers.of(metric)`` makes a scorer of any metric. The event is the second of the model's classes.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_classification(500, random_state=0)
    >>> bool((cross_val_score(LogisticRegression(), X, y, scoring=scorers.brier) < 0).all())
    True
    """

    def __getitem__(self, name: str) -> Any:
        if name not in metric_names("binary"):
            raise KeyError(name)
        return self.of(METRICS[name]())

    def __getattr__(self, name: str) -> Any:
        if name not in metric_names("binary"):
            raise AttributeError(f"scorers has no attribute {name!r}; its metrics are {', '.join(self)}.")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(metric_names("binary"))

    def __len__(self) -> int:
        return len(metric_names("binary"))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def of(self, metric: MetricLike) -> "MetricScorer":
        """Return the scorer of a metric, for example of ``ECC(cost=LinearCost(over=1, under=5))``."""
        measured = as_metric(metric)
        if declared(measured, "kind") != "binary":
            raise InputError(
                f"metric must measure the probability of an event; got {measured.name}, whose kind is "
                f"{declared(measured, 'kind')!r}.",
                argument="metric",
                value=metric,
            )
        return MetricScorer(measured)


class MetricScorer(BaseEstimator):  # type: ignore[misc]
    """A scorer with the interface of scikit-learn, ``scorer(estimator, X, y)``; weights can be routed to it.

    The event is the second of the estimator's two classes, whatever labels `y` holds.

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
    >>> scorer = MetricScorer(cb.Brier())
    >>> round(scorer(GaussianNB().fit(X, y), X, y), 3)
    -0.137
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def score(
        self,
        estimator: Any,
        X: Any,
        y: Column,
        sample_weight: Column | None = None,
        *,
        frequency: Column | None = None,
    ) -> float:
        """Return the metric, negated where lower is better; weights as in `ScoreTable.from_arrays`.

        Parameters
        ----------
        estimator : fitted classifier of two classes
            The event is the second of its `classes_`.
        X : array or frame of n rows
            Features, as its `predict_proba` takes them.
        y : column of n labels
        sample_weight, frequency : column, optional
            Importance of each row, or the number of equal rows; not both.

        Returns
        -------
        float
            Greater is better. For a metric with a target value, minus the distance from it.
        """
        metric, classes = self.metric, np.asarray(estimator.classes_).tolist()
        if len(classes) != 2:
            raise InputError(
                f"estimator must have two classes for {metric.name}; got {len(classes)}.",
                hint="Use calibrant.classwise.",
                argument="estimator",
            )
        column = _columns.read(y, "y")
        _columns.refuse_missing([column])
        p = np.asarray(estimator.predict_proba(X))[:, 1]
        code = class_labels.codes(column, classes)
        value = metric.value(ScoreTable.from_arrays(code, p, sample_weight=sample_weight, frequency=frequency))
        direction: Any = getattr(metric, "direction", "lower")
        if direction == "higher":
            return value
        return -value if direction == "lower" else -math.fabs(value - direction)

    __call__ = score


scorers = Scorers()
