"""Back up and restore the store of a monitor while the service runs. Needs Python only; for PostgreSQL also its tools.

    python3 backup.py save    /var/lib/calibrant/monitor.db  /backup/monitor-2026-01-31.db
    python3 backup.py restore /backup/monitor-2026-01-31.db  /var/lib/calibrant/monitor.db
    python3 backup.py save    postgresql://calibrant@db/calibrant  /backup/monitor-2026-01-31.dump
    python3 backup.py restore /backup/monitor-2026-01-31.dump  postgresql://calibrant@db/calibrant

A backup is one consistent state of the store. It appears under its name when it is complete. Stop the service before
a restore. With --force, what the store held is replaced. A restored file gets the owner and the mode of the file that
it replaces, or the owner of its folder.
"""

import argparse
import os
import re
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

# A store of a newer version has tables and keys that the backup does not know, so all tables are dropped first.
DROP_TABLES = r"""
SET client_min_messages = warning;
DO $$ DECLARE each record; BEGIN
  FOR each IN SELECT oid::regclass AS name FROM pg_class
    WHERE relkind = 'r' AND relname LIKE 'calibrant\_%' AND pg_table_is_visible(oid)
  LOOP EXECUTE format('DROP TABLE %s CASCADE', each.name); END LOOP;
END $$;
"""


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
    path = Path(target)
    with new_file(path, force) as partial:
        if is_url(store):
            _run("pg_dump", "--format=custom", "--no-owner", "--file", str(partial), _address(store))
        else:
            copy_sqlite(Path(store), partial)
    print(f"saved {path} ({path.stat().st_size:,} bytes)")


def restore(source: str, store: str, *, force: bool = False) -> None:
    """Replace a store by a backup."""
    backup = Path(source)
    if not backup.is_file():
        raise ValueError(f"the backup {source} does not exist")
    if is_url(store):
        restore_postgresql(backup, _address(store), force=force)
    else:
        with new_file(Path(store), force) as partial:
            copy_sqlite(backup, partial)
            _keep_owner(partial, Path(store))
            for log in (f"{store}-wal", f"{store}-shm"):  # of the store that is replaced
                Path(log).unlink(missing_ok=True)
    print(f"restored {re.sub('//[^@]*@', '//', store)}")


def restore_postgresql(backup: Path, address: str, *, force: bool) -> None:
    """Replace the tables of a store in PostgreSQL in one transaction."""
    if not re.search(r" TABLE \S+ calibrant_schema ", _run("pg_restore", "--list", str(backup))):
        raise ValueError(f"{backup} is not a backup of a store")
    psql = (
        "psql",
        "--no-psqlrc",
        "--quiet",
        "--tuples-only",
        "--no-align",
        "--set=ON_ERROR_STOP=1",
        "--dbname",
        address,
    )
    known = _run(*psql, "--command", "SELECT to_regclass('calibrant_schema') IS NOT NULL").strip()
    if known == "t" and not force:
        raise ValueError("the database has a store; pass --force to replace it")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "restore.sql"
        _run("pg_restore", "--clean", "--if-exists", "--no-owner", "--file", str(script), str(backup))
        _run(*psql, "--single-transaction", "--command", DROP_TABLES, "--file", str(script))


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a database with the online backup of SQLite, which waits for no writer, and check the copy."""
    if not source.is_file():
        raise ValueError(f"the store {source} does not exist")
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=60)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        if not old.execute("SELECT 1 FROM sqlite_master WHERE name = 'calibrant_schema'").fetchone():
            raise ValueError(f"{source} is not a store of a monitor")
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


@contextmanager
def new_file(path: Path, force: bool) -> Iterator[Path]:
    """Return a new file that only its owner can read; at the end it is durable and gets its name."""
    if path.exists() and not force:
        raise ValueError(f"{path} exists; pass --force to replace it")
    partial = path.with_name(f".{path.name}.part")
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        yield partial
        _sync(partial)
        partial.replace(path)
        _sync(path.absolute().parent)
    finally:
        for rest in (partial, Path(f"{partial}-journal")):
            rest.unlink(missing_ok=True)


def _keep_owner(partial: Path, path: Path) -> None:
    """Give a file the owner and the mode of the one that it replaces, or the owner of its folder."""
    found = (path if path.exists() else path.absolute().parent).stat()
    if path.exists():
        partial.chmod(stat.S_IMODE(found.st_mode))
    if os.name == "posix" and os.geteuid() == 0:
        os.chown(partial, found.st_uid, found.st_gid)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main()
