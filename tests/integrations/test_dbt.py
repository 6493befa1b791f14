"""The dbt package: its tests find miscalibration, count as `ece` does, and hold their error rate."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
PACKAGE = Path(__file__).parents[2] / "examples" / "dbt"
PROJECT = """\
name: shop
version: "1.0"
config-version: 2
profile: shop
model-paths: [models]
"""
PROFILE = "shop: {target: dev, outputs: {dev: {type: duckdb, path: rows.duckdb, threads: 1}}}\n"
ECE = "calibrant.ece_at_most: {arguments: {outcome: y, max_ece: 0.05}}"
TESTS = f"""\
version: 2
sources: [{{name: main, schema: main, tables: [{{name: rows}}]}}]
models:
  - name: scored
    columns:
      - name: good
        data_tests: [calibrant.calibrated: {{arguments: {{outcome: y}}}}, {ECE}]
      - name: bad
        data_tests: [calibrant.calibrated: {{arguments: {{outcome: y}}}}, {ECE}]
      - name: percent
        data_tests: [calibrant.calibrated: {{arguments: {{outcome: y}}}}]
"""


def test_the_rule_of_the_dbt_test_holds_its_error_rate():
    """The same rule in NumPy: at most 5 % of calibrated tables fail (margin 0)."""
    rng = np.random.default_rng(0)
    failed = 0
    for _ in range(1000):
        p = rng.beta(1, 4, 2000)
        y = rng.random(2000) < p
        label = np.minimum((p * 10).astype(int), 9)
        variance = np.bincount(label, p * (1 - p), 10)
        gap = np.abs(np.bincount(label, y - p, 10))
        failed += bool(((variance >= 5) & (gap > 2.807 * np.sqrt(variance))).any())
    assert failed <= 68  # 5 % and 2.6 standard errors


@pytest.mark.skipif(importlib.util.find_spec("dbt") is None, reason="dbt-duckdb is not installed")
def test_dbt_runs_the_tests(tmp_path):
    rng = np.random.default_rng(1)
    p = rng.random(5000)
    p[:2] = 0.3, 1.0
    y = (rng.random(5000) < p).astype(int)
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        connection.execute("CREATE TABLE rows (y INTEGER, good DOUBLE, bad DOUBLE, percent DOUBLE)")
        cells = [*zip(y.tolist(), p.tolist(), (p**2).tolist(), (100 * p).tolist(), strict=True), (None, 0.5, 0.5, 0.5)]
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", cells)
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    calibrator = cb.Beta().fit(p**2, y)
    for name in ("models", "macros"):
        (tmp_path / name).mkdir()
    texts = {"dbt_project.yml": PROJECT, "profiles.yml": PROFILE, "models/schema.yml": TESTS}
    texts |= {"models/scored.sql": "select *, {{ calibrated_score() }} as calibrated from {{ source('main', 'rows') }}"}
    macro = "{% macro calibrated_score() %}\n" + cb.to_sql(calibrator, "bad") + "\n{% endmacro %}\n"
    texts |= {"macros/calibrated_score.sql": macro}
    texts |= {"packages.yml": f"packages: [{{local: {json.dumps(str(PACKAGE))}}}]\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert dbt(tmp_path, "deps").returncode == 0
    done = dbt(tmp_path, "build", "--store-failures")
    found = json.loads((tmp_path / "target" / "run_results.json").read_text())["results"]
    status = {each["unique_id"].split(".")[2]: each["status"] for each in found}
    wanted = {"calibrated_scored_good": "pass", "ece_at_most_scored_good": "pass"}
    wanted |= {"calibrated_scored_bad": "fail", "ece_at_most_scored_bad": "fail", "calibrated_scored_percent": "fail"}
    for name, expected in wanted.items():
        (own,) = [value for test, value in status.items() if test.startswith(f"calibrant_{name}")]
        assert own == expected, (name, done.stdout[-3000:])
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as connection:
        tables = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        (error,) = [name for name in tables if name.startswith("calibrant_ece_at_most_scored_bad")]
        schema = connection.execute(f"SELECT schema_name FROM duckdb_tables() WHERE table_name = '{error}'").fetchone()[
            0
        ]
        query = "SELECT bad, calibrated FROM scored WHERE y IS NOT NULL"
        bad, calibrated = np.array(connection.execute(query).fetchall()).T
        ((ece, n),) = connection.execute(f'SELECT ece, n FROM "{schema}"."{error}"').fetchall()
    assert n == 5000
    assert calibrated == pytest.approx(calibrator(bad), abs=1e-12)
    assert ece == pytest.approx(cb.ece(y, p**2), abs=1e-12)


def dbt(folder, *arguments):
    code = "import sys; from dbt.cli.main import cli; cli()"
    options = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    environment = {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments, *options]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300, check=False
    )
