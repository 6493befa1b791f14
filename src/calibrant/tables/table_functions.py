"""Functions of a table that take rows too: wherever (y_true, y_prob) is taken, a `ScoreTable` may be given instead."""

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from calibrant._support.errors import CalibrantWarning, InputError, Note
from calibrant._support.typing import Column
from calibrant.tables.score_table import ScoreTable

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class Table(Protocol):
    """What a measure is taken of."""

    @property
    def notes(self) -> tuple[Note, ...]: ...
    def __len__(self) -> int: ...


T = TypeVar("T", bound=Table)


class Measured(Protocol):
    """A value that carries notes: a `Breakdown` or a `MetricValue`."""

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


class TableReader(Generic[T]):
    """Reads what a measure was given: one table of this kind, or two columns and options of `from_arrays`."""

    def __init__(self, kind: type[T], from_arrays: Callable[..., T]) -> None:
        self.kind, self.from_arrays = kind, from_arrays
        self.parameters = dict(inspect.signature(from_arrays).parameters)
        self.prediction = list(self.parameters)[1]

    def __call__(self, y_true: Any, prediction: Any, options: Mapping[str, Any]) -> T:
        """The table; never an empty one."""
        given = y_true if isinstance(y_true, self.kind) else None
        if given is None and prediction is None:
            raise InputError(
                f"{self.prediction} is missing.",
                hint=f"Pass y_true and {self.prediction}, or one {self.kind.__name__}.",
                argument=self.prediction,
            )
        if isinstance(prediction, Mapping):
            raise InputError(
                f"{self.prediction} must be one column of predictions; it is a mapping.",
                hint="This takes one model: pass its column.",
                argument=self.prediction,
            )
        unknown = [name for name in options if name not in self.parameters]
        if unknown:
            known = ", ".join(list(self.parameters)[2:])
            raise TypeError(f"There is no option {unknown[0]!r} here. How rows are read is said by {known}.")
        if given is None:
            return self.from_arrays(y_true, prediction, **options)
        return self._alone(given, prediction, options)

    def _alone(self, table: T, prediction: Any, options: Mapping[str, Any]) -> T:
        beside = [self.prediction] * (prediction is not None)
        beside += [name for name, value in options.items() if value is not self.parameters[name].default]
        if beside:
            raise InputError(
                f"A {self.kind.__name__} was given, and {', '.join(beside)} with it.",
                hint=f"A table is already counted: pass these to {self.kind.__name__}.from_arrays instead.",
                argument=beside[0],
            )
        if not len(table):
            raise InputError("The table holds no rows; a measure needs at least one.", argument="table")
        return table

    def takes_rows(self, function: Callable[Concatenate[T, P], R]) -> Any:
        """Let ``f(table, *, ...)`` be called with rows too."""

        def with_rows(*columns: Any, **options: Any) -> R:
            return self._call(function, columns, options)[1]

        return self._dress(with_rows, function)

    def as_number(self, function: Callable[Concatenate[T, P], float | Measured]) -> Any:
        """The same for functions that return a bare number: it cannot carry notes, so they become warnings."""

        def number(*columns: Any, **options: Any) -> float:
            table, result = self._call(function, columns, options)
            for note in table.notes if isinstance(result, float) else result.notes:
                warnings.warn(note.text, CalibrantWarning, stacklevel=2)
            return result if isinstance(result, float) else result.value

        return self._dress(number, function)

    def _call(self, function: Callable[..., R], columns: tuple[Any, ...], options: dict[str, Any]) -> tuple[T, R]:
        names = list(self.parameters)[:2]
        if not columns and names[0] not in options:
            raise TypeError(f"{function.__name__}() needs {' and '.join(names)}, or one {self.kind.__name__}.")
        if len(columns) > 2:
            raise TypeError(f"{function.__name__}() takes two columns; everything else is given by its name.")
        given = dict(zip(names, columns, strict=False))
        twice = [name for name in given if name in options]
        if twice:
            raise TypeError(f"{function.__name__}() got {twice[0]} twice.")
        given |= {name: options.pop(name) for name in names if name in options}
        rows = {name: options.pop(name) for name in list(options) if name in self.parameters}
        table = self(given.get(names[0]), given.get(names[1]), rows)
        return table, function(table, **options)

    def _dress(self, wrapper: Any, function: Callable[..., Any]) -> Any:
        """Name, documentation and signature of the function, with rows in the place of the table."""
        functools.update_wrapper(wrapper, function)
        own = list(inspect.signature(function).parameters.values())[1:]
        y_true, prediction, *rows = self.parameters.values()
        parameters = [y_true, prediction.replace(default=None), *own, *rows]
        # Without the types, which `help` would spell out over half a screen.
        wrapper.__signature__ = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])
        wrapper.of_table = function
        return wrapper


# The table that a measure of probabilities was given.
read_score_table = TableReader(ScoreTable, ScoreTable.from_arrays)


def takes_rows(function: Callable[Concatenate[ScoreTable, P], R]) -> TakesRows[P, R]:
    """Let ``f(table, *, ...)`` be called as ``f(y_true, y_prob, *, ...)`` too, with the options of `from_arrays`."""
    dressed: TakesRows[P, R] = read_score_table.takes_rows(function)
    return dressed


def as_number(function: Callable[Concatenate[ScoreTable, P], float | Measured]) -> TakesRows[P, float]:
    """As `takes_rows`, for functions that return a bare number: it cannot carry notes, so they become warnings."""
    dressed: TakesRows[P, float] = read_score_table.as_number(function)
    return dressed


def need_both_classes(table: ScoreTable, name: str) -> None:
    """Refuses a table with one class, for what does not exist there."""
    if not table.has_both_classes:
        found = "no row has the event" if table.positives == 0 else "every row has it"
        raise InputError(
            f"{name} needs rows with and without the event; there is only one class: {found}.", argument="y_true"
        )
