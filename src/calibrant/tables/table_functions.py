"""Functions of a table that take rows too: a table may be given wherever columns of rows are taken."""

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from calibrant._support.arrays import Column
from calibrant._support.errors import CalibrantWarning, InputError, Note, check_keywords
from calibrant.tables.rows import declared_kind
from calibrant.tables.score_table import ScoreTable, count_columns

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


class Table(Protocol):
    """A table that metrics measure."""

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
    """A function of rows or of one `ScoreTable`; `of_table` is the function of a table that it calls."""

    of_table: Callable[..., Any]

    @overload
    def __call__(self, table: ScoreTable, /, *args: P.args, **options: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, y_true: Column, y_prob: Column, **options: Any) -> R_co: ...


class TableReader(Generic[T]):
    """Reads the arguments of a metric: one table, or two columns and the options of `from_arrays`.

    `forecast_kind` is the kind of forecast that the table holds; forecasts that declare another kind are refused.
    """

    def __init__(self, kind: type[T], from_arrays: Callable[..., T], forecast_kind: str = "binary") -> None:
        self.kind, self.from_arrays, self.forecast_kind = kind, from_arrays, forecast_kind
        self.parameters = dict(inspect.signature(from_arrays).parameters)
        self.attribute = list(self.parameters)[1]  # of a forecast, such as `Point.y_pred`
        self.prediction = self.attribute  # in error messages
        self.options = list(self.parameters)[2:]

    def named(self, prediction: str, from_arrays: Callable[..., T]) -> "TableReader[T]":
        """Return a reader for functions whose argument is called `prediction`; `from_arrays` calls it so too."""
        reader = copy(self)
        reader.prediction, reader.from_arrays = prediction, from_arrays
        return reader

    def __call__(self, y_true: Any, prediction: Any, options: Mapping[str, Any]) -> T:
        """Return the table; an empty one is an error."""
        if isinstance(y_true, self.kind):
            return self._check_table(y_true, prediction, options)
        self.check_given(prediction)
        check_keywords(self.kind.__name__, options, self.options)
        return self.from_arrays(y_true, self.column(prediction), **options)

    def check_given(self, prediction: Any) -> None:
        """Check that the predictions of one model are given."""
        if prediction is None:
            raise InputError(
                f"{self.prediction} is missing.",
                hint=f"Pass y_true and {self.prediction}, or one {self.kind.__name__}.",
                argument=self.prediction,
            )
        if isinstance(prediction, Mapping):
            raise InputError(
                f"{self.prediction} must be one column of predictions; got a mapping.",
                hint="Pass the column of one model.",
                argument=self.prediction,
            )

    def column(self, prediction: Any) -> Any:
        """Return the predictions of a forecast that declares its kind, such as `Point`."""
        kind = declared_kind(prediction)
        if kind is None:
            return prediction
        if kind != self.forecast_kind:
            raise InputError(
                f"{self.prediction} must be a forecast of kind {self.forecast_kind!r}; got "
                f"{type(prediction).__name__}, whose kind is {kind!r}.",
                hint="Use a metric of that kind; see calibrant.METRICS.",
                argument=self.prediction,
            )
        return getattr(prediction, self.attribute, prediction)

    def _check_table(self, table: T, prediction: Any, options: Mapping[str, Any]) -> T:
        check_keywords(self.kind.__name__, options, self.options)
        others = [self.prediction] * (prediction is not None)
        others += [name for name, value in options.items() if value is not self.parameters[name].default]
        if others:
            raise InputError(
                f"{', '.join(others)} must be omitted with a {self.kind.__name__}; got both.",
                hint=f"The rows of a table are counted: pass such options to {self.kind.__name__}.from_arrays.",
                argument=others[0],
            )
        if not len(table):
            raise InputError("The table holds no rows; a metric needs at least one.", argument="table")
        return table

    def takes_rows(self, function: Callable[Concatenate[T, P], R]) -> Any:
        """Let ``f(table, *, ...)`` be called with rows too, and with the options of `from_arrays`."""

        def with_rows(*columns: Any, **options: Any) -> R:
            return self._call(with_rows, function, columns, options)[1]

        return self._wrap(with_rows, function)

    def as_number(self, function: Callable[Concatenate[T, P], float | Measured]) -> Any:
        """As `takes_rows`, for functions that return a number: it cannot carry notes, so they become warnings.

        If the function has an attribute `of_rows`, a function of two columns and the same options, it is asked first
        where no option for reading rows is given; None means that a table is needed. If it has an attribute
        `of_reading`, it takes ``reading=``, and other readings of rows than the first one are passed to that attribute.
        """
        of_rows: Callable[..., float | None] | None = getattr(function, "of_rows", None)
        of_reading: Callable[..., float] | None = getattr(function, "of_reading", None)

        def number(*columns: Any, **options: Any) -> float:
            if of_reading is not None and (reading := options.pop("reading", "pooled")) != "pooled":
                return of_reading(*columns, reading=reading, **options)
            if of_rows is not None and len(columns) == 2 and not options.keys() & self.parameters.keys():
                value = of_rows(*columns, **options)
                if value is not None:
                    return value
            table, result = self._call(number, function, columns, options)
            for note in table.notes if isinstance(result, float) else result.notes:
                warnings.warn(note.text, CalibrantWarning, stacklevel=2)
            return result if isinstance(result, float) else result.value

        return self._wrap(number, function)

    def row_options(self, function: Callable[P, R]) -> Callable[P, R]:
        """Check the keyword arguments of a function whose ``**rows`` are the options of `from_arrays`.

        The signature of the function shows these options in the place of ``**rows``.
        """
        own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
        rows = [p for name, p in self.parameters.items() if name in self.options]
        known = [p.name for p in (*own, *rows)]

        @functools.wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            check_keywords(function.__name__, options, known)
            return function(*args, **options)

        checked.__signature__ = inspect.Signature([*own, *rows])  # type: ignore[attr-defined]
        return checked

    def _call(
        self, wrapper: Any, function: Callable[..., R], columns: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[T, R]:
        name, (y_true, prediction) = function.__name__, list(self.parameters)[:2]
        if not columns and y_true not in options:
            raise TypeError(f"{name}() needs {y_true} and {prediction}, or one {self.kind.__name__}.")
        if len(columns) > 2:
            raise TypeError(f"{name}() takes two columns; all other arguments are given by name.")
        given = dict(zip((y_true, prediction), columns, strict=False))
        twice = [each for each in given if each in options]
        if twice:
            raise TypeError(f"{name}() got {twice[0]} twice.")
        check_keywords(name, options, list(wrapper.__signature__.parameters))
        given |= {each: options.pop(each) for each in (y_true, prediction) if each in options}
        rows = {each: options.pop(each) for each in list(options) if each in self.parameters}
        table = self(given.get(y_true), given.get(prediction), rows)
        return table, function(table, **options)

    def _wrap(self, wrapper: Any, function: Callable[..., Any]) -> Any:
        """Give the wrapper the name and documentation of the function, with rows in the place of the table."""
        functools.update_wrapper(wrapper, function)
        own = list(inspect.signature(function).parameters.values())[1:]
        y_true, prediction, *rows = self.parameters.values()
        parameters = [y_true, prediction.replace(default=None), *own, *rows]
        # Without types, which `help` would print over half a screen.
        wrapper.__signature__ = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])
        wrapper.of_table = function
        return wrapper


