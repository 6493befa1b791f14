"""The script of README.md for every kind of forecast runs, and so do the options of its table."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

for library in ("matplotlib", "jinja2", "pandas"):
    pytest.importorskip(library, reason=f"{library} is not installed")

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
SECTION = re.search(r"## Kinds of forecast\n(.*?)\n## ", README, flags=re.DOTALL)[1]
SCRIPT = re.search(r"```python\n(.*?)```", SECTION, flags=re.DOTALL)[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in SECTION.splitlines()
    if line.startswith("|") and "---" not in line
][1:]
KINDS = ("binary", "multiclass", "labels", "point", "distribution", "distribution", "distribution")


@pytest.fixture
def rows():
    """Return the columns of the table for 500 rows: of an event, of labels and of numbers."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 500)
    label = (proba.cumsum(axis=1) > rng.random((500, 1))).argmax(axis=1)
    scores, mean = rng.random(500), rng.normal(size=500)
    return {
        "event": (rng.random(500) < scores).astype(int),
        "class": label,
        "number": mean + rng.normal(size=500),
        "scores": scores,
        "proba": proba,
        "label": rng.permutation(label),
        "mean": mean,
        "sd": np.ones(500),
        "quantiles": mean[:, None] + [-1.645, 0, 1.645],
        "members": mean[:, None] + rng.normal(size=(500, 8)),
    }


def outcome(kind):
    return {"binary": "event", "multiclass": "class", "labels": "class"}.get(kind, "number")


@pytest.fixture
def evaluated(rows):
    """Return the result of the script for each forecast in the table."""

    def run(row, kind):
        forecast = eval(re.match("`(.+?)`", row[2])[1], {"cb": cb, **rows})
        names = {"cb": cb, "y": rows[outcome(kind)], "forecast": forecast}
        exec(SCRIPT, names)
        return names["result"]

    return run


def test_the_script_has_five_lines_and_the_table_each_kind():
    assert len(SCRIPT.splitlines()) == 5
    assert [row[0] for row in ROWS if row[0]] == list(dict.fromkeys(KINDS))
    assert len(ROWS) == len(KINDS)


@pytest.mark.parametrize(("row", "kind"), list(zip(ROWS, KINDS, strict=True)), ids=lambda each: str(each)[:40])
def test_the_script_runs_for_each_kind(row, kind, evaluated, tmp_path, monkeypatch, capsys):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    result = evaluated(row, kind)
    plt.close("all")
    assert result.kind == kind
    assert capsys.readouterr().out.startswith(result.verdict)
    assert Path("report.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


@pytest.mark.parametrize(("row", "kind"), list(zip(ROWS, KINDS, strict=True)), ids=lambda each: str(each)[:40])
def test_the_options_of_the_table_give_the_same_result(row, kind, rows, evaluated, tmp_path, monkeypatch, capsys):
    for library in ("click", "rich", "duckdb"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    from calibrant.cli.main import run

    monkeypatch.chdir(tmp_path)
    columns = {name: values for name, values in rows.items() if values.ndim == 1}
    columns |= {f"proba_{i}": column for i, column in enumerate(rows["proba"].T)}
    columns |= dict(zip(("low", "mid", "high"), rows["quantiles"].T, strict=True))
    columns |= {f"member_{i}": column for i, column in enumerate(rows["members"].T)}
    pq.write_table(pa.table(columns), "rows.parquet")
    expected = evaluated(row, kind).to_dict()
    capsys.readouterr()
    assert (
        run(["evaluate", "rows.parquet", "--outcome", outcome(kind), *shlex.split(row[3].strip("`")), "--json", "-"])
        == 0
    )
    (found,) = json.loads(capsys.readouterr().out)["models"].values()
    assert found == json.loads(json.dumps(expected))
