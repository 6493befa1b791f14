"""Running the service: the socket, time limits of connections, signals and the log."""

import asyncio
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from calibrant._support.errors import Argument, InputError
from calibrant.monitor.service.access_tokens import TokenBook
from calibrant.monitor.service.app import create_app
from calibrant.monitor.service.service_settings import ServiceSettings
from calibrant.monitor.store import Store

_KEEP_ALIVE = 30


def check_address(settings: ServiceSettings) -> None:
    """Raise an error if other machines could connect and there is no token."""
    if not settings.loopback and not TokenBook(Store(settings.store)).usable():
        raise InputError(
            Argument("host") + f" must be loopback, such as 127.0.0.1, while there is no token; got {settings.host!r}.",
            hint="Create one first: calibrant serve token create --store ... --scope admin --name ...",
        )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            Argument("port") + f" must be free on {host}; {port} cannot be used: {reason}.",
            hint="Pass another port, or 0 for any free one.",
        ) from error


class ServiceServer(uvicorn.Server):
    """The server of uvicorn, which ends streams of events when it stops, and then returns."""

    def __init__(self, app: Starlette, settings: ServiceSettings) -> None:
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            http=_timed_protocol(settings.header_seconds, settings.body_seconds),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=int(settings.shutdown_seconds),
        )
        super().__init__(config)
        self.service: Any = app.state.service
        self.announce: Callable[[], None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, then announce it: from here on a signal stops the service in order."""
        await super().startup(sockets)
        if self.started and self.announce is not None:
            self.announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections and finish the running requests."""
        self.service.stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at the first SIGINT or SIGTERM. The signal is not raised again: to stop is success."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def _timed_protocol(seconds: float, unread_seconds: float) -> Any:
    """Return the protocol of uvicorn with time limits for the headers of requests and for answers that are not read."""

    class TimedProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """A connection that is closed if headers do not arrive in time, or answers are not read in time."""

        _limit: asyncio.TimerHandle | None = None

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.access_log = False  # it would show the query, and with it tokens, wherever the root logger writes

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            own = transport.get_extra_info("socket")
            # asyncio sets it for sockets that name their protocol only; without it each answer may wait for 40 ms.
            own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):  # else the system waits for minutes
                own.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * unread_seconds))
            self._start()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop()
            elif self._limit is None:
                self._start()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _start(self) -> None:
            self._limit = self.loop.call_later(seconds, self.transport.close)

        def _stop(self) -> None:
            if self._limit is not None:
                self._limit.cancel()
                self._limit = None

    return TimedProtocol


def serve(settings: ServiceSettings, *, announce: Any = None) -> None:
    """Serve until a signal; `announce` is called with the address when requests can come."""
    check_address(settings)
    _log_to_stderr()
    with listen(settings.host, settings.port) as own:
        server = ServiceServer(create_app(settings), settings)
        if announce is not None:
            host, port = own.getsockname()[:2]
            server.announce = partial(announce, f"http://{f'[{host}]' if ':' in host else host}:{port}")
        server.run(sockets=[own])


def _log_to_stderr() -> None:
    """Write one line per request and the messages of the service to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    for name, level in {"calibrant": logging.INFO, "uvicorn": logging.WARNING}.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
