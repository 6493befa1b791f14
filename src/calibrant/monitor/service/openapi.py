"""`Endpoint`: one operation of the API. Routes, checks of requests and the OpenAPI 3.1 description come from it."""

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from calibrant._support.errors import Argument, InputError, nearest
from calibrant.monitor.model import Monitor
from calibrant.monitor.model_settings import MONITORED_KINDS, ModelSettings
from calibrant.monitor.service.access_tokens import Access
from calibrant.monitor.service.problems import MEDIA_TYPE
from calibrant.versions import __version__

if TYPE_CHECKING:
    from calibrant.monitor.service.running_service import Service


@dataclass(frozen=True)
class Parameter:
    """A parameter of the query, or a header; `schema` is that of OpenAPI."""

    name: str
    schema: Mapping[str, Any]
    description: str
    where: str = "query"


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
        return _model_in_path(self.request) or ""

    async def read(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function that reads the store with the monitor of the model."""
        return await self.service.read(self.service.with_monitor, self.model, function, *args, **options)

    async def act(self, action: str, function: Callable[[Monitor, dict[str, Any]], Any], **detail: object) -> Any:
        """Call a function that writes, in one transaction with its entry in the audit log.

        The function gets the monitor of the model, and the details of the entry, to which it may add.
        """

        def run() -> Any:
            with self.service.store.act(self.access.who, action, self.model, **detail) as details:
                return function(self.service.open(self.model), details)

        return await self.service.write(run)


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
    summary : str
    handler : function
        Takes a `Call`.
    parameters : tuple of Parameter
    body : mapping of media type to schema
    answers : mapping of status to answer, as in OpenAPI
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
    answers: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)

    async def __call__(self, request: Request) -> Response:
        """Check the rights and the query of a request, and answer it."""
        service: Service = request.app.state.service
        request.scope["calibrant_operation"] = self.name
        access = Access()
        if self.scope is not None:
            access = await service.authorize(request, self.scope, _model_in_path(request))
        return await self.handler(Call(service, request, access, _query_values(request, self.parameters)))


def _model_in_path(request: Request) -> str | None:
    """Return the model in the path; the guard has replaced encoded slashes, which would end the name."""
    model = request.path_params.get("model")
    return None if model is None else str(model).replace("\0", "/")


def _query_values(request: Request, parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    """Return the values of the query by their schemas; an `InputError` for others and for unknown names."""
    schemas = {parameter.name: parameter.schema for parameter in parameters if parameter.where == "query"}
    values = {name: schema.get("default") for name, schema in schemas.items()}
    for name in request.query_params:
        if name == "token":
            continue
        if name not in schemas:
            hint = nearest(name, list(schemas)).strip() or f"It has {', '.join(schemas) or 'none'}."
            raise InputError(f"This endpoint has no parameter {name!r}.", argument=name, hint=hint)
        values[name] = _value(name, request.query_params.getlist(name), schemas[name])
    return values


def _value(name: str, texts: list[str], schema: Mapping[str, Any]) -> Any:
    """Return the value of a parameter: a whole number, a text or several texts, as the schema says."""
    if schema.get("type") == "array":
        return texts
    if len(texts) > 1:
        raise InputError(Argument(name) + f" must be given once; got {len(texts)} values.")
    text = texts[0]
    if schema.get("type") != "integer":
        return text
    low, high = schema.get("minimum", 0), schema.get("maximum", math.inf)
    if not (text.isascii() and text.isdecimal() and len(text) < 19 and low <= int(text) <= high):
        raise InputError(Argument(name) + f" must be a whole number from {low} to {high:,}; got {text[:40]!r}.")
    return int(text)


# Schemas of requests and answers.


def ref(name: str) -> dict[str, str]:
    """Return a reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def list_page(name: str) -> dict[str, Any]:
    """Return the schema of one page of a list."""
    return _object({"items": {"type": "array", "items": ref(name)}, "next_cursor": _TEXT_OR_NULL})


def _object(properties: Mapping[str, Any], *optional: str, required: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """Return the schema of an object; members are required unless they are optional."""
    names = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": list(required) or names, **more}


def _closed(properties: Mapping[str, Any], *optional: str) -> dict[str, Any]:
    """Return the schema of an object without other members."""
    return _object(properties, *optional, additionalProperties=False)


def _several(schema: Mapping[str, Any], least: int = 1) -> dict[str, Any]:
    return {"type": "array", "items": schema, "minItems": least}


def _one_or_several(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, _several(schema)]}


_TEXT, _INTEGER, _FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_TEXT_OR_NULL, _NUMBER_OR_NULL = {"type": ["string", "null"]}, {"type": ["number", "null"]}
_TIME = {"type": "string", "description": "ISO 8601; UTC if it has no time zone.", "examples": ["2026-01-31T08:00:00Z"]}
_TIMES = _one_or_several(_TIME)
_LABEL = {"type": ["string", "integer", "number", "boolean"]}
_LABELS = _several(_LABEL)
_GROUP = {
    "description": "A label for all rows, a label per row, or an object with a list of labels per column.",
    "anyOf": [_LABEL, _LABELS, {"type": "object", "additionalProperties": _LABELS, "minProperties": 1}],
}
_EVENTS = _one_or_several({"type": ["integer", "boolean"], "minimum": 0, "maximum": 1})
_SCORE = {"type": "number", "minimum": 0, "maximum": 1}
_SCORES = _one_or_several(_SCORE)
_MATRIX = _several(_several(_SCORE, least=2))
_COUNTS = _several({"type": "integer", "minimum": 0})
_NAME = {"type": "string", "minLength": 1, "maxLength": 500}
_VERSION = {**_NAME, "description": "Version of the model, by default the latest; a new name starts a new version."}

# The settings of a model, which are those of `Monitor`; a maturity is a number of seconds.
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "window": {
        "anyOf": [{"enum": ["hour", "day", "week"]}, {"type": "integer", "minimum": 1, "maximum": 10**12}],
        "default": ModelSettings.window,
    },
    "alpha": {"type": "number", "minimum": 1e-12, "exclusiveMaximum": 1, "default": ModelSettings.alpha},
    "margin": {"type": "number", "minimum": 0, "default": ModelSettings.margin},
    "dependence": {"enum": ["window", "any", "independent"], "default": ModelSettings.dependence},
    "window_effect": {"type": "number", "minimum": 0, "default": ModelSettings.window_effect},
    "maturity": {"type": "number", "minimum": 0, "maximum": 3.2e9, "default": 0, "description": "In seconds."},
    "resolution": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "kind": {"enum": list(MONITORED_KINDS), "default": ModelSettings.kind},
    "classes": {**_several(_LABEL, least=2), "description": "The class of each column of `p`."},
    "levels": {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}},
}
_ROWS = {"time": _TIMES, "group": _GROUP, "version": _VERSION}

