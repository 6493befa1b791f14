"""The tasks that send the alarms of the outbox, one per channel."""

import asyncio
import logging
from typing import TYPE_CHECKING

from calibrant.monitor.service.notifications import Channel
from calibrant.monitor.service.outbox import Due
from calibrant.monitor.service.work_queue import WorkQueue

if TYPE_CHECKING:
    from calibrant.monitor.service.running_service import Service

__all__ = ["AlarmDelivery"]

_LOG = logging.getLogger("calibrant.alarms")


class AlarmDelivery:
    """Sends alarms while the service runs: when one is raised here, and every few seconds those that others raised."""

    def __init__(self, service: "Service") -> None:
        self.service, self.outbox = service, service.outbox
        self.channels = service.settings.channels
        self._senders = WorkQueue("deliver", max(len(self.channels), 1), 1000)
        self._wake = {channel.name: asyncio.Event() for channel in self.channels}
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Register the channels and start their tasks."""
        if self.channels:
            await self.service.write(self.outbox.register, self.channels)
        self._tasks = [asyncio.create_task(self._serve(channel)) for channel in self.channels]

    def wake(self) -> None:
        """Look for alarms now."""
        for event in self._wake.values():
            event.set()

    async def stop(self) -> None:
        """Finish the running attempts and stop."""
        self._stopping = True
        self.wake()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=30)
        await asyncio.to_thread(self._senders.close)

    async def _serve(self, channel: Channel) -> None:
        while not self._stopping:
            try:
                for due in await self.service.read(self.outbox.due, channel):
                    if not self._stopping:
                        await self._send(channel, due)
            except Exception as error:  # the store is busy or away; the alarm stays in the outbox
                _LOG.warning("channel %s: %s", channel.name, error)
            await self._pause(self._wake[channel.name])

    async def _pause(self, wake: asyncio.Event) -> None:
        try:
            await asyncio.wait_for(wake.wait(), self.service.settings.poll_seconds)
        except TimeoutError:
            return
        if not self._stopping:
            wake.clear()

    async def _send(self, channel: Channel, due: Due) -> None:
        if not await self.service.write(self.outbox.claim, due):
            return
        error = None
        try:
            await self._senders.run(channel.send, due.notification)
        except OSError as failure:
            error = str(failure) or type(failure).__name__
            _LOG.warning("channel %s, entry %s: %s", channel.name, due.notification.id, error)
        self.service.metrics.deliveries.labels(channel.name, "failed" if error else "delivered").inc()
        await self.service.write(self.outbox.finish, due, error)
