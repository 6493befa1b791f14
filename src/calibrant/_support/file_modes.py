"""Permissions of new files."""

import os

__all__ = ["default_file_mode"]


def default_file_mode() -> int:
    """Return the permissions that the process gives new files; those of temporary files are private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
