"""`Endpoint`: one operation of the API. Routes, checks of requests and the OpenAPI description come from it."""

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from calibrant._support.errors import Argument, InputError, nearest
from calibrant.monitor.service.authorization import Access

if TYPE_CHECKING:
    from calibrant.monitor.service.running_service import Service

__all__ = ["Answer", "Call", "Endpoint", "Parameter", "query_values"]

JSON_TYPE = "application/json"


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
