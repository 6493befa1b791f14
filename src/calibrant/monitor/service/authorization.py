"""Who may do what: the token of a request, its scope and its models."""

import re
from dataclasses import dataclass

from starlette.requests import Request

from calibrant._support.addresses import is_loopback
from calibrant.monitor.service.access_tokens import AccessToken, TokenBook
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.service.service_settings import ServiceSettings

__all__ = ["ANONYMOUS", "Access", "bearer", "check_access"]

ANONYMOUS = "anonymous"
_HOW = "Send the header 'Authorization: Bearer <token>'; 'calibrant serve token create' makes a token."


@dataclass(frozen=True)
class Access:
    """The rights of a request; `token` is None on loopback while the store has no tokens: everything is allowed."""

    token: AccessToken | None = None

    @property
    def who(self) -> str:
        """Name for logs: the id of the token."""
        return ANONYMOUS if self.token is None else self.token.id

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
