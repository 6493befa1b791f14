"""Calibrators in files: versioned JSON with a checksum, checked when it is read. Never a pickle."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibrant._support.errors import InputError, wrong_value
from calibrant._support.file_writing import check_path, write_file
from calibrant._support.plain_data import has_type
from calibrant.calibrators.multicalibrator import Multicalibrator
from calibrant.calibrators.proportion_rules import ProportionRule
from calibrant.calibrators.registry import CALIBRATORS, RECALIBRATORS
from calibrant.calibrators.score_map import Identity
from calibrant.metrics.gce import part_from_spec, part_to_spec
from calibrant.versions import __version__

FORMAT = "calibrant calibrator"
VERSION = 2
_LARGEST = 2**28  # bytes; a map of six million steps is as large


def save(calibrator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator or recalibrator to a JSON file, from which `load` restores it bitwise.

    Parameters
    ----------
    calibrator : calibrator of one score or of class probabilities, or recalibrator of point predictions or forecasts
        Fitted. A model on features holds another model, which JSON cannot hold: save its ``calibrator_`` or
        ``recalibrator_``.
    path : path
        An existing file is replaced, completely or not at all.

    See Also
    --------
    load, to_sql, to_onnx

    Notes
    -----
    The file holds its format and version, the name and the settings of the calibrator, the classes, the fitted map,
    notes, and a SHA-256 of all that. Of a `Multicalibrator` it holds the cuts and labels of features and the nodes of
    all trees, and not the settings that only its fit uses (`cv`, `random_state`, `n_jobs`, `progress`). Numbers are
    written with as many digits as restore the same number. The results of cross-validation (`trade_off_`, `cost_`) and
    the two probabilities of `VennAbers.pair` are not saved.

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
    write_file(path, calibrator_text(calibrator))


def calibrator_text(calibrator: Any) -> str:
    """Return the text of the file that `save` writes."""
    has_model = getattr(calibrator, "estimator", None) is not None  # a Multicalibrator may have one
    if has_model or not hasattr(calibrator, "to_state"):
        given = type(calibrator).__name__ + (" with a model" if has_model else "")
        raise InputError(
            f"calibrator must be a calibrator or a recalibrator to be saved; got {given}.",
            hint="For a model on features save its calibrator_ or recalibrator_; the model needs another format.",
        )
    check_is_fitted(calibrator)
    body = {"format": FORMAT, "version": VERSION, "calibrant": __version__, **calibrator_to_dict(calibrator)}
    text = json.dumps(body | {"sha256": _checksum(body)}, allow_nan=False, indent=1)
    if len(text) > _LARGEST:
        raise InputError(
            f"A calibrator must need at most {_LARGEST:,} bytes to be saved; got {len(text):,}.", hint="Use Isotonic."
        )
    return text + "\n"


def load(path: str | os.PathLike[str]) -> Any:
    """Return the calibrator that `save` wrote to the file.

    Nothing in the file is executed. The format, the checksum and each field are checked, and that the map is one that
    the calibrator can fit. Anything else raises an `InputError` that names the file.

    Parameters
    ----------
    path : str or path
        File that `save` wrote.

    Returns
    -------
    calibrator
        The fitted calibrator.

    See Also
    --------
    save, to_sql, to_onnx

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from calibrant import Platt, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "cal.json")
    ...     save(Platt().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), path)
    ...     load(path)
    Platt()
    """
    source = check_path(path)
    data = _read_bytes(source)
    try:
        return _read(data)
    except (ValueError, OverflowError, RecursionError) as error:  # InputErrors among them
        raise InputError(
            f"{source.name} is not a calibrator that calibrant can load: {error}", argument="path", value=str(source)
        ) from error


def _read_bytes(source: Path) -> bytes:
    """Return the content of a regular file, of which no more is read than a calibrator can have."""
    if source.exists() and not source.is_file():  # before it is opened, which would wait for the writer of a pipe
        kind = "a folder" if source.is_dir() else "a device or a pipe"
        raise InputError(f"path must be a regular file; got {kind}, {source.name!r}.", value=str(source))
    with source.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise InputError(
            f"{source.name} is not a calibrator that calibrant can load: it has more than {_LARGEST:,} bytes.",
            argument="path",
            value=str(source),
        )
    return data


def _read(data: bytes) -> Any:
    try:
        body = json.loads(data.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_once)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"it is not JSON ({error}).") from error
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise InputError(f"its format is not {FORMAT!r}.")
    if type(body.get("version")) is not int or body["version"] != VERSION:
        raise InputError(
            f"its version must be {VERSION}; got {body.get('version')!r}.",
            hint="Upgrade calibrant if the file is newer.",
        )
    checksum = body.pop("sha256", None)
    if checksum != _checksum(body):
        raise InputError("its checksum does not match the content: the file was changed or damaged.")
    for name in ("format", "version", "calibrant"):
        body.pop(name, None)
    return calibrator_from_dict(body)


def _checksum(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, allow_nan=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _refuse(constant: str) -> Any:
    raise InputError(f"it holds {constant}, which is not a number of JSON.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise InputError("a field occurs twice.")
    return fields


_CLASSES: dict[str, Any] = {
    class_.__name__: class_
    for class_ in (*CALIBRATORS.values(), *RECALIBRATORS.values(), Identity, ProportionRule, Multicalibrator)
}


def calibrator_to_dict(calibrator: Any) -> dict[str, Any]:
    """Return a fitted calibrator as plain data, from which `calibrator_from_dict` restores it bitwise."""
    name = type(calibrator).__name__
    if type(calibrator) is not _CLASSES.get(name):
        raise wrong_value("calibrator", "must be of a class of calibrant to be saved", type(calibrator))
    settings = {key: _plain_setting(key, getattr(calibrator, key)) for key in _settings(type(calibrator))}
    _check_types(type(calibrator), settings)
    state = calibrator.to_state()
    if "calibrators" in state:
        state["calibrators"] = list(map(calibrator_to_dict, state["calibrators"]))
    return {"calibrator": name, "settings": settings, **state}


def calibrator_from_dict(data: Any) -> Any:
    """Return the calibrator that `calibrator_to_dict` describes; anything else is an error."""
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
        if isinstance(state.get("calibrators"), list):
            state["calibrators"] = list(map(calibrator_from_dict, state["calibrators"]))
        calibrator.restore_state(state)
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
        return [_plain_setting(name, item) for item in value]
    if isinstance(value, Mapping):
        return {"mapping": [[_plain_setting(name, key), _plain_setting(name, item)] for key, item in value.items()]}
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
