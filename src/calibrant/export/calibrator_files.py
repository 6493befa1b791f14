"""Calibrators in files: versioned JSON with a checksum, checked when it is read. Never a pickle."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from calibrant._support.errors import InputError, Note
from calibrant._support.file_modes import default_file_mode
from calibrant.calibrators import class_maps, maps
from calibrant.calibrators.multiclass import ProbabilityMap
from calibrant.calibrators.registry import CALIBRATORS
from calibrant.calibrators.score_map import ScoreMap, label_array
from calibrant.metrics.specification import part_from_spec, part_to_spec
from calibrant.versions import __version__

__all__ = ["load", "save"]

FORMAT = "calibrant calibrator"
VERSION = 1
_LARGEST = 2**28  # bytes; a map of six million steps is as large
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in CALIBRATORS.values()}


def save(calibrator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator to a JSON file, from which `load` gets it back bit by bit.

    Parameters
    ----------
    calibrator : binary or multiclass calibrator
        Fitted. Models on features hold a classifier, which JSON cannot: save their ``calibrator_``.
    path : path
        An existing file is replaced, at once or not at all.

    Notes
    -----
    The file names its format and version, the calibrator with its settings, the classes, the map that was learned, and
    a SHA-256 of all that. Numbers are written with as many digits as give the same number back.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant import Platt
    >>> cal = Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(cal, f"{folder}/cal.json")
    ...     same = load(f"{folder}/cal.json")
    >>> bool((same([0.2, 0.7]) == cal([0.2, 0.7])).all())
    True
    """
    if not isinstance(calibrator, (ScoreMap, ProbabilityMap)):
        raise InputError(
            f"Only calibrators can be saved; it is {type(calibrator).__name__}.",
            hint="Of a model on features save its calibrator_: the classifier needs a format of its own.",
            argument="calibrator",
        )
    check_is_fitted(calibrator)
    body = {"format": FORMAT, "version": VERSION, "calibrant": __version__, **_described(calibrator)}
    text = json.dumps(body | {"sha256": _checksum(body)}, allow_nan=False, indent=1)
    if len(text) > _LARGEST:
        raise InputError(
            f"The calibrator needs {len(text):,} bytes; files may have {_LARGEST:,}.", hint="Use Isotonic."
        )
    target = Path(path)
    with tempfile.NamedTemporaryFile(
        "w", dir=target.parent, prefix=target.name, suffix=".part", encoding="utf-8", delete=False
    ) as scratch:
        scratch.write(text + "\n")
    try:
        Path(scratch.name).chmod(default_file_mode())
        Path(scratch.name).replace(target)
    except OSError:
        Path(scratch.name).unlink()
        raise


def load(path: str | os.PathLike[str]) -> Any:
    """The calibrator that `save` wrote to the file.

    Nothing in the file is executed. Its format, its checksum, every field, and that the map rises where the calibrator
    promises it, are checked; anything else raises an `InputError` that names the file.
    """
    source = Path(path)
    try:
        if source.stat().st_size > _LARGEST:
            raise InputError(f"it has more than {_LARGEST:,} bytes.")
        return _read(source.read_bytes())
    except (ValueError, OverflowError, RecursionError) as error:  # InputErrors among them
        raise InputError(
            f"{source.name} is not a calibrator that calibrant can load: {error}", argument="path", value=str(source)
        ) from error


def _read(data: bytes) -> Any:
    try:
        body = json.loads(data.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_once)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"it is not JSON ({error}).") from error
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise InputError(f"its format is not {FORMAT!r}.")
    if type(body.get("version")) is not int or body["version"] != VERSION:
        raise InputError(
            f"its version is {body.get('version')!r}, and this calibrant reads {VERSION}.",
            hint="Upgrade calibrant if the file is newer.",
        )
    checksum = body.pop("sha256", None)
    if checksum != _checksum(body):
        raise InputError("its checksum does not match: the file was changed or damaged.")
    for name in ("format", "version", "calibrant"):
        body.pop(name, None)
    return _built(body)


