"""Health of the service for orchestrators: whether the process answers, and whether it can serve."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from calibrant.monitor.service.problems import ServiceProblem

__all__ = ["health_routes"]


def health_routes() -> list[Route]:
    """Return the routes ``/healthz`` and ``/readyz``, which need no token."""
    return [Route("/healthz", _alive, methods=["GET"]), Route("/readyz", _ready, methods=["GET"])]


async def _alive(request: Request) -> Response:
    """Answer while the process runs; it is not restarted because its database is away."""
    request.scope["calibrant_operation"] = "healthz"
    return PlainTextResponse("ok\n")


async def _ready(request: Request) -> Response:
    """Answer if the store can be read and the service is not stopping; else 503, so that it gets no requests."""
    request.scope["calibrant_operation"] = "readyz"
    service = request.app.state.service
    if service.events.stopping.is_set():
        raise ServiceProblem(503, "The service is stopping.", headers={"Retry-After": "10"})
    await service.read(service.store.models)
    return PlainTextResponse("ready\n")
