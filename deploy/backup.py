"""Back up and restore the store of a monitor while the service runs. Needs Python only; for PostgreSQL also its tools.

    python3 backup.py save    /var/lib/calibrant/monitor.db  /backup/monitor-2026-01-31.db
    python3 backup.py restore /backup/monitor-2026-01-31.db  /var/lib/calibrant/monitor.db
    python3 backup.py save    postgresql://calibrant@db/calibrant  /backup/monitor-2026-01-31.dump
    python3 backup.py restore /backup/monitor-2026-01-31.dump  postgresql://calibrant@db/calibrant

A backup is one consistent state of the store. It appears under its name when it is complete. Stop the service before
a restore: what the store held is replaced.
"""

import argparse
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["save", "restore"])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--force", action="store_true", help="replace a target that exists")
    given = parser.parse_args(arguments)
    try:
        (save if given.action == "save" else restore)(given.source, given.target, force=given.force)
    except (OSError, sqlite3.Error, ValueError) as error:
        sys.exit(f"backup: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"backup: {Path(error.cmd[0]).name} failed with exit code {error.returncode}")


def save(store: str, target: str, *, force: bool = False) -> None:
    """Write a backup of a store to a file."""
    path, partial = _new_file(target, force)
    if is_url(store):
        _run("pg_dump", "--format=custom", "--no-owner", "--file", str(partial), _address(store))
    else:
        copy_sqlite(Path(store), partial)
    _finish(partial, path)
    print(f"saved {path} ({path.stat().st_size:,} bytes)")


def restore(source: str, store: str, *, force: bool = False) -> None:
    """Replace a store by a backup."""
    backup = Path(source)
    if not backup.is_file():
        raise ValueError(f"the backup {source} does not exist")
    if is_url(store):
        options = ("--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error")
        _run("pg_restore", *options, "--dbname", _address(store), str(backup))
    else:
        path, partial = _new_file(store, force)
        copy_sqlite(backup, partial)
        for log in (f"{store}-wal", f"{store}-shm"):  # of the store that is replaced
            Path(log).unlink(missing_ok=True)
        _finish(partial, path)
    print(f"restored {re.sub('//[^@]*@', '//', store)}")


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a database with the online backup of SQLite, which waits for no writer, and check the copy."""
    if not source.is_file():
        raise ValueError(f"the store {source} does not exist")
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=60)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        old.backup(new)
        new.execute("PRAGMA journal_mode=DELETE")
        (verdict,) = new.execute("PRAGMA integrity_check").fetchone()
    if verdict != "ok":
        raise ValueError(f"the copy of {source} is damaged: {verdict}")


def is_url(store: str) -> bool:
    """Return whether a store is a database server."""
    return "://" in store


def _address(store: str) -> str:
    """Return the address for the tools of PostgreSQL, which do not know drivers: postgresql+psycopg:// becomes one."""
    return re.sub(r"^postgresql\+\w+://", "postgresql://", store)


def _new_file(target: str, force: bool) -> tuple[Path, Path]:
    path = Path(target)
    if path.exists() and not force:
        raise ValueError(f"{target} exists; pass --force to replace it")
    partial = path.with_name(f".{path.name}.part")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    os.close(descriptor)
    return path, partial


def _finish(partial: Path, path: Path) -> None:
    """Make the file durable and give it its name."""
    for place in (partial, None):
        if place is None:
            partial.replace(path)
        descriptor = os.open(place or path.absolute().parent, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
