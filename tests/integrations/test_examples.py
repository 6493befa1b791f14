"""Examples for other tools: Lightning, Hugging Face evaluate, R, Airflow."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

EXAMPLES = Path(__file__).parents[2] / "examples"
RNG = np.random.default_rng(4)
P = RNG.random(2000)
Y = (RNG.random(2000) < P**2).astype(int)


def test_the_lightning_example_measures_each_epoch():
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("lightning", reason="lightning is not installed")
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / "lightning" / "validate_calibration.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    history = re.search(r"ECE of each epoch: (.*)", done.stdout)[1].split()
    assert len(history) == 20
    assert float(history[-1]) > 2 * float(history[1])  # it becomes overconfident
    assert "Verdict: miscalibrated" in done.stdout
    assert "overconfident" in done.stdout


def test_evaluate_loads_the_module_of_hugging_face():
    evaluate = pytest.importorskip("evaluate", reason="evaluate is not installed")
    module = evaluate.load(str(EXAMPLES / "huggingface" / "calibration_error"))
    found = module.compute(predictions=P.tolist(), references=Y.tolist())
    assert found["ece"] == cb.ece(Y, P)
    assert found["brier"] == cb.brier(Y, P)
    for half in (slice(0, 1000), slice(1000, 2000)):
        module.add_batch(predictions=P[half], references=Y[half])
    found = module.compute(metrics=["tce"], n_resamples=99)
    limits = cb.interval("tce", Y, P, n_resamples=99, random_state=0)
    assert found == {"tce": cb.tce(Y, P), "tce_low": limits.low, "tce_high": limits.high}


def _why_no_reticulate():
    if shutil.which("Rscript") is None:
        return "R is not installed"
    done = subprocess.run(["Rscript", "-e", "library(reticulate)"], capture_output=True, check=False)
    return None if done.returncode == 0 else "reticulate is not installed in R"


def test_r_calls_calibrant_through_reticulate():
    for library in ("sklearn", "pandas", "duckdb"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    if _why_no_reticulate():
        pytest.skip(_why_no_reticulate())
    environment = os.environ | {"RETICULATE_PYTHON": sys.executable}
    command = ["Rscript", str(EXAMPLES / "r" / "calibration.R")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "miscalibrated | underconfident" in done.stdout
    in_python, in_r = (float(re.search(rf"ECE in {each}: +(\S+)", done.stdout)[1]) for each in ("Python", "R"))
    assert in_python == pytest.approx(in_r, rel=1e-6)
    before, after = map(float, re.search(r"before and after: (\S+) (\S+)", done.stdout).groups())
    assert after < before
    assert "rows counted in a file: 2000" in done.stdout


def test_the_airflow_example_is_valid_and_its_steps_work(tmp_path):
    """The DAG is compiled. Its steps, without the decorators of Airflow, run on rows of a file."""
    for library in ("sklearn", "duckdb", "jinja2", "matplotlib"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    import ast

    tree = ast.parse((EXAMPLES / "airflow" / "calibration_gate.py").read_text(encoding="utf-8"))
    steps = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(steps) == {"count", "evaluate", "decide", "recalibrate", "keep", "calibration_gate"}
    for node in steps.values():
        assert node.decorator_list
        node.decorator_list = []
    scored = tmp_path / "2026-01-05.csv"
    scored.write_text("outcome,score\n" + "".join(f"{y},{p!r}\n" for y, p in zip(Y.tolist(), P.tolist(), strict=True)))
    names = {"cb": cb, "Path": Path, "FOLDER": tmp_path / "out", "SCORED": str(tmp_path / "{day}.csv")}
    names["get_current_context"] = lambda: {"ds": "2026-01-05"}
    exec(compile(ast.Module([*steps.values()], []), "calibration_gate.py", "exec"), names)
    table = names["count"]()
    assert names["evaluate"](table) == "miscalibrated"
    assert "Calibration report" in Path(table).with_suffix(".html").read_text(encoding="utf-8")
    assert [names["decide"](each) for each in ("miscalibrated", "inconclusive")] == ["recalibrate", "keep"]
    assert type(cb.load(names["recalibrate"](table))) is cb.Beta


def test_airflow_runs_the_example(tmp_path):
    pytest.importorskip("airflow", reason="airflow is not installed")
    scored = tmp_path / "2026-01-05.csv"
    scored.write_text("outcome,score\n" + "".join(f"{y},{p!r}\n" for y, p in zip(Y.tolist(), P.tolist(), strict=True)))
    environment = os.environ | {
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES / "airflow"),
        "CALIBRATION_FOLDER": str(tmp_path / "out"),
        "SCORED_ROWS": str(tmp_path / "{day}.csv"),
    }
    for arguments in (["db", "migrate"], ["dags", "test", "calibration_gate", "2026-01-05"]):
        command = [sys.executable, "-m", "airflow", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
    assert type(cb.load(tmp_path / "out" / "calibrator.json")) is cb.Beta
