"""Functions of a table that take rows too: wherever (y_true, y_prob) is taken, a `ScoreTable` may be given instead."""

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from calibrant._typing import Column
from calibrant.errors import CalibrantWarning, InputError, Note
from calibrant.table import ScoreTable

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")

_ROWS = dict(inspect.signature(ScoreTable.from_arrays).parameters)


class Measured(Protocol):
    """A value that carries notes: a `Breakdown` or a `Reading`."""

    @property
    def value(self) -> float: ...
    @property
    def notes(self) -> tuple[Note, ...]: ...


class TakesRows(Protocol[P, R_co]):
    """A function of rows, or of one table; `of_table` is the plain function of a table behind it."""

    of_table: Callable[..., Any]

    @overload
    def __call__(self, table: ScoreTable, /, *args: P.args, **options: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, y_true: Column, y_prob: Column, **options: Any) -> R_co: ...


def takes_rows(function: Callable[Concatenate[ScoreTable, P], R]) -> TakesRows[P, R]:
    """Let ``f(table, *, ...)`` be called as ``f(y_true, y_prob, *, ...)`` too, with the options of `from_arrays`."""

    def with_rows(y_true: Any, y_prob: Any = None, **options: Any) -> R:
        return _call(function, y_true, y_prob, options)[1]

    dressed: TakesRows[P, R] = _dress(with_rows, function)
    return dressed


def as_number(function: Callable[Concatenate[ScoreTable, P], float | Measured]) -> TakesRows[P, float]:
    """As `takes_rows`, for functions that return a bare number: it cannot carry notes, so they become warnings."""

    def number(y_true: Any, y_prob: Any = None, **options: Any) -> float:
        table, result = _call(function, y_true, y_prob, options)
        for note in table.notes if isinstance(result, float) else result.notes:
            warnings.warn(note.text, CalibrantWarning, stacklevel=2)
        return result if isinstance(result, float) else result.value

    dressed: TakesRows[P, float] = _dress(number, function)
    return dressed


def _call(function: Callable[..., R], y_true: Any, y_prob: Any, options: dict[str, Any]) -> tuple[ScoreTable, R]:
    rows = {name: options.pop(name) for name in list(options) if name in _ROWS}
    table = table_of(y_true, y_prob, rows)
    return table, function(table, **options)


def _dress(wrapper: Any, function: Callable[..., Any]) -> Any:
    """Name, documentation and signature of the function, with rows in the place of the table."""
    functools.update_wrapper(wrapper, function)
    own = list(inspect.signature(function).parameters.values())[1:]
    y_true, y_prob, *rows = _ROWS.values()
    parameters = [y_true, y_prob.replace(default=None), *own, *rows]
    # Without the types, which `help` would spell out over half a screen.
    wrapper.__signature__ = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])
    wrapper.of_table = function
    return wrapper


def table_of(y_true: Any, y_prob: Any, options: Any) -> ScoreTable:
    """The table that a measure was given, as such or as rows; never an empty one."""
    table = y_true if isinstance(y_true, ScoreTable) else None
    if table is None and y_prob is None:
        raise InputError("y_prob is missing.", hint="Pass y_true and y_prob, or one ScoreTable.", argument="y_prob")
    if isinstance(y_prob, Mapping):
        raise InputError(
            "y_prob must be one column of predictions; it is a mapping.",
            hint="This takes one model: pass its column.",
            argument="y_prob",
        )
    unknown = [name for name in options if name not in _ROWS]
    if unknown:
        known = ", ".join(list(_ROWS)[2:])
        raise TypeError(f"There is no option {unknown[0]!r} here. How rows are read is said by {known}.")
    if table is None:
        return ScoreTable.from_arrays(y_true, y_prob, **options)
    given = ["y_prob"] * (y_prob is not None)
    given += [name for name, value in options.items() if name not in _ROWS or value is not _ROWS[name].default]
    if given:
        raise InputError(
            f"A ScoreTable was given, and {', '.join(given)} with it.",
            hint="A table is already counted: pass these to ScoreTable.from_arrays instead.",
            argument=given[0],
        )
    if not len(table):
        raise InputError("The table holds no rows; a measure needs at least one.", argument="table")
    return table


def need_both_classes(table: ScoreTable, name: str) -> None:
    """Refuses a table with one class, for what does not exist there."""
    if not table.has_both_classes:
        found = "no row has the event" if table.positives == 0 else "every row has it"
        raise InputError(
            f"{name} needs rows with and without the event; there is only one class: {found}.", argument="y_true"
        )
