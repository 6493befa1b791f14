"""Output files of the commands: complete or not written at all, and never overwritten by mistake."""

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant._support.file_writing import write_file

__all__ = ["check_outputs", "write_json", "write_text"]


def check_outputs(*paths: str | None, inputs: Iterable[str] = (), force: bool, stream: bool = True) -> None:
    """Check before the work that each output can be written; `stream` allows - for standard output.

    No output is an input: `force` replaces earlier outputs only. `inputs` are files, folders and patterns.
    """
    given = [path for path in paths if path is not None]
    if len({_place(path) for path in given}) < len(given):
        raise InputError("Outputs must have different paths; got one path twice.", hint="Name a file for each.")
    for path in given:
        if path != "-":
            if _is_input(Path(path), inputs):
                raise InputError(f"The output must not be an input; {Path(path).name!r} is one.", hint="Name another.")
            _check_output(Path(path), force=force)
        elif not stream:
            raise InputError("The output must be a file; got - (standard output).")
        else:
            _check_standard_output()


def _check_standard_output() -> None:
    if sys.stdout is None:
        raise InputError("Standard output (-) must be open; it is closed.", hint="Name a file.")


def _place(path: str) -> tuple[str, str]:
    """Return the folder without symbolic links, and the name in it; an output is never a link itself."""
    folder, name = os.path.split(os.path.abspath(path))
    return ("", "-") if path == "-" else (os.path.realpath(folder), name)


def _is_input(path: Path, inputs: Iterable[str]) -> bool:
    """Return whether an output is among the inputs, by any path that leads to it."""
    if path.is_symlink() or not path.is_file():
        return False
    from calibrant.ingest.files import find_files

    for each in inputs:
        with suppress(InputError, OSError):  # what cannot be found is reported when it is read
            if any(path.samefile(file.path) for file in find_files(each, "csv")):  # of any format: nothing is read
                return True
    return False


def _check_output(path: Path, *, force: bool) -> None:
    folder = path.absolute().parent
    if path.is_symlink():
        raise InputError(f"The output must be a file; {path.name!r} is a symbolic link.", hint="Name the file itself.")
    if path.exists() and not path.is_file():
        raise InputError(f"The output must be a file; {path.name!r} is not a regular file.", hint="Name a file.")
    if path.exists() and not force:
        raise InputError(f"{path.name!r} exists already.", hint="Pass " + Argument("force") + " to overwrite it.")
    if not folder.is_dir():
        raise InputError(f"The folder of {path.name!r} does not exist.", hint="Create it first.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"The folder of {path.name!r} is not writable.")


def write_text(path: str, text: str) -> None:
    """Write text to a file, or to standard output (-)."""
    if path == "-":
        _check_standard_output()
        click.echo(text)
        return
    write_file(path, text + "\n", follow_links=False)


def write_json(path: str, result: dict[str, Any]) -> None:
    """Write a result as JSON, without NaN, to a file or to standard output (-)."""
    write_text(path, json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))
