"""`calibrant audit`, and the audit gate of `calibrant check`."""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

for library in ("click", "rich", "duckdb", "pyarrow", "pandas"):
    pytest.importorskip(library, reason=f"{library} is not installed")

FEW = ("--resamples", "19")


@pytest.fixture
def loans(here):
    """Write rows whose scores underestimate in the south from age 65 on, and point predictions that do not."""
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 5_000
    frame = pd.DataFrame({"age": rng.integers(18, 90, n), "region": rng.choice(["north", "south"], n)})
    logit = rng.normal(-1, 1, n)
    off = 1.0 * ((frame["region"] == "south") & (frame["age"] >= 65))
    frame["score"], frame["half"] = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(-logit / 2))
    frame["event"] = (rng.random(n) < 1 / (1 + np.exp(-logit - off))).astype(int)
    frame["answer"] = np.where(frame["event"] == 1, "yes", "no")
    frame["price"], frame["predicted"] = logit + rng.normal(size=n), logit
    for i, label in enumerate(("no", "yes")):
        frame[f"p_{label}"] = frame["score"] if i else 1 - frame["score"]
    frame["shop"] = rng.integers(0, 400, n)
    frame.to_csv("loans.csv", index=False)
    frame.to_parquet("loans.parquet")
    return frame


@pytest.mark.parametrize("file", ["loans.csv", "loans.parquet"])
def test_a_segment_is_printed_with_its_rule(loans, call, file):
    text = call("audit", file, "-y", "event", "-p", "score", "--features", "age,region", *FEW)
    assert text.startswith("Verdict: ")
    assert re.search("age >= 6|6. <= age", text)
    assert "region = 'south'" in text
    assert "Multicalibration error" in text


def test_results_are_those_of_the_library(loans, call):
    import calibrant as cb

    call("audit", "loans.parquet", "-y", "event", "-p", "score", "-f", "age", "-f", "region", *FEW, "--json", "a.json")
    found = json.loads(Path("a.json").read_text())
    assert found["result"] == "audits"
    same = cb.audit(loans["event"], loans["score"], loans[["age", "region"]], n_resamples=19).to_dict()
    assert found["models"]["score"]["segments"] == same["segments"]
    assert found["models"]["score"]["multicalibration_error"] == same["multicalibration_error"]


def test_segments_are_written_as_csv_and_html(loans, call):
    text = call(
        "audit",
        "loans.csv",
        "-y",
        "answer",
        "--pos-label",
        "yes",
        "-p",
        "score",
        "-f",
        "age,region",
        "--csv",
        "-",
        *FEW,
    )
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0])[:5] == ["rule", "n_rows", "predicted", "observed", "log_odds_error"]
    assert "region = 'south'" in rows[0]["rule"]
    call(
        "audit",
        "loans.csv",
        "-y",
        "event",
        "-p",
        "score",
        "-p",
        "half",
        "-f",
        "age,region",
        *FEW,
        "--csv",
        "a.csv",
        "--html",
        "a.html",
        "--sha256",
    )
    assert next(csv.reader(Path("a.csv").read_text().splitlines()))[0] == "model"
    page = Path("a.html").read_text(encoding="utf-8")
    assert "Audit of loans.csv" in page
    assert "SHA-256" in page
    assert "2 of 2 forecasts have miscalibrated segments" in page
    call("audit", "loans.csv", "-y", "event", "-p", "score", "-f", "age", "--html", "a.html", code=2)


def test_other_kinds_are_audited(loans, call):
    text = call("audit", "loans.csv", "-y", "price", "--point", "predicted", "-f", "age,region", *FEW)
    assert "Verdict: no miscalibrated segment shown" in text
    text = call("audit", "loans.csv", "-y", "answer", "--class-score", "p_*", "-f", "age,region", *FEW)
    assert "and the top label" in text
    assert "region = 'south'" in text


def test_rows_in_clusters_and_standard_input(loans, call, monkeypatch):
    text = call("audit", "loans.parquet", "-y", "event", "-p", "score", "-f", "age,region", "--cluster", "shop", *FEW)
    assert "region = 'south'" in text


@pytest.mark.parametrize(
    "options",
    [
        ["-f", "nowhere"],
        ["-f", ","],
        ["-f", "age", "--depth", "4"],
        ["-f", "age", "--alpha", "2"],
        ["-f", "age", "--cluster", "region"],
        [],
    ],
)
def test_bad_options_exit_with_2(loans, call, options):
    call("audit", "loans.csv", "-y", "event", "-p", "score", *options, *FEW, code=2)


def test_check_fails_on_a_miscalibrated_segment(loans, call):
    rows = ["loans.csv", "-y", "event", "-p", "score", "--max-ece", "0.9", *FEW]
    call("check", *rows)
    text = call("check", *rows, "--audit", "age,region", "--json", "c.json", "--junit", "j.xml", code=1)
    assert re.search("FAIL  score, (age >= 6|6. <= age)", text)
    assert "it underestimates: predicted" in text
    found = json.loads(Path("c.json").read_text())
    assert found["audits"]["score"]["segments"]
    assert "region = 'south'" in Path("j.xml").read_text()
    text = call("check", "loans.csv", "-y", "price", "--point", "predicted", "--audit", "age,region", *FEW)
    assert "PASS  predicted, segments" in text
    call("check", "loans.csv", "-y", "price", "--mean", "predicted", "--sd", "score", "--audit", "age", *FEW, code=2)
