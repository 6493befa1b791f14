"""Temporary files whose space is reserved, and the error of a disk that has none."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from calibrant._support.atomic_files import SHORTAGES
from calibrant._support.errors import InputError

__all__ = ["reserve", "temporary_writes"]

_ZEROS = bytes(1 << 20)
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_NOT_SUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


def reserve(path: Path, size: int) -> None:
    """Create a file of `size` zero bytes that has its space on disk.

    A memory map of a file with holes ends the process by SIGBUS where the disk is full; here that is an `OSError`.
    """
    with path.open("wb", buffering=0) as file:
        if not _allocate(file.fileno(), size):
            for start in range(0, size, len(_ZEROS)):
                left = memoryview(_ZEROS)[: size - start]
                while left:
                    left = left[file.write(left) :]


def _allocate(handle: int, size: int) -> bool:
    """Return whether the system has reserved the space; some systems and file systems cannot."""
    if not hasattr(os, "posix_fallocate"):
        return False
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        if error.errno in _NOT_SUPPORTED:
            return False
        raise
    return True


@contextmanager
def temporary_writes(folder: str | PathLike[str]) -> Iterator[None]:
    """Turn errors of a full or read-only disk in the block into an `InputError` that names the folder."""
    try:
        yield
    except OSError as error:
        if isinstance(error, InputError) or error.errno not in _DISK_ERRORS:
            raise
        raise InputError(
            f"Temporary files cannot be written to {str(Path(folder).parent)!r}: {SHORTAGES[error.errno][0]}.",
            hint="Free space there, or set TMPDIR to a folder on another disk.",
        ) from error
