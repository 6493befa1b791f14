"""Errors about input, the checks of options that raise them, warnings, and the notes of results."""

import functools
import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from calibrant._support.formatting import printable
from calibrant._support.lazy import warn_moved


class Text:
    """A message as data: strings and the arguments that it mentions, joined by ``+``.

    Examples
    --------
    >>> text = "Pass " + Argument("missing", "drop") + " to drop such rows."
    >>> text.write()
    "Pass missing='drop' to drop such rows."
    >>> text.write(lambda argument: f"--{argument.name} {argument.value}")
    'Pass --missing drop to drop such rows.'
    """

    def __init__(self, *parts: "str | Argument") -> None:
        self.parts = parts

    def __add__(self, other: "str | Argument | Text") -> "Text":
        return Text(*self.parts, *(other.parts if isinstance(other, Text) else (other,)))

    def __radd__(self, other: str) -> "Text":
        return Text(other, *self.parts)

    def write(self, write_argument: "Callable[[Argument], str]" = str) -> str:
        """Return the text with each argument as `write_argument` writes it; by default as in Python."""
        return "".join(part if isinstance(part, str) else write_argument(part) for part in self.parts)


@dataclass(frozen=True)
class Argument:
    """An argument that a message mentions, alone or with a value to pass.

    Each interface writes it in its own way: Python as ``missing='drop'``, the command line as ``--missing drop``.

    Parameters
    ----------
    name : str
    value : object, optional
        The value to pass.
    python : str, optional
        The Python code to show, where it is not the name and the value.
    """

    name: str
    value: object = None
    python: str = ""

    def __add__(self, other: "str | Argument | Text") -> Text:
        return Text(self) + other

    def __radd__(self, other: str) -> Text:
        return Text(other, self)

    def __str__(self) -> str:
        return self.python or (self.name if self.value is None else f"{self.name}={self.value!r}")


class InputError(ValueError):
    """Input that cannot be used. The message states the condition, the value and its place, and what to do.

    Parameters
    ----------
    problem : str or Text
        The condition, the value and its place.
    hint : str or Text, optional
        What to do; the end of the message.

    Attributes
    ----------
    argument : str or None
        Name of the argument at fault; by default the first one that the problem mentions: an `Argument`, or the word
        before "must" at its start.
    row : int or None
        First row at fault, counted from 0.
    value : object
        The value at fault.
    hint : str
        What to do; the end of the message.

    See Also
    --------
    CalibrantWarning

    Examples
    --------
    >>> error = InputError(Argument("alpha") + " must lie between 0 and 1; got 2.", value=2)
    >>> error.argument, str(error)
    ('alpha', 'alpha must lie between 0 and 1; got 2.')
    >>> error.write(lambda argument: f"--{argument.name}")
    '--alpha must lie between 0 and 1; got 2.'
    """

    __module__ = "calibrant.exceptions"  # where it is public; tracebacks show it

    def __init__(
        self,
        problem: str | Text,
        *,
        hint: str | Text = "",
        argument: str | None = None,
        row: int | None = None,
        value: object = None,
    ) -> None:
        self._problem, self._hint = Text() + problem, Text() + hint
        super().__init__(self.write())
        mentioned = [part.name for part in self._problem.parts if isinstance(part, Argument)]
        mentioned += re.findall(r"^([a-z_]\w*) must ", str(self))
        self.argument: str | None = next(iter(mentioned), None) if argument is None else argument
        self.row = row
        self.value = value
        self.hint: str = self._hint.write()

    def write(self, write_argument: Callable[[Argument], str] = str) -> str:
        """Return the message with each argument as `write_argument` writes it; by default as in Python.

        Parameters
        ----------
        write_argument : callable, default=str
            Function from an argument to its text; the command line writes options with it.

        Returns
        -------
        str
            The message with its hint.
        """
        text = f"{self._problem.write(write_argument)} {self._hint.write(write_argument)}".rstrip()
        return printable(text, keep="\n")  # names of columns may hold control characters


def wrong_value(name: str, rule: str, value: object, *, hint: str | Text = "", got: str | None = None) -> InputError:
    """Return the error of an argument that breaks a rule; `got` is the text of its value, by default its `repr`.

    Examples
    --------
    >>> print(wrong_value("alpha", "must lie between 0 and 1", 2.0))
    alpha must lie between 0 and 1; got 2.0.
    """
    return InputError(Argument(name) + f" {rule}; got {repr(value) if got is None else got}.", hint=hint, value=value)


class MissingExtraError(ModuleNotFoundError):
    """An optional library is not installed. The message names the command that installs it.

    Parameters
    ----------
    problem : str
        What needs which library.
    extra : str
        The extra of Calibrant that installs the library.
    name : str or None
        Name of the missing module.

    See Also
    --------
    InputError

    Examples
    --------
    >>> print(MissingExtraError("Diagrams need matplotlib", "plot", name="matplotlib"))
    Diagrams need matplotlib: pip install "calibrant[plot]".
    """

    __module__ = "calibrant.exceptions"

    def __init__(self, problem: str, extra: str, *, name: str | None = None) -> None:
        super().__init__(problem, extra, name=name)
        self.problem = problem
        self.extra = extra

    def __str__(self) -> str:
        return f'{self.problem}: pip install "calibrant[{self.extra}]".'


class CalibrantWarning(UserWarning):
    """A result that is correct but easily misread, or input that was not used as given.

    See Also
    --------
    InputError, Note

    Examples
    --------
    >>> import warnings
    >>> import calibrant as cb
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = cb.ece([0, 1, None], [0.2, 0.7, 0.4], missing="drop")
    >>> caught[0].category.__name__
    'CalibrantWarning'
    """

    __module__ = "calibrant.exceptions"


