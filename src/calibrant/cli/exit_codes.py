"""Exit codes of the commands, and the message that each error prints.

0 success, 1 check failed or alarm, 2 bad input or usage, or a file that cannot be read or written, 3 internal error,
4 out of memory, 130 interrupted.
"""

import errno
import os
import sys
from contextlib import suppress

import click

from calibrant._support.errors import MissingExtraError
from calibrant._support.file_writing import SHORTAGES
from calibrant._support.formatting import printable

SUCCESS, CHECK_FAILED, BAD_INPUT, INTERNAL_ERROR, OUT_OF_MEMORY = 0, 1, 2, 3, 4
INTERRUPTED, CLOSED_PIPE = 130, 141  # as in a shell: 128 and the number of the signal


def report_error(error: BaseException) -> int:
    """Print what happened and return the exit code."""
    shortage = _lack_of_memory(error)
    if shortage is not None:
        reason = f": {str(shortage).splitlines()[0]}" if str(shortage) else ""
        hint = "Use fewer rows or more memory; evaluate and check need 300 MB with --resolution '2**-20'."
        return print_error(f"out of memory{reason}\n{hint}", OUT_OF_MEMORY)
    if isinstance(error, click.UsageError):
        return _show_usage(error)
    if isinstance(error, click.ClickException):
        return print_error(error.message, BAD_INPUT)
    if isinstance(error, MissingExtraError):
        return print_error(str(error), BAD_INPUT)
    if isinstance(error, (BrokenPipeError, SystemExit)):  # click and rich exit if the reader of the output closes it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return CLOSED_PIPE
    if isinstance(error, OSError):
        return _print_os_error(error)
    return _print_internal_error(error)


def _lack_of_memory(error: BaseException | None) -> BaseException | None:
    """Return the error about memory among an error and its causes: Python's, which is also Arrow's, or DuckDB's."""
    kinds: tuple[type[BaseException], ...] = (MemoryError,)
    if "duckdb" in sys.modules:
        kinds += (sys.modules["duckdb"].OutOfMemoryException,)
    while error is not None and not isinstance(error, kinds):
        if isinstance(error, OSError) and str(error).startswith("Out of Memory Error"):
            break  # DuckDB's, raised by Arrow
        error = error.__cause__
    return error


def _print_os_error(error: OSError) -> int:
    """Print an error of the system; if standard output cannot be written, nothing more is."""
    reason, hint = SHORTAGES.get(error.errno or 0, (error.strerror or str(error), ""))
    name = f": {os.path.basename(error.filename)}" if isinstance(error.filename, str) else ""
    if not name and error.errno == errno.ENOSPC:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return print_error(f"{reason}{name}. {hint}" if hint else f"{reason}{name}", BAD_INPUT)


def _print_internal_error(error: BaseException) -> int:
    if os.environ.get("CALIBRANT_DEBUG"):
        raise error
    text = f"internal error: {type(error).__name__}: {error}"
    return print_error(f"{text}\nSet CALIBRANT_DEBUG=1 for the traceback; please report it.", INTERNAL_ERROR)


def _show_usage(error: click.UsageError) -> int:
    """Print how the command is used, unless standard error is closed or full."""
    with suppress(OSError):
        if sys.stderr is not None:
            error.show()
    return BAD_INPUT


def print_error(text: str, code: int) -> int:
    """Print a message to standard error, unless that is closed or full; control characters are shown as text."""
    with suppress(OSError):
        if sys.stderr is not None:  # click 8.1.0 needs one
            click.echo(f"calibrant: {printable(text, keep=chr(10))}", err=True)
    return code
