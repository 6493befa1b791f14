"""Arrays that cannot be written to."""

from typing import Any


def read_only(array: Any) -> Any:
    """A view of the array that cannot be written through (None stays None)."""
    if array is None:
        return None
    view = array.view()
    view.flags.writeable = False
    return view
