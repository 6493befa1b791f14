"""Where the numbers of displays come from: predictions, estimators, and what was measured of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant.metrics.breakdown import Breakdown
from calibrant.metrics.gce import GCE
from calibrant.metrics.metric import MetricValue, UnbinnedMetric
from calibrant.tables.rows import table_of
from calibrant.tables.score_table import ScoreTable


def predicted(estimator: Any, X: Any, pos_label: object = None) -> Any:
    """What a fitted classifier gives as probabilities of the event: of `pos_label`, or of its second class."""
    predict = getattr(estimator, "predict_proba", None)
    if predict is None:
        raise InputError(
            f"{type(estimator).__name__} has no predict_proba, so it gives no probabilities.",
            hint="Pass a classifier that does, or its probabilities to from_predictions.",
            argument="estimator",
        )
    columns = np.asarray(predict(X))
    classes = list(getattr(estimator, "classes_", range(columns.shape[-1])))
    if columns.ndim != 2 or columns.shape[1] != 2:
        raise InputError(
            f"A diagram shows one event, and predict_proba gives the shape {columns.shape}.",
            hint="For several classes draw one against the rest, or calibrant.top_label(y, proba): from_predictions.",
            argument="estimator",
        )
    if pos_label is not None and pos_label not in classes:
        raise InputError(f"pos_label must be one of the classes {classes}; it is {pos_label!r}.", argument="pos_label")
    return columns[:, 1 if pos_label is None else classes.index(pos_label)]


def event_of(estimator: Any, pos_label: object) -> object:
    """The label of the event where outcomes are not 0 and 1: as given, or the estimator's second class."""
    classes = list(getattr(estimator, "classes_", (0, 1)))
    if pos_label is not None or classes in ([0, 1], [False, True]) or len(classes) != 2:
        return pos_label
    return classes[1]


def estimated(estimator: Any, X: Any, options: dict[str, Any], *, several: bool = False) -> Any:
    """Probabilities of one estimator or, where there may be several, of each in a mapping.

    The event's label goes into the options.
    """
    if isinstance(estimator, Mapping) and (not several or not estimator):
        need = "at least one of several estimators" if several else "one estimator"
        raise InputError(f"This diagram shows {need}; a mapping of {len(estimator)} was given.", argument="estimator")
    first = next(iter(estimator.values())) if isinstance(estimator, Mapping) else estimator
    event = event_of(first, options.get("pos_label"))
    if event is not None:
        options["pos_label"] = event
    if isinstance(estimator, Mapping):
        return {name: predicted(each, X, event) for name, each in estimator.items()}
    return predicted(estimator, X, event)


def texts_of(names: Iterable[object]) -> list[str]:
    """Names as text that can be drawn and written: control characters as Python writes them, no two names alike."""
    found = ["".join(c if c.isprintable() else repr(c)[1:-1] for c in str(name)) for name in names]
    twice = [text for text, count in Counter(found).items() if count > 1]
    if twice:
        raise InputError(f"Two have the same name: {twice[0]!r}.", argument="names", value=found)
    return found


def tables(y_true: Any, y_prob: Any, rows: Mapping[str, Any], default: str = "model") -> dict[str, ScoreTable]:
    """A table for every model: of one column of predictions, or of a mapping of them."""
    if isinstance(y_true, Mapping):
        if y_prob is not None:
            raise InputError("Tables were given, and y_prob with them.", argument="y_prob")
        found = [table_of(table, None, rows) for table in y_true.values()]
        names = texts_of(y_true)
    elif isinstance(y_prob, Mapping):
        found = [table_of(y_true, column, rows) for column in y_prob.values()]
        names = texts_of(y_prob)
    else:
        found, names = [table_of(y_true, y_prob, rows)], [default]
    if not found:
        raise InputError("There are no predictions; at least those of one model are needed.", argument="y_prob")
    return dict(zip(names, found, strict=True))


def counted(result: Any) -> ScoreTable:
    """The table behind what was measured."""
    return result.table if isinstance(result, MetricValue) else need_breakdown(result).partition.table


def named(breakdown: Any, default: str = "model") -> dict[str, Any]:
    """One result, or a mapping of them, as a mapping with names."""
    results = breakdown if isinstance(breakdown, Mapping) else {default: breakdown}
    if not results:
        raise InputError("There is nothing to draw: the mapping is empty.", argument="breakdown")
    for each in results.values():
        counted(each)
    return dict(zip(texts_of(results), results.values(), strict=True))


def metric_of(results: Iterable[Breakdown | MetricValue]) -> GCE | UnbinnedMetric:
    """The metric that all results are of."""
    metrics = [each.definition if isinstance(each, MetricValue) else each.gce for each in results]
    if any(metric.spec != metrics[0].spec for metric in metrics):
        names = sorted({metric.name for metric in metrics})
        raise InputError(f"All must be of one metric; these are of {', '.join(names)} (or of other settings).")
    return metrics[0]


def need_breakdown(result: Any) -> Breakdown:
    """The result, if it has bins."""
    if not isinstance(result, Breakdown):
        raise InputError(
            f"A Breakdown is needed, such as cb.TCE()(y_true, y_prob) gives; this is {type(result).__name__}.",
            argument="breakdown",
        )
    return result
