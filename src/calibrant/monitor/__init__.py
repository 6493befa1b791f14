"""Calibration over time: a store of tables per window, and alarms that stay valid however often one looks."""

from calibrant._support.errors import MissingExtraError as _MissingExtraError

try:
    import sqlalchemy  # noqa: F401
except ModuleNotFoundError as error:
    raise _MissingExtraError("The monitor needs SQLAlchemy", "monitor", name="sqlalchemy") from error
