"""`ServiceSettings`: where the service listens, what it serves and its limits; read from a file in TOML."""

import dataclasses
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from calibrant._support.addresses import is_loopback
from calibrant._support.errors import Argument, InputError, nearest
from calibrant.monitor.observations import check_name
from calibrant.monitor.service.notifications import Channel, Mailbox
from calibrant.monitor.service.webhooks import Webhook


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


_NUMBERS = tuple(
    name for name in ServiceSettings.__dataclass_fields__ if name.startswith("max_") or name.endswith("_seconds")
)


def read_settings(path: str | None, **given: Any) -> ServiceSettings:
    """Return the settings of a file and of the command line, which goes before.

    A secret is not in the file: ``secret_file`` (``password_file``) names a file that holds it, and ``secret_variable``
    (``password_variable``) an environment variable.
    """
    found = {} if path is None else _read(path)
    webhooks, mailboxes = found.pop("webhooks", []), found.pop("email", [])
    channels = [*_channels(webhooks, Webhook, "secret"), *_channels(mailboxes, Mailbox, "password")]
    names = [channel.name for channel in channels]
    if len(set(names)) < len(names):
        raise InputError(Argument("config") + " must give each webhook and each mailbox a name of its own.")
    known = [*_NUMBERS, "public_url", "allowed_hosts"]
    for name in found:
        if name not in known:
            raise InputError(Argument("config") + f" has an unknown setting {name!r}.{nearest(name, known)}")
    for name in _NUMBERS:
        if name in found and not (type(found[name]) in (int, float) and found[name] > 0):
            raise InputError(Argument("config") + f": {name} must be a number above 0; got {found[name]!r}.")
    if "allowed_hosts" in found:
        found["allowed_hosts"] = tuple(map(str, found["allowed_hosts"]))
    return ServiceSettings(**{**found, "channels": tuple(channels), **given})


def _read(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(Argument("config") + f" must be a TOML file; {Path(path).name}: {reason}.") from error


def _channels(entries: Any, kind: Callable[..., Channel], secret: str) -> list[Channel]:
    if not isinstance(entries, list) or not all(isinstance(each, Mapping) for each in entries):
        raise InputError(Argument("config") + " must have webhooks and e-mail as tables: [[webhooks]], [[email]].")
    return [_channel(dict(each), kind, secret) for each in entries]


def _channel(entry: dict[str, Any], kind: Callable[..., Channel], secret: str) -> Channel:
    value = _secret(entry, secret)
    known = [each.name for each in dataclasses.fields(kind) if each.name != secret]  # type: ignore[arg-type]
    for name in entry:
        if name not in known:
            hint = f"Secrets are read from {secret}_file or {secret}_variable." if name == secret else ""
            raise InputError(
                Argument("config") + f" has an unknown member {name!r} of a channel.{nearest(name, known)}", hint=hint
            )
    for name in ("models", "recipients"):
        if name in entry:
            entry[name] = tuple(map(str, entry[name])) if isinstance(entry[name], list) else (str(entry[name]),)
    entry["name"] = check_name("name", entry.get("name", ""))
    try:
        return kind(**entry, **({} if value is None else {secret: value}))
    except TypeError as error:
        raise InputError(Argument("config") + f": channel {entry['name']!r} is not complete: {error}.") from error


def _secret(entry: dict[str, Any], name: str) -> str | None:
    """Return the secret that a file or an environment variable holds."""
    file, variable = entry.pop(f"{name}_file", None), entry.pop(f"{name}_variable", None)
    if file is not None:
        try:
            return Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(Argument("config") + f": {name}_file {Path(file).name!r} cannot be read.") from error
    if variable is not None:
        if variable not in os.environ:
            raise InputError(Argument("config") + f": the environment variable {variable!r} is not set.")
        return os.environ[variable].strip()
    return None
