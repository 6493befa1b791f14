"""Options that name the columns of a forecast: its kind, and the columns of each model."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant._support.errors import Argument, InputError

__all__ = ["KINDS", "Model", "check_forecast_options", "find_models", "forecast_option", "parse_label"]

# The kind of forecast that each option names.
KINDS = {
    "p": "binary",
    "class_score": "multiclass",
    "predicted_label": "labels",
    "point": "point",
    "mean": "distribution",
    "quantile": "distribution",
    "sample": "distribution",
}
# Options that only scores of one event have.
_BINARY_ONLY = ("pos_label", "resolution", "spark", "max_memory", "costs", "n_bins", "absolute_margin")
# Numbers in text are written as in most languages, without Python's underscores and other digits.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


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


def forecast_option(given: Mapping[str, Any]) -> str:
    """Return the argument of the option that names the forecast; exactly one form must be given."""
    found = [name for name in KINDS if given.get(name)]
    if given.get("sd") and "mean" not in found:
        raise InputError(Argument("sd") + " must be given with " + Argument("mean") + "; got it alone.")
    if len(found) > 1:
        raise InputError(
            Argument(found[0]) + " and " + Argument(found[1]) + " must not be given together; got both.",
            hint="Name forecasts of one kind.",
        )
    if not found:
        known = [name for name in KINDS if name in given]
        names = Argument(known[0]) + ""
        for name in known[1:]:
            names = names + (" or " if name == known[-1] else ", ") + Argument(name)
        raise InputError(names + " must be given; got none of them.", hint="It names the columns of the forecast.")
    return found[0]


def check_forecast_options(option: str, given: Mapping[str, Any]) -> None:
    """Raise an error if an option is given that only scores of one event have."""
    if KINDS[option] == "binary":
        return
    for name in _BINARY_ONLY:
        if given.get(name) not in (None, ()):
            raise InputError(
                Argument(name) + " must be given with " + Argument("p") + " only; got " + Argument(option) + "."
            )


def find_models(option: str, given: Mapping[str, Any], there: Sequence[str]) -> tuple[Model, ...]:
    """Return the models that the options name.

    Parameters
    ----------
    option : str
        The argument of the option that names the forecast.
    given : mapping of argument to tuple of text
    there : sequence of str
        The columns of the file, for patterns.
    """
    entries = list(dict.fromkeys(given[option]))
    if option == "class_score":
        return _keyed_models(option, entries, there, "class probabilities", str)
    if option == "quantile":
        found = _keyed_models(option, entries, there, "quantiles", _level)
        return tuple(_sorted_by_level(model) for model in found)
    if option == "sample":
        return _sample_models(entries, there)
    if option == "mean":
        return _gaussian_models(given)
    return tuple(Model(column, (column,)) for column in entries)


def _keyed_models(
    option: str, entries: list[str], there: Sequence[str], name: str, read: Callable[[str], Any]
) -> tuple[Model, ...]:
    """Return one model of all entries KEY=COLUMN, and one model of each pattern."""
    pairs = [tuple(entry.split("=", 1)) for entry in entries if "=" in entry]
    models = [_keyed(option, name, pairs, read)] if pairs else []
    for pattern in (entry for entry in entries if "=" not in entry):
        if pattern.count("*") != 1:
            key = "LEVEL=COLUMN" if option == "quantile" else "LABEL=COLUMN"
            raise InputError(
                Argument(option) + f" must be {key}, or a pattern with one *; got {pattern!r}.", value=pattern
            )
        models.append(_keyed(option, pattern, [(key, each) for each, key in _matches(option, pattern, there)], read))
    return tuple(models)


def _keyed(option: str, name: str, pairs: Sequence[Any], read: Callable[[str], Any]) -> Model:
    keys = tuple(read(key.strip()) for key, _ in pairs)
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        what = "level" if option == "quantile" else "class"
        raise InputError(Argument(option) + f" must name each {what} once; got {twice!r} twice.", value=twice)
    if option == "class_score" and len(keys) < 2:
        raise InputError(
            Argument(option) + f" must name at least two classes; got {keys[0]!r} alone.",
            hint="For the probability of one event use " + Argument("p") + ".",
            value=keys[0],
        )
    return Model(name, tuple(column for _, column in pairs), keys)


def _matches(option: str, pattern: str, there: Sequence[str]) -> list[tuple[str, str]]:
    """Return the columns that match a pattern, each with the part that the * stands for."""
    before, after = map(re.escape, pattern.split("*"))
    tried = [(column, re.fullmatch(f"{before}(.+){after}", column)) for column in there]
    found = [(column, match[1]) for column, match in tried if match is not None]
    if not found:
        shown = ", ".join(map(repr, there[:20])) + (", ..." if len(there) > 20 else "")
        raise InputError(Argument(option) + f" must match columns; {pattern!r} matches none of {shown}.", value=pattern)
    return found


def _level(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = -1.0
    if not 0 < level < 1:
        raise InputError(
            Argument("quantile") + f" must have a level between 0 and 1, as in 0.05=q05; got {text!r}.", value=text
        )
    return level


def _sorted_by_level(model: Model) -> Model:
    pairs = sorted(zip(model.keys, model.columns, strict=True))
    return Model(model.name, tuple(column for _, column in pairs), tuple(level for level, _ in pairs))


def _sample_models(entries: list[str], there: Sequence[str]) -> tuple[Model, ...]:
    plain = tuple(entry for entry in entries if "*" not in entry)
    models = [Model("samples", plain)] if plain else []
    for pattern in (entry for entry in entries if "*" in entry):
        if pattern.count("*") > 1:
            raise InputError(Argument("sample") + f" must have one * at most; got {pattern!r}.", value=pattern)
        models.append(Model(pattern, tuple(column for column, _ in _matches("sample", pattern, there))))
    return tuple(models)


def _gaussian_models(given: Mapping[str, Any]) -> tuple[Model, ...]:
    """Return one model per mean, with the standard deviation that is given in the same place."""
    means, deviations = given["mean"], given["sd"]
    if len(means) != len(deviations):
        raise InputError(
            Argument("mean")
            + " and "
            + Argument("sd")
            + f" must be given equally often; got {len(means)} and {len(deviations)}."
        )
    if len(set(means)) < len(means):
        raise InputError(Argument("mean") + f" must name different columns; got {', '.join(means)}.")
    return tuple(Model(mean, (mean, sd)) for mean, sd in zip(means, deviations, strict=True))
