"""Errors and warnings that Calibrant raises, to catch one of them by its class."""

from calibrant._support import errors as _errors
from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "_support.file_writing": "FileWriteError",
        "_support.errors": "CalibrantWarning InputError MissingExtraError",
        "_support.logistic": "NotConvergedError",
        "monitor.client": "ServiceError",
        "monitor.model_settings": "DeletedModelError SettingsConflictError",
        "monitor.recording": "BatchConflictError",
        "monitor.schema": "StoreError",
    },
    needs=_errors.MissingExtraError("The monitor needs SQLAlchemy", "monitor", name="sqlalchemy"),
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
