"""`calibrant check`."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("pyarrow.csv", reason="pyarrow is not installed")

FEW = ("--resamples", "39")


def test_only_miscalibrated_scores_fail(scores, call):
    good, bad = ["scores.csv", "-y", "y", "-p", "q", *FEW], ["scores.csv", "-y", "y", "-p", "p", *FEW]
    text = call("check", *good)
    assert text.startswith("WARN  q: must not be miscalibrated; it is inconclusive: No deviation is significant")
    assert "all gates passed" in text
    text = call("check", *bad, "--junit", "j.xml", "--json", "c.json", code=1)
    assert "FAIL  p: must not be miscalibrated; it is miscalibrated (overestimates, underconfident)" in text
    result = json.loads(Path("c.json").read_text())
    assert not result["passed"]
    suite = ElementTree.parse("j.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "the model overestimates" in suite.find("testcase/failure").get("message")


@pytest.mark.parametrize(
    ("option", "limit", "code"),
    [
        ("--max-ece", "0.5", 0),
        ("--max-ece", "0.01", 1),
        ("--max-tce-excess", "100", 0),
        ("--max-tce-excess", "1", 1),
        ("--equivalence", "0.5", 0),
        ("--equivalence", "0.01", 1),
        ("--max-ece", "-1", 2),
        ("--max-ece", "nan", 2),
        ("--equivalence", "0.5 --margin 0.3", 2),
        ("--max-tce-excess", "1 --sample-weight q", 2),
    ],
)
def test_given_thresholds_decide_alone(scores, call, option, limit, code):
    call("check", "scores.csv", "-y", "y", "-p", "p", *FEW, option, *limit.split(), code=code)


def test_require_calibrated_is_strict(scores, call):
    q = ["scores.csv", "-y", "y", "-p", "q", *FEW]
    text = call("check", *q, "--require", "calibrated", code=1)
    assert "FAIL  q: must be shown to be calibrated within the margin; it is inconclusive" in text
    assert "PASS" in call("check", *q, "--require", "calibrated", "--margin", "1")
    assert "PASS" in call("check", *q, "--require", "calibrated", "--absolute-margin", "0.2")
    assert "--require must not be given with --max-ece. Given thresholds decide alone." in call(
        "check", *q, "--require", "calibrated", "--max-ece", "1", code=2
    )


def test_scores_of_rare_events_fail_the_gate(here, call):
    """50,000 rows with 0.8 % events: scores that are far off in log-odds, but not in points."""
    rng = np.random.default_rng(0)
    t = rng.beta(0.5, 60, 50_000)
    y = (rng.random(t.size) < t).astype(int)
    columns = {"y": y, "constant": np.full(t.size, 1e-6), "tenth": t / 10, "half": t / 2, "double": 2 * t, "t": t}
    columns = {name: pa.array(column) for name, column in columns.items()}
    pa.csv.write_csv(pa.table(columns), "rare.csv")
    for score in ("constant", "tenth", "half", "double"):
        text = call("check", "rare.csv", "-y", "y", "-p", score, *FEW, code=1)
        direction = "overestimates" if score == "double" else "underestimates"
        assert f"FAIL  {score}: must not be miscalibrated; it is miscalibrated ({direction}" in text
    call("check", "rare.csv", "-y", "y", "-p", "t", *FEW)


def test_each_group_must_pass(scores, call):
    text = call("check", "scores.csv", "-y", "y", "-p", "p", "--by", "g", *FEW, code=1)
    assert "p, g = low" in text
    assert "p, g = high" in text


def test_the_example_for_ci_runs(here, call):
    sample = (Path(__file__).parents[2] / "examples" / "ci" / "github-actions.yml").read_text()
    command = next(line.split("run: calibrant ")[1] for line in sample.splitlines() if "run: calibrant" in line)
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)
    for said_, code in ((p, 0), (p**3, 1)):
        rows = "".join(f"{a},{b}\n" for a, b in zip(y, said_, strict=True))
        Path("validation.csv").write_text(f"outcome,score\n{rows}")
        call(*command.split(), "--force", code=code)
        suite = ElementTree.parse("calibration.xml").getroot().find("testsuite")
        assert suite.get("failures") == str(code)
        assert json.loads(Path("calibration.json").read_text())["passed"] is (code == 0)


def test_junit_xml_is_valid_for_any_name():
    from calibrant.cli.check import Gate, junit_xml

    names = ["<script>", "a&b", '"', "]]>", "\x00\x1b[31m", "\ud800", "é", "\uffff"]
    xml = junit_xml([Gate(name, name, "rule", False, name) for name in names])
    cases = ElementTree.fromstring(xml.encode("utf-8")).findall("testsuite/testcase")
    assert len(cases) == len(names)


def test_inconclusive_scores_pass_with_a_warning(here, call):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    lines = [f"{int(rng.random() < each)},{each}" for each in p]
    Path("few.csv").write_text("\n".join(["y,p", *lines, ",0.5"]))
    text = call(
        "check",
        "few.csv",
        "--label",
        "y",
        "--score",
        "p",
        "--missing",
        "drop",
        "--junit",
        "junit.xml",
        "--resamples",
        "39",
    )
    assert "all gates passed, 1 with a warning" in text
    assert "missing: 1" in text
    assert "Warning: p: it is inconclusive" in Path("junit.xml").read_text()
    assert "must lie between 0 and 1; got 20" in call(
        "check", "few.csv", "--label", "y", "--score", "p", "--max-ece", "20", code=2
    )
