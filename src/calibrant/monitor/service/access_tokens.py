"""Access tokens, and who may do what: tokens are random, stored as a hash, with a scope, models and an expiry."""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from starlette.requests import Request

from calibrant._support.addresses import is_loopback
from calibrant._support.errors import Argument, InputError, check_option
from calibrant.monitor import schema
from calibrant.monitor.observations import check_name
from calibrant.monitor.schema import read_json
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.service.service_settings import ServiceSettings
from calibrant.monitor.store import Store
from calibrant.monitor.time_windows import to_datetime

_SCOPES = ("read", "write", "admin")
_PREFIX = "cbt"


@dataclass(frozen=True)
class AccessToken:
    """A token without its secret.

    Attributes
    ----------
    id : str
        Public part of the token, which logs show.
    name : str
        What the token is for.
    scope : {"read", "write", "admin"}
        `read` reads, `write` stores rows, `admin` does both, creates and deletes models and acknowledges alarms.
    models : tuple of str or None
        The models that it is valid for; None for all.
    created, expires, revoked : datetime or None
    """

    id: str
    name: str
    scope: str
    models: tuple[str, ...] | None
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None

    def state(self, now: int) -> str:
        """Return "active", "expired" or "revoked"."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= to_datetime(now) else "active"

    def allows(self, scope: str, model: str | None = None) -> bool:
        """Return whether the token has a scope, and covers a model if one is named."""
        return self.scope in (scope, "admin") and (model is None or self.covers(model))

    def covers(self, model: str) -> bool:
        """Return whether the token is valid for a model."""
        return self.models is None or model in self.models


@dataclass(frozen=True)
class TokenBook:
    """The tokens of a store.

    A token is ``cbt_<id>_<secret>`` with a secret of 256 random bits. The store holds the SHA-256 of the secret. A slow
    hash such as scrypt protects passwords that people choose, which can be guessed; 2**256 secrets cannot be.
    """

    store: Store

    def create(
        self, name: str, scope: str, models: Sequence[str] | None = None, lifetime: timedelta | None = None
    ) -> tuple[str, AccessToken]:
        """Create a token; return its text, which is not stored and cannot be shown again, and its description."""
        check_option("scope", scope, _SCOPES)
        if lifetime is not None and lifetime <= timedelta(0):
            raise InputError(Argument("lifetime") + f" must be longer than 0; got {lifetime}.")
        names = None if not models else [check_name("model", model) for model in models]
        token_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        created = schema.now()
        values = {
            "id": token_id,
            "name": check_name("name", name),
            "sha256": _digest(secret),
            "scope": scope,
            "models": None if names is None else json.dumps(names),
            "created": created,
            "expires": None if lifetime is None else created + lifetime // timedelta(microseconds=1),
        }
        with self.store.write() as connection:
            connection.execute(schema.tokens.insert().values(**values))
        return f"{_PREFIX}_{token_id}_{secret}", self.get(token_id)

    def get(self, token_id: str) -> AccessToken:
        """Return a token by its id."""
        row = self._row(token_id)
        if row is None:
            known = ", ".join(each.id for each in self.list()) or "none"
            raise InputError(Argument("id") + f" must be the id of a token; got {token_id!r}, there are {known}.")
        return _token(row)

    def list(self) -> list[AccessToken]:
        """Return all tokens, also those that expired or were revoked, in the order of their creation."""
        table = schema.tokens
        with self.store.read() as connection:
            return [_token(row) for row in connection.execute(sa.select(table).order_by(table.c.created, table.c.id))]

    def revoke(self, token_id: str) -> AccessToken:
        """Make a token invalid from now on."""
        self.get(token_id)
        table = schema.tokens
        with self.store.write() as connection:
            own = (table.c.id == token_id) & table.c.revoked.is_(None)
            connection.execute(table.update().where(own).values(revoked=schema.now()))
        return self.get(token_id)

    def rotate(self, token_id: str, grace: timedelta = timedelta(0)) -> tuple[str, AccessToken]:
        """Create a token with the same name, scope, models and lifetime; the old one is valid for `grace` more."""
        old, now = self.get(token_id), schema.now()
        if old.state(now) != "active":
            raise InputError(Argument("id") + f" must be an active token; {token_id} is {old.state(now)}.")
        with self.store.transaction():
            lifetime = None if old.expires is None else old.expires - old.created
            created = self.create(old.name, old.scope, old.models, lifetime)
            end = now + grace // timedelta(microseconds=1)
            if not grace:
                self.revoke(token_id)
            elif old.expires is None or to_datetime(end) < old.expires:
                with self.store.write() as connection:
                    same = schema.tokens.c.id == token_id
                    connection.execute(schema.tokens.update().where(same).values(expires=end))
        return created

    def exist(self) -> bool:
        """Return whether the store has ever had a token."""
        with self.store.read() as connection:
            return connection.execute(sa.select(schema.tokens.c.id).limit(1)).first() is not None

    def usable(self) -> bool:
        """Return whether there is an active token."""
        return any(token.state(schema.now()) == "active" for token in self.list())

    def verify(self, text: str) -> AccessToken | None:
        """Return the token of a text if it is active; the comparison takes the same time for all secrets."""
        parts = text.split("_", 2)
        token_id, secret = (parts[1], parts[2]) if len(parts) == 3 and parts[0] == _PREFIX else ("", "")
        row = self._row(token_id) if token_id.isalnum() and token_id.isascii() else None
        expected = _digest("") if row is None else row.sha256
        same = hmac.compare_digest(_digest(secret), expected)
        if row is None or not same:
            return None
        token = _token(row)
        return token if token.state(schema.now()) == "active" else None

    def _row(self, token_id: str) -> Any:
        with self.store.read() as connection:
            return connection.execute(sa.select(schema.tokens).where(schema.tokens.c.id == token_id)).first()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: Any) -> AccessToken:
    times = (None if each is None else to_datetime(each) for each in (row.expires, row.revoked))
    models = None if row.models is None else tuple(map(str, read_json(row.models, "tokens.models", list)))
    return AccessToken(row.id, row.name, row.scope, models, to_datetime(row.created), *times)


_ANONYMOUS = "anonymous"
_HOW = "Send the header 'Authorization: Bearer <token>'; 'calibrant serve token create' makes a token."


@dataclass(frozen=True)
class Access:
    """The rights of a request; `token` is None on loopback while the store has no tokens: everything is allowed."""

    token: AccessToken | None = None

    @property
    def who(self) -> str:
        """Name for logs: the id of the token."""
        return _ANONYMOUS if self.token is None else self.token.id

    def sees(self, model: str) -> bool:
        """Return whether the request may know of a model."""
        return self.token is None or self.token.covers(model)


def bearer(request: Request) -> tuple[str | None, bool]:
    """Return the token of a request, and whether it comes from the query, where only links for reading have one."""
    header = request.headers.get("authorization")
    if header is not None:
        kind, _, text = header.partition(" ")
        return (text.strip() if kind.lower() == "bearer" else ""), False
    return request.query_params.get("token"), True


def check_access(book: TokenBook, settings: ServiceSettings, request: Request, scope: str, model: str | None) -> Access:
    """Return the rights of a request; a problem 401 or 403 if they do not suffice."""
    text, in_query = bearer(request)
    if text is None:
        if settings.loopback and not book.exist():
            _check_origin(settings, request)
            return Access()
        raise _unknown("This service needs a token; the request has none.")
    token = book.verify(text)
    if token is None:
        raise _unknown("The token must be a valid one; this one is unknown, expired or revoked.")
    if in_query and (token.scope != "read" or request.method not in ("GET", "HEAD")):
        raise ServiceProblem(
            403, "A token in a link must have the scope 'read'. Send others in the header Authorization."
        )
    if not token.allows(scope, model):
        wanted = f"the scope {scope!r}" + ("" if model is None else " for this model")
        raise ServiceProblem(403, f"The token must have {wanted}; token {token.id} does not.")
    return Access(token)


def _check_origin(settings: ServiceSettings, request: Request) -> None:
    """Refuse requests that a web page of another site, or a proxy, sends to a service without tokens."""
    given = ", ".join(request.headers.getlist("host"))
    host = _host_name(given)
    if not is_loopback(host) and host not in settings.allowed_hosts:
        raise ServiceProblem(
            403, f"Without tokens the service must be addressed as loopback; got the host {given[:80]!r}."
        )
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise ServiceProblem(403, "Without tokens the service does not answer pages of other sites.")


def _host_name(header: str) -> str:
    """Return the name or the address in a header Host, without its port; empty if it is not a valid one.

    The URL of a request is no help: without a valid header it has the address of the server.
    """
    found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([^\s:@/?#\[\],]+))(?::[0-9]*)?", header.lower())
    return "" if found is None else found[1] or found[2]


def _unknown(text: str) -> ServiceProblem:
    return ServiceProblem(401, f"{text} {_HOW}", headers={"WWW-Authenticate": "Bearer"})
