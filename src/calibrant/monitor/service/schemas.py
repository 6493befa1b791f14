"""Schemas of requests and answers in the OpenAPI description."""

from collections.abc import Mapping
from typing import Any

__all__ = ["SCHEMAS", "SETTINGS", "list_page", "ref"]

_TIME = {
    "type": "string",
    "description": "ISO 8601; UTC if it has no time zone.",
    "examples": ["2026-01-31T08:00:00Z"],
}
_TIMES = {"anyOf": [_TIME, {"type": "array", "items": _TIME, "minItems": 1}]}
_LABEL = {"type": ["string", "integer", "number", "boolean"]}
_LABELS = {"type": "array", "items": _LABEL, "minItems": 1}
_GROUP = {
    "description": "A label for all rows, a label per row, or an object with a list of labels per column.",
    "anyOf": [_LABEL, _LABELS, {"type": "object", "additionalProperties": _LABELS, "minProperties": 1}],
}
_EVENT = {"type": ["integer", "boolean"], "minimum": 0, "maximum": 1}
_EVENTS: dict[str, Any] = {"anyOf": [_EVENT, {"type": "array", "items": _EVENT, "minItems": 1}]}
_SCORE = {"type": "number", "minimum": 0, "maximum": 1}
_SCORES: dict[str, Any] = {"anyOf": [_SCORE, {"type": "array", "items": _SCORE, "minItems": 1}]}
_MATRIX = {"type": "array", "items": {"type": "array", "items": _SCORE, "minItems": 2}, "minItems": 1}
_COUNTS = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_NAME = {"type": "string", "minLength": 1, "maxLength": 500}
_VERSION = {**_NAME, "description": "Version of the model, by default the latest; a new name starts a new version."}
_NUMBER = {"type": ["number", "null"]}

# The settings of a model, which are those of `Monitor`; a maturity is a number of seconds.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "window": {
        "anyOf": [{"enum": ["hour", "day", "week"]}, {"type": "integer", "minimum": 1, "maximum": 10**12}],
        "default": "day",
    },
    "alpha": {"type": "number", "minimum": 1e-12, "exclusiveMaximum": 1, "default": 0.05},
    "margin": {"type": "number", "minimum": 0, "default": 0.1},
    "dependence": {"enum": ["window", "any", "independent"], "default": "window"},
    "window_effect": {"type": "number", "minimum": 0, "default": 0.2},
    "maturity": {"type": "number", "minimum": 0, "maximum": 3.2e9, "default": 0, "description": "In seconds."},
    "resolution": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "kind": {"enum": ["binary", "multiclass", "distribution"], "default": "binary"},
    "classes": {"type": "array", "items": _LABEL, "minItems": 2, "description": "The class of each column of `p`."},
    "levels": {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}},
}


def _object(properties: Mapping[str, Any], required: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required), **more}


def _closed(properties: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    return _object(properties, required, additionalProperties=False)


SCHEMAS: dict[str, Any] = {
    "Settings": _closed(SETTINGS),
    "Observations": _closed(
        {
            "y": {"anyOf": [*_EVENTS["anyOf"], _LABELS], "description": "0 and 1; labels for class probabilities."},
            "p": {"anyOf": [*_SCORES["anyOf"], _MATRIX], "description": "Scores; for classes one list per row."},
            "time": _TIMES,
            "group": _GROUP,
            "version": _VERSION,
        },
        ("y", "p", "time"),
    ),
    "Predictions": _closed(
        {
            "id": {"anyOf": [_LABEL, _LABELS]},
            "p": _SCORES,
            "time": _TIMES,
            "group": _GROUP,
            "version": _VERSION,
        },
        ("id", "p", "time"),
    ),
    "Outcomes": _closed({"id": {"anyOf": [_LABEL, _LABELS]}, "y": _EVENTS, "time": _TIME}, ("id", "y")),
    "Table": _closed(
        {
            "score": {"type": "array", "items": _SCORE, "minItems": 1},
            "n": {**_COUNTS, "description": "Number of rows with each score."},
            "k": {**_COUNTS, "description": "Number of events among them."},
            "time": _TIME,
            "group": _LABEL,
            "version": _VERSION,
        },
        ("score", "n", "k", "time"),
    ),
    "Closing": _closed({"until": _TIME}),
    "Acknowledgement": _closed({"reason": _NAME}, ("reason",)),
    "SilenceRequest": _closed({"until": _TIME, "reason": _NAME}, ("until", "reason")),
    "Receipt": _object(
        {
            **{name: {"type": "integer"} for name in ("n_rows", "n_late", "n_duplicates", "n_unknown", "n_closed")},
            "repeated_batch": {"type": "boolean"},
            "alarms": {"type": "array", "description": "The group of each new alarm; null for all rows."},
        },
        ("n_rows", "repeated_batch", "alarms"),
    ),
    "Model": _object(
        {
            "name": {"type": "string"},
            "settings": {"type": "object"},
            "revision": {"type": "integer", "description": "It grows when the model changes."},
        },
        ("name", "settings", "revision"),
    ),
    "Alarm": _object(
        {
            "id": {"type": "integer"},
            "version": {"type": "string"},
            "group": {},
            "window": {"type": "string"},
            "log_e_value": _NUMBER,
            "raised": {"type": "string"},
            "acknowledged": {"type": ["string", "null"]},
            "reason": {"type": ["string", "null"]},
        },
        ("id", "version", "group", "window", "raised", "acknowledged", "reason"),
    ),
    "Silence": _object(
        {
            "id": {"type": "integer"},
            "created": {"type": "string"},
            "until": {"type": "string"},
            "reason": {"type": "string"},
            "author": {"type": "string"},
            "active": {"type": "boolean"},
        },
        ("id", "created", "until", "reason", "author", "active"),
    ),
    "Status": _object(
        {"model": {"type": "string"}, "version": {"type": "string"}, "alarm": {"type": "boolean"}},
        ("model", "version", "alarm", "alarms", "groups", "notes"),
    ),
    "History": _object(
        {"windows": {"type": "array"}, "next_cursor": {"type": ["string", "null"]}},
        ("model", "version", "group", "windows", "threshold", "next_cursor"),
    ),
    "Evaluation": _object({"verdict": {"type": "string"}}, ("verdict",)),
    "AuditEntry": _object(
        {
            "id": {"type": "integer"},
            "time": {"type": "string"},
            "who": {"type": "string", "description": "Id of a token, or the command line."},
            "action": {"type": "string"},
            "model": {"type": ["string", "null"]},
            "detail": {"type": "object"},
        },
        ("id", "time", "who", "action", "model", "detail"),
    ),
    "Health": _object({"status": {"type": "string"}, "version": {"type": "string"}}, ("status",)),
    "Problem": _object(
        {
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string", "description": "What must hold, what was found, and what to do."},
            "argument": {"type": "string"},
            "row": {"type": "integer", "description": "First row at fault, counted from 0."},
            "hint": {"type": "string"},
        },
        ("title", "status", "detail"),
    ),
}


def ref(name: str) -> dict[str, str]:
    """Return a reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def list_page(name: str) -> dict[str, Any]:
    """Return the schema of one page of a list."""
    return _object(
        {"items": {"type": "array", "items": ref(name)}, "next_cursor": {"type": ["string", "null"]}},
        ("items", "next_cursor"),
    )
