"""`ServiceSettings`: where the service listens, what it serves and its limits."""

from dataclasses import dataclass, field
from typing import Any

from calibrant._support.addresses import is_loopback

__all__ = ["ServiceSettings"]


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of a service.

    Attributes
    ----------
    store : str
        Path of a SQLite file or URL of SQLAlchemy.
    host, port : str, int
        Address to listen on. Only loopback is served without tokens.
    max_body : int
        Largest body of a request in bytes.
    max_rows : int
        Most rows of a request.
    max_queue : int
        Most requests that wait for the store; more get status 503.
    max_streams : int
        Most open streams of events.
    body_seconds : float
        Time in which a request must have arrived, and in which each part of an answer must be taken.
    header_seconds : float
        Time in which the headers of a request must have arrived.
    shutdown_seconds : float
        Time that running requests have after a signal to stop.
    lease_seconds, retry_seconds, poll_seconds : float
        Of the delivery of alarms; see `Outbox`. The outbox is read at least every ``poll_seconds``.
    allowed_hosts : tuple of str
        Further host names of a service without tokens.
    public_url : str or None
        Address of the service for links in notifications.
    channels : tuple of Channel
        Webhooks and mailboxes that get alarms.
    """

    store: str
    host: str = "127.0.0.1"
    port: int = 8765
    max_body: int = 16 * 2**20
    max_rows: int = 1_000_000
    max_queue: int = 64
    max_streams: int = 200
    body_seconds: float = 30.0
    header_seconds: float = 10.0
    shutdown_seconds: float = 30.0
    lease_seconds: float = 60.0
    retry_seconds: float = 5.0
    poll_seconds: float = 2.0
    allowed_hosts: tuple[str, ...] = ()
    public_url: str | None = None
    channels: tuple[Any, ...] = field(default=(), repr=False)

    @property
    def loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        return is_loopback(self.host)
