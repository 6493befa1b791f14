"""Scorers for scikit-learn's `cross_val_score` and `GridSearchCV`."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from calibrant._support import columns as _columns
from calibrant._support.errors import InputError
from calibrant._support.typing import Column
from calibrant.inference.resampling import Measure, check_metric
from calibrant.metrics.named import METRICS
from calibrant.tables.score_table import ScoreTable

__all__ = ["MetricScorer", "Scorers", "scorers"]

_IDEAL = {"bias": 0.0, "oe_ratio": 1.0}  # the best values of metrics that have them in the middle


class Scorers(Mapping[str, Any]):
    """A scikit-learn scorer for every entry of `METRICS`, where greater is better: ``scorers.tce``, ``scorers["tce"]``.

    Metrics of which lower values are better are negated, as scikit-learn's ``neg_brier_score`` is; of ``bias`` and
    ``oe_ratio`` the scorer is the negated distance from 0 and 1. ``scorers.of(metric)`` makes one of any metric object.
    The event is the second of the model's classes.

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
        if name not in METRICS:
            raise KeyError(name)
        return self.of(METRICS[name]())

    def __getattr__(self, name: str) -> Any:
        if name not in METRICS:
            raise AttributeError(f"There is no metric named {name!r}; there are {', '.join(METRICS)}.")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(METRICS)

    def __len__(self) -> int:
        return len(METRICS)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *METRICS]

    def of(self, metric: Measure) -> "MetricScorer":
        """The scorer of a metric object, for example ``ECC(cost=LinearCost(over=1, under=5))``."""
        return MetricScorer(check_metric(metric))


class MetricScorer(BaseEstimator):  # type: ignore[misc]
    """A scorer as scikit-learn wants it, ``scorer(estimator, X, y)``; as of an estimator, weights can be routed to it.

    The event is the second of the estimator's two classes, whatever labels `y` holds.
    """

    def __init__(self, metric: Measure) -> None:
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
        """The metric, negated where lower is better; weights and frequencies as in `ScoreTable.from_arrays`."""
        metric, classes = self.metric, np.asarray(estimator.classes_).tolist()
        if len(classes) != 2:
            raise InputError(
                f"{metric.name} needs two classes; the model has {len(classes)}.", hint="Use calibrant.classwise."
            )
        column = _columns.read(y, "y")
        _columns.refuse_missing([column])
        p = np.asarray(estimator.predict_proba(X))[:, 1]
        code = _columns.codes(column, classes)
        value = metric.value(ScoreTable.from_arrays(code, p, sample_weight=sample_weight, frequency=frequency))
        entry = METRICS.get(metric.name.lower())
        better = True if entry is None else entry.lower_is_better
        if better is None:
            return -math.fabs(value - _IDEAL[metric.name.lower()])
        return -value if better else value

    __call__ = score


scorers = Scorers()
