"""`Endpoint`: one operation of the API. Routes, checks of requests and the OpenAPI 3.1 description come from it."""

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from calibrant._support.errors import Argument, InputError, nearest
from calibrant.monitor.service.access_tokens import Access
from calibrant.monitor.service.problems import MEDIA_TYPE
from calibrant.versions import __version__

if TYPE_CHECKING:
    from calibrant.monitor.service.running_service import Service

__all__ = [
    "SCHEMAS",
    "SETTINGS",
    "Answer",
    "Call",
    "Endpoint",
    "Parameter",
    "describe",
    "list_page",
    "query_values",
    "ref",
]


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query, or a header; `schema` is that of OpenAPI."""

    name: str
    schema: Mapping[str, Any]
    description: str
    where: str = "query"
    required: bool = False


@dataclass(frozen=True)
class Answer:
    """An answer of an endpoint: its meaning and its schema by media type."""

    description: str
    content: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A request that may do what it asks for: its rights, its model and the checked values of its query."""

    service: "Service"
    request: Request
    access: Access
    query: Mapping[str, Any]

    @property
    def model(self) -> str:
        """The model in the path."""
        return model_in_path(self.request) or ""

    async def on_model(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function with the monitor of the model and read its store."""
        return await self.service.read(self.service.with_monitor, self.model, function, *args, **options)


@dataclass(frozen=True)
class Endpoint:
    """An operation.

    Attributes
    ----------
    method, path : str
    name : str
        Id of the operation.
    scope : str or None
        Scope of the token that it needs; None: anybody.
    summary, description : str
    handler : function
        Takes a `Call`.
    parameters : tuple of Parameter
    body : mapping of media type to schema
    answers : mapping of status to Answer
        Without the problems that each endpoint of its kind may answer.
    """

    method: str
    path: str
    name: str
    scope: str | None
    summary: str
    handler: Callable[[Call], Awaitable[Response]]
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    answers: Mapping[int, Answer] = field(default_factory=dict)
    description: str = ""

    async def __call__(self, request: Request) -> Response:
        """Check the rights and the query of a request, and answer it."""
        service: Service = request.app.state.service
        request.scope["calibrant_operation"] = self.name
        access = Access()
        if self.scope is not None:
            access = await service.authorize(request, self.scope, model_in_path(request))
        return await self.handler(Call(service, request, access, query_values(request, self.parameters)))


def model_in_path(request: Request) -> str | None:
    """Return the model in the path; the guard has replaced encoded slashes, which would end the name."""
    model = request.path_params.get("model")
    return None if model is None else str(model).replace("\0", "/")


def query_values(request: Request, parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    """Return the values of the query by their schemas; an `InputError` for others and for unknown names."""
    own = {each.name: each for each in parameters if each.where == "query"}
    found: dict[str, Any] = {}
    for name in request.query_params:
        if name == "token":
            continue
        if name not in own:
            known = ", ".join(own) or "none"
            hint = nearest(name, list(own)).strip() or f"It has {known}."
            raise InputError(f"This endpoint has no parameter {name!r}.", argument=name, hint=hint)
        given = request.query_params.getlist(name)
        if own[name].schema.get("type") == "array":
            found[name] = given
            continue
        if len(given) > 1:
            raise InputError(Argument(name) + f" must be given once; got {len(given)} values.")
        found[name] = _value(given[0], own[name])
    for each in own.values():
        if each.name not in found:
            if each.required:
                raise InputError(Argument(each.name) + " must be given in the query.")
            found[each.name] = each.schema.get("default")
    return found


def _value(text: str, parameter: Parameter) -> Any:
    """Return text as a whole number if the schema says so."""
    schema, name = parameter.schema, parameter.name
    if schema.get("type") != "integer":
        return text
    low, high = schema.get("minimum", 0), schema.get("maximum", math.inf)
    if not (text.isascii() and text.isdecimal() and len(text) < 19 and low <= int(text) <= high):
        raise InputError(Argument(name) + f" must be a whole number from {low} to {high:,}; got {text[:40]!r}.")
    return int(text)


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


# Problems that an endpoint of each kind may answer.
_PROBLEMS = {
    400: "The request is not valid; `argument`, `row` and `hint` say where and what to do.",
    401: "The token is missing, unknown, expired or revoked.",
    403: "The token does not have the scope or the model.",
    404: "There is no such model, alarm or silence.",
    408: "The request did not arrive in time.",
    413: "The body is too large.",
    415: "The media type is not supported.",
    422: "The Idempotency-Key was used before with other rows.",
    503: "The service is busy or its store cannot be used; Retry-After says when to try again.",
}


def describe(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Return the description of all endpoints."""
    paths: dict[str, Any] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Calibrant monitor",
            "version": __version__,
            "description": "Calibration of models over time, with alarms that stay valid however often one looks.",
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "`calibrant serve token create`"},
                "link": {"type": "apiKey", "in": "query", "name": "token", "description": "Tokens of scope read only."},
            },
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint),
        "security": _security(endpoint),
    }
    if endpoint.body:
        content = {kind: {"schema": schema} for kind, schema in endpoint.body.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    text = {"type": "string", "minLength": 1}
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": text if name == "model" else {"type": "integer", "minimum": 0},
        }
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    for each in endpoint.parameters:
        found.append(
            {
                "name": each.name,
                "in": each.where,
                "required": each.required,
                "schema": dict(each.schema),
                "description": each.description,
            }
        )
    return found


def _security(endpoint: Endpoint) -> list[dict[str, list[str]]]:
    if endpoint.scope is None:
        return []
    return [{"token": [endpoint.scope]}, *([{"link": ["read"]}] if endpoint.scope == "read" else [])]


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    codes = {400, 503}
    if endpoint.scope is not None:
        codes |= {401, 403}
    if "{" in endpoint.path:
        codes |= {404}
    if endpoint.body:
        codes |= {408, 413, 415}
    if any(each.name == "Idempotency-Key" for each in endpoint.parameters):
        codes |= {422}
    found: dict[str, Any] = {
        str(code): {"description": _PROBLEMS[code], "content": {MEDIA_TYPE: {"schema": ref("Problem")}}}
        for code in sorted(codes)
    }
    for code, answer in endpoint.answers.items():
        content = {kind: {"schema": schema} for kind, schema in answer.content.items()}
        found[str(code)] = {"description": answer.description, **({"content": content} if content else {})}
    return found
