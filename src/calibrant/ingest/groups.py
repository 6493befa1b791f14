"""Rows in groups, and models by name: what frames and files split alike."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calibrant import _columns
from calibrant._typing import Ints
from calibrant.errors import InputError

__all__ = ["groups_of", "in_order", "named", "part"]

_MOST_GROUPS = 100_000


def named(names: str | Sequence[str], argument: str) -> list[str]:
    """One name, or several, each once."""
    found = [names] if isinstance(names, str) else list(names)
    if not found or len(set(found)) < len(found) or not all(isinstance(name, str) for name in found):
        raise InputError(
            f"{argument} must name at least one column, each once; it is {names!r}.", argument=argument, value=names
        )
    return found


def in_order(keys: Iterable[tuple[str, Any]], models: list[str]) -> list[tuple[str, Any]]:
    """Keys (model, group): models as they were named, groups sorted (those of different types by their text)."""
    known = list(keys)
    try:
        return sorted(known, key=lambda key: (models.index(key[0]), () if key[1] is None else (key[1],)))
    except TypeError:
        return sorted(known, key=lambda key: (models.index(key[0]), str(key[1])))


def part(column: _columns.Column, rows: Any) -> _columns.Column:
    missing = None if column.missing is None else column.missing[rows]
    missing = None if missing is None or not missing.any() else missing
    return _columns.Column(column.name, column.values[rows], missing, column.notes)


def groups_of(keys: list[_columns.Column], size: int) -> list[tuple[Any, Any]]:
    """The groups in order, each with the places of its rows."""
    if not keys:
        return [(None, slice(None))]
    _columns.refuse_missing(keys, hint="Give such rows a group of their own.")
    encoded = [_columns.encode(key) for key in keys]
    code: Ints = np.zeros(size, dtype=np.int64)
    for names, own in encoded:
        code = code * len(names) + own
    order = np.argsort(code, kind="stable")
    present, start = np.unique(code[order], return_index=True)
    if present.size > _MOST_GROUPS:
        raise InputError(
            f"by makes {present.size:,} groups; at most {_MOST_GROUPS:,} are counted.",
            hint="Round times to days or weeks, and numbers to groups.",
            argument="by",
        )
    bounds = np.append(start, size)
    found = []
    for i, number in enumerate(present.tolist()):
        values = _names_of(number, [names for names, _ in encoded])
        found.append((values[0] if len(values) == 1 else tuple(values), order[bounds[i] : bounds[i + 1]]))
    return found


def _names_of(number: int, names: list[list[Any]]) -> list[Any]:
    """The values behind a code, of which the last changes fastest."""
    values: list[Any] = []
    for own in reversed(names):
        number, place = divmod(number, len(own))
        values.insert(0, own[place])
    return values
