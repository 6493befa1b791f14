"""`calibrant demo`."""

import os
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
    assert "(exit code 1)" in text  # of check
    assert set(os.listdir("new")) == {"digits.csv", "cal.json", "calibrated.csv", "calibration.xml", "report.html"}
    assert "report.html" in text.splitlines()[-1]
