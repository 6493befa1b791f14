"""The application: API, pages, security headers, errors."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from calibrant.monitor.service.pages import error_page, page_routes
from calibrant.monitor.service.problems import Problem, as_problem, problem_response
from calibrant.monitor.service.service import Service
from calibrant.monitor.service.service_settings import ServiceSettings

__all__ = ["create_app"]


def create_app(settings: ServiceSettings) -> Starlette:
    """Return the application of a store; ``app.state.service`` is its `Service`."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        service.stop()
        service.close()

    routes = [
        Route("/v1/models/{model}/status", _status, methods=["GET"]),
        Route("/v1/events", _events, methods=["GET"]),
        *page_routes(),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={Exception: _answer_error})
    for kind in (Problem, ValueError, OSError):
        app.add_exception_handler(kind, _answer_error)
    app.state.service = service
    return app


def _answer_error(request: Request, error: Exception) -> Response:
    problem = as_problem(error)
    if request.url.path.startswith("/v1/"):
        return problem_response(request, problem)
    return error_page(request, problem)


async def _status(request: Request) -> Response:
    service, model = request.app.state.service, request.path_params["model"]
    await service.authorize(request, "read", model)
    monitor = await service.monitor(model)
    return JSONResponse((await service.read(monitor.status)).to_dict())


async def _events(request: Request) -> Response:
    service = request.app.state.service
    access = await service.authorize(request, "read")

    async def valid() -> bool:
        return True

    return StreamingResponse(service.events.stream(access.sees, valid), media_type="text/event-stream")