# Reads the table of a binary metric.
read_score_table = TableReader(ScoreTable, ScoreTable.from_arrays)
# The same for functions whose argument is a forecast of any kind.
read_score_forecast = read_score_table.named("forecast", functools.partial(count_columns, name="forecast"))
row_options = read_score_table.row_options


def takes_rows(function: Callable[Concatenate[ScoreTable, P], R]) -> TakesRows[P, R]:
    """Let ``f(table, *, ...)`` be called as ``f(y_true, y_prob, *, ...)`` too, with the options of `from_arrays`."""
    wrapped: TakesRows[P, R] = read_score_table.takes_rows(function)
    return wrapped


def as_number(function: Callable[Concatenate[ScoreTable, P], float | Measured]) -> TakesRows[P, float]:
    """As `takes_rows`, for functions that return a number: it cannot carry notes, so they become warnings."""
    wrapped: TakesRows[P, float] = read_score_table.as_number(function)
    return wrapped


def need_both_classes(table: ScoreTable, name: str) -> None:
    """Raise an error if the table has one class, for metrics that need two."""
    if not table.has_both_classes:
        found = "no row has the event" if table.positives == 0 else "every row has it"
        raise InputError(
            f"{name} needs rows with and without the event; there is only one class: {found}.", argument="y_true"
        )
