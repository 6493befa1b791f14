"""A service in a process of its own on loopback, and a receiver of webhooks, for the long tests of the service."""

import base64
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from calibrant.monitor.service.webhooks import verify_signature
from tools import servers

ROOT = Path(__file__).parents[1]
SECRET = "whsec_" + base64.b64encode(b"secret of the tests of the service").decode()


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.create_server((servers.HOST, 0)) as probe:
        return int(probe.getsockname()[1])


@dataclass
class ServiceProcess:
    """``calibrant serve`` with a store, on a fixed port, so that clients find it again after a restart."""

    store: str
    folder: Path
    port: int = field(default_factory=free_port)
    config: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address."""
        return f"http://{servers.HOST}:{self.port}"

    def start(self, seconds: float = 60) -> None:
        """Start the process and wait until it answers."""
        config = self.folder / "service.toml"
        config.write_text(self.config)
        command = [sys.executable, "-m", "calibrant", "serve", "--store", self.store, "--port", str(self.port)]
        with (self.folder / "service.log").open("ab") as log:
            environment = {**os.environ, "SECRET_OF_TESTS": SECRET}
            self.process = subprocess.Popen(
                [*command, "--config", str(config)], stdout=log, stderr=log, env=environment, cwd=ROOT
            )
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.url}/v1/health", timeout=5):
                    return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.02)
        raise RuntimeError(f"the service did not start: {(self.folder / 'service.log').read_text()[-2000:]}")

    def kill(self) -> None:
        """Kill the process as a power failure does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Stop the process with SIGTERM; return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def memory(self) -> int:
        """Return the resident memory of the process in kB."""
        assert self.process is not None
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise RuntimeError("the process has no memory")


class Receiver:
    """A receiver of webhooks that counts how often each id arrives; some requests it refuses at first."""

    def __init__(self, *, refuse_every: int = 0) -> None:
        self.seen: Counter[str] = Counter()
        self.bodies: dict[str, dict[str, object]] = {}
        self.n_refused = self.n_unsigned = self.n_requests = 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if len(body) < length:  # the sender was killed
                    return
                self.send_response(receiver.receive(dict(self.headers.items()), body))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.refuse_every = refuse_every
        self.server = http.server.ThreadingHTTPServer((servers.HOST, 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        """The address of the webhook."""
        return f"http://{servers.HOST}:{self.server.server_address[1]}/hook"

    def receive(self, headers: dict[str, str], body: bytes) -> int:
        """Check the signature and count the id; return the status of the answer."""
        self.n_requests += 1
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        message_id, moment, signature = (headers[name] for name in names)
        if not verify_signature(SECRET, message_id, moment, signature, body):
            self.n_unsigned += 1
            return 401
        if self.refuse_every and self.n_requests % self.refuse_every == 0:
            self.n_refused += 1
            return 503
        self.seen[message_id] += 1
        self.bodies[message_id] = json.loads(body)
        return 204

    def close(self) -> None:
        """Stop to listen."""
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def new_store(kind: str, *, durable: bool = False) -> Iterator[tuple[str, Path]]:
    """Return the address of an empty store of a kind, and a folder for files."""
    with tempfile.TemporaryDirectory(prefix="calibrant-service-") as name:
        folder = Path(name)
        if kind == "sqlite":
            yield str(folder / "store.db"), folder
            return
        with servers.postgresql(durable=durable) as address:
            server = dict(part.split("=", 1) for part in address.split())
            yield f"postgresql+psycopg://{server['user']}@{server['host']}:{server['port']}/{server['dbname']}", folder
