"""The monitor as a service over HTTP: API, pages, tokens, alarms by webhook and e-mail, metrics for Prometheus."""

from calibrant._support.errors import MissingExtraError as _MissingExtraError

try:
    import starlette  # noqa: F401
except ModuleNotFoundError as error:
    raise _MissingExtraError("The service needs Starlette and uvicorn", "serve", name="starlette") from error