_SCHEMAS: dict[str, Any] = {
    "Settings": _closed(SETTINGS, *SETTINGS),
    "Observations": _closed(
        {
            "y": {"anyOf": [*_EVENTS["anyOf"], _LABELS], "description": "0 and 1; labels for class probabilities."},
            "p": {"anyOf": [*_SCORES["anyOf"], _MATRIX], "description": "Scores; for classes one list per row."},
            **_ROWS,
        },
        *("group", "version"),
    ),
    "Predictions": _closed({"id": _one_or_several(_LABEL), "p": _SCORES, **_ROWS}, "group", "version"),
    "Outcomes": _closed({"id": _one_or_several(_LABEL), "y": _EVENTS, "time": _TIME}, "time"),
    "Table": _closed(
        {
            "score": _several(_SCORE),
            "n": {**_COUNTS, "description": "Number of rows with each score."},
            "k": {**_COUNTS, "description": "Number of events among them."},
            "time": _TIME,
            "group": _LABEL,
            "version": _VERSION,
        },
        *("group", "version"),
    ),
    "Closing": _closed({"until": _TIME}, "until"),
    "Acknowledgement": _closed({"reason": _NAME}),
    "SilenceRequest": _closed({"until": _TIME, "reason": _NAME}),
    "Receipt": _object(
        {
            **dict.fromkeys(("n_rows", "n_late", "n_duplicates", "n_unknown", "n_closed"), _INTEGER),
            "repeated_batch": _FLAG,
            "alarms": {"type": "array", "description": "The group of each new alarm; null for all rows."},
        },
        *("n_late", "n_duplicates", "n_unknown", "n_closed"),
    ),
    "Model": _object(
        {
            "name": _TEXT,
            "settings": {"type": "object"},
            "revision": {**_INTEGER, "description": "It grows when the model changes."},
        }
    ),
    "Alarm": _object(
        {
            "id": _INTEGER,
            "version": _TEXT,
            "group": {},
            "window": _TEXT,
            "log_e_value": _NUMBER_OR_NULL,
            "raised": _TEXT,
            "acknowledged": _TEXT_OR_NULL,
            "reason": _TEXT_OR_NULL,
        },
        "log_e_value",
    ),
    "Silence": _object(
        {"id": _INTEGER, **dict.fromkeys(("created", "until", "reason", "author"), _TEXT), "active": _FLAG}
    ),
    "Status": _object(
        {"model": _TEXT, "version": _TEXT, "alarm": _FLAG},
        required=("model", "version", "alarm", "alarms", "groups", "notes"),
    ),
    "History": _object(
        {"windows": {"type": "array"}, "next_cursor": _TEXT_OR_NULL},
        required=("model", "version", "group", "windows", "threshold", "next_cursor"),
    ),
    "Evaluation": _object({"verdict": _TEXT}),
    "AuditEntry": _object(
        {
            "id": _INTEGER,
            "time": _TEXT,
            "who": {**_TEXT, "description": "Id of a token, or the command line."},
            "action": _TEXT,
            "model": _TEXT_OR_NULL,
            "detail": {"type": "object"},
        }
    ),
    "Health": _object({"status": _TEXT, "version": _TEXT}, "version"),
    "Problem": _object(
        {
            "title": _TEXT,
            "status": _INTEGER,
            "detail": {**_TEXT, "description": "What must hold, what was found, and what to do."},
            "argument": _TEXT,
            "row": {**_INTEGER, "description": "First row at fault, counted from 0."},
            "hint": _TEXT,
        },
        *("argument", "row", "hint"),
    ),
}

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
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
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
            "schemas": _SCHEMAS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "`calibrant serve token create`"},
                "link": {"type": "apiKey", "in": "query", "name": "token", "description": "Tokens of scope read only."},
            },
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    security = [] if endpoint.scope is None else [{"token": [endpoint.scope]}]
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint),
        "security": security + [{"link": ["read"]}] * (endpoint.scope == "read"),
    }
    if endpoint.body:
        operation["requestBody"] = {"required": True, "content": _content(endpoint.body)}
    return operation


def _content(schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {media_type: {"schema": schema} for media_type, schema in schemas.items()}


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    schemas = {"model": {"type": "string", "minLength": 1}}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": schemas.get(name, {"type": "integer", "minimum": 0})}
        for name in re.findall(r"{(\w+)}", endpoint.path)
    ]
    others = [
        {"name": p.name, "in": p.where, "required": False, "schema": dict(p.schema), "description": p.description}
        for p in endpoint.parameters
    ]
    return in_path + others


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    codes = {400, 503}
    codes |= {401, 403} if endpoint.scope is not None else set()
    codes |= {404} if "{" in endpoint.path else set()
    codes |= {408, 413, 415} if endpoint.body else set()
    codes |= {422} if any(parameter.name == "Idempotency-Key" for parameter in endpoint.parameters) else set()
    problem = _content({MEDIA_TYPE: ref("Problem")})
    responses: dict[str, Any] = {
        str(code): {"description": _PROBLEMS[code], "content": problem} for code in sorted(codes)
    }
    return responses | {str(code): answer for code, answer in endpoint.answers.items()}
