"""Fitted calibrators as plain data for JSON, and back, with all checks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, get_type_hints

import numpy as np
from sklearn.base import clone

from calibrant._support.errors import InputError, Note
from calibrant._support.plain_data import has_type
from calibrant.calibrators import class_maps, maps
from calibrant.calibrators.identity import Identity
from calibrant.calibrators.multicalibrator import Multicalibrator
from calibrant.calibrators.proportion_rule import ProportionRule
from calibrant.calibrators.registry import CALIBRATORS, RECALIBRATORS
from calibrant.calibrators.score_map import label_array
from calibrant.metrics.gce import part_from_spec, part_to_spec

__all__ = ["KINDS", "from_dict", "to_dict"]

_CLASSES: dict[str, Any] = {
    each.__name__: each
    for each in (*CALIBRATORS.values(), *RECALIBRATORS.values(), Identity, ProportionRule, Multicalibrator)
}


@dataclass(frozen=True)
class _State:
    """How the fitted state of one kind of calibrator is written and restored."""

    write: Callable[[Any], dict[str, Any]]
    restore: Callable[[Any, dict[str, Any]], None]


def to_dict(calibrator: Any) -> dict[str, Any]:
    """Return a fitted calibrator as plain data, from which `from_dict` restores it bitwise."""
    name = type(calibrator).__name__
    if type(calibrator) is not _CLASSES.get(name):
        raise InputError(
            f"calibrator must be of a class of calibrant to be saved; got {type(calibrator)!r}.", argument="calibrator"
        )
    settings = {key: _plain_setting(key, getattr(calibrator, key)) for key in _settings(type(calibrator))}
    _check_types(type(calibrator), settings)
    return {"calibrator": name, "settings": settings, **_STATES[calibrator.kind].write(calibrator)}


def from_dict(data: Any) -> Any:
    """Return the calibrator that `to_dict` describes; anything else is an error."""
    if not isinstance(data, dict):
        raise InputError(f"a calibrator must be an object; got {type(data).__name__}.")
    state = dict(data)
    name, settings = state.pop("calibrator", None), state.pop("settings", None)
    class_ = _CLASSES.get(name) if isinstance(name, str) else None
    if class_ is None:
        raise InputError(f"there is no calibrator named {name!r}.")
    expected = _settings(class_)
    if not isinstance(settings, dict) or set(settings) != set(expected):
        raise InputError(f"the settings of {name} must be {expected}.")
    _check_types(class_, settings)
    try:
        calibrator = class_(**{key: _setting(key, value) for key, value in settings.items()})
        _STATES[class_.kind].restore(calibrator, state)
    except InputError:
        raise
    # A value of a wrong type or size, which only the code that uses it notices.
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise InputError(f"a setting or a field of {name} cannot be used ({type(error).__name__}: {error}).") from error
    if state:
        raise InputError(f"{name} has no field {next(iter(state))!r}.")
    return calibrator


def _settings(class_: Any) -> list[str]:
    """Return the settings that go into a file; a calibrator inside goes there with its own state."""
    left_out = ("calibrator", *getattr(class_, "settings_of_fit", ()))
    return [name for name in class_._get_param_names() if name not in left_out]


def _check_types(class_: Any, settings: Mapping[str, Any]) -> None:
    """Check plain settings against the types that the constructor declares; other parts are checked when built."""
    declared = get_type_hints(class_.__init__)
    for name, value in settings.items():
        if not has_type(value, declared.get(name, Any)):
            raise InputError(f"{name} of {class_.__name__} must be of another type; got {value!r}.", argument=name)


def _plain_setting(name: str, value: Any) -> Any:
    """Return a setting as JSON has it; costs and bins by their specification."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain_setting(name, each) for each in value]
    if isinstance(value, Mapping):
        return {"mapping": [[_plain_setting(name, key), _plain_setting(name, each)] for key, each in value.items()]}
    spec = part_to_spec(value)
    try:
        part_from_spec(spec, name)
    except (InputError, TypeError, ValueError) as error:
        raise InputError(
            f"A setting must be a part of calibrant to be saved; got {value!r}.", hint="Use costs of calibrant."
        ) from error
    return {"part": spec}


