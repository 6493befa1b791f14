"""Errors as ``application/problem+json`` (RFC 9457), with the wording of the library."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from calibrant._support.errors import Argument, InputError
from calibrant._support.formatting import printable
from calibrant.monitor.model_settings import DeletedModelError, SettingsConflictError
from calibrant.monitor.recording import BatchConflictError
from calibrant.monitor.schema import StoreError

MEDIA_TYPE = "application/problem+json"
_CODES = {BatchConflictError: 422, DeletedModelError: 404, SettingsConflictError: 409}
_EVENTS = "Send 1 for rows with the event and 0 for others."
# Arguments that requests have as a header.
_HEADERS = {"batch": "Idempotency-Key"}


class ServiceProblem(Exception):  # noqa: N818  (the term of RFC 9457)
    """An answer that says what is wrong with a request, or why the service cannot serve it.

    Parameters
    ----------
    status : int
        Status code of HTTP.
    detail : str
        What must hold, what was found, and what to do.
    headers : mapping, optional
        Headers of the answer, such as ``Retry-After``.
    members : object
        Further members: `argument`, `row` and `hint` of an `InputError`.
    """

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: object
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail: str = printable(detail, keep="\n")
        self.headers: dict[str, str] = dict(headers or {})
        self.members: dict[str, object] = {name: value for name, value in members.items() if value not in (None, "")}

    def to_dict(self) -> dict[str, Any]:
        """Return the members of the answer."""
        return {"title": HTTPStatus(self.status).phrase, "status": self.status, "detail": self.detail, **self.members}


def as_problem(error: Exception) -> ServiceProblem:
    """Return the problem of an error; one that nobody expected gets status 500 and no detail of its cause."""
    if isinstance(error, ServiceProblem):
        return error
    if isinstance(error, InputError):
        status = next((code for kind, code in _CODES.items() if isinstance(error, kind)), 400)
        argument = _HEADERS.get(error.argument or "", error.argument)
        text, hint = error.write(_write_argument), printable(error.hint)
        if "pos_label" in hint:  # requests have no such member
            text, hint = text.removesuffix(hint) + _EVENTS, _EVENTS
        return ServiceProblem(status, text, argument=argument, row=error.row, hint=hint)
    if isinstance(error, StoreError):
        return ServiceProblem(503, str(error), headers={"Retry-After": "2"})
    if isinstance(error, HTTPException):
        return ServiceProblem(error.status_code, str(error.detail), headers=error.headers)
    return ServiceProblem(500, "The service failed on this request; its log has the cause.")


def _write_argument(argument: Argument) -> str:
    return _HEADERS.get(argument.name, str(argument))


def problem_response(request: Request, error: Exception) -> Response:
    """Return the answer for an error."""
    problem = as_problem(error)
    text = json.dumps(problem.to_dict(), ensure_ascii=True)
    return Response(text + "\n", problem.status, problem.headers, MEDIA_TYPE)
