"""`calibrant compare`."""

import json
from pathlib import Path

import pytest

import calibrant as cb

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")

FEW = ("--resamples", "39")


def test_compare_is_paired(scores, call):
    given = ["scores.csv", "-y", "y", "-p", "p", "-p", "q", *FEW]
    text = call("compare", *given, "--json", "out.json")
    expected = cb.compare(scores["y"], {"p": scores["p"], "q": scores["q"]}, n_resamples=39)
    assert text.startswith("Verdict: q is better calibrated than p")
    assert {k: v for k, v in json.loads(Path("out.json").read_text()).items() if k in expected.to_dict()} == json.loads(
        json.dumps(expected.to_dict())
    )
    assert "compare needs at least two forecasts; got 1. Repeat --score." in call(
        "compare", "scores.csv", "-y", "y", "-p", "p", code=2
    )
    assert "at least 10 distinct values" in call("compare", *given, "--cluster", "g", code=2)
    lines = Path("scores.csv").read_text().splitlines()
    clustered = [f"{line},{'h' if i == 0 else i // 20}" for i, line in enumerate(lines)]
    Path("clustered.csv").write_text("\n".join(clustered))
    assert "Verdict" in call("compare", "clustered.csv", *given[1:], "--cluster", "h")


def test_compare_drops_rows_for_all_scores(here, call):
    Path("holes.csv").write_text("y,p,q\n" + "".join(f"{i % 2},{'NA' if i == 3 else i / 50},0.5\n" for i in range(50)))
    given = ["holes.csv", "-y", "y", "-p", "p", "-p", "q", *FEW]
    assert "--missing drop" in call("compare", *given, code=2)
    text = call("compare", *given, "--missing", "drop")
    assert "49 rows" in text
    assert "Rows dropped because a value is missing: 1." in text
