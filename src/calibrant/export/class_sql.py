"""Multiclass calibrators as SQL: one expression per class."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from calibrant._support.columns import CLIP_TOLERANCE
from calibrant._support.errors import Argument, InputError
from calibrant._support.sql_dialects import Dialect
from calibrant.calibrators import class_maps
from calibrant.calibrators.multiclass import ProbabilityMap
from calibrant.export.sql import domain_conditions, score_expression

__all__ = ["class_expressions"]

_FARTHEST = 700.0  # beyond it exp overflows
_LONGEST = 10**8  # characters of all expressions


def class_expressions(calibrator: ProbabilityMap, columns: Any, sql: Dialect) -> dict[Any, str]:
    """Return the expression of each class's calibrated probability, by class."""
    check_is_fitted(calibrator)
    classes = calibrator.classes_.tolist()
    names = [sql.name(column) for column in _columns(columns, classes)]
    map_ = calibrator.map_
    if map_.kind not in _VALUES:
        raise InputError(
            f"calibrator must have a closed form for SQL; {type(calibrator).__name__} has none.",
            hint="Use OneVsRest or Dirichlet, or apply it in Python.",
            argument="calibrator",
        )
    probabilities = map_.domain == "probability"
    x = [sql.as_double(name) for name in names]
    taken = [each for name in names for each in domain_conditions(name, probabilities, sql)]
    if probabilities:
        total = " + ".join(sql.between(each, 0.0, 1.0) for each in x)
        taken.append(f"abs({total} - 1) <= {sql.number(CLIP_TOLERANCE * len(x))}")
    found: dict[Any, str] = {}
    for place, label in enumerate(classes):
        found[label] = f"CASE WHEN {' AND '.join(taken)} THEN {_VALUES[map_.kind](map_, x, place, sql)} END"
        if len(found[label]) * len(classes) > _LONGEST:
            raise InputError(
                f"calibrator must have fewer classes for SQL; the expressions of {len(classes)} classes need more than "
                f"{_LONGEST:,} characters.",
                hint="Apply it in Python or by ONNX.",
                argument="calibrator",
            )
    return found


def _columns(columns: Any, classes: list[Any]) -> list[Any]:
    """Return the column of each class."""
    if isinstance(columns, Mapping) and set(columns) == set(classes):
        return [columns[label] for label in classes]
    listed = isinstance(columns, Sequence) and not isinstance(columns, str)
    if listed and len(columns) == len(classes):
        return list(columns)
    raise InputError(
        Argument("columns") + f" must name one column for each of the classes {classes}; got {columns!r}.",
        hint="Name them in the order of the classes.",
        value=columns,
    )


def _softmax(map_: class_maps.Softmax, x: list[str], place: int, sql: Dialect) -> str:
    """1 / (1 + sum over j of exp(logit of j - logit of c)): no exponential of a logit itself overflows."""
    logs = [f"{sql.ln}({sql.between(each, map_.eps, 1.0)})" for each in x]
    terms = []
    for other in range(len(x)):
        if other != place:
            difference = _difference(map_, logs, other, place, sql)
            terms.append(f"exp({sql.between(difference, -_FARTHEST, _FARTHEST)})")
    return f"1 / (1 + {' + '.join(terms)})"


def _difference(map_: class_maps.Softmax, logs: list[str], other: int, place: int, sql: Dialect) -> str:
    if map_.weights.ndim == 0:
        parts = [f"{sql.number(float(map_.weights))} * ({logs[other]} - {logs[place]})"]
    elif map_.weights.ndim == 1:
        weights = {other: map_.weights[other], place: -map_.weights[place]}
        parts = [f"{sql.number(weight)} * {logs[j]}" for j, weight in weights.items()]
    else:
        weights = dict(enumerate(map_.weights[other] - map_.weights[place]))
        parts = [f"{sql.number(weight)} * {logs[j]}" for j, weight in weights.items()]
    return " + ".join([*parts, sql.number(map_.biases[other] - map_.biases[place])])


def _normalised(map_: class_maps.Normalised, x: list[str], place: int, sql: Dialect) -> str:
    values = [f"({score_expression(each, column, sql)})" for each, column in zip(map_.per_class, x, strict=True)]
    return f"coalesce({values[place]} / nullif({' + '.join(values)}, 0), {sql.number(1 / len(x))})"


def _top_label(map_: class_maps.TopLabel, x: list[str], place: int, sql: Dialect) -> str:
    top = f"{sql.greatest}({', '.join(x)})"
    calibrated = f"({score_expression(map_.confidence, top, sql)})"
    # Of several highest probabilities, all but the first belong to the rest.
    below = " + ".join(f"CASE WHEN {each} < {top} THEN {each} ELSE 0 END" for each in x)
    equal = " + ".join(f"CASE WHEN {each} < {top} THEN 0 ELSE 1 END" for each in x)
    share = f"{sql.greatest}({x[place]}, {sql.number(0.0)}) / nullif({below} + ({equal} - 1) * {top}, 0)"
    first = " AND ".join([f"{x[place]} >= {top}", *(f"{each} < {top}" for each in x[:place])])
    others = f"(1 - {calibrated}) * coalesce({share}, {sql.number(1 / (len(x) - 1))})"
    return f"CASE WHEN {first} THEN {calibrated} ELSE {others} END"


_VALUES: dict[str, Callable[[Any, list[str], int, Dialect], str]] = {
    "softmax": _softmax,
    "normalised": _normalised,
    "top_label": _top_label,
}
