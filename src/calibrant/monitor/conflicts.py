"""Errors about requests that contradict what the store holds."""

from calibrant._support.errors import InputError

__all__ = ["BatchConflictError", "DeletedModelError", "SettingsConflictError"]


class BatchConflictError(InputError):
    """A batch has the id of an earlier one with other rows.

    See Also
    --------
    Monitor, SettingsConflictError

    Examples
    --------
    >>> import calibrant as cb
    >>> monitor = cb.Monitor("sqlite://")
    >>> _ = monitor.observe([0, 1], [0.2, 0.7], time="2026-01-01", batch="a")
    >>> try:
    ...     monitor.observe([0, 0], [0.2, 0.7], time="2026-01-01", batch="a")
    ... except BatchConflictError as error:
    ...     print(error.argument)
    batch
    """


class DeletedModelError(InputError):
    """The model was deleted after its monitor was opened.

    See Also
    --------
    Monitor

    Examples
    --------
    >>> issubclass(DeletedModelError, InputError)
    True
    """


class SettingsConflictError(InputError):
    """A given setting differs from the stored one.

    See Also
    --------
    Monitor, BatchConflictError

    Examples
    --------
    >>> issubclass(SettingsConflictError, InputError)
    True
    """
