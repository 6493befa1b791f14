"""Access tokens: random, stored as a hash, with a scope, models and an expiry."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from calibrant._support.errors import Argument, InputError, check_option
from calibrant.monitor import schema
from calibrant.monitor.observations import check_name
from calibrant.monitor.store import Store
from calibrant.monitor.stored_values import read_json
from calibrant.monitor.time_windows import to_datetime

__all__ = ["SCOPES", "AccessToken", "TokenBook"]

SCOPES = ("read", "write", "admin")
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
        self,
        name: str,
        scope: str,
        models: Sequence[str] | None = None,
        lifetime: timedelta | None = None,
    ) -> tuple[str, AccessToken]:
        """Create a token; return its text, which is not stored and cannot be shown again, and its description."""
        check_option("scope", scope, SCOPES)
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
