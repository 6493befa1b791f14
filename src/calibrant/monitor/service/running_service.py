"""`Service`: the store, the threads that use it, and the rights of requests. Handlers of all routes share one."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import sqlalchemy as sa
from starlette.requests import Request

from calibrant._support.errors import MissingExtraError
from calibrant.monitor import schema
from calibrant.monitor.cells import encode_table
from calibrant.monitor.conflicts import DeletedModelError
from calibrant.monitor.model_monitor import Monitor
from calibrant.monitor.service.access_tokens import TokenBook
from calibrant.monitor.service.alarm_delivery import AlarmDelivery
from calibrant.monitor.service.authorization import Access, check_access
from calibrant.monitor.service.event_stream import EventHub
from calibrant.monitor.service.outbox import Outbox
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.service.prometheus_metrics import RequestMetrics
from calibrant.monitor.service.request_bodies import CSV, Columns, read_columns
from calibrant.monitor.service.service_settings import ServiceSettings
from calibrant.monitor.service.work_queue import WorkQueue, WriteQueue
from calibrant.monitor.status import Receipt
from calibrant.monitor.store import Store
from calibrant.tables.score_table import ScoreTable

__all__ = ["Service"]

T = TypeVar("T")
_MOST_CELLS = 5000  # windows times groups of one request: about 20 s


class Service:
    """A running service.

    Attributes
    ----------
    settings : ServiceSettings
    store : Store
        Not for use in the event loop: pass functions to `read`, `write` or `compute`, which run them in threads.
    tokens : TokenBook
    events : EventHub
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings, self.store = settings, Store(settings.store)
        self.tokens = TokenBook(self.store)
        self.writers = WriteQueue("write", self.store, settings.max_queue)
        self.readers = WorkQueue("read", 4, 4 * settings.max_queue)
        self.computers = WorkQueue("compute", 1, 8)
        self.events = EventHub(lambda: self.read(self.revisions), settings.max_streams)
        self.metrics = RequestMetrics()
        self.queues = (self.writers, self.readers, self.computers)
        self.outbox = Outbox(self.store, settings.lease_seconds, settings.retry_seconds, settings.public_url)
        self.delivery: AlarmDelivery | None = None
        self._loading: asyncio.Task[None] | None = None
        self._monitors: dict[str, Monitor] = {}
        self._lock = threading.Lock()

    async def authorize(self, request: Request, scope: str = "read", model: str | None = None) -> Access:
        """Return the rights of a request; a `ServiceProblem` (401, 403) if it may not do this."""
        access = await self.read(check_access, self.tokens, self.settings, request, scope, model)
        request.scope["calibrant_who"] = access.who
        return access

    async def models(self, access: Access) -> list[str]:
        """Return the names of the models that a request may know of, sorted."""
        return [name for name in await self.read(self.store.models) if access.sees(name)]

    async def monitor(self, model: str) -> Monitor:
        """Return the monitor of a model; a `ServiceProblem` (404) if the store has none of this name."""
        return await self.read(self.open, model)

    async def read(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a function that reads the store."""
        return await self.readers.run(function, *args, **options)

    async def write(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a function that writes to the store; its writes are durable when this returns."""
        return await self.writers.run(function, *args, **options)

    async def compute(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a function that computes for long, such as an evaluation; one runs at a time."""
        return await self.computers.run(function, *args, **options)

    def with_monitor(self, model: str, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Call a function with the monitor of a model (not in the event loop)."""
        with self._lock:
            known = self._monitors.get(model)
        if known is not None:
            try:
                return function(known, *args, **options)
            except DeletedModelError:
                self.forget(model)
        return function(self.open(model), *args, **options)

    def forget(self, model: str) -> None:
        """Forget the monitor of a model that was deleted."""
        with self._lock:
            self._monitors.pop(model, None)

    def stored(self, model: str, receipt: Receipt) -> None:
        """Count stored rows, and wake the delivery of alarms if there are new ones."""
        self.metrics.rows.inc(receipt.n_rows)
        if receipt.alarms and self.delivery is not None:
            self.delivery.wake()

    def open(self, model: str) -> Monitor:
        """Return the monitor of a model (not in the event loop)."""
        with self._lock:
            found = self._monitors.get(model)
        if found is not None and found.exists():
            return found
        with self.store.read() as connection:
            query = sa.select(schema.models.c.id).where(schema.models.c.name == model)
            exists = connection.execute(query).first() is not None
        if not exists:
            raise ServiceProblem(
                404,
                "The store must have the model; there is none with this name. PUT /v1/models/{model} creates one.",
                argument="model",
            )
        found = Monitor(self.store, model=model)
        found.most_cells = _MOST_CELLS
        with self._lock:
            self._monitors[model] = found
        return found

    def revisions(self) -> dict[str, int]:
        """Return the revision of each model, which grows when the model changes (not in the event loop)."""
        with self.store.read() as connection:
            query = sa.select(schema.models.c.name, schema.models.c.revision).order_by(schema.models.c.name)
            return {row.name: int(row.revision) for row in connection.execute(query)}

    async def start(self) -> None:
        """Start the delivery of alarms, and load the libraries of the first write and the first page meanwhile."""
        self.delivery = AlarmDelivery(self)
        await self.delivery.start()
        self._loading = asyncio.create_task(self.compute(_load_libraries))

    def stop(self) -> None:
        """End streams of events; running requests go on."""
        self.events.stop()

    async def finish(self) -> None:
        """Finish the running deliveries and the work that waits, and close the store."""
        if self.delivery is not None:
            await self.delivery.stop()
        if self._loading is not None:
            await self._loading
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        for queue in self.queues:
            queue.close()
        self.store.engine.dispose()


def _load_libraries() -> None:
    """Use what is slow to load: Arrow loads pandas with its first table, the diagrams load Matplotlib."""
    encode_table(ScoreTable.from_counts([0.5], [2], [1]))
    read_columns(CSV, b"score\n0.5\n", Columns(("score",)), {}, 1)
    with suppress(MissingExtraError):  # a page says so when it is asked for
        import calibrant.plots.reliability  # noqa: F401
