"""Labels of classes in a column: events as 0 and 1, distinct labels, and the position of each label."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant._support.columns import TEXT_KINDS, ColumnData, numbers
from calibrant._support.errors import Argument, InputError, Note
from calibrant._support.typing import Ints

_MAX_LABELS_SHOWN = 5


def events(column: ColumnData, pos_label: object = None) -> ColumnData:
    """Return outcomes as 0 and 1; other labels need `pos_label`, the label of the event."""
    if pos_label is not None:
        return _event(column, pos_label)
    if _holds_text(column):
        raise _needs_pos_label(column)
    column = numbers(column)
    values = column.values
    bad = ~((values == 0) | (values == 1)) & ~column.mask
    if not bad.any():
        return column
    row = int(np.argmax(bad))
    # 0.5 and infinity are not classes; -1, 2 and 7 may be.
    fractional = bad & (values != np.floor(values) if values.dtype.kind == "f" else False)
    infinite = bad & np.isinf(values)
    if fractional.any() or infinite.any():
        row = int(np.argmax(fractional | infinite))
        raise column.error(
            f"must hold 0 and 1; {column.place(row)} is {values[row]:.6g}.",
            hint="Soft labels are not outcomes: pass the observed labels, or name the event with "
            + Argument("pos_label")
            + ". For outcomes that are numbers pass calibrant.Point(prediction).",
            row=row,
            value=values[row].item(),
        )
    raise _needs_pos_label(column)


def _event(column: ColumnData, pos_label: object) -> ColumnData:
    distinct = classes(column)
    if len(distinct) > 2:
        raise _too_many_labels(column, distinct)
    matches = [label for label in distinct if _same(label, pos_label)]
    if len(distinct) == 2 and not matches:
        raise unknown_pos_label(column.name, distinct, pos_label)
    present = ~column.mask
    event = np.zeros(len(column), dtype=np.int8)
    notes = column.notes
    if matches:
        event[present] = column.values[present] == matches[0]
    else:
        notes += (Note("event_absent", 1, f"No row has the label of the event, {pos_label!r}."),)
    return replace(column, values=event, notes=notes)


def unknown_pos_label(name: str, labels: list[Any], pos_label: object) -> InputError:
    """Return the error for a `pos_label` that is not among the labels."""
    return InputError(
        Argument("pos_label") + f" must be one of the labels of {name}, which are {_shown(labels)}; got {pos_label!r}.",
        hint="It must match exactly, including the type, letter case and spaces.",
        value=pos_label,
    )


def _same(label: object, pos_label: object) -> bool:
    try:
        return bool(label == pos_label)
    except (TypeError, ValueError):  # an array or pandas.NA, which is not a label
        return False


def _holds_text(column: ColumnData) -> bool:
    kind = column.values.dtype.kind
    return kind in TEXT_KINDS or (
        kind == "O" and any(isinstance(cell, (str, bytes)) for cell in column.values[~column.mask])
    )


def encode(column: ColumnData) -> tuple[list[Any], Ints]:
    """Return the distinct labels, sorted, and for each row the position of its label (-1 where it is missing)."""
    present = column.values[~column.mask]
    code = np.full(len(column), -1, dtype=np.int64)
    if present.dtype.kind != "O":
        found, inverse = np.unique(present, return_inverse=True)
        code[~column.mask] = inverse
        return list(found) if found.dtype.kind in "Mm" else found.tolist(), code
    try:
        names = sort_labels(set(present))
        position = {name: i for i, name in enumerate(names)}
        code[~column.mask] = [position[cell] for cell in present]
    except TypeError:
        row = next(row for row, cell in enumerate(column.values) if getattr(cell, "__hash__", None) is None)
        cell = column.values[row]
        raise column.error(
            f"must hold labels; {column.place(row)} is {cell!r} ({type(cell).__name__}).",
            hint="Convert it to text or numbers.",
            row=row,
            value=cell,
        ) from None
    return names, code


def sort_labels(labels: set[Any]) -> list[Any]:
    """Return labels in rising order; those of several types by type, then as text."""
    try:
        return sorted(labels)
    except TypeError:
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def classes(column: ColumnData) -> list[Any]:
    """Return the distinct labels, sorted."""
    return encode(column)[0]


def check_classes(labels: object, argument: str = "labels") -> list[Any]:
    """Return `labels` as a list; it must name at least two classes, each once."""
    names = list(labels) if isinstance(labels, Iterable) and not isinstance(labels, str) else []
    try:
        distinct = len(set(names))
    except TypeError:
        distinct = 0
    if distinct < 2 or distinct < len(names):
        raise InputError(
            Argument(argument) + f" must name at least two classes, each once; got {labels!r}.", value=labels
        )
    return names


def codes(column: ColumnData, names: list[Any], argument: str = "labels") -> Ints:
    """Return for each row the position of its label among the classes (-1 where it is missing)."""
    found, code = encode(column)
    position = {name: i for i, name in enumerate(names)}
    unknown = [i for i, label in enumerate(found) if label not in position]
    if unknown:
        row = int(np.argmax(np.isin(code, unknown)))
        label = found[code[row]]
        raise column.error(
            f"must hold labels of the classes {_shown(names)}; {column.place(row)} is {label!r}.",
            hint="Name each class in the data with " + Argument(argument) + ".",
            row=row,
            value=label,
        )
    return np.array([*(position[label] for label in found), -1], dtype=np.int64)[code]


def _shown(labels: list[Any]) -> str:
    shown = ", ".join(repr(label) for label in labels[:_MAX_LABELS_SHOWN])
    return shown + (", ..." if len(labels) > _MAX_LABELS_SHOWN else "")


def _needs_pos_label(column: ColumnData) -> InputError:
    distinct, code = encode(column)
    if len(distinct) > 2:
        return _too_many_labels(column, distinct)
    counts = np.bincount(code[code >= 0], minlength=len(distinct))
    # The event is usually the rarer label; where it is not much rarer, the last one, as 1 of -1 and 1.
    event = distinct[int(np.argmin(counts)) if 2 * counts.min() < counts.max() else -1]
    return column.error(
        f"must hold 0 and 1; got the labels {_shown(distinct)}.",
        hint="Say which label is the event, for example " + Argument("pos_label", event) + ".",
        row=0,
        value=distinct[0],
    )


def _too_many_labels(column: ColumnData, distinct: list[Any]) -> InputError:
    return column.error(
        f"must have two labels; got {len(distinct):,} ({_shown(distinct)}).",
        hint=(
            "For several classes pass an (n, K) array of class probabilities to calibrant.evaluate; for numbers pass "
            f"calibrant.Point(prediction); for one class against the rest pass {column.name} == {distinct[-1]!r}."
        ),
        row=0,
        value=distinct[-1],
    )


def distinct_texts(labels: Sequence[object]) -> list[str]:
    """Return labels as text; labels whose texts are equal, such as 1 and "1", are written as in Python.

    >>> distinct_texts([1, "1", "a"])
    ['1', "'1'", 'a']
    """
    counts = Counter(map(str, labels))
    return [repr(label) if counts[str(label)] > 1 else str(label) for label in labels]
