"""Server-sent events: the revision of each model when it changes."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["EventHub", "Subscription"]

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
        self._revisions, self.most = revisions, most
        self._known: dict[str, int] = {}
        self._streams: set[Subscription] = set()
        self._task: asyncio.Task[None] | None = None
        self.stopping = asyncio.Event()

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

    def stop(self) -> None:
        """End all streams."""
        self.stopping.set()
