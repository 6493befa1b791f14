"""Files that are written completely or not at all, and temporary files whose space is reserved."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TypeVar

from calibrant._support.errors import InputError

FilePath = TypeVar("FilePath", bound=str | PathLike[str])  # a path that is given and returned

_NAME_KEPT = 40  # characters of the name in that of the temporary file, whose length is limited
# Shortages of the system, when writing or reading: what happened and what to do.
SHORTAGES = {
    errno.ENOSPC: ("the disk is full", "Free space, or name a file on another disk."),
    errno.EDQUOT: ("the disk quota is used up", "Free space, or name a file on another disk."),
    errno.EROFS: ("the file system is read-only", "Name a file on another one."),
    errno.EMFILE: ("too many files are open", "Close files, or raise the limit (ulimit -n)."),
    errno.ENFILE: ("too many files are open", "Close files in other processes."),
}
_REASONS = SHORTAGES | {
    errno.EACCES: ("permission is denied", "Name a file that you may write to."),
    errno.EPERM: ("permission is denied", "Name a file that you may write to."),
    errno.EPIPE: ("the reader has closed the pipe", "Name a file."),
    errno.ENOENT: ("its folder does not exist", "Create it first."),
    errno.ENOTDIR: ("its folder is a file", "Name another folder."),
    errno.ENAMETOOLONG: ("its name is too long", "Use a shorter one."),
    errno.ELOOP: ("its symbolic links form a loop", "Name the file itself."),
}


class FileWriteError(InputError, OSError):
    """A file that cannot be written; `errno` says why, as in every `OSError`.

    Parameters
    ----------
    name : str
        The file.
    error : OSError
        The error of the operating system.

    See Also
    --------
    InputError

    Examples
    --------
    >>> from calibrant._support.file_writing import write_file
    >>> try:
    ...     write_file("no such folder/report.html", "")
    ... except FileWriteError as error:
    ...     print(error)
    'report.html' cannot be written: its folder does not exist. Create it first.
    """

    __module__ = "calibrant.exceptions"

    def __init__(self, name: str, error: OSError) -> None:
        reason, hint = _REASONS.get(error.errno or 0, (error.strerror or str(error), ""))
        super().__init__(f"{name!r} cannot be written: {reason}.", hint=hint, argument="path", value=name)
        self.errno, self.strerror, self.filename = error.errno, reason, name

    def __str__(self) -> str:
        return self.write()

    def __reduce__(self) -> tuple[object, ...]:
        return (FileWriteError, (self.filename, OSError(self.errno, self.strerror)))


@contextmanager
def new_file(path: str | PathLike[str], *, follow_links: bool = True) -> Iterator[Path]:
    """Yield an empty temporary file in the folder of `path`, which replaces `path` when the block ends.

    The temporary file has a random name, so that threads, processes and machines that share the folder can write the
    same path at once: a reader finds one complete file, before and after a loss of power. If the block fails,
    `path` keeps its content and the temporary file is removed. A new file has the permissions of the umask, a replaced
    one keeps its own. The target of a symbolic link is replaced, not the link, unless `follow_links` is false.
    """
    target = _target(path, follow_links)
    scratch = target.with_name(f".{target.name[:_NAME_KEPT]}.{secrets.token_hex(16)}.part")
    try:
        before = _check_target(target)
        mode = 0o666 if before is None else stat.S_IMODE(before.st_mode) & 0o777 | 0o600
        os.close(os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield scratch
        _finish(scratch, before)
        os.replace(scratch, target)
        _sync_folder(target.parent)
    except OSError as error:
        if isinstance(error, FileWriteError) or error.filename not in (None, *_names(scratch), *_names(target)):
            raise
        raise FileWriteError(Path(path).name, error) from error
    finally:
        with suppress(OSError):
            scratch.unlink()


def write_file(path: str | PathLike[str], content: str | bytes, *, follow_links: bool = True) -> None:
    """Write bytes with `new_file`, or text as UTF-8 with the line ends that it has; lone surrogates are escaped."""
    with new_file(path, follow_links=follow_links) as file:
        file.write_bytes(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


def check_path(path: str | PathLike[str]) -> Path:
    """Check and return the name of a file."""
    if isinstance(path, (str, PathLike)) and "\0" not in str(path):
        with suppress(UnicodeEncodeError):
            os.fsencode(path)
            return Path(path)
    raise InputError(f"path must be the name of a file; got {path!r}.", argument="path", value=path)


def _target(path: str | PathLike[str], follow_links: bool) -> Path:
    name = check_path(path)
    return Path(os.path.realpath(name) if follow_links else os.path.abspath(name))


def _names(path: Path) -> tuple[str | bytes | PathLike[str], ...]:
    return str(path), os.fsencode(path), path


def _check_target(target: Path) -> os.stat_result | None:
    """Return what is known of an existing file, None for a new one; only files that may be written are replaced."""
    try:
        found = target.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        raise InputError(
            f"path must be a file; {target.name!r} is {kind}.", hint="Name a file.", argument="path", value=str(target)
        )
    if stat.S_ISREG(found.st_mode) and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return found if stat.S_ISREG(found.st_mode) else None


def _finish(scratch: Path, before: os.stat_result | None) -> None:
    """Store the content on disk, and give the file the permissions and the owner of the one that it replaces."""
    handle = os.open(scratch, os.O_RDWR)
    try:
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems without fsync
                raise
        if before is not None and hasattr(os, "fchown"):
            now = os.fstat(handle)
            if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
                with suppress(OSError):  # only root may give files away
                    os.fchown(handle, before.st_uid, before.st_gid)
            os.fchmod(handle, stat.S_IMODE(before.st_mode) & 0o777)
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Store the new name on disk, where the system can open folders; the file is complete in any case."""
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


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
