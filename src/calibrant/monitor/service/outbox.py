"""The outbox: alarms that wait to be sent, the result of each attempt, and the tasks that send them."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from calibrant.monitor import schema
from calibrant.monitor.alarm_log import alarm_from_row
from calibrant.monitor.schema import WHOLE, damaged
from calibrant.monitor.service.notifications import Channel, Notification
from calibrant.monitor.service.page_views import PageLinks
from calibrant.monitor.service.work_queue import WorkQueue
from calibrant.monitor.store import Store
from calibrant.monitor.time_windows import to_datetime

if TYPE_CHECKING:
    from calibrant.monitor.service.running_service import Service

_SECOND = 1_000_000
_LONGEST_WAIT = 3600
_MOST = 20


@dataclass(frozen=True)
class Due:
    """A notification to send on a channel now, and the number of earlier attempts."""

    notification: Notification
    channel: str
    attempts: int


@dataclass(frozen=True)
class Outbox:
    """Entries of the outbox and their deliveries.

    An entry is written in the transaction that raises its alarm. It is sent on each channel until the receiver accepts
    it. A receiver gets it at least once, and more than once only if the service or the connection fails after it was
    accepted; the id is the same then.

    Attributes
    ----------
    store : Store
    lease : float
        Seconds after which another attempt is made if an attempt has no result, because the service was killed.
    pause : float
        Seconds after the first attempt that failed; each further pause is twice as long, up to an hour.
    public_url : str or None
        Address of the pages, for links.
    """

    store: Store
    lease: float = 60.0
    pause: float = 5.0
    public_url: str | None = None

    def register(self, channels: Sequence[Channel]) -> None:
        """Add new channels to the store. Alarms that were raised before are not sent on them."""
        outbox, deliveries = schema.outbox, schema.deliveries
        with self.store.write() as connection:
            known = set(connection.execute(sa.select(schema.channels.c.name)).scalars())
            for name in [channel.name for channel in channels if channel.name not in known]:
                if self.store.insert_new(connection, schema.channels, {"name": name, "created": schema.now()}):
                    values = (sa.literal(value) for value in (name, "earlier", 0, 0))
                    columns = ["outbox_id", "channel", "state", "attempts", "next_attempt"]
                    connection.execute(deliveries.insert().from_select(columns, sa.select(outbox.c.id, *values)))

    def due(self, channel: Channel) -> list[Due]:
        """Return the entries to send on a channel now; alarms of silenced models wait."""
        deliveries = schema.deliveries
        with self.store.read() as connection:
            now = schema.now()
            # A time beyond the longest pause comes from a clock that was ahead.
            latest = now + int(max(_LONGEST_WAIT, self.lease) * _SECOND)
            ready = (deliveries.c.next_attempt <= now) | (deliveries.c.next_attempt > latest)
            open_ones = deliveries.c.state.is_(None) | ((deliveries.c.state == "waiting") & ready)
            query = self._entries(channel).where(open_ones, ~_silenced(now)).order_by(schema.outbox.c.created)
            return [self._due(row, channel.name) for row in connection.execute(query.limit(_MOST))]

    def waiting(self, channel: Channel) -> tuple[int, float]:
        """Return the number of entries that should have been sent on a channel, and the age of the oldest in seconds.

        Alarms that somebody acknowledged are not sent, and those of silenced models wait, so neither counts.
        """
        deliveries = schema.deliveries
        with self.store.read() as connection:
            where = deliveries.c.state.is_(None) | (deliveries.c.state == "waiting")
            wanted = schema.alarms.c.acknowledged.is_(None) & ~_silenced(schema.now())
            entries = self._entries(channel).where(where, wanted).subquery()
            count, first = connection.execute(sa.select(sa.func.count(), sa.func.min(entries.c.created))).one()
        return int(count), 0.0 if first is None else (schema.now() - first) / _SECOND

    def _entries(self, channel: Channel) -> Any:
        outbox, alarms, versions, models = schema.outbox, schema.alarms, schema.versions, schema.models
        deliveries, windows = schema.deliveries, schema.windows
        sent = (deliveries.c.outbox_id == outbox.c.id) & (deliveries.c.channel == channel.name)
        columns = (outbox.c.created, deliveries.c.attempts, *alarms.c, versions.c.name, windows.c.start)
        sums = (_sum_until(alarms, name) for name in ("n", "k", "score_sum"))
        query = (
            sa.select(outbox.c.id.label("entry"), models.c.name.label("model"), *columns, *sums)
            .join(alarms, alarms.c.id == outbox.c.alarm_id)
            .join(versions, versions.c.id == alarms.c.version_id)
            .join(models, models.c.id == versions.c.model_id)
            .join(windows, schema.same_window(alarms))
            .outerjoin(deliveries, sent)
        )
        return query if channel.models is None else query.where(models.c.name.in_(channel.models))

    def _due(self, row: Any, channel: str) -> Due:
        link = None
        if self.public_url is not None:
            pages = PageLinks(self.public_url.rstrip("/"))
            link = pages.model(row.model, version=row.name, group=None if row.stream == WHOLE else row.stream)
        if not row.n:
            raise damaged(f"alarm {row.id} has no evidence")
        rates = float(row.score_sum) / int(row.n), int(row.k) / int(row.n)
        created, alarm = to_datetime(row.created), alarm_from_row(row)
        return Due(Notification(row.entry, created, row.model, alarm, *rates, link), channel, int(row.attempts or 0))

    def claim(self, due: Due) -> bool:
        """Begin an attempt; return False if there is nothing to send: another process has it, or the alarm is known.

        An alarm that somebody acknowledged before it was sent is not sent.
        """
        key = {"outbox_id": due.notification.id, "channel": due.channel}
        later = schema.now() + int(self.lease * _SECOND)
        state = "waiting" if due.notification.alarm.acknowledged is None else "acknowledged"
        values = {"state": state, "attempts": due.attempts + 1, "next_attempt": later}
        with self.store.write() as connection:
            claimed = self.store.insert_new(connection, schema.deliveries, {**key, **values})
            if not claimed:
                table = schema.deliveries
                unchanged = (table.c.state == "waiting") & (table.c.attempts == due.attempts)
                claimed = connection.execute(_delivery(due).where(unchanged).values(**values)).rowcount == 1
        return claimed and state == "waiting"

    def finish(self, due: Due, error: str | None) -> None:
        """Record the result of an attempt: delivered, or the error after which it is tried again."""
        now = schema.now()
        wait = min(self.pause * 2.0 ** min(due.attempts, 20), _LONGEST_WAIT)
        values: dict[str, Any] = {"state": "delivered", "delivered": now, "error": None}
        if error is not None:
            values = {"next_attempt": now + int(wait * _SECOND), "error": error[:500]}
        with self.store.write() as connection:
            connection.execute(_delivery(due).values(**values))


def _delivery(due: Due) -> Any:
    """Return the update of the delivery of an entry on a channel."""
    table = schema.deliveries
    return table.update().where(table.c.outbox_id == due.notification.id, table.c.channel == due.channel)


def _sum_until(alarms: sa.Table, name: str) -> Any:
    """Return the sum of a column of evidence over the windows of a stream up to its alarm."""
    table = schema.evidence
    same = (table.c.version_id == alarms.c.version_id) & (table.c.stream == alarms.c.stream)
    query = sa.select(sa.func.sum(table.c[name])).where(same, table.c.window <= alarms.c.window)
    return query.correlate(alarms).scalar_subquery().label(name)


def _silenced(now: int) -> Any:
    table = schema.silences
    return sa.exists().where(table.c.model_id == schema.models.c.id, table.c.until > now)


_LOG = logging.getLogger("calibrant.alarms")


class AlarmDelivery:
    """Sends alarms while the service runs: when one is raised here, and every few seconds those that others raised."""

    def __init__(self, service: "Service") -> None:
        self.service = service
        self.outbox: Outbox = service.outbox
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
