"""Read-only arrays."""

from typing import Any


def read_only(array: Any) -> Any:
    """Return a read-only view of an array; None stays None."""
    if array is None:
        return None
    view = array.view()
    view.flags.writeable = False
    return view
