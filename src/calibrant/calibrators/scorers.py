"""Scorers for scikit-learn's `cross_val_score` and `GridSearchCV`."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer

from calibrant import _columns
from calibrant._typing import Column
from calibrant.calibrators.score_map import two_classes
from calibrant.errors import InputError
from calibrant.inference.resampling import Measure, check_metric
from calibrant.metrics import METRICS
from calibrant.table import ScoreTable

__all__ = ["Scorers", "scorers"]

_IDEAL = {"bias": 0.0, "oe_ratio": 1.0}  # the best values of metrics that have them in the middle


class Scorers(Mapping[str, Any]):
    """A scikit-learn scorer for every entry of `METRICS`, where greater is better: ``scorers.tce``, ``scorers["tce"]``.

    Metrics of which lower values are better are negated, as scikit-learn's ``neg_brier_score`` is; of ``bias`` and
    ``oe_ratio`` the scorer is the negated distance from 0 and 1. ``scorers.of(metric)`` makes one of any metric object.
    Labels that are not 0 and 1: the greater one, in sorted order, is the event.

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

    def of(self, metric: Measure) -> Any:
        """The scorer of a metric object, for example ``ECC(cost=LinearCost(over=1, under=5))``."""
        return make_scorer(_signed_value, metric=check_metric(metric), response_method="predict_proba")


def _signed_value(y_true: Column, y_prob: Column, *, metric: Measure, sample_weight: Column | None = None) -> float:
    column = _columns.read(y_true, "y")
    _columns.refuse_missing([column])
    if np.ndim(y_prob) == 2:
        raise InputError(
            f"{metric.name} needs two classes; the model has {np.shape(y_prob)[1]}.", hint="Use calibrant.classwise."
        )
    table = ScoreTable.from_arrays(two_classes(column)[0], y_prob, sample_weight=sample_weight)
    value = metric.value(table)
    entry = METRICS.get(metric.name.lower())
    better = True if entry is None else entry.lower_is_better
    if better is None:
        return -math.fabs(value - _IDEAL[metric.name.lower()])
    return -value if better else value


scorers = Scorers()
