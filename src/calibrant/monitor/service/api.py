"""All endpoints of the API, version 1."""

from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from calibrant.monitor.service.admin_endpoints import ADMIN_ENDPOINTS
from calibrant.monitor.service.endpoint import Answer, Call, Endpoint
from calibrant.monitor.service.openapi import describe
from calibrant.monitor.service.prometheus_metrics import METRICS_TYPE, scrape
from calibrant.monitor.service.read_endpoints import READ_ENDPOINTS
from calibrant.monitor.service.request_bodies import JSON
from calibrant.monitor.service.write_endpoints import WRITE_ENDPOINTS

__all__ = ["ENDPOINTS", "api_routes", "openapi"]


async def _openapi(call: Call) -> Response:
    return JSONResponse(openapi())


async def _metrics(call: Call) -> Response:
    text = await call.service.read(scrape, call.service, call.access)
    return Response(text, media_type=METRICS_TYPE)


ENDPOINTS = [
    *READ_ENDPOINTS,
    *WRITE_ENDPOINTS,
    *ADMIN_ENDPOINTS,
    Endpoint(
        "GET",
        "/v1/openapi.json",
        "openapi",
        None,
        "This description",
        _openapi,
        answers={200: Answer("OpenAPI 3.1.", {JSON: {"type": "object"}})},
    ),
    Endpoint(
        "GET",
        "/metrics",
        "metrics",
        "read",
        "Metrics for Prometheus",
        _metrics,
        answers={200: Answer("The text format of Prometheus.", {"text/plain": {"type": "string"}})},
    ),
]


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI description of the service."""
    return describe(ENDPOINTS)


def api_routes() -> list[Route]:
    """Return one route per path; it calls the endpoint of the method."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for each in ENDPOINTS:
        by_path.setdefault(each.path, {})[each.method] = each
    return [Route(path, _dispatch(own), methods=list(own)) for path, own in by_path.items()]


def _dispatch(own: dict[str, Endpoint]) -> Any:
    async def answer(request: Request) -> Response:
        # Starlette adds HEAD to each route with GET, and the server leaves out its body.
        return await own["GET" if request.method == "HEAD" else request.method](request)

    return answer