def _checksum(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _refuse(constant: str) -> Any:
    raise InputError(f"it holds {constant}, which is no number.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InputError("a field occurs twice.")
    return found


def _described(calibrator: Any) -> dict[str, Any]:
    name = type(calibrator).__name__
    if type(calibrator) is not _KINDS.get(name):
        raise InputError(f"There is no format for {name}.", hint="Calibrators of your own need one of their own.")
    if not _are_labels(calibrator.classes_.tolist()):
        raise InputError(
            f"Labels must be text or numbers to be saved; they are {calibrator.classes_.tolist()!r}.",
            hint="Encode them first.",
        )
    if not calibrator.accepts_map(calibrator.map_):
        raise InputError(f"The settings of {name} were changed after it was fitted.", hint="Fit it again.")
    settings = {key: _plain_setting(getattr(calibrator, key)) for key in _settings_of(type(calibrator))}
    described: dict[str, Any] = {"calibrator": name, "settings": settings, "classes": calibrator.classes_.tolist()}
    notes = [{"code": n.code, "count": n.count, "template": n.template} for n in calibrator.notes_]
    described |= _described_map(calibrator) | {"notes": notes}
    return described | {"numbers": {each: float(getattr(calibrator, each)) for each in calibrator.saved_attributes}}


def _settings_of(kind: Any) -> list[str]:
    """Return the settings that go into a file; a binary calibrator inside goes there with what was fitted."""
    return [name for name in kind._get_param_names() if name != "calibrator"]


def _described_map(calibrator: Any) -> dict[str, Any]:
    if isinstance(calibrator, ScoreMap):
        return {"map": maps.to_dict(calibrator.map_)}
    if hasattr(calibrator, "calibrators_"):
        coupled = calibrator.map_.kind == "coupling"
        more = {"sizes": calibrator.map_.sizes.tolist()} if coupled else {"domain": calibrator.map_.domain}
        return {"calibrators": [_described(one) for one in calibrator.calibrators_], **more}
    return {"map": class_maps.to_dict(calibrator.map_)}


def _plain_setting(value: Any) -> Any:
    """A setting as JSON has it; costs and bins by their specification."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    spec = part_to_spec(value)
    try:
        part_from_spec(spec)
    except (InputError, TypeError, ValueError) as error:
        raise InputError(
            f"A setting of your own cannot be saved: {value!r}.", hint="Use costs of calibrant."
        ) from error
    return {"part": spec}


def _setting(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    try:
        return part_from_spec(value["part"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"a setting cannot be read: {value!r}.") from error


def _built(body: Any) -> Any:
    if not isinstance(body, dict):
        raise InputError("a calibrator must be an object.")
    name = body.pop("calibrator", None)
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InputError(f"there is no calibrator named {name!r}.")
    settings, classes = body.pop("settings", None), body.pop("classes", None)
    expected = set(_settings_of(kind))
    if not isinstance(settings, dict) or set(settings) != expected:
        raise InputError(f"the settings of {name} are {sorted(expected)}.")
    if not _are_labels(classes) or len(set(classes)) < max(2, len(classes)):
        raise InputError(f"classes must be a list of different labels; it is {classes!r}.")
    calibrator = kind(**{key: _setting(value) for key, value in settings.items()})
    calibrator.classes_ = label_array(classes)
    calibrator.n_features_in_ = 1 if issubclass(kind, ScoreMap) else len(classes)
    (_restore_map if issubclass(kind, ScoreMap) else _restore_class_map)(calibrator, body)
    _restore_notes_and_numbers(calibrator, body)
    if body:
        raise InputError(f"{name} has no field {next(iter(body))!r}.")
    return calibrator


def _are_labels(labels: Any) -> bool:
    return isinstance(labels, list) and all(isinstance(label, (str, int, float)) for label in labels)


def _restore_map(calibrator: Any, body: dict[str, Any]) -> None:
    map_ = maps.from_dict(body.pop("map", {}))
    name = type(calibrator).__name__
    if map_.kind not in calibrator.map_kinds:
        raise InputError(f"{name} learns maps of {' or '.join(calibrator.map_kinds)}, not of {map_.kind}.")
    if calibrator.is_increasing and not map_.is_increasing:
        raise InputError(f"the map of {name} must not fall, and it does.")
    if not calibrator.accepts_map(map_):
        raise InputError(f"the map of {name} does not go with its settings.")
    if len(calibrator.classes_) != 2:
        raise InputError(f"{name} has two classes; {len(calibrator.classes_)} are named.")
    calibrator.map_ = map_


def _restore_notes_and_numbers(calibrator: Any, body: dict[str, Any]) -> None:
    name = type(calibrator).__name__
    calibrator.notes_ = _notes(body.pop("notes", None))
    numbers = body.pop("numbers", None)
    if not isinstance(numbers, dict) or set(numbers) != set(calibrator.saved_attributes):
        raise InputError(f"numbers of {name} must be {list(calibrator.saved_attributes)}.")
    for each, value in numbers.items():
        if not isinstance(value, float) or not 0 <= value < np.inf:
            raise InputError(f"{each} must be a number from 0 on; it is {value!r}.")
        setattr(calibrator, each, value)


def _notes(notes: Any) -> tuple[Note, ...]:
    try:
        found = tuple(Note(**note) for note in notes)
        for note in found:
            right = isinstance(note.code, str) and type(note.count) is int and isinstance(note.template, str)
            # Nothing but the count may be filled in.
            fields = [field for _, field, *how in Formatter().parse(note.template) if field is not None or any(how)]
            if not right or set(fields) - {"count"} or "{count:" in note.template or "{count!" in note.template:
                raise TypeError
    except (TypeError, ValueError, AttributeError) as error:
        raise InputError("notes are missing or malformed.") from error
    return found


def _restore_class_map(calibrator: Any, body: dict[str, Any]) -> None:
    name = type(calibrator).__name__
    if "calibrator" in calibrator.get_params(deep=False):
        _restore_calibrators(calibrator, body)
    else:
        calibrator.map_ = class_maps.from_dict(body.pop("map", {}))
    if calibrator.map_.kind not in calibrator.map_kinds:
        raise InputError(f"{name} learns maps of {' or '.join(calibrator.map_kinds)}, not of {calibrator.map_.kind}.")
    if not calibrator.accepts_map(calibrator.map_):
        raise InputError(f"the map of {name} does not go with its settings or its classes.")


def _restore_calibrators(calibrator: Any, body: dict[str, Any]) -> None:
    name, each = type(calibrator).__name__, body.pop("calibrators", None)
    if not isinstance(each, list) or not each:
        raise InputError(f"{name} needs a list of calibrators.")
    calibrator.calibrators_ = [_built(one) for one in each]
    first = calibrator.calibrators_[0]
    alike = all(type(one) is type(first) and one.get_params() == first.get_params() for one in calibrator.calibrators_)
    if not isinstance(first, ScoreMap) or not alike:
        raise InputError(f"{name} holds binary calibrators of one kind.")
    calibrator.calibrator = clone(first)
    fitted = [one.map_ for one in calibrator.calibrators_]
    if "coupling" in calibrator.map_kinds:
        calibrator.map_ = class_maps.Coupling(fitted, body.pop("sizes", None), calibrator.eps)
    else:
        calibrator.map_ = class_maps.Normalised(fitted, body.pop("domain", None))
