"""Files that are written whole."""

import os

__all__ = ["usual_mode"]


def usual_mode() -> int:
    """The permissions of any other new file: those of temporary ones are private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
