"""`calibrant serve`, and `calibrant monitor acknowledge` and `silence`."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

for library in ("click", "rich", "duckdb", "pyarrow", "sqlalchemy", "starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(library, reason=f"{library} is not installed")

import calibrant as cb  # noqa: E402
from calibrant.monitor.store import Store, read_audit  # noqa: E402

STORE = ("--store", "monitor.db")


def alarmed():
    monitor = cb.Monitor("monitor.db", model="m", dependence="independent")
    for day in range(1, 4):
        monitor.observe([1, 0] * 100, [0.01] * 200, time=f"2026-01-0{day}")
    return monitor


def test_tokens_are_created_listed_rotated_and_revoked(here, call):
    made = call("serve", "token", "create", *STORE, "--name", "scoring", "--scope", "write", "--model", "churn")
    assert re.fullmatch(r"cbt_[0-9a-f]{12}_[-_A-Za-z0-9]{43}\n", made)
    token_id = made.split("_")[1]
    listed = json.loads(call("serve", "token", "list", *STORE, "--format", "json"))
    assert [(each["id"], each["scope"], each["models"], each["state"]) for each in listed] == [
        (token_id, "write", ["churn"], "active")
    ]
    rotated = call("serve", "token", "rotate", token_id, *STORE)
    assert rotated != made
    new_id = rotated.split("_")[1]
    assert call("serve", "token", "revoke", new_id, *STORE) == f"token {new_id} (scoring) is revoked\n"
    shown = call("serve", "token", "list", *STORE)
    assert shown.count("revoked") == 2
    for text in (made, rotated):
        assert text.strip().split("_", 2)[2] not in shown
    acts = [(each.action, each.detail["token"]) for each in read_audit(Store("monitor.db"), 0, 10)]
    assert acts == [("create token", token_id), ("rotate token", token_id), ("revoke token", new_id)]


def test_errors_name_the_options(here, call):
    assert "Missing option '--store'" in call("serve", code=2)
    found = call("serve", *STORE, "--host", "0.0.0.0", code=2)
    assert "--host must be loopback, such as 127.0.0.1, while there is no token" in found
    for command in (("list",), ("rotate", "x"), ("revoke", "x")):
        found = call("serve", "token", *command, "--store", "mistyped.db", code=2)
        assert "There is no store 'mistyped.db'" in found
    assert not (here / "mistyped.db").exists()
    cb.Monitor("monitor.db")
    found = call("serve", "token", "revoke", "x", *STORE, code=2)
    assert "must be the id of a token; got 'x', there are none." in found
    assert "--config must be a TOML file" in call("serve", *STORE, "--config", "none.toml", code=2)


def test_alarms_are_acknowledged_and_silenced(here, call):
    monitor = alarmed()
    (alarm,) = monitor.alarms()
    own = (*STORE, "--model", "m")
    call("monitor", "status", *own, code=1)
    done = call("monitor", "acknowledge", *own, "--alarm", str(alarm.id), "--reason", "seen")
    assert done == f"alarm {alarm.id} is acknowledged\n"
    call("monitor", "status", *own, code=0)
    bad = call("monitor", "acknowledge", *own, "--alarm", "99", "--reason", "seen", code=2)
    assert "--alarm must be an alarm of the model" in bad
    made = call("monitor", "silence", *own, "--for", "2d", "--reason", "work")
    assert made.startswith("silence 1 until 20")
    assert "silence 1: active, until" in call("monitor", "silence", *own)
    assert call("monitor", "silence", *own, "--end", "1") == "silence 1 is over\n"
    assert "silence 1: over" in call("monitor", "silence", *own)
    assert "--reason must be given" in call("monitor", "silence", *own, "--for", "1h", code=2)
    acts = [each.action for each in read_audit(monitor.store, 0, 10)]
    assert acts == ["acknowledge alarm", "silence model", "end silence"]


def test_old_data_are_forgotten_and_models_deleted(here, call):
    monitor = alarmed()
    own = (*STORE, "--model", "m")
    monitor.observe([0, 1], [0.2, 0.3], time="2026-01-03", batch="b")
    n_windows = monitor.status().n_windows
    assert call("monitor", "forget", *own, "--before", "2026-01-03").endswith("tables were merged\n")
    assert monitor.observe([0, 1], [0.2, 0.3], time="2026-01-03", batch="b").repeated_batch
    assert "distinct scores became" in call("monitor", "compact", *own, "--resolution", "2**-20")
    assert monitor.status().n_windows == n_windows
    assert call("monitor", "delete", *own, "--yes") == "model m is deleted\n"
    assert monitor.models() == []
    acts = [each.action for each in read_audit(monitor.store, 0, 10)]
    assert acts == ["forget windows", "compact windows", "delete model"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_serves_until_a_signal_and_exits_with_0(here, number):
    command = [sys.executable, "-m", "calibrant", "serve", *STORE, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+", line)[0]
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"{address}/v1/health?", timeout=10) as answer:
                    assert json.loads(answer.read())["status"] == "ok"
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        process.send_signal(number)
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "GET /v1/health 200" in log
