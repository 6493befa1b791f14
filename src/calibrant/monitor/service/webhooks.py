"""Webhooks: alarms as signed POST requests, after the Standard Webhooks specification."""

import base64
import binascii
import hashlib
import hmac
import http.client
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from calibrant._support.addresses import is_loopback, open_connection
from calibrant._support.errors import Argument, InputError
from calibrant.monitor.service.notifications import Notification

_SECONDS = 10
_FEWEST_BYTES = 24
_PREFIX = "whsec_"


class WebhookError(OSError):
    """The receiver did not accept a notification."""


@dataclass(frozen=True)
class Webhook:
    """A receiver of alarms.

    Attributes
    ----------
    name : str
    url : str
        https, or http on loopback. Redirects are not followed.
    secret : str
        ``whsec_`` and at least 24 random bytes in Base64; it signs each request.
    models : tuple of str or None
        The models whose alarms are sent; None for all.
    """

    name: str
    url: str = field(repr=False)
    secret: str = field(repr=False)
    models: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.username or parts.password:
            raise InputError(Argument("url") + f" of webhook {self.name!r} must not hold a password.")
        if parts.hostname is None or not (
            parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))
        ):
            raise InputError(
                Argument("url") + f" of webhook {self.name!r} must begin with https://, or with http:// on loopback."
            )
        _key(self.secret)

    def send(self, notification: Notification) -> None:
        """Send a notification; each attempt has the same id and its own time and signature."""
        parts, body = urlsplit(self.url), notification.to_json()
        moment = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "calibrant",
            "webhook-id": notification.id,
            "webhook-timestamp": str(moment),
            "webhook-signature": sign(self.secret, notification.id, moment, body),
        }
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection = open_connection(parts, _SECONDS)
        try:
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
        except http.client.HTTPException as error:
            raise WebhookError(f"the receiver answered no HTTP: {type(error).__name__}") from error
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise WebhookError(f"the receiver answered with status {status}")


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(_PREFIX) or len(key) < _FEWEST_BYTES:
        raise InputError(
            Argument("secret") + f" of a webhook must be {_PREFIX!r} and at least {_FEWEST_BYTES} bytes in Base64.",
            hint="Make one: echo whsec_$(openssl rand -base64 32)",
        )
    return key


def sign(secret: str, message_id: str, moment: int, body: bytes) -> str:
    """Return the header ``webhook-signature``: HMAC-SHA256 of id, time and body."""
    signed = f"{message_id}.{moment}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest()).decode()


def verify_signature(
    secret: str, message_id: str, moment: str, signature: str, body: bytes, *, tolerance: float = 300
) -> bool:
    """Return whether a received request was signed with the secret, at most `tolerance` seconds ago.

    Arguments are the headers ``webhook-id``, ``webhook-timestamp`` and ``webhook-signature``, and the body.

    >>> secret = "whsec_" + "A" * 44
    >>> made = sign(secret, "msg_1", 1700000000, b"{}")
    >>> verify_signature(secret, "msg_1", "1700000000", made, b"{}", tolerance=float("inf"))
    True
    >>> verify_signature(secret, "msg_2", "1700000000", made, b"{}", tolerance=float("inf"))
    False
    """
    if not (moment.isascii() and moment.isdecimal()) or abs(time.time() - int(moment)) > tolerance:
        return False
    expected = sign(secret, message_id, int(moment), body)
    return any(hmac.compare_digest(expected.encode(), each.encode()) for each in signature.split(" "))
