"""The application: routes, errors, and a guard with limits of size and time, security headers and the access log."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calibrant._support.errors import InputError
from calibrant._support.formatting import printable
from calibrant.monitor.schema import StoreError
from calibrant.monitor.service.endpoints import api_routes
from calibrant.monitor.service.pages import error_page, page_routes
from calibrant.monitor.service.problems import ServiceProblem, as_problem, problem_response
from calibrant.monitor.service.running_service import Service
from calibrant.monitor.service.service_settings import ServiceSettings

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
        routes=[*api_routes(), *page_routes(), Route("/healthz", _alive), Route("/readyz", _ready)],
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


_ACCESS_LOG = logging.getLogger("calibrant.access")
# Bodies of all requests together, in units of the largest body.
_BODIES = 8
_CLIENT_LEFT = 499  # as other servers log it: the client closed the connection before its body had arrived
_MOST_DRAINED = 2**28  # bytes of a refused body
_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)


class Guard:
    """Middleware around the application.

    * A body has at most ``max_body`` bytes and must arrive in ``body_seconds``; all bodies together have a limit too.
    * Each part of an answer must be taken in ``body_seconds``; else the connection is closed.
    * Answers have security headers, unless the handler set its own value.
    * A client that leaves before its body has arrived gets no answer, and is no error of the service.
    * The access log has method, path without query, status, time and the id of the token.
    """

    def __init__(self, app: ASGIApp, service: Service, answer_error: Callable[..., Awaitable[Response]]) -> None:
        self.app = app
        self.service = service
        self.answer_error = answer_error
        self.n_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(self, scope, receive, send)
        _keep_slashes(scope)
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except Exception as error:
            if isinstance(error, ClientDisconnect) and not exchange.status:
                exchange.status = _CLIENT_LEFT
                return
            if exchange.status:  # the answer has begun; the server closes the connection
                raise
            answer = await self.answer_error(Request(scope), error)
            await answer(scope, exchange.receive, exchange.send)
        finally:
            exchange.finish()


class _Exchange:
    """One request and its answer."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send) -> None:
        self.guard, self.scope = guard, scope
        self._receive, self._send = receive, send
        self.settings = guard.service.settings
        self.started = time.monotonic()
        self.n_bytes, self.status = 0, 0
        self.complete = False
        self.declared = _content_length(scope)

    async def receive(self) -> Message:
        """Return the next part of the body within the limits."""
        if self.complete:
            return await self._receive()
        if self.declared > self.settings.max_body:
            await self._drain()
            raise self._too_large(self.declared)
        left = self.started + self.settings.body_seconds - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), max(left, 0.001))
        except TimeoutError:
            seconds = self.settings.body_seconds
            raise ServiceProblem(
                408, f"The body must arrive within {seconds:g} s.", headers={"Connection": "close"}
            ) from None
        self.complete = not message.get("more_body", False)
        self._count(len(message.get("body", b"")))
        if self.n_bytes > self.settings.max_body:
            await self._drain()
            raise self._too_large(self.n_bytes)
        return message

    async def _drain(self) -> None:
        """Take the rest of a body that is refused: a client that still sends would not see the answer.

        A client that waits for ``100 Continue`` sends no body and gets the answer at once.
        """
        if (b"expect", b"100-continue") in self.scope["headers"]:
            return
        left, end = _MOST_DRAINED, self.started + self.settings.body_seconds
        while not self.complete and left > 0 and time.monotonic() < end:
            try:
                message = await asyncio.wait_for(self._receive(), max(end - time.monotonic(), 0.001))
            except TimeoutError:
                return
            self.complete = not message.get("more_body", False)
            left -= len(message.get("body", b""))

    def _count(self, n_bytes: int) -> None:
        self.n_bytes += n_bytes
        self.guard.n_bytes += n_bytes
        if self.guard.n_bytes > _BODIES * self.settings.max_body:
            headers = {"Retry-After": "1", "Connection": "close"}
            raise ServiceProblem(
                503, "The service receives too many bodies at once; repeat this later.", headers=headers
            )

    def _too_large(self, n_bytes: int) -> ServiceProblem:
        most = self.settings.max_body
        text = f"The body must have at most {most:,} bytes; got {n_bytes:,} or more. Send the rows in parts."
        return ServiceProblem(413, text, headers={"Connection": "close"})

    async def send(self, message: Message) -> None:
        """Send a part of the answer; the first one gets the security headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            known = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(pair for pair in _HEADERS if pair[0] not in known)]
        try:
            await asyncio.wait_for(self._send(message), self.settings.body_seconds)
        except TimeoutError:
            raise OSError("the client does not read the answer") from None

    def finish(self) -> None:
        """Count and log the request."""
        self.guard.n_bytes -= self.n_bytes
        seconds = time.monotonic() - self.started
        operation = self.scope.get("calibrant_operation", "other")
        self.guard.service.metrics.count(operation, self.status, seconds)
        who, path = self.scope.get("calibrant_who", "-"), printable(self.scope["path"].replace("\0", "%2F"))[:500]
        _ACCESS_LOG.info("%s %s %d %.1fms %s", self.scope["method"], path, self.status, 1000 * seconds, who)


def _content_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 19 else 0
    return 0


def _keep_slashes(scope: dict[str, Any] | Scope) -> None:
    """Replace encoded slashes in the path, which are part of a name, by a character that no name has."""
    raw = scope.get("raw_path") or b""
    path = scope["path"].replace("\0", "\ufffd")
    if b"%2f" in raw.lower():
        from urllib.parse import unquote

        pieces = raw.replace(b"%2F", b"%2f").split(b"%2f")
        path = "\0".join(unquote(piece.decode("latin-1")).replace("\0", "\ufffd") for piece in pieces)
    scope["path"] = path


async def _alive(request: Request) -> Response:
    """Answer while the process runs; it is not restarted because its database is away."""
    request.scope["calibrant_operation"] = "healthz"
    return PlainTextResponse("ok\n")


async def _ready(request: Request) -> Response:
    """Answer if the store can be read and the service is not stopping; else 503, so that it gets no requests."""
    request.scope["calibrant_operation"] = "readyz"
    await request.app.state.service.check()
    return PlainTextResponse("ready\n")
