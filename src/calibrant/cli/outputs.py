"""Files that commands write: whole or not at all, and never over another one by mistake."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from calibrant.errors import InputError

__all__ = ["check_output", "force_option", "write_json", "write_text", "written"]

force_option = click.option("--force", is_flag=True, help="Write over files that exist.")


def check_output(path: str | None, *, force: bool) -> None:
    """Whether a file can be written there; asked before the work, so that none is lost."""
    if path is None or path == "-":
        return
    if Path(path).is_symlink():
        raise InputError(f"{Path(path).name!r} is a symbolic link.", hint="Name the file itself.")
    if Path(path).is_dir():
        raise InputError(f"{Path(path).name!r} is a folder.", hint="Name a file in it.")
    if Path(path).exists() and not force:
        raise InputError(f"There is already a file {Path(path).name!r}.", hint="Pass --force to write over it.")
    if not Path(path).absolute().parent.is_dir():
        raise InputError(f"There is no folder for {Path(path).name!r}.", hint="Make it first.")


@contextmanager
def written(path: str) -> Iterator[Path]:
    """A file to fill; it gets its name when it is whole."""
    whole = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=whole.absolute().parent, prefix=f".{whole.name}.")
        os.close(handle)
    except OSError as error:
        raise InputError(f"{whole.name!r} cannot be written: {error.strerror}.") from error
    try:
        yield Path(name)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)  # as any other new file, not a private one
        os.replace(name, whole)
    finally:
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