@dataclass(frozen=True)
class Note:
    """A remark on the input of a result, such as the number of dropped rows.

    ``template`` may hold ``{count}``, so that the notes of two tables can be added.

    Parameters
    ----------
    code : str
        Name of the remark, for programs.
    count : int
        Number of rows.
    template : str
        Text of the remark.

    See Also
    --------
    InputError, CalibrantWarning

    Examples
    --------
    >>> import calibrant as cb
    >>> table = cb.ScoreTable.from_arrays([0, 1, None], [0.2, 0.7, 0.5], missing="drop")
    >>> [(note.code, note.count) for note in table.notes]
    [('missing', 1)]
    """

    code: str
    count: int
    template: str

    @property
    def text(self) -> str:
        """The text with the number of rows."""
        # Names of columns may hold other braces, and control characters, as may a stored table.
        return printable(self.template.replace("{count}", f"{self.count:,}"))

    def to_dict(self) -> dict[str, object]:
        """Return code, count and text as plain data for JSON.

        Returns
        -------
        dict
            The keys are "code", "count" and "text".
        """
        return {"code": self.code, "count": self.count, "text": self.text}


def nearest(name: str, known: Sequence[str]) -> str:
    """Return " Did you mean ...?" with the known names that are similar, or an empty string."""
    lower = {each.lower(): each for each in reversed(known)}
    found = [lower[each] for each in get_close_matches(str(name).lower(), lower, n=3, cutoff=0.6)]
    return f" Did you mean {' or '.join(map(repr, found))}?" if found else ""


def no_column(name: str, known: Sequence[str], where: str = "The data") -> InputError:
    """Return the error that the data have no column of this name."""
    shown = ", ".join(map(repr, known[:20])) + (", ..." if len(known) > 20 else "")
    there = f"it has {shown}" if known else "it has none"
    return InputError(
        f"{where} has no column {name!r}; {there}.", hint=nearest(name, known).strip(), argument=name, value=name
    )


def warn_notes(notes: Iterable[Note], *, stacklevel: int = 2) -> None:
    """Issue notes as warnings, for functions that return a number; `stacklevel` counts from the caller of this one."""
    for note in notes:
        warnings.warn(note.text, CalibrantWarning, stacklevel=stacklevel + 1)


def join_notes(*groups: Iterable[Note]) -> tuple[Note, ...]:
    """Return all notes in order; the counts of equal notes are added."""
    counts: dict[tuple[str, str], int] = {}
    for group in groups:
        for note in group:
            key = (note.code, note.template)
            counts[key] = counts.get(key, 0) + note.count
    return tuple(Note(code, count, template) for (code, template), count in counts.items())


_LARGEST_SHARE = 1 - 1e-12  # closer to 1, quantiles of both tails do not exist as doubles
_MOST_RESAMPLES = 10_000_000


def check_share(name: str, value: float) -> float:
    """Check a confidence level or an alpha: strictly between 0 and 1, and not within 1e-12 of 1."""
    if isinstance(value, Real) and 0 < value <= _LARGEST_SHARE:
        return value
    bound = ", and not within 1e-12 of 1" if isinstance(value, Real) and _LARGEST_SHARE < value < 1 else ""
    raise InputError(Argument(name) + f" must lie between 0 and 1{bound}; got {value!r}.", value=value)


def check_resample_count(value: int, *, least: int = 1) -> int:
    """Check and return a number of bootstrap or null replicates."""
    if check_count("n_resamples", value, least=least) <= _MOST_RESAMPLES:
        return int(value)
    raise InputError(
        Argument("n_resamples") + f" must be at most {_MOST_RESAMPLES:,}; got {value!r}.",
        hint="9,999 replicates resolve p-values of 0.0001.",
        value=value,
    )


def check_count(name: str, value: int, most: float = math.inf, *, least: int = 1) -> int:
    """Check and return an integer from `least` to `most`."""
    if isinstance(value, Integral) and not isinstance(value, bool) and least <= value <= most:
        return int(value)
    up_to = f"of at least {least}" if most == math.inf else f"from {least} to {most:,}"
    raise InputError(Argument(name) + f" must be a whole number {up_to}; got {value!r}.", value=value)


def is_number(value: object) -> bool:
    """Return whether an option is a real number, and not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_callable(name: str, value: object) -> None:
    """Check that an option can be called."""
    if not callable(value):
        raise InputError(Argument(name) + f" must be a function; got {value!r}.", value=value)


def check_sequence(name: str, values: object) -> list[Any]:
    """Check that an option has several values, and return them."""
    if isinstance(values, Iterable) and not isinstance(values, str):
        return list(values)
    raise InputError(Argument(name) + f" must be a sequence; got {values!r}.", value=values)


def check_option(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Check that a value is one of the allowed ones."""
    if not isinstance(value, str) or value not in allowed:
        choices = " or ".join(repr(choice) for choice in allowed)
        raise InputError(Argument(name) + f" must be {choices}; got {value!r}.", value=value)


P = ParamSpec("P")
R = TypeVar("R")


def renamed_options(**renamed: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for functions whose options were renamed; the old names work with a `DeprecationWarning`.

    Parameters
    ----------
    **renamed
        From old names to new ones.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def translated(*args: P.args, **options: P.kwargs) -> R:
            for old in renamed.keys() & options.keys():
                new = renamed[old]
                if new in options:
                    raise InputError(Argument(old) + " must be omitted with " + Argument(new) + ": it is its old name.")
                warn_moved(f"{old}= of {function.__name__}()", f"{new}=")
                options[new] = options.pop(old)
            return function(*args, **options)

        return translated

    return decorate
