"""The files for deployment: image, compose, systemd, dashboards, backup and restore."""

import importlib.util
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
pytestmark = pytest.mark.skipif(not DEPLOY.is_dir(), reason="the tests run outside the checkout")


def load_yaml(path):
    return pytest.importorskip("yaml", reason="PyYAML is not installed").safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def backup():
    spec = importlib.util.spec_from_file_location("backup", DEPLOY / "backup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The image


def test_hadolint_accepts_the_dockerfile():
    linter = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")
    if linter is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([linter, "--no-color", DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_image_runs_without_root_and_is_checked():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    last = text.rpartition("\nFROM ")[2]
    assert "USER 10001:10001" in last
    assert "HEALTHCHECK" in last
    assert "apt-get" not in text
    assert 'ENTRYPOINT ["calibrant", "serve"]' in last


def test_the_build_context_has_what_the_wheel_needs():
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    assert {"pyproject.toml", "CMakeLists.txt", "src", "README.md", "LICENSE", "licenses"} <= allowed
    assert all((ROOT / name).exists() for name in allowed)


def test_compose_hardens_the_service_and_keeps_the_database_inside():
    found = load_yaml(DEPLOY / "compose.yaml")
    monitor, db = found["services"]["monitor"], found["services"]["db"]
    assert monitor["read_only"] is True
    assert monitor["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in monitor["security_opt"]
    assert monitor["ports"] == ["127.0.0.1:8765:8765"]
    assert "ports" not in db
    assert db["networks"] == ["inside"]
    assert found["networks"]["inside"]["internal"] is True
    assert monitor["depends_on"]["db"]["condition"] == "service_healthy"
    assert (DEPLOY / monitor["build"]["context"] / monitor["build"]["dockerfile"]).is_file()
    assert "PASSWORD" not in " ".join(monitor["command"])


def test_commands_of_image_and_compose_are_options_of_serve():
    pytest.importorskip("click", reason="click is not installed")
    from calibrant.cli.serve import serve

    known = {name for option in serve.params for name in option.opts}
    command = load_yaml(DEPLOY / "compose.yaml")["services"]["monitor"]["command"]
    image = json.loads(re.findall(r"^CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[-1])
    unit = (DEPLOY / "systemd" / "calibrant.service").read_text().split("calibrant serve ")[1].splitlines()[0].split()
    for given in (command, image, unit):
        assert {each for each in given if each.startswith("--")} <= known


READ_ONLY = """
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=0777 tmpfs "$DATA"
mount -o remount,ro,bind /
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
! touch /var/lib/probe 2> "$DATA/probe"
export HOME=/var/tmp MPLCONFIGDIR=/var/tmp/matplotlib OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
exec setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all "$@"
"""


def why_no_read_only_root():
    if not sys.platform.startswith("linux") or os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv"))):
        return "only root can give a process a read-only root file system (unshare, setpriv)"
    probe = subprocess.run(["unshare", "-m", "mount", "--make-rprivate", "/"], capture_output=True, check=False)
    if probe.returncode:
        return "this machine does not allow mount namespaces"
    user = [
        "setpriv",
        "--reuid",
        "10001",
        "--regid",
        "10001",
        "--clear-groups",
        sys.executable,
        "-c",
        "import calibrant",
    ]
    readable = subprocess.run(user, capture_output=True, cwd="/", check=False).returncode == 0
    return None if readable else "other users cannot read this checkout"


@pytest.fixture
def data():
    """Return a folder that other users can enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield name


def test_the_service_runs_as_in_the_image_and_stops_gracefully(data):
    """As user 10001 without capabilities, with a read-only root file system: only /data and /tmp can be written."""
    pytest.importorskip("starlette", reason="starlette is not installed")
    if why_no_read_only_root() is not None:
        pytest.skip(why_no_read_only_root())
    serve = [sys.executable, "-m", "calibrant", "serve", "--store", f"{data}/monitor.db", "--port", "0"]
    command = ["unshare", "-m", "bash", "-c", READ_ONLY, "bash", *serve]
    environment = {**os.environ, "DATA": data}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        address = re.search(r"http://\S+", server.stdout.readline()).group()
        client = cb.MonitorClient(address, model="a")
        client.create()
        client.observe([0, 1, 0], [0.2, 0.7, 0.4], time="2026-01-01")
        with urllib.request.urlopen(f"{address}/model?name=a", timeout=60) as page:  # draws figures
            assert b"<svg" in page.read()
        for path in ("/healthz", "/readyz"):
            with urllib.request.urlopen(address + path, timeout=30) as reply:
                assert reply.status == 200
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=60)
    assert server.returncode == 0, log


# systemd


@pytest.fixture
def unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze was not found")
    text = (DEPLOY / "systemd" / "calibrant.service").read_text(encoding="utf-8")
    path = tmp_path / "calibrant.service"
    path.write_text(text.replace("/opt/calibrant/bin/calibrant", "/bin/true"), encoding="utf-8")
    return path


def test_systemd_accepts_the_unit(unit):
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    own = [line for line in (done.stderr + done.stdout).splitlines() if "calibrant" in line]
    assert own == []


def test_the_unit_is_hardened(unit):
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "offline" in done.stderr:
        pytest.skip("this systemd-analyze cannot check a file")
    assert done.returncode == 0, done.stdout[-300:]  # the exposure is at most 2.0 of 10


# Dashboards and alerts


def expressions():
    """Return all expressions of the dashboard and of the alerts."""
    board = json.loads((DEPLOY / "grafana" / "calibrant.json").read_text(encoding="utf-8"))
    found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    found += [each["expr"] for each in board["annotations"]["list"]]
    found += [each["definition"] for each in board["templating"]["list"] if "definition" in each]
    rules = load_yaml(DEPLOY / "prometheus" / "calibrant_alerts.yml")
    return found + [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


def test_each_metric_of_dashboard_and_alerts_exists(tmp_path):
    pytest.importorskip("starlette", reason="starlette is not installed")
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    from prometheus_client.parser import text_string_to_metric_families

    from calibrant.monitor.service.access_tokens import Access
    from calibrant.monitor.service.prometheus_metrics import scrape
    from calibrant.monitor.service.running_service import Service
    from calibrant.monitor.service.service_settings import ServiceSettings
    from calibrant.monitor.store import Store

    cb.Monitor(tmp_path / "store.db", model="a").observe([0, 1], [0.2, 0.7], time="2026-01-01")
    service = Service(ServiceSettings(str(tmp_path / "store.db")))
    families = list(text_string_to_metric_families(scrape(service, Access()).decode()))
    known = {family.name for family in families}
    known |= {f"{family.name}_total" for family in families if family.type == "counter"}
    known |= {f"{family.name}_bucket" for family in families if family.type == "histogram"}
    used = {name for text in expressions() for name in re.findall(r"\bcalibrant_\w+", text)}
    assert len(used) >= 15
    assert used <= known
    labels = {label for family in families for sample in family.samples for label in sample.labels}
    assert {"model", "state", "queue"} <= labels
    Store(str(tmp_path / "store.db")).engine.dispose()


def test_panels_of_the_dashboard_do_not_overlap():
    board = json.loads((DEPLOY / "grafana" / "calibrant.json").read_text(encoding="utf-8"))
    taken = set()
    for place in (panel["gridPos"] for panel in board["panels"]):
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & taken
        assert place["x"] + place["w"] <= 24
        taken |= own
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


# Backup


def observe(monitor, days):
    rng = np.random.default_rng(0)
    for day in days:
        p = rng.random(50).round(2)
        monitor.observe(rng.random(50) < p, p, time=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))])
def stores(request, tmp_path):
    """Return the addresses of two empty stores of a kind."""
    if request.param == "sqlite":
        yield [str(tmp_path / f"{name}.db") for name in ("first", "second")]
        return
    import psycopg

    from tools import servers

    if servers.why_no_postgresql() is not None or shutil.which("pg_dump") is None:
        pytest.skip(servers.why_no_postgresql() or "pg_dump was not found")
    with servers.postgresql() as address:
        server = dict(part.split("=", 1) for part in address.split())
        with psycopg.connect(address, autocommit=True) as connection:
            for name in ("first", "second"):
                connection.execute(f"CREATE DATABASE {name}")
        where = f"{server['user']}@{server['host']}:{server['port']}"
        yield [f"postgresql+psycopg://{where}/{name}" for name in ("first", "second")]


def test_a_backup_during_writes_is_restored_and_goes_on(backup, stores, tmp_path):
    first, second = stores
    monitor = cb.Monitor(first, model="a")
    observe(monitor, range(10))
    writer = threading.Thread(target=observe, args=(cb.Monitor(first, model="b"), range(40)))
    writer.start()
    backup.main(["save", first, str(tmp_path / "saved")])
    writer.join()
    saved = monitor.status().to_dict()
    observe(monitor, range(10, 12))  # after the backup
    backup.main(["restore", str(tmp_path / "saved"), second])
    restored = cb.Monitor(second, model="a")
    assert restored.status().to_dict() == saved
    assert restored.table() == monitor.table(until="2026-01-11")
    other = cb.Monitor(second, model="b").history()
    assert len(other) <= 40
    assert all(w.n_rows == 50 for w in other.windows)
    observe(restored, range(10, 12))
    assert restored.status().n_windows == monitor.status().n_windows
    monitor.store.engine.dispose()
    restored.store.engine.dispose()


def test_a_restore_replaces_a_store_only_with_force(backup, tmp_path, capsys):
    store, saved = str(tmp_path / "store.db"), str(tmp_path / "saved.db")
    observe(cb.Monitor(store, model="a"), range(3))
    backup.main(["save", store, saved])
    observe(cb.Monitor(store, model="a"), range(3, 6))
    for arguments in (["save", store, saved], ["restore", saved, store]):
        with pytest.raises(SystemExit, match="exists; pass --force to replace it"):
            backup.main(arguments)
    (tmp_path / "store.db").chmod(0o640)
    backup.main(["restore", saved, store, "--force"])
    assert (tmp_path / "store.db").stat().st_mode & 0o777 == 0o640
    assert cb.Monitor(store, model="a").status().n_rows == 150
    assert (tmp_path / "saved.db").stat().st_mode & 0o077 == 0
    assert not [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")]


def test_a_damaged_or_missing_store_gives_no_backup(backup, tmp_path):
    (tmp_path / "bad.db").write_bytes(b"no database" * 500)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE notes (text TEXT)")
    other.close()
    for source, words in (("bad.db", "not a database"), ("missing.db", "does not exist"), ("other.db", "not a store")):
        for action in ("save", "restore"):
            with pytest.raises(SystemExit, match=f"backup: .*{words}"):
                backup.main([action, str(tmp_path / source), str(tmp_path / "saved.db")])
        assert {path.name for path in tmp_path.iterdir()} == {"bad.db", "other.db"}
    with pytest.raises(SystemExit, match="does not exist"):
        backup.main(["restore", str(tmp_path / "missing"), str(tmp_path / "x.db")])


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files to other users")
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_root_restores_a_store_for_the_user_of_the_service(backup, tmp_path, force):
    folder, saved = tmp_path / "own", str(tmp_path / "saved.db")
    observe(cb.Monitor(tmp_path / "old.db", model="a"), range(3))
    backup.main(["save", str(tmp_path / "old.db"), saved])
    folder.mkdir()
    os.chown(folder, 10001, 10002)
    if force:
        backup.main(["restore", saved, str(folder / "store.db")])
        os.chown(folder / "store.db", 10003, 10004)
    backup.main(["restore", saved, str(folder / "store.db"), *force])
    found = (folder / "store.db").stat()
    assert (found.st_uid, found.st_gid) == ((10003, 10004) if force else (10001, 10002))


@pytest.mark.xdist_group("postgresql")
@pytest.mark.parametrize("stores", ["postgresql"], indirect=True)
def test_a_backup_of_an_older_version_replaces_a_newer_store_only_with_force(backup, stores, tmp_path):
    import psycopg

    old, new = stores
    observe(cb.Monitor(old, model="a"), range(3))
    observe(cb.Monitor(new, model="b"), range(3))
    plain = [address.replace("+psycopg", "") for address in stores]
    with psycopg.connect(plain[0]) as connection:  # as version 2 was: without the tables of the service
        for name in ("outbox", "channels", "deliveries", "silences", "tokens", "audit"):
            connection.execute(f"DROP TABLE calibrant_{name} CASCADE")
        connection.execute("UPDATE calibrant_schema SET version = 2")
    with psycopg.connect(plain[1]) as connection:
        connection.execute("CREATE TABLE other (a INT)")
    saved = str(tmp_path / "saved.dump")
    backup.main(["save", old, saved])
    with pytest.raises(SystemExit, match="has a store; pass --force to replace it"):
        backup.main(["restore", saved, new])
    backup.main(["restore", saved, new, "--force"])
    with psycopg.connect(plain[1]) as connection:
        (tables,) = connection.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'calibrant%'").fetchone()
        assert connection.execute("SELECT version FROM calibrant_schema").fetchone() == (2,)
        assert connection.execute("SELECT to_regclass('other') IS NOT NULL").fetchone() == (True,)
    assert tables == 10
    assert cb.Monitor(new, model="a").models() == ["a"]
