"""`calibrant demo`."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")


def test_the_demo_runs_and_overwrites_nothing(here, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    Path("cal.json").write_text("existing")
    assert "'cal.json' exists already" in call("demo", "--folder", ".", code=2)
    assert Path("cal.json").read_text() == "existing"
    text = call("demo", "--folder", "new")
    assert "logistic is better calibrated than forest" in text
    assert text.index("FAIL  forest: ") < text.index("PASS  calibrated: ")
    assert text.count("(exit code 1)") == 1  # of the first check
    files = {"digits.csv", "past.csv", "new.csv", "cal.json", "calibrated.csv", "calibration.xml", "report.html"}
    assert set(os.listdir("new")) == files
    assert text.splitlines()[-1].endswith("report.html")
    assert "1 of 2 models is miscalibrated: forest." in Path("new/report.html").read_text(encoding="utf-8")
    past, new = (Path("new", f"{name}.csv").read_text().splitlines()[1:] for name in ("past", "new"))
    assert sorted(past + new) == sorted(Path("new/digits.csv").read_text().splitlines()[1:])


def need_service():
    for library in ("sklearn", "starlette", "uvicorn", "sqlalchemy"):
        pytest.importorskip(library, reason=f"{library} is not installed")


def test_the_demo_of_the_monitor_finds_the_drift(here, call):
    need_service()
    import calibrant as cb

    Path("monitor.db").write_text("existing")
    assert "'monitor.db' exists already" in call("demo", "--monitor", "--folder", ".", code=2)
    text = call("demo", "--monitor", "--no-browser", "--duration", "0", "--folder", "new")
    assert re.search(r"The pages: http://127\.0\.0\.1:\d+", text)
    assert "alarm for digits-filtered, all rows" in text
    monitors = {name: cb.Monitor("new/monitor.db", model=f"digits-{name}") for name in ("filtered", "logistic")}
    change = monitors["filtered"].status().change_point
    assert change.low.day <= 15 <= change.high.day
    assert abs(change.window.day - 15) <= 2
    calm = monitors["logistic"].status()
    assert not calm.alarm
    assert 0 < calm.unlabelled < 0.2
    assert "--duration needs --monitor" in call("demo", "--duration", "1", code=2)


def test_the_demo_of_the_monitor_ends_with_ctrl_c(tmp_path):
    need_service()
    # A server that takes longer to end than an interruption may stay unhandled, as on a slow machine.
    program = (
        "from calibrant.cli import interruptions\ninterruptions._LOST_SECONDS = 0.1\n"
        "from calibrant.cli.main import main\nmain()"
    )
    command = [sys.executable, "-c", program, "demo", "--monitor", "--no-browser", "--folder", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        for line in demo.stdout:
            if line.startswith("The pages: "):  # rows are posted from now on
                break
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=60)
    assert (demo.returncode, err) == (0, "")
    assert "Stopped." in out
    assert "monitor.db-wal" not in os.listdir(tmp_path)  # the service closed its store
