"""`Notification`: what receivers of an alarm get; `Mailbox` sends it by e-mail."""

import json
import smtplib
import ssl
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any, Protocol

from calibrant._support.addresses import is_loopback
from calibrant._support.errors import Argument, InputError, check_option
from calibrant._support.formatting import printable
from calibrant._support.plain_data import label as json_label
from calibrant._support.plain_data import number
from calibrant.monitor.status import Alarm


@dataclass(frozen=True)
class Notification:
    """An alarm that is sent. The id is that of the entry in the outbox: it is the same in each attempt.

    `predicted` and `observed` are the rates of all windows up to that of the alarm.
    """

    id: str
    created: datetime
    model: str
    alarm: Alarm
    predicted: float
    observed: float
    link: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        alarm = self.alarm
        return {
            "id": self.id,
            "type": "alarm.raised",
            "timestamp": self.created.isoformat(),
            "data": {
                "model": self.model,
                "alarm": alarm.id,
                "version": alarm.version,
                "group": None if alarm.group is None else json_label(alarm.group),
                "window": alarm.window.isoformat(),
                **number("log_e_value", alarm.log_e_value),
                "predicted": self.predicted,
                "observed": self.observed,
                "raised": alarm.raised.isoformat(),
                "link": self.link,
            },
        }

    def to_json(self) -> bytes:
        """Return the body of a webhook."""
        return json.dumps(self.to_dict(), separators=(",", ":")).encode()


class Channel(Protocol):
    """A way to send notifications."""

    @property
    def name(self) -> str:
        """Name in the store and in metrics."""

    @property
    def models(self) -> tuple[str, ...] | None:
        """The models whose alarms are sent; None for all."""

    def send(self, notification: Notification) -> None:
        """Send a notification; an `OSError` if the receiver did not accept it."""


_SECONDS = 20
_SECURITY = ("starttls", "tls", "none")


@dataclass(frozen=True)
class Mailbox:
    """Recipients of alarms by e-mail.

    Attributes
    ----------
    name : str
    host, port : str, int
        The SMTP server.
    sender : str
    recipients : tuple of str
    security : {"starttls", "tls", "none"}
        Encryption of the connection; none is allowed on loopback only.
    user, password : str
    models : tuple of str or None
        The models whose alarms are sent; None for all.
    """

    name: str
    host: str
    sender: str
    recipients: tuple[str, ...]
    port: int = 587
    security: str = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    models: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_option("security", self.security, _SECURITY)
        if self.security == "none" and not is_loopback(self.host):
            raise InputError(
                Argument("security") + f" must be 'starttls' or 'tls' for {self.host!r}, which is not loopback."
            )
        for address in (self.sender, *self.recipients):
            if "@" not in address or not address.isprintable() or not address.isascii() or " " in address:
                raise InputError(Argument("recipients") + f" must be e-mail addresses; got {address!r}.")
        if not self.recipients:
            raise InputError(Argument("recipients") + " must have at least one address.")

    def send(self, notification: Notification) -> None:
        """Send a notification; its Message-ID is the same in each attempt."""
        with self._connect() as server:
            if self.security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if self.user:
                server.login(self.user, self.password)
            server.send_message(self.message(notification))

    def _connect(self) -> smtplib.SMTP:
        if self.security == "tls":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=_SECONDS, context=ssl.create_default_context())
        return smtplib.SMTP(self.host, self.port, timeout=_SECONDS)

    def message(self, notification: Notification) -> EmailMessage:
        """Return the message of a notification."""
        alarm, model = notification.alarm, printable(notification.model)
        found = EmailMessage()
        found["Subject"] = f"Calibrant: alarm for model {model!r} ({printable(alarm.subject)})"[:200]
        found["From"], found["To"] = self.sender, ", ".join(self.recipients)
        found["Date"] = format_datetime(notification.created)
        found["Message-ID"] = f"<{notification.id}@{self.sender.rpartition('@')[2]}>"
        lines = [
            f"The monitor raised alarm {alarm.id} for model {model!r}, version {printable(alarm.version)}: "
            f"{printable(alarm.subject)}.",
            f"Window: {alarm.window:%Y-%m-%d %H:%M} UTC. Log e-value: {alarm.log_e_value:.2f}.",
            f"Predicted rate so far: {100 * notification.predicted:.2f} %. "
            f"Observed: {100 * notification.observed:.2f} %.",
            "A calibrated model ever raises an alarm with a probability of at most alpha.",
        ]
        if notification.link is not None:
            lines.append(f"The page of the model: {notification.link}")
        lines.append(f"Id of this notification: {notification.id}")
        found.set_content("\n\n".join(lines) + "\n")
        return found
