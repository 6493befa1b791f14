"""`Service`: the store, the threads that use it, and streams of events. Handlers of all routes share one."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import sqlalchemy as sa
from starlette.requests import Request

from calibrant._support.errors import MissingExtraError
from calibrant.monitor import schema
from calibrant.monitor.cells import encode_table
from calibrant.monitor.model import Monitor
from calibrant.monitor.model_settings import DeletedModelError
from calibrant.monitor.service.access_tokens import Access, TokenBook, check_access
from calibrant.monitor.service.outbox import AlarmDelivery, Outbox
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.service.prometheus_metrics import RequestMetrics
from calibrant.monitor.service.request_bodies import CSV, Columns, read_columns
from calibrant.monitor.service.service_settings import ServiceSettings
from calibrant.monitor.service.work_queue import WorkQueue, WriteQueue
from calibrant.monitor.status import Receipt
from calibrant.monitor.store import Store
from calibrant.tables.score_table import ScoreTable

T = TypeVar("T")
_SECONDS = 1.0
_HEARTBEAT = 15.0


@dataclass(eq=False)
class Subscription:
    """The changes that one stream has not sent: at most one per model, so a slow reader costs no memory."""

    sees: Callable[[str], bool]
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    pending: dict[str, int] = field(default_factory=dict)

    def offer(self, revisions: dict[str, int]) -> None:
        """Add changes of the models that the stream may know of."""
        seen = {model: revision for model, revision in revisions.items() if self.sees(model)}
        if seen:
            self.pending.update(seen)
            self.changed.set()

    def take(self) -> dict[str, int]:
        """Return and remove the changes."""
        found, self.pending = self.pending, {}
        self.changed.clear()
        return found


class EventHub:
    """One task reads the revisions of all models while there are streams, and offers changes to each of them."""

    def __init__(self, revisions: Callable[[], Any], most: int) -> None:
        self._revisions = revisions
        self.most = most
        self._known: dict[str, int] = {}
        self._streams: set[Subscription] = set()
        self._task: asyncio.Task[None] | None = None
        self.stopping: asyncio.Event = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether no further stream is allowed."""
        return len(self._streams) >= self.most

    @property
    def n_streams(self) -> int:
        """Number of open streams."""
        return len(self._streams)

    async def stream(self, sees: Callable[[str], bool], valid: Callable[[], Any]) -> AsyncIterator[str]:
        """Yield events: the revisions of all models first, then changes; a comment as heartbeat.

        The stream ends when the service stops or `valid`, an asynchronous function, returns False.
        """
        own = Subscription(sees)
        self._streams.add(own)
        try:
            found = await self._revisions()
            own.offer(found)
            self._start(found)
            yield "retry: 3000\n\n"
            checked = time.monotonic()
            while not self.stopping.is_set():
                for model, revision in own.take().items():
                    yield f"event: revision\ndata: {json.dumps({'model': model, 'revision': revision})}\n\n"
                await self._wait(own)
                if time.monotonic() - checked >= _HEARTBEAT:
                    if not await valid():
                        return
                    checked = time.monotonic()
                    yield ": heartbeat\n\n"
        finally:
            self._streams.discard(own)

    async def _wait(self, own: Subscription) -> None:
        """Wait for a change, at most for the time of a heartbeat."""
        tasks = [asyncio.ensure_future(each.wait()) for each in (own.changed, self.stopping)]
        try:
            await asyncio.wait(tasks, timeout=_HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
        finally:  # also where the reader leaves meanwhile: its tasks would wait forever
            for task in tasks:
                task.cancel()

    def _start(self, found: dict[str, int]) -> None:
        if self._task is None or self._task.done():
            self._known = found
            self._task = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        while self._streams and not self.stopping.is_set():
            await asyncio.sleep(_SECONDS)
            try:
                found = await self._revisions()
            except Exception:  # the store is locked or away; the next round tries again
                continue
            gone = dict.fromkeys(self._known.keys() - found.keys(), -1)
            changed = {model: n for model, n in found.items() if self._known.get(model) != n} | gone
            self._known = found
            for each in list(self._streams):
                each.offer(changed)


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
        self.settings = settings
        self.store: Store = Store(settings.store)
        self.tokens: TokenBook = TokenBook(self.store)
        self.writers: WriteQueue = WriteQueue("write", self.store, settings.max_queue)
        self.readers: WorkQueue = WorkQueue("read", 4, 4 * settings.max_queue)
        self.computers: WorkQueue = WorkQueue("compute", 1, 8)
        # Run a function that reads the store, that writes to it (and return when that is durable), and that computes
        # for long, one at a time.
        self.read, self.write, self.compute = self.readers.run, self.writers.run, self.computers.run
        self.events: EventHub = EventHub(lambda: self.read(self.revisions), settings.max_streams)
        self.metrics: RequestMetrics = RequestMetrics()
        self.queues: tuple[WorkQueue, ...] = (self.writers, self.readers, self.computers)
        self.outbox: Outbox = Outbox(self.store, settings.lease_seconds, settings.retry_seconds, settings.public_url)
        self.delivery: AlarmDelivery | None = None
        self._loading: asyncio.Task[None] | None = None
        self._monitors: dict[str, Monitor] = {}

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

    async def check(self) -> None:
        """Raise a `ServiceProblem` or a `StoreError` if the service is stopping or cannot read its store."""
        if self.events.stopping.is_set():
            raise ServiceProblem(503, "The service is stopping.", headers={"Retry-After": "10"})
        await self.read(self.store.models)

    def with_monitor(self, model: str, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Call a function with the monitor of a model (not in the event loop)."""
        known = self._monitors.get(model)
        if known is not None:
            try:
                return function(known, *args, **options)
            except DeletedModelError:
                self.forget(model)
        return function(self.open(model), *args, **options)

    def open(self, model: str) -> Monitor:
        """Return the monitor of a model (not in the event loop)."""
        known = self._monitors.get(model)
        if known is not None and known.exists():
            return known
        if model not in self.store.models():
            raise ServiceProblem(
                404,
                "The store must have the model; there is none with this name. PUT /v1/models/{model} creates one.",
                argument="model",
            )
        monitor = Monitor(self.store, model=model)
        monitor.most_cells = _MOST_CELLS
        self._monitors[model] = monitor
        return monitor

    def forget(self, model: str) -> None:
        """Forget the monitor of a model that was deleted."""
        self._monitors.pop(model, None)

    def stored(self, receipt: Receipt) -> None:
        """Count stored rows, and wake the delivery of alarms if there are new ones."""
        self.metrics.rows.inc(receipt.n_rows)
        if receipt.alarms and self.delivery is not None:
            self.delivery.wake()

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
        self.events.stopping.set()

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
