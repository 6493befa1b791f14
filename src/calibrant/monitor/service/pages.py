"""Pages of the service."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from calibrant.monitor.service.problems import Problem

__all__ = ["error_page", "page_routes"]


def page_routes() -> list[Route]:
    """Return the routes of all pages."""
    return [Route("/", overview, methods=["GET"])]


def error_page(request: Request, problem: Problem) -> Response:
    """Return the page for an error outside of the API."""
    return PlainTextResponse(problem.detail + "\n", problem.status, problem.headers)


async def overview(request: Request) -> Response:
    """List the models that the caller may read."""
    service = request.app.state.service
    access = await service.authorize(request, scope="read")
    names = await service.models(access)
    lines = []
    for name in names:
        monitor = await service.monitor(name)
        status = await service.read(monitor.status)
        lines.append(status.headline)
    return PlainTextResponse("\n".join(lines) + "\n")
