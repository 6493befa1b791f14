"""Inputs of displays: predictions, estimators and results."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from calibrant._support.columns import distinct_texts
from calibrant._support.errors import InputError
from calibrant.metrics.gce import Breakdown
from calibrant.metrics.metric import Metric, MetricValue
from calibrant.tables.score_table import ScoreTable, read_score_table


def predict_event(estimator: Any, X: Any, pos_label: object = None) -> Any:
    """Return the probabilities of the event by a fitted classifier: of `pos_label`, or of its second class."""
    predict = getattr(estimator, "predict_proba", None)
    if predict is None:
        raise InputError(
            f"estimator must have predict_proba; got {type(estimator).__name__}.",
            hint="Pass a classifier with predict_proba, or its probabilities to from_predictions.",
            argument="estimator",
        )
    columns = np.asarray(predict(X))
    classes = list(getattr(estimator, "classes_", range(columns.shape[-1])))
    if columns.ndim != 2 or columns.shape[1] != 2:
        raise InputError(
            f"estimator must predict two classes; got probabilities of shape {columns.shape}.",
            hint="For several classes pass one class against the rest, or calibrant.top_label(y, proba), to "
            "from_predictions.",
            argument="estimator",
        )
    if pos_label is not None and pos_label not in classes:
        raise InputError(f"pos_label must be one of the classes {classes}; got {pos_label!r}.", argument="pos_label")
    return columns[:, 1 if pos_label is None else classes.index(pos_label)]


def event_label(estimator: Any, pos_label: object) -> object:
    """Return the label of the event if outcomes are not 0 and 1: as given, or the estimator's second class."""
    classes = list(getattr(estimator, "classes_", (0, 1)))
    if pos_label is not None or classes in ([0, 1], [False, True]) or len(classes) != 2:
        return pos_label
    return classes[1]


def predict_scores(estimator: Any, X: Any, options: dict[str, Any], *, several: bool = False) -> Any:
    """Return the probabilities of one estimator or, if `several`, of each in a mapping.

    The label of the event is added to the options.
    """
    if isinstance(estimator, Mapping) and (not several or not estimator):
        need = "one estimator, or a mapping with at least one" if several else "one estimator"
        raise InputError(f"estimator must be {need}; got a mapping of {len(estimator)}.", argument="estimator")
    first = next(iter(estimator.values())) if isinstance(estimator, Mapping) else estimator
    event = event_label(first, options.get("pos_label"))
    if event is not None:
        options["pos_label"] = event
    if isinstance(estimator, Mapping):
        return {name: predict_event(each, X, event) for name, each in estimator.items()}
    return predict_event(estimator, X, event)


def display_names(names: Iterable[object]) -> list[str]:
    """Return unique printable names; control characters are escaped."""
    found = ["".join(c if c.isprintable() else repr(c)[1:-1] for c in str(name)) for name in names]
    twice = [text for text, count in Counter(found).items() if count > 1]
    if twice:
        raise InputError(f"names must be unique; got {twice[0]!r} more than once.", argument="names", value=found)
    return found


def class_names(labels: Sequence[object]) -> list[str]:
    """Return unique printable names of classes; control characters are escaped."""
    return display_names(distinct_texts(labels))


def read_tables(y_true: Any, y_prob: Any, rows: Mapping[str, Any], default: str = "model") -> dict[str, ScoreTable]:
    """Return a table per model, of one column of predictions or of a mapping of them."""
    if isinstance(y_true, Mapping):
        if y_prob is not None:
            raise InputError("y_prob must be omitted with tables; got both.", argument="y_prob")
        found = [read_score_table(table, None, rows) for table in y_true.values()]
        names = display_names(y_true)
    elif isinstance(y_prob, Mapping):
        found = [read_score_table(y_true, column, rows) for column in y_prob.values()]
        names = display_names(y_prob)
    else:
        found, names = [read_score_table(y_true, y_prob, rows)], [default]
    if not found:
        raise InputError("y_prob must have predictions of at least one model; got an empty mapping.", argument="y_prob")
    return dict(zip(names, found, strict=True))


def result_table(result: Any) -> ScoreTable:
    """Return the table of a result."""
    if isinstance(result, MetricValue) and isinstance(result.table, ScoreTable):
        return result.table
    return check_breakdown(result).table


def named_results(breakdown: Any, default: str = "model") -> dict[str, Any]:
    """Return one result, or a mapping of them, as a mapping with unique names."""
    results = breakdown if isinstance(breakdown, Mapping) else {default: breakdown}
    if not results:
        raise InputError("breakdown must have at least one result; got an empty mapping.", argument="breakdown")
    for each in results.values():
        result_table(each)
    return dict(zip(display_names(results), results.values(), strict=True))


def shared_metric(results: Iterable[MetricValue]) -> Metric:
    """Return the metric that all results share."""
    metrics = [each.definition for each in results]
    if any(metric.spec != metrics[0].spec for metric in metrics):
        names = sorted({metric.name for metric in metrics})
        raise InputError(f"breakdown must have results of one metric with equal settings; got {', '.join(names)}.")
    return metrics[0]


def check_breakdown(result: Any) -> Breakdown:
    """Return the result if it is a Breakdown."""
    if not isinstance(result, Breakdown):
        raise InputError(
            f"breakdown must be a Breakdown, such as cb.TCE()(y_true, y_prob); got {type(result).__name__}.",
            argument="breakdown",
        )
    return result
