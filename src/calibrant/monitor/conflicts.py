"""Errors about requests that contradict what the store holds."""

from calibrant._support.errors import InputError

__all__ = ["BatchConflictError", "DeletedModelError", "SettingsConflictError"]


class BatchConflictError(InputError):
    """A batch has the id of an earlier one with other rows."""


class DeletedModelError(InputError):
    """The model was deleted after its monitor was opened."""


class SettingsConflictError(InputError):
    """A given setting differs from the stored one."""
