"""Servers on loopback for tests and benchmarks: a Spark standalone cluster, PostgreSQL, MariaDB, MLflow."""

import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"


def why_no_spark() -> str | None:
    """Return the reason why Spark cannot run, or None."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    return None if shutil.which("java") else "no Java was found"


def why_no_postgresql() -> str | None:
    """Return the reason why PostgreSQL cannot run, or None."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed"
    return None if _postgresql_folder() else "no PostgreSQL server was found"


def why_no_mariadb() -> str | None:
    """Return the reason why MariaDB cannot run, or None."""
    if importlib.util.find_spec("pymysql") is None:
        return "pymysql is not installed"
    programs = ("mariadbd", "mariadb-install-db")
    return None if all(map(_find_program, programs)) else "no MariaDB server was found"


def spark_environment() -> None:
    """Return environment variables that keep Spark on loopback and its workers on this Python."""
    os.environ.update(SPARK_LOCAL_IP=HOST, PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)


@dataclass
class Cluster:
    """A master and its workers, each in a separate process."""

    folder: Path
    url: str = ""
    memory: str = "2g"
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, workers: int) -> None:
        """Start the master and the workers, and wait for them."""
        log = self._run("org.apache.spark.deploy.master.Master", "--host", HOST, "--port", "0")
        self.url = _wait_for(log, rf"spark://{HOST}:\d+")
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        """Add a worker with one core."""
        log = self._run(
            "org.apache.spark.deploy.worker.Worker",
            *("--host", HOST, "--cores", "1", "--memory", self.memory, "--work-dir", str(self.folder / "work")),
            self.url,
        )
        _wait_for(log, "Successfully registered")

    def kill_worker(self) -> None:
        """Kill the last worker and its executors, as in a power failure."""
        process = self.processes.pop()
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Stop all processes."""
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()

    def _run(self, name: str, *arguments: str) -> Path:
        import pyspark

        log = self.folder / f"{len(list(self.folder.iterdir()))}.log"
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), name, *arguments, "--webui-port", "0"]
        if arguments[-1].startswith("spark://"):  # the master is the last argument of a worker
            command = [*command[:-3], "--webui-port", "0", arguments[-1]]
        with log.open("wb") as out:
            self.processes.append(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT))
        return log


@contextmanager
def spark_cluster(workers: int = 2, memory: str = "2g") -> Iterator[Cluster]:
    """Run a Spark standalone cluster on loopback: a master and workers of one core each."""
    spark_environment()
    with tempfile.TemporaryDirectory(prefix="calibrant-spark-", ignore_cleanup_errors=True) as folder:
        cluster = Cluster(Path(folder), memory=memory)
        try:
            cluster.start(workers)
            yield cluster
        finally:
            cluster.stop()


@contextmanager
def postgresql(*, durable: bool = False) -> Iterator[str]:
    """Run a PostgreSQL server on loopback with an empty database; yield the arguments of psycopg.connect.

    It runs without fsync, which is fast, unless it must be `durable`: then all settings of durability are the defaults.
    """
    programs = _postgresql_folder()
    if programs is None:
        raise RuntimeError("no PostgreSQL server was found")
    # PostgreSQL does not run as root; the user postgres runs it.
    user = "postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    folder = Path(tempfile.mkdtemp(prefix="calibrant-postgresql-"))
    try:
        shutil.chown(folder, user)
        data, port = folder / "data", _free_port()
        make = [programs / "initdb", "-D", data, "-U", "calibrant", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        subprocess.run(make, check=True, capture_output=True, user=user, cwd="/")
        settings = [f"listen_addresses={HOST}", f"port={port}", f"unix_socket_directories={folder}"]
        settings += [] if durable else ["fsync=off"]
        command = [programs / "postgres", "-D", data, *(part for setting in settings for part in ("-c", setting))]
        with (folder / "log").open("wb") as out:
            server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, user=user, cwd="/")
        try:
            _wait_for(folder / "log", "ready to accept connections")
            yield f"host={HOST} port={port} user=calibrant dbname=postgres"
        finally:
            server.send_signal(signal.SIGQUIT)  # at once: its data are thrown away; SIGTERM would wait for clients
            server.wait(timeout=30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def mariadb() -> Iterator[Any]:
    """Run a MariaDB server on loopback with an empty database; yield a connection of pymysql."""
    import pymysql

    user = pwd.getpwuid(os.geteuid()).pw_name
    with tempfile.TemporaryDirectory(prefix="calibrant-mariadb-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), _free_port()
        settings = ["--no-defaults", f"--datadir={folder / 'data'}", f"--user={user}"]
        make = [
            _find_program("mariadb-install-db"),
            *settings,
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        ]
        subprocess.run(make, check=True, capture_output=True)
        command = [_find_program("mariadbd"), *settings, f"--bind-address={HOST}", f"--port={port}"]
        command += [
            f"--socket={folder / 'socket'}",
            f"--pid-file={folder / 'pid'}",
            "--innodb-flush-log-at-trx-commit=0",
        ]
        with (folder / "log").open("wb") as out:
            server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            _wait_for(folder / "log", "ready for connections")
            with pymysql.connect(host=HOST, port=port, user="root", charset="utf8mb4") as connection:
                connection.cursor().execute("CREATE DATABASE calibrant CHARACTER SET utf8mb4")
                connection.select_db("calibrant")
                yield connection
        finally:
            server.kill()  # at once: its data are thrown away
            server.wait(timeout=30)


@contextmanager
def mlflow_server() -> Iterator[str]:
    """Run a tracking server of MLflow on loopback, with its store and artifacts in a folder; yield its address."""
    with tempfile.TemporaryDirectory(prefix="calibrant-mlflow-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), _free_port()
        command = [sys.executable, "-m", "mlflow", "server", "--host", HOST, "--port", str(port), "--workers", "1"]
        command += ["--backend-store-uri", f"sqlite:///{folder / 'runs.db'}"]
        command += ["--artifacts-destination", str(folder / "artifacts")]
        with (folder / "log").open("wb") as out:
            server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True)
        try:
            _wait_for(folder / "log", "Application startup complete", seconds=600)
            yield f"http://{HOST}:{port}"
        finally:
            os.killpg(server.pid, signal.SIGKILL)  # its workers too; its data are thrown away
            server.wait(timeout=30)


def _find_program(name: str) -> str | None:
    """Return the path of a program, which Debian may keep where only root looks."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def _postgresql_folder() -> Path | None:
    initdb = shutil.which("initdb")
    if initdb and shutil.which("postgres", path=str(Path(initdb).parent)):
        return Path(initdb).parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda path: int(path.parent.name))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _wait_for(log: Path, pattern: str, seconds: float = 60) -> str:
    """Wait for the line that a server prints when it is ready."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        line = re.search(pattern, log.read_text(errors="replace"))
        if line:
            return line.group()
        time.sleep(0.1)
    raise RuntimeError(f"a server did not start in {seconds:g} seconds:\n{log.read_text(errors='replace')[-2000:]}")
