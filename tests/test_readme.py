"""README.md: its code runs, its output and its numbers are those of the library and of the linked pages."""

import csv
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
from calibrant.kinds.base import KINDS

for library in ("matplotlib", "jinja2", "pandas"):
    pytest.importorskip(library, reason=f"{library} is not installed")

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
SECTION = re.search(r"## Kinds of forecast\n(.*?)\n## ", README, flags=re.DOTALL)[1]
SCRIPT = re.search(r"```python\n(.*?)```", SECTION, flags=re.DOTALL)[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in SECTION.splitlines()
    if line.startswith("|") and "---" not in line
][1:]
# A row without a kind has that of the row above.
NAMED = [row[0] for row in ROWS]
ROW_KINDS = [next(filter(None, reversed(NAMED[: i + 1]))) for i in range(len(NAMED))]


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
        "count": rng.poisson(np.exp(mean)),
        "rate": np.exp(mean),
        "dispersion": np.full(500, 0.5),
        "years": np.full(500, 1.5),
    }


def outcome(row, kind):
    if row[1] == "counts":
        return "count"
    return {"binary": "event", "point": "number", "distribution": "number"}.get(kind, "class")


@pytest.fixture
def evaluated(rows):
    """Return the result of the script for each forecast in the table."""

    def run(row, kind):
        forecast = eval(re.match("`(.+?)`", row[2])[1], {"cb": cb, **rows})
        names = {"cb": cb, "y": rows[outcome(row, kind)], "forecast": forecast}
        exec(SCRIPT, names)
        return names["result"]

    return run


def test_the_script_has_five_lines_and_the_table_each_kind():
    assert len(SCRIPT.splitlines()) == 5
    assert list(filter(None, NAMED)) == list(KINDS)


@pytest.mark.parametrize(("row", "kind"), list(zip(ROWS, ROW_KINDS, strict=True)), ids=lambda each: str(each)[:40])
def test_the_script_runs_for_each_kind(row, kind, evaluated, tmp_path, monkeypatch, capsys):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    result = evaluated(row, kind)
    plt.close("all")
    assert result.kind == kind
    assert capsys.readouterr().out.startswith(result.verdict)
    assert Path("report.html").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


@pytest.mark.parametrize(("row", "kind"), list(zip(ROWS, ROW_KINDS, strict=True)), ids=lambda each: str(each)[:40])
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
        run(
            [
                "evaluate",
                "rows.parquet",
                "--outcome",
                outcome(row, kind),
                *shlex.split(row[3].strip("`")),
                "--json",
                "-",
            ]
        )
        == 0
    )
    (found,) = json.loads(capsys.readouterr().out)["models"].values()
    assert found == json.loads(json.dumps(expected))


def test_the_page_has_at_most_150_lines():
    assert len(README.splitlines()) <= 150


@pytest.fixture(scope="module")
def digits():
    """Return the out-of-fold scores of the forest of docs/tutorial.rst, and whether each digit is an 8."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_predict

    pixels, digit = load_digits(return_X_y=True)
    model = RandomForestClassifier(random_state=0)
    return digit == 8, cross_val_predict(model, pixels, digit == 8, cv=5, method="predict_proba")


def test_the_example_prints_the_output_of_the_page(digits, capsys):
    class Model:
        def predict_proba(self, X):
            return X

    y, proba = digits
    exec(BLOCKS[0], {"model": Model(), "X_test": proba, "y_test": y})
    shown = re.search(r"```text\n(.*?)```", README, flags=re.DOTALL)[1]
    printed, cut = re.fullmatch(r"(.*)\[\.\.\. (\d+) more metrics, .*\]\n", shown, flags=re.DOTALL).groups()
    assert capsys.readouterr().out.startswith(printed)
    metrics = cb.evaluate(y, proba[:, 1]).metrics
    assert sum(f"\n  {name} " in printed for name in metrics) == len(metrics) - int(cut)


def test_the_claim_about_few_events_is_in_the_table_of_the_study():
    """`Platt` has about half of the error with 30 and 100 events; from more than 1,000 on the free curve is better."""
    with (ROOT / "docs/studies/few_events.csv").open(encoding="utf-8") as file:
        found = {(row["scores"], int(row["expected events"])): row for row in csv.DictReader(file)}
    ratio = {key: float(row["Platt"]) / float(row["Isotonic(strict=True)"]) for key, row in found.items()}
    assert all(0.35 <= ratio[scores, events] <= 0.65 for scores in ("calibrated", "curved") for events in (30, 100))
    assert ratio["curved", 1000] < 1 < ratio["curved", 3000]
    assert all(ratio["calibrated", events] < 0.6 for events in (8, 30, 100, 300, 1000, 3000))


@pytest.fixture
def names(rows):
    """Return the variables of the blocks that follow the table of kinds."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(1)
    y, p = rows["event"], rows["scores"]
    frame = pd.DataFrame(
        {
            "week": np.arange(500) // 125,
            "age": rng.integers(18, 90, 500),
            "region": rng.choice(["a", "b"], 500),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(500) // 50, "D"),
        }
    )
    forest = RandomForestClassifier(n_estimators=5, random_state=0)
    return {"cb": cb, "y": y, "p": p, "scores": p, "new_scores": p[:9], "p_old": p, "p_new": p**1.1, "df": frame} | {
        "forest": forest,
        "X_train": rng.normal(size=(500, 3)),
        "y_train": y,
    }


@pytest.mark.parametrize("block", range(2, len(BLOCKS)))
def test_the_other_blocks_run(block, names, tmp_path, monkeypatch):
    for library in ("sklearn", "duckdb", "pyarrow", "sqlalchemy"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    Path("scores").mkdir()
    pd.DataFrame({"outcome": names["y"], "score": names["p"]}).to_parquet("scores/day.parquet")
    exec(BLOCKS[block], names)


def test_the_number_of_sql_dialects_is_right():
    from calibrant._support.sql_dialects import DIALECTS

    assert f"of {len(DIALECTS)} dialects" in README


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_the_numbers_of_the_page_are_those_of_the_linked_pages():
    with (ROOT / "docs/studies/scikit_learn.csv").open(encoding="utf-8") as file:
        default = [row for row in csv.DictReader(file) if row["ours"] == "CalibratedModel()"]
    shown = [row for row in default if float(row["adjusted p"]) <= 0.05]
    better = sum(float(row["difference"]) < 0 for row in shown)
    assert f"In {len(default)} comparisons" in README
    assert f"better in {better} and worse in {'none' if better == len(shown) else len(shown) - better}" in README
    total, same = re.search(r"Of ([\d,]+) published values \*\*([\d,]+) are", page("reproduction/index.rst")).groups()
    assert f"Of the {total} values in the tables of the TCE paper, {same} are" in README
    assert f"{same} of {total} values come" in page("corrections.rst")
    assert f"{same} of {total} printed values" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "less than 4 GiB" in README
    assert "less than 4 GiB" in page("data_sources.rst")
    values = re.findall(r"^\S.*?  +(0\.\d{5}) ", page("other_libraries.rst"), flags=re.MULTILINE)
    assert len(set(values)) == 5
    assert 'Eight libraries give five values for "ECE with 10 bins" of the same 200 scores' in README
    assert len([name for name in cb.plots.__all__ if name.endswith("Display")]) > 20
