"""Empty stores of both kinds."""

import uuid

import pytest

from tools import servers

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(scope="session")
def postgresql():
    reason = servers.why_no_postgresql()
    if reason is not None:
        pytest.skip(reason)
    with servers.postgresql() as address:
        yield dict(part.split("=", 1) for part in address.split())


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))],
)
def store(request, tmp_path):
    """Return the address of an empty store: a path, or the URL of a new database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    import psycopg

    server = request.getfixturevalue("postgresql")
    name = f"m{uuid.uuid4().hex}"
    with psycopg.connect(**server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql+psycopg://{server['user']}@{server['host']}:{server['port']}/{name}"


@pytest.fixture
def path(tmp_path):
    """Return the path of an empty SQLite store."""
    return str(tmp_path / "store.db")