def _setting(name: str, value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    try:
        return dict(value["mapping"]) if "mapping" in value else part_from_spec(value["part"], name)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a setting cannot be read: {value!r}.") from error


# Maps of one column, and of forecasts


def _map_state(calibrator: Any) -> dict[str, Any]:
    _check_settings(calibrator)
    return {"map": maps.to_dict(calibrator.map_), "notes": _plain_notes(calibrator)}


def _check_settings(calibrator: Any) -> None:
    if not calibrator.accepts_map(calibrator.map_):
        name = type(calibrator).__name__
        raise InputError(f"The settings of {name} must not change after its fit; they did.", hint="Fit it again.")


def _restore_map(calibrator: Any, state: dict[str, Any], *, increasing: bool, probabilities: bool = False) -> None:
    map_ = maps.from_dict(state.pop("map", {}))
    name = type(calibrator).__name__
    _check_kind(calibrator, map_)
    low, high = map_.range
    if probabilities and (low < 0 or high > 1):
        raise InputError(f"the values of the map of {name} must lie in [0, 1]; got {low:g} to {high:g}.")
    if increasing and not map_.is_increasing:
        raise InputError(f"the map of {name} must not fall; it does.")
    if not calibrator.accepts_map(map_):
        raise InputError(f"the map of {name} must fit its settings; it does not.")
    calibrator.map_ = map_
    calibrator.notes_ = _notes(state.pop("notes", None))


def _check_kind(calibrator: Any, map_: Any) -> None:
    if map_.kind not in calibrator.map_kinds:
        name, kinds = type(calibrator).__name__, " or ".join(calibrator.map_kinds)
        raise InputError(f"the map of {name} must be of kind {kinds}; got {map_.kind}.")


def _plain_notes(calibrator: Any) -> list[dict[str, Any]]:
    return [{"code": n.code, "count": n.count, "template": n.template} for n in calibrator.notes_]


def _notes(notes: Any) -> tuple[Note, ...]:
    try:
        found = tuple(Note(**note) for note in notes)
        for note in found:
            valid = isinstance(note.code, str) and type(note.count) is int and isinstance(note.template, str)
            # Only the count may be filled in.
            fields = [field for _, field, *how in Formatter().parse(note.template) if field is not None or any(how)]
            if not valid or set(fields) - {"count"} or "{count:" in note.template or "{count!" in note.template:
                raise TypeError
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError("notes are missing or malformed.") from error
    return found


def _score_state(calibrator: Any) -> dict[str, Any]:
    return {**_labels(calibrator), **_map_state(calibrator), **_numbers(calibrator)}


def _restore_score(calibrator: Any, state: dict[str, Any]) -> None:
    _restore_labels(calibrator, state)
    if len(calibrator.classes_) != 2:
        raise InputError(f"{type(calibrator).__name__} must have two classes; got {len(calibrator.classes_)}.")
    _restore_map(calibrator, state, increasing=calibrator.is_increasing, probabilities=True)
    calibrator.n_features_in_ = 1
    _restore_numbers(calibrator, state)


def _restore_point(calibrator: Any, state: dict[str, Any]) -> None:
    _restore_map(calibrator, state, increasing=calibrator.is_increasing)
    calibrator.n_features_in_ = 1
    for name in calibrator.cross_validated:
        setattr(calibrator, name, None)


def _distribution_state(calibrator: Any) -> dict[str, Any]:
    return {**_map_state(calibrator), **calibrator.extra_state()}


def _restore_distribution(calibrator: Any, state: dict[str, Any]) -> None:
    calibrator.restore_extra_state(state)
    _restore_map(calibrator, state, increasing=True)


# Labels and numbers


def _labels(calibrator: Any) -> dict[str, Any]:
    labels = calibrator.classes_.tolist()
    if not _are_labels(labels):
        raise InputError(f"Labels must be text or numbers to be saved; got {labels!r}.", hint="Encode them first.")
    return {"classes": labels}


def _are_labels(labels: Any) -> bool:
    return isinstance(labels, list) and all(isinstance(label, (str, int, float)) for label in labels)


def _restore_labels(calibrator: Any, state: dict[str, Any]) -> None:
    labels = state.pop("classes", None)
    if not _are_labels(labels) or len(set(labels)) < max(2, len(labels)):
        raise InputError(f"classes must be a list of different labels; got {labels!r}.")
    calibrator.classes_ = label_array(labels)


def _numbers(calibrator: Any) -> dict[str, Any]:
    return {"numbers": {each: float(getattr(calibrator, each)) for each in calibrator.saved_attributes}}


def _restore_numbers(calibrator: Any, state: dict[str, Any]) -> None:
    numbers = state.pop("numbers", None)
    if not isinstance(numbers, dict) or set(numbers) != set(calibrator.saved_attributes):
        raise InputError(f"numbers of {type(calibrator).__name__} must be {list(calibrator.saved_attributes)}.")
    for each, value in numbers.items():
        if not isinstance(value, float) or not 0 <= value < np.inf:
            raise InputError(f"{each} must be a number of at least 0; got {value!r}.")
        setattr(calibrator, each, value)


# Class probabilities


def _class_state(calibrator: Any) -> dict[str, Any]:
    _check_settings(calibrator)
    state = {**_labels(calibrator), "notes": _plain_notes(calibrator), **_numbers(calibrator)}
    if not hasattr(calibrator, "calibrators_"):
        return state | {"map": class_maps.to_dict(calibrator.map_)}
    coupled = calibrator.map_.kind == "coupling"
    state |= {"sizes": calibrator.map_.sizes.tolist()} if coupled else {"domain": calibrator.map_.domain}
    return state | {"calibrators": [to_dict(each) for each in calibrator.calibrators_]}


def _restore_class(calibrator: Any, state: dict[str, Any]) -> None:
    _restore_labels(calibrator, state)
    calibrator.n_features_in_ = len(calibrator.classes_)
    if "calibrator" in calibrator.get_params(deep=False):
        _restore_calibrators(calibrator, state)
    else:
        calibrator.map_ = class_maps.from_dict(state.pop("map", {}))
    _check_kind(calibrator, calibrator.map_)
    if not calibrator.accepts_map(calibrator.map_):
        raise InputError(f"the map of {type(calibrator).__name__} must fit its settings and classes; it does not.")
    calibrator.notes_ = _notes(state.pop("notes", None))
    _restore_numbers(calibrator, state)


def _restore_calibrators(calibrator: Any, state: dict[str, Any]) -> None:
    name, each = type(calibrator).__name__, state.pop("calibrators", None)
    if not isinstance(each, list) or not each:
        raise InputError(f"{name} must have a list of calibrators.")
    calibrator.calibrators_ = [from_dict(one) for one in each]
    first = calibrator.calibrators_[0]
    alike = all(type(one) is type(first) and one.get_params() == first.get_params() for one in calibrator.calibrators_)
    if first.kind != "binary" or not alike:
        raise InputError(f"{name} must have binary calibrators of one kind and the same settings.")
    calibrator.calibrator = clone(first)
    fitted = [one.map_ for one in calibrator.calibrators_]
    if "coupling" in calibrator.map_kinds:
        calibrator.map_ = class_maps.Coupling(fitted, state.pop("sizes", None), calibrator.eps)
    else:
        calibrator.map_ = class_maps.Normalised(fitted, state.pop("domain", None))


# Rules of class proportions


def _rule_state(calibrator: Any) -> dict[str, Any]:
    state = calibrator.to_state()
    keys = [key for group in state["groups"] for key in np.atleast_1d(np.array(group["group"], dtype=object)).tolist()]
    if not _are_labels(keys):
        raise InputError(f"Groups must be text or numbers to be saved; got {keys!r}.", hint="Encode them first.")
    return {**_labels(calibrator), **state}


def _restore_rule(calibrator: Any, state: dict[str, Any]) -> None:
    _restore_labels(calibrator, state)
    calibrator.restore_state(state)


# Multicalibrator


def _subgroup_state(calibrator: Any) -> dict[str, Any]:
    return {**_labels(calibrator), "notes": _plain_notes(calibrator), **calibrator.to_state()}


def _restore_subgroups(calibrator: Any, state: dict[str, Any]) -> None:
    _restore_labels(calibrator, state)
    if len(calibrator.classes_) != 2:
        raise InputError(f"Multicalibrator must have two classes; got {len(calibrator.classes_)}.")
    calibrator.notes_ = _notes(state.pop("notes", None))
    calibrator.restore_state(state)


_STATES = {
    "binary": _State(_score_state, _restore_score),
    "point": _State(_map_state, _restore_point),
    "distribution": _State(_distribution_state, _restore_distribution),
    "multiclass": _State(_class_state, _restore_class),
    "labels": _State(_rule_state, _restore_rule),
    "subgroups": _State(_subgroup_state, _restore_subgroups),
}
KINDS = tuple(_STATES)
