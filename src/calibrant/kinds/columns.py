"""Forecasts as columns of files: what the command line and MLflow ask of each kind of forecast.

The module ``columns`` of a kind holds its answers: one `ForecastColumns` named ``COLUMNS``. The commands loop over the
registry, so a new kind needs no change in them. The modules hold data, and functions that import what they need when
they are called, because ``--help`` loads all of them.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from calibrant._support.errors import Argument, InputError, Note
from calibrant.kinds.base import KINDS, kind_of

if TYPE_CHECKING:
    from calibrant.kinds.file_rows import FileRows

T = TypeVar("T")
# Returns the names of the columns of a file, which is read only if a pattern needs them.
NamesOfColumns: TypeAlias = Callable[[], Sequence[str]]

# The default margin as --help shows it, and what the margin means, for kinds with log-odds errors.
LOG_ODDS_MARGIN_HELP = ("0.1", "Probabilities: log-odds error, 0.1 means odds accurate to about 10 % on average.")

# Numbers in text are written as in most languages, without Python's underscores and other digits.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Option:
    """An option of the command line that names columns of a forecast.

    Attributes
    ----------
    name : str
        The argument.
    help, metavar : str
    flags : tuple of str
        By default the argument with dashes.
    completes : tuple of str
        The arguments of the options that name the forecast, if this one only adds columns to it.
    """

    name: str
    help: str
    metavar: str = "COLUMN"
    flags: tuple[str, ...] = ()
    completes: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The option as it is written on the command line."""
        return self.flags[0] if self.flags else "--" + self.name.replace("_", "-")


@dataclass(frozen=True)
class Model:
    """The columns of one model's forecast.

    Attributes
    ----------
    name : str
        The column, the pattern of several columns, or what they hold.
    columns : tuple of str
    keys : tuple
        The class of each column as text, or its level; empty for other kinds.
    """

    name: str
    columns: tuple[str, ...]
    keys: tuple[Any, ...] = ()


@dataclass(frozen=True)
class GateThreshold:
    """A threshold of ``calibrant check``, which decides in place of the verdict.

    Attributes
    ----------
    name : str
        The argument.
    metavar, help : str
    largest : float
        Thresholds lie between 0 and this.
    judge : callable
        From (evaluation, threshold) to the rule in words, whether it holds, and the value in words.
    setting : str
        The argument of the evaluation that gets the threshold, if it is a margin.
    """

    name: str
    metavar: str
    help: str
    largest: float
    judge: Callable[[Any, float], tuple[str, bool, str]]
    setting: str = ""


@dataclass(frozen=True)
class Fit:
    """What ``calibrant fit`` does with a kind of forecast.

    Attributes
    ----------
    methods : tuple of str
        Names of calibrators, the default first, and "auto" if `AutoCalibrator` takes such forecasts. They are repeated
        here so that ``--help`` does not import scikit-learn.
    metrics : callable
        From (outcomes, forecasts, weights and other arguments) to the printed metrics, a proper score first; None where
        one is undefined.
    registry : str
        The name of the mapping of their classes in `calibrant.calibrators.registry`.
    number_format : str
    sorted_columns : callable
        From (forecasts, outcomes, other arguments) to the forecasts in the order that `AutoCalibrator` expects.
    arguments : callable
        From a model to further arguments of the `fit` of calibrators.
    kinds : tuple of str
        The kinds of the calibrators, if not that of the forecasts alone.
    """

    methods: tuple[str, ...]
    metrics: Callable[[Any, Any, Mapping[str, Any]], dict[str, float | None]]
    registry: str = "CALIBRATORS"
    number_format: str = ".5f"
    sorted_columns: Callable[[Any, Any, Mapping[str, Any]], Any] = lambda forecasts, outcomes, arguments: forecasts
    arguments: Callable[[Model], dict[str, Any]] = lambda model: {}
    kinds: tuple[str, ...] = ()


def plain_models(option: str, given: Mapping[str, Any], names: NamesOfColumns) -> tuple[Model, ...]:
    """Return one model for each column."""
    return tuple(Model(column, (column,)) for column in dict.fromkeys(given[option]))


