"""The OpenAPI 3.1 description, made from the endpoints."""

import re
from collections.abc import Sequence
from typing import Any

from calibrant.monitor.service.endpoint import Endpoint
from calibrant.monitor.service.problems import MEDIA_TYPE
from calibrant.monitor.service.schemas import SCHEMAS, ref
from calibrant.versions import __version__

__all__ = ["describe"]

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
