"""`Notification`: what receivers of an alarm get."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from calibrant._support.plain_data import label as json_label
from calibrant._support.plain_data import number
from calibrant.monitor.status import Alarm

__all__ = ["Channel", "Notification"]


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