@dataclass(frozen=True)
class ForecastColumns:
    """How forecasts of one kind are columns of files.

    Attributes
    ----------
    noun : str
        What the forecasts are called in messages.
    options : tuple of Option
        The options that name the columns.
    outcome : {"event", "label", "number"}
        What the outcomes are.
    check : callable
        From rows as they were read to rows whose outcomes and forecasts are valid.
    forecast : callable
        From (option, model, values) to the forecast that `evaluate` and `compare` take.
    find_models : callable
        From (option, columns that were given by option, function that returns the names of all columns) to the models.
    holds_labels : bool
        Whether forecasts are labels, not numbers.
    is_one_column : bool
        Whether the values of a model are one column, not a matrix.
    arguments : callable
        From a model to further arguments of `evaluate` and `compare`.
    is_counted : bool
        Whether rows can be counted in score tables, by file or by Spark, so that files may exceed the memory.
    special_options : tuple of str
        Arguments of options that not all kinds have.
    thresholds : tuple of GateThreshold
    margin : tuple of str
        The default margin as ``--help`` shows it, and what it means.
    diagram : tuple of str or None
        The breakdown that is drawn on the console, and the words for the two means of a bin.
    headline_has_reason : bool
        Whether the first line of an evaluation states the reason for the verdict.
    audited : callable or None
        From a model to the forecast that `audit` takes of files; None if forecasts of the kind have no residuals.
    fit : Fit or None
    applied_columns : callable
        From (fitted calibrator, option, model) to the columns in the order in which the calibrator takes them.
    model_columns : callable or None
        From a fitted calibrator to the names of the columns that it takes and returns as a model of MLflow.
    are_labels : callable
        From values to whether they must be labels that were passed in place of forecasts.
    """

    noun: str
    options: tuple[Option, ...]
    outcome: Literal["event", "label", "number"]
    check: "Callable[[FileRows], FileRows]"
    forecast: Callable[[str, Model, Any], Any]
    find_models: Callable[[str, Mapping[str, Any], NamesOfColumns], tuple[Model, ...]] = plain_models
    holds_labels: bool = False
    is_one_column: bool = True
    arguments: Callable[[Model], dict[str, Any]] = lambda model: {}
    is_counted: bool = False
    special_options: tuple[str, ...] = ()
    thresholds: tuple[GateThreshold, ...] = ()
    margin: tuple[str, str] = LOG_ODDS_MARGIN_HELP
    diagram: tuple[str, str, str] | None = None
    headline_has_reason: bool = True
    audited: Callable[[Model], Any] | None = None
    fit: Fit | None = None
    applied_columns: Callable[[Any, str, Model], list[str]] = lambda calibrator, option, model: list(model.columns)
    model_columns: Callable[[Any], tuple[list[str], list[str]]] | None = None
    are_labels: Callable[[Any], bool] = lambda values: False

    @property
    def special_arguments(self) -> tuple[str, ...]:
        """The arguments of options and thresholds that not all kinds have."""
        return (*self.special_options, *(threshold.name for threshold in self.thresholds))


def columns_of(kind: str) -> ForecastColumns:
    """Return how forecasts of a kind are columns of files."""
    columns: ForecastColumns = kind_of(kind).columns.COLUMNS
    return columns


@cache
def columns_by_kind() -> Mapping[str, ForecastColumns]:
    """Return how forecasts are columns of files, for every kind."""
    return MappingProxyType({kind: columns_of(kind) for kind in KINDS})


def check_numbers(rows: "FileRows") -> "FileRows":
    """Check that outcomes and forecasts are finite numbers; columns of objects, such as decimals, become floats."""
    from calibrant._support.columns import finite

    return replace(rows.map_forecasts(finite), y=finite(rows.y))


def keyed_models(
    option: str,
    given: Mapping[str, Any],
    names: NamesOfColumns,
    *,
    name: str,
    form: str,
    key: str,
    read: Callable[[str], Any],
) -> tuple[Model, ...]:
    """Return one model of all entries KEY=COLUMN, and one model of each pattern, whose * stands for the key.

    `name` is that of the model without a pattern, `form` is for example "LABEL=COLUMN", `key` is what errors call a
    key, and `read` parses it.
    """
    entries = list(dict.fromkeys(given[option]))
    pairs = [tuple(entry.split("=", 1)) for entry in entries if "=" in entry]
    models = {name: pairs} if pairs else {}
    for pattern in (entry for entry in entries if "=" not in entry):
        if pattern.count("*") != 1:
            raise InputError(
                Argument(option) + f" must be {form}, or a pattern with one *; got {pattern!r}.", value=pattern
            )
        models[pattern] = [(text, column) for column, text in matching_columns(option, pattern, names())]
    return tuple(_keyed(option, model, found, key, read) for model, found in models.items())


def _keyed(option: str, name: str, pairs: Sequence[Any], key: str, read: Callable[[str], Any]) -> Model:
    keys = [read(text.strip()) for text, _ in pairs]
    twice = next((value for value in keys if keys.count(value) > 1), None)
    if twice is not None:
        raise InputError(Argument(option) + f" must name each {key} once; got {twice!r} twice.", value=twice)
    return Model(name, tuple(column for _, column in pairs), tuple(keys))


def matching_columns(option: str, pattern: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the columns that match a pattern with one *, each with the text that the * stands for."""
    before, after = map(re.escape, pattern.split("*"))
    matches = [(name, re.fullmatch(f"{before}(.+){after}", name)) for name in names]
    columns = [(name, match[1]) for name, match in matches if match is not None]
    if not columns:
        listed = ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
        raise InputError(
            Argument(option) + f" must match columns; {pattern!r} matches none of {listed}.", value=pattern
        )
    return columns


def parse_label(text: str) -> bool | int | float | None:
    """Return the truth value or the number that a text denotes, or None.

    >>> parse_label("True"), parse_label("3.0"), parse_label("0.5"), parse_label("1_0")
    (True, 3, 0.5, None)
    """
    truth = {"true": True, "false": False}.get(text.lower())
    if truth is not None or not _NUMBER.fullmatch(text):
        return truth
    number = float(text)
    if not number.is_integer():  # or infinite
        return number if math.isfinite(number) else None
    return int(text) if re.fullmatch("[+-]?[0-9]+", text) else int(number)


def try_pos_label(pos_label: str | None, read: Callable[[object], T], get_notes: Callable[[T], Iterable[Note]]) -> T:
    """Call `read` with the label of the event as text or, if no row has this label, as the number it denotes."""
    number = None if pos_label is None else parse_label(pos_label)
    if number is None:
        return read(pos_label)
    try:
        result = read(pos_label)
        if not any(note.code == "event_absent" for note in get_notes(result)):
            return result
    except InputError as error:
        if error.argument != "pos_label":
            raise
    return read(number)
