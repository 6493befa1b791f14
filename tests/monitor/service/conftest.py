"""A service that runs in a thread, on a real socket, over stores of both kinds."""

import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

import pytest
from web_browser import browser, open_tab

__all__ = ["browser", "open_tab"]

pytest.importorskip("starlette", reason="starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")

from calibrant.monitor.service.access_tokens import TokenBook
from calibrant.monitor.service.app import create_app
from calibrant.monitor.service.server import ServiceServer, listen
from calibrant.monitor.service.service_settings import ServiceSettings
from calibrant.monitor.store import Store


@dataclass
class Reply:
    """An answer of the service."""

    status: int
    headers: Any
    body: bytes

    def json(self):
        return json.loads(self.body)


@dataclass
class Running:
    """A running service."""

    url: str
    settings: ServiceSettings
    server: ServiceServer
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def service(self):
        return self.server.service

    def request(self, method, path, body=None, *, token=None, kind="application/json", headers=None):
        """Send a request; a body that is not bytes is sent as JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = {} if data is None else {"Content-Type": kind}
        given |= {} if token is None else {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(self.url + path, data, given | (headers or {}), method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return Reply(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.headers, error.read())

    def token(self, scope, *models, lifetime=None):
        """Create a token."""
        return TokenBook(Store(self.settings.store)).create(f"{scope} of tests", scope, models, lifetime)[0]


@contextlib.contextmanager
def running(store, **settings):
    """Run a service in a thread."""
    chosen = ServiceSettings(store, port=0, **settings)
    with listen(chosen.host, 0) as own:
        server = ServiceServer(create_app(chosen), chosen)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [own]})
        thread.start()
        try:
            deadline = time.monotonic() + 30
            while not server.started and time.monotonic() < deadline:
                time.sleep(0.01)
            yield Running(f"http://127.0.0.1:{own.getsockname()[1]}", chosen, server)
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


@pytest.fixture
def service(store):
    """Return a running service with an empty store and no tokens."""
    with running(store) as found:
        yield found


@pytest.fixture
def start(store):
    """Return a function that starts a service with settings; it stops with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(running(store, **settings))


@pytest.fixture(scope="session")
def run_service():
    """Return the context manager that runs a service in a thread, for fixtures of a module."""
    return running
