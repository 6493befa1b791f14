"""Files that commands write: whole or not at all, and never over another one by mistake."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from calibrant._support.errors import InputError
from calibrant._support.file_modes import default_file_mode

__all__ = ["check_outputs", "force_option", "write_json", "write_text", "written"]

force_option = click.option("--force", is_flag=True, help="Write over files that exist.")


def check_outputs(*paths: str | None, force: bool, stream: bool = True) -> None:
    """Whether files can be written there, each a file of its own; asked before the work, so that none is lost.

    `stream`: whether - may be given, for standard output.
    """
    given = [path for path in paths if path is not None]
    if len({os.path.abspath(path) for path in given}) < len(given):
        raise InputError("Two outputs are to go to the same place.", hint="Give each a file of its own.")
    for path in given:
        if path != "-":
            _check_output(Path(path), force=force)
        elif not stream:
            raise InputError("A file is needed here, not standard output (-).")


def _check_output(path: Path, *, force: bool) -> None:
    if path.is_symlink():
        raise InputError(f"{path.name!r} is a symbolic link.", hint="Name the file itself.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path.name!r} is not a regular file.", hint="Name a file.")
    if path.exists() and not force:
        raise InputError(f"There is already a file {path.name!r}.", hint="Pass --force to write over it.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"There is no folder for {path.name!r}.", hint="Make it first.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise InputError(f"Nothing can be written to the folder of {path.name!r}.")


@contextmanager
def written(path: str) -> Iterator[Path]:
    """A file to fill; it gets its name when it is whole."""
    whole, name = Path(path), None
    try:
        handle, name = tempfile.mkstemp(dir=whole.absolute().parent, prefix=f".{whole.name}.")
        os.close(handle)
        yield Path(name)
        Path(name).chmod(default_file_mode())  # as any other new file, not a private one
        os.replace(name, whole)
    except OSError as error:
        raise InputError(f"{whole.name!r} cannot be written: {error.strerror or error}.") from error
    finally:
        if name is not None:
            Path(name).unlink(missing_ok=True)


def write_text(path: str, text: str) -> None:
    """Text into a file, or (-) to standard output."""
    if path == "-":
        click.echo(text)
        return
    with written(path) as file:
        file.write_text(text + "\n", encoding="utf-8")


def write_json(path: str, result: dict[str, Any]) -> None:
    """A result as JSON, which has no NaN."""
    write_text(path, json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))
