"""`calibrant fit`."""

from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
maps = pytest.importorskip("calibrant.calibrators.maps")

FEW = ("--resamples", "39")


def test_fit_takes_weights_and_frequencies(scores, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    made = []
    for option in ("--sample-weight", "--frequency"):
        given = ["scores.parquet", "-y", "y", "-p", "p", option, "w", "--method", "platt", "-o", f"cal{option}.json"]
        call("fit", *given)
        made.append(cb.load(f"cal{option}.json"))
    assert maps.to_dict(made[0].map_) == maps.to_dict(made[1].map_)
    rows = pq.read_table("scores.parquet")
    y, p, w = (np.asarray(rows.column(name)) for name in "ypw")
    assert maps.to_dict(made[0].map_) == maps.to_dict(cb.Platt().fit(np.repeat(p, w), np.repeat(y, w)).map_)
    assert "must be a whole number of rows" in call("fit", *given[:6], "q", "-o", "no.json", code=2)


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_scores_that_apply_calibrates_equal_those_of_the_library(scores, call, kind):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    call("fit", "scores.csv", "-y", "y", "-p", "p", "--method", "beta", "-o", "cal.json")
    text = call("apply", "cal.json", f"scores.{kind}", "-p", "p", "-o", f"out.{kind}")
    assert text == f"1,000 rows: out.{kind}\n"
    expected = cb.Beta().fit(scores["p"], scores["y"])(scores["p"])
    table = cb.scan(f"out.{kind}", y="y", p="calibrated")
    assert table == cb.ScoreTable.from_arrays(scores["y"], expected)
    if kind == "csv":
        lines, before = Path("out.csv").read_text().splitlines(), Path("scores.csv").read_text().splitlines()
        kept = [",".join(line.replace('"', "").split(",")[:4]) for line in lines]
        assert kept == before  # other cells are the text that they were
    assert "Verdict: inconclusive" in call("evaluate", f"out.{kind}", "-y", "y", "-p", "calibrated", *FEW)


def test_fit_prints_the_improvement(scores, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    text = call("fit", "scores.csv", "-y", "y", "-p", "p", "--method", "platt", "-o", "cal.json")
    before, after = (float(part.split()[0]) for part in text.split("ACE: ")[1].split(", "))
    assert before == pytest.approx(float(cb.ace(scores["y"], scores["p"])), abs=1e-5)
    assert after < before / 2
    assert "exists already" in call("fit", "scores.csv", "-y", "y", "-p", "p", "-o", "cal.json", code=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "nothing"], "'nothing' is not one of"),
        (["--method", "beta", "--set", "depth=3"], "beta has no parameter 'depth'; it has eps, parameters."),
        (
            ["--method", "binning_average", "--set", "n_bins"],
            "--set must be NAME=VALUE, such as n_bins=20; got 'n_bins'",
        ),
        (["--method", "binning_average", "--set", "n_bins=0"], "n_bins must be a whole number"),
        (["--method", "prior_shift"], "prevalence"),
    ],
)
def test_invalid_fits_are_refused(scores, call, arguments, words):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    given = ["scores.csv", "-y", "y", "-p", "p", "-o", "cal.json"]
    assert words in call("fit", *given, *arguments, code=2)
    assert not Path("cal.json").exists()


def test_settings_and_costs_reach_the_method(scores, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    given = ["scores.csv", "-y", "y", "-p", "p", "--force", "-o", "cal.json"]
    call("fit", *given, "--method", "binning_average", "--set", "n_bins=4")
    assert cb.load("cal.json").n_bins == 4
    call("fit", *given, "--method", "cats", "--cost", "1:5")
    assert cb.load("cal.json").cost == cb.LinearCost(over=1, under=5)


def test_the_methods_are_all_calibrators():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from calibrant.cli.fit import METHODS

    assert set(METHODS) == {name for name, kind in cb.CALIBRATORS.items() if kind.kind == "binary"}
