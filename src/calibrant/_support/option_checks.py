"""Checks of options: shares, counts and choices."""

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np

from calibrant._support.errors import Argument, InputError, nearest

P = ParamSpec("P")
R = TypeVar("R")


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
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and least <= value <= most:
        return int(value)
    up_to = f"of at least {least}" if most == math.inf else f"from {least} to {most:,}"
    raise InputError(Argument(name) + f" must be a whole number {up_to}; got {value!r}.", value=value)


def is_number(value: object) -> bool:
    """Return whether an option is a real number, and not True or False."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


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


class UnknownArgumentError(InputError, TypeError):
    """A keyword argument that a function does not have; `value` is its name.

    See Also
    --------
    InputError

    Examples
    --------
    >>> import calibrant as cb
    >>> try:
    ...     cb.brier([0, 1], [0.2, 0.7], weights=[1, 2])
    ... except TypeError as error:
    ...     print(error)
    brier() has no argument 'weights'. Did you mean 'sample_weight'?
    """


# Names that other libraries use for an argument.
_SYNONYMS = {
    "group": "by",
    "groups": "by",
    "sensitive_features": "by",
    "labels": "classes",
    "class_names": "classes",
    "y_pred": "forecast",
    "y_prob": "forecast",
    "y_proba": "forecast",
    "y_score": "forecast",
    "predictions": "forecast",
    "clusters": "cluster",
    "seed": "random_state",
    "n_bootstrap": "n_resamples",
}


def check_keywords(function: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Check that a function has all keyword arguments that it is called with.

    >>> check_keywords("ece", ["n_bin"], ["n_bins", "sample_weight"])
    Traceback (most recent call last):
    ...
    calibrant._support.option_checks.UnknownArgumentError: ece() has no argument 'n_bin'. Did you mean 'n_bins'?
    """
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        synonym = _SYNONYMS.get(unknown)
        meant = f"Did you mean {synonym!r}?" if synonym in known else nearest(unknown, known).strip()
        hint = meant or f"It has {', '.join(known) or 'none'}."
        raise UnknownArgumentError(
            f"{function}() has no argument {unknown!r}.", hint=hint, argument=unknown, value=unknown
        )


def known_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that an unknown keyword argument is reported with the nearest known one."""
    known = _keywords(function)

    @functools.wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        check_keywords(function.__name__, options, known)
        return function(*args, **options)

    return checked


class KnownKeywords:
    """Base of classes whose constructors report an unknown keyword argument with the nearest known one."""

    def __new__(cls, *args: Any, **options: Any) -> Self:
        if options:
            check_keywords(cls.__name__, options, _keywords(cls.__init__)[1:])
        return super().__new__(cls)


def _keywords(function: Callable[..., Any]) -> list[str]:
    found = inspect.signature(function).parameters.values()
    return [each.name for each in found if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
