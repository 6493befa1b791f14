"""The application: API, pages, guard and errors."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from calibrant._support.errors import InputError
from calibrant.monitor.service.api import api_routes
from calibrant.monitor.service.guard import Guard
from calibrant.monitor.service.pages import error_page, page_routes
from calibrant.monitor.service.problems import ServiceProblem, as_problem, problem_response
from calibrant.monitor.service.running_service import Service
from calibrant.monitor.service.service_settings import ServiceSettings
from calibrant.monitor.stored_values import StoreError

__all__ = ["create_app"]

_LOG = logging.getLogger("calibrant.service")


def create_app(settings: ServiceSettings) -> Starlette:
    """Return the application of a store; ``app.state.service`` is its `Service`."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            service.stop()
            await service.finish()

    app = Starlette(
        routes=[*api_routes(), *page_routes()],
        lifespan=lifespan,
        middleware=[Middleware(Guard, service=service, answer_error=_answer_error)],
        exception_handlers=dict.fromkeys((HTTPException, ServiceProblem, InputError, StoreError), _answer_error),
    )
    app.router.redirect_slashes = False  # a redirect would repeat the query, and with it a token
    app.state.service = service
    return app


async def _answer_error(request: Request, error: Exception) -> Response:
    problem = as_problem(error)
    if isinstance(error, StoreError):
        request.app.state.service.metrics.store_errors.inc()
        _LOG.error("%s %s: %s", request.method, request.url.path, problem.detail)
    if problem.status == 500:
        _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    if request.url.path.startswith(("/v1/", "/metrics", "/healthz", "/readyz")):
        return problem_response(request, problem)
    return error_page(request, problem)
