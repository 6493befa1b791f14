"""Where the numbers of displays come from: predictions, estimators, and what was measured of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant._rows import table_of
from calibrant.errors import InputError
from calibrant.gce import Breakdown
from calibrant.scores import Reading
from calibrant.table import ScoreTable


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
    classes = getattr(estimator, "classes_", None)
    if pos_label is not None or classes is None or list(classes) in ([0, 1], [False, True]):
        return pos_label
    second: object = list(classes)[1]
    return second


def estimated(estimator: Any, X: Any, options: dict[str, Any]) -> Any:
    """Probabilities of one estimator, or of each in a mapping of them; the event's label goes into the options."""
    several = isinstance(estimator, Mapping)
    first = next(iter(estimator.values())) if several else estimator
    event = event_of(first, options.get("pos_label"))
    if event is not None:
        options["pos_label"] = event
    if several:
        return {name: predicted(each, X, event) for name, each in estimator.items()}
    return predicted(estimator, X, event)


def tables(y_true: Any, y_prob: Any, rows: Mapping[str, Any], default: str = "model") -> dict[str, ScoreTable]:
    """A table for every model: of one column of predictions, or of a mapping of them."""
    if isinstance(y_true, Mapping):
        if y_prob is not None:
            raise InputError("Tables were given, and y_prob with them.", argument="y_prob")
        found = {str(name): table_of(table, None, rows) for name, table in y_true.items()}
    elif isinstance(y_prob, Mapping):
        found = {str(name): table_of(y_true, column, rows) for name, column in y_prob.items()}
    else:
        found = {default: table_of(y_true, y_prob, rows)}
    if not found:
        raise InputError("There are no predictions; at least those of one model are needed.", argument="y_prob")
    return found


def counted(result: Any) -> ScoreTable:
    """The table behind what was measured."""
    if isinstance(result, Breakdown):
        return result.partition.table
    if isinstance(result, Reading):
        return result.table
    if isinstance(result, ScoreTable):
        return result
    raise InputError(
        f"A Breakdown is needed, such as cb.TCE()(y_true, y_prob) gives; this is {type(result).__name__}.",
        argument="breakdown",
    )


def named(breakdown: Any, default: str = "model") -> dict[str, Any]:
    """One result, or a mapping of them, as a mapping with names."""
    results = (
        {str(name): each for name, each in breakdown.items()}
        if isinstance(breakdown, Mapping)
        else {default: breakdown}
    )
    if not results:
        raise InputError("There is nothing to draw: the mapping is empty.", argument="breakdown")
    for each in results.values():
        counted(each)
    return results


def need_breakdown(result: Any) -> Breakdown:
    """The result, if it has bins."""
    if not isinstance(result, Breakdown):
        raise InputError(
            f"A Breakdown is needed, such as cb.TCE()(y_true, y_prob) gives; this is {type(result).__name__}.",
            argument="breakdown",
        )
    return result
