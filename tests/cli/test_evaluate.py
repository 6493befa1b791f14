"""`calibrant evaluate`, `calibrant compare` and `calibrant audit`, and the audit gate of `calibrant check`."""

import csv
import html
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

FEW = ("--resamples", "39")
QUICK = ("--resamples", "19")
ANIMALS = ["ant", "bee", "cat"]
LEVELS = (0.1, 0.5, 0.9)


def test_evaluate_prints_the_result_of_the_library(scores, call):
    expected = cb.evaluate(scores["y"], scores["p"], n_resamples=39)
    for file in ("scores.csv", "scores.parquet", "scores.jsonl"):
        text = call("evaluate", file, "--label", "y", "--score", "p", *FEW, "--json", f"{file}.json")
        assert text.startswith(f"Verdict: {expected.verdict}")
        for metric in expected.metrics.values():
            assert " ".join([metric.name, *metric.cells()]) in " ".join(text.split())
        found = json.loads(Path(f"{file}.json").read_text())
        assert found["models"]["p"] == expected.to_dict()


def test_the_diagram_shows_bins(scores, call):
    text = call("evaluate", "scores.csv", "-y", "y", "-p", "p", *FEW)
    bins = cb.metrics.ACE()(scores["y"], scores["p"]).per_bin
    for said_, rate in zip(bins["mean_score"], bins["rate"], strict=True):
        assert f"{said_:7.4f}  {rate:8.4f}" in text
    assert "◇" in text
    assert "●" in text


def test_a_diagram_in_plain_text(scores):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    command = [sys.executable, "-m", "calibrant", "evaluate", "scores.csv", "-y", "y", "-p", "p", *FEW]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "o mean score, # event rate" in done.stdout


def test_groups_costs_weights_and_several_scores(scores, call):
    given = ["scores.parquet", "-y", "y", "-p", "p", "-p", "q", "--by", "g", "--frequency", "w", "--cost", "1:5", *FEW]
    text = call("evaluate", *given, "--sha256")
    assert "p: Verdict: miscalibrated (overestimates, underconfident) overall; 2 of 2 groups are miscalibrated" in text
    assert "q: Verdict: " in text
    assert "ECC (1:5)" in text
    assert "high" in text
    assert "SHA-256" in text
    assert "Rows dropped because their frequency is 0" in text
    result = json.loads(call("evaluate", *given, "--json", "-", "--sha256"))
    assert list(result["models"]) == ["p", "q"]
    assert [group["group"] for group in result["models"]["p"]["groups"]] == ["high", "low"]
    assert len(result["inputs"][0]["sha256"]) == 64


def test_weights_are_importance_and_frequencies_are_rows(scores, call):
    rows = pq.read_table("scores.parquet")
    y, p, w = (np.asarray(rows.column(name)) for name in "ypw")
    given = ["scores.parquet", "-y", "y", "-p", "p", *FEW]
    for option, name in (("--sample-weight", "sample_weight"), ("--frequency", "frequency")):
        found = json.loads(call("evaluate", *given, option, "w", "--json", "-"))["models"]["p"]
        expected = cb.evaluate(cb.ScoreTable.from_arrays(y, p, **{name: w}), n_resamples=39).to_dict()
        assert found["metrics"] == json.loads(json.dumps(expected["metrics"]))
        compared = call("compare", *given, "-p", "q", option, "w", "--json", "-")
        both = {"p": p, "q": np.asarray(rows.column("q"))}
        assert json.loads(compared)["differences"] == json.loads(
            json.dumps(cb.compare(y, both, **{name: w}, n_resamples=39).to_dict()["differences"])
        )
    text = call("evaluate", *given, "--sample-weight", "w", "--frequency", "w", code=2)
    assert "--sample-weight and --frequency must not be given together" in text
    text = call("evaluate", *given, "--frequency", "q", code=2)
    assert "q in scores.parquet must be a whole number of rows, 0 or more; got" in text
    assert "For real weights use --sample-weight." in text


def test_options_reach_the_metrics(scores, call):
    given = [
        "scores.csv",
        "-y",
        "y",
        "-p",
        "p",
        "--resamples",
        "99",
        "--bins",
        "7",
        "--alpha",
        "0.01",
        "--random-state",
        "5",
    ]
    given += ["--confidence-level", "0.9", "--margin", "0.2", "--resolution", "2**-20", "--json", "-"]
    result = json.loads(call("evaluate", *given))["models"]["p"]
    assert result["settings"]["metrics"]["ECE"] == cb.ECE(n_bins=7).spec
    assert result["settings"]["metrics"]["TCE"] == cb.TCE(alpha=0.01, bins=cb.bins.PAVABC(sizes="grades")).spec
    asked = ("alpha", "margin", "confidence_level", "random_state", "n_resamples")
    assert [result["settings"][name] for name in asked] == [0.01, 0.2, 0.9, 5, 99]
    assert any(note["code"] == "rounded" for note in result["notes"])


def test_the_report_is_written(scores, call):
    pytest.importorskip("jinja2", reason="Jinja2 is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    given = ["scores.csv", "-y", "y", "-p", "p", "-p", "q", *FEW]
    call("evaluate", *given, "--by", "g", "--html", "r.html")
    page = Path("r.html").read_text()
    assert "<title>Calibration of scores.csv</title>" in page
    assert call("evaluate", *given, "--by", "g", "--html", "-") == page  # the same bytes
    call("compare", *given, "--html", "c.html")
    assert "q is better calibrated than p" in Path("c.html").read_text()
    assert "'r.html' exists already" in call("evaluate", *given, "--html", "r.html", code=2)


def test_clusters_are_read_from_files(here, call):
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(40), 10)
    p = rng.uniform(0.1, 0.9, 400)
    y = (rng.random(40)[cluster] < p).astype(int)  # one draw decides for all rows of a cluster
    lines = [f"{a},{b},{c},{'xy'[c % 2]}" for a, b, c in zip(y, p, cluster, strict=True)]
    Path("clusters.csv").write_text("\n".join(["y,p,shop,kind", *lines]))
    options = ("clusters.csv", "--label", "y", "--score", "p", "--resamples", "39")
    assert "WARN" in call("check", *options, "--cluster", "shop", "--by", "kind")
    assert "more clusters like these" in call("evaluate", *options, "--cluster", "shop")
    text = call("evaluate", *options, "--cluster", "shop", "--by", "kind", "--by", "y", "--json", "-")
    groups = [group["group"] for group in json.loads(text)["models"]["p"]["groups"]]
    by_tables = call("evaluate", *options, "--by", "kind", "--by", "y", "--json", "-")
    assert groups == [group["group"] for group in json.loads(by_tables)["models"]["p"]["groups"]]
    assert "--cluster must not be given with --spark or --resolution." in call(
        "evaluate", *options, "--cluster", "shop", "--resolution", "0.1", code=2
    )


def test_the_worst_20_groups_are_printed_in_the_colours_of_their_verdicts():
    import io

    from rich.console import Console

    from calibrant.cli.console import print_evaluation

    rng = np.random.default_rng(0)
    p = rng.random(25 * 80)
    group = np.repeat(np.arange(25), 80)
    y = rng.random(p.size) < np.where(group < 3, p**4, p)
    result = cb.evaluate(y, p, by=group, n_resamples=19)
    out = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=200)
    print_evaluation(result, out=out)
    lines = out.file.getvalue().split("groups by Holm; the worst 20 of 25):")[1].splitlines()[2:22]
    for text, (name, own) in zip(lines, result.worst_first.items(), strict=False):
        colour = {"miscalibrated": "31", "inconclusive": "33"}.get(own.verdict, "32")
        assert re.match(rf"\s+{name}\s.*\x1b\[1;{colour}m{own.verdict}", text)
    assert sum(own.verdict == "miscalibrated" for own in result.groups.values()) >= 3


def test_the_report_names_the_file_and_the_columns_in_its_commands(scores, call):
    Path("my scores.csv").write_text(Path("scores.csv").read_text())
    call("evaluate", "my scores.csv", "-y", "y", "-p", "p", *FEW, "--html", "report.html")
    page = html.unescape(Path("report.html").read_text())
    assert "calibrant fit 'my scores.csv' --label y --score p \\\n  --method" in page
    call("compare", "scores.csv", "-y", "y", "-p", "p", "-p", "q", *FEW, "--html", "both.html")
    assert "calibrant fit scores.csv --label y --score p \\\n  --method" in Path("both.html").read_text()


@pytest.mark.parametrize("column", ["y", "p", "shop", "w"])
def test_rows_that_are_dropped_from_clusters_are_counted(here, call, column):
    names, rng = ["y", "p", "shop", "w"], np.random.default_rng(0)
    rows = [[str(i // 2 % 2), f"{rng.random():.3f}", f"shop {i % 20}", "2"] for i in range(200)]
    rows[3][names.index(column)] = ""
    Path("rows.csv").write_text("\n".join(map(",".join, [names, *rows])))
    options = ("rows.csv", "-y", "y", "-p", "p", "--cluster", "shop", "--sample-weight", "w", "--resamples", "39")
    text = call("evaluate", *options, "--missing", "drop", "--by", "y" if column != "y" else "w", "--json", "-")
    model = json.loads(text)["models"]["p"]
    assert (model["n_in"], model["n_used"], model["n_dropped"]) == (200, 199, 1)
    assert [note["count"] for note in model["notes"] if note["code"] == "missing"] == [1]
    assert f"{column} in rows.csv has 1 missing value (first at row 3)" in call("evaluate", *options, code=2)


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


def test_compare_is_a_gate_of_non_inferiority(scores, call):
    given = ("compare", "scores.csv", "-y", "y", "-p", "p", "-p", "q", *FEW, "--baseline")
    passed = call(*given, "p", "--not-worse-than", "log loss=0.1")
    assert passed.rstrip().endswith("all gates passed")
    assert "q is not worse than p by more than 0.1 in log loss: " in passed
    failed = call(*given, "q", "--not-worse-than", "0.001", "--not-worse-than", "log loss=0.1", code=2)
    assert "--not-worse-than must be given once, or once per named metric" in failed
    failed = call(*given, "q", "--not-worse-than", "0.001", code=1)
    assert failed.rstrip().endswith("1 of 1 gates failed")
    assert "Not shown that p is not worse than q by more than 0.001 in log-odds error: " in failed
    assert "--not-worse-than must name metrics with a paired test" in call(
        *given, "q", "--not-worse-than", "ECE=0.1", code=2
    )
    assert "--not-worse-than must be a positive number" in call(*given, "q", "--not-worse-than", "-1", code=2)
    assert "is not MARGIN or METRIC=MARGIN" in call(*given, "q", "--not-worse-than", "small", code=2)
    assert "--baseline must be given with --not-worse-than; got none." in call(
        *given[:-1], "--not-worse-than", "0.1", code=2
    )
    assert "--baseline must name a model; got 'x'" in call(*given, "x", code=2)


def test_compare_drops_rows_for_all_scores(here, call):
    Path("holes.csv").write_text("y,p,q\n" + "".join(f"{i % 2},{'NA' if i == 3 else i / 50},0.5\n" for i in range(50)))
    given = ["holes.csv", "-y", "y", "-p", "p", "-p", "q", *FEW]
    assert "--missing drop" in call("compare", *given, code=2)
    text = call("compare", *given, "--missing", "drop")
    assert "49 rows" in text
    assert "Rows dropped because a value is missing: 1." in text


KINDS = {
    "-y price --point right --point high": lambda c: ("price", {name: cb.Point(c[name]) for name in ("right", "high")}),
    "-y animal --predicted-label fair --predicted-label unfair": lambda c: (
        "animal",
        {name: cb.Labels(c[name]) for name in ("fair", "unfair")},
    ),
    "-y animal --class-score p_* --class-score sharp_*": lambda c: (
        "animal",
        {f"{name}_*": stack(c, [f"{name}_{label}" for label in ANIMALS]) for name in ("p", "sharp")},
    ),
    "-y price --mean right --sd sd --mean high --sd small": lambda c: (
        "price",
        {mean: cb.Gaussian(c[mean], c[sd]) for mean, sd in (("right", "sd"), ("high", "small"))},
    ),
    "-y price --quantile q* --quantile narrow*": lambda c: (
        "price",
        {f"{name}*": cb.Quantiles(LEVELS, stack(c, [f"{name}{q}" for q in LEVELS])) for name in ("q", "narrow")},
    ),
    "-y price --sample m_* --sample tight_*": lambda c: (
        "price",
        {f"{name}_*": cb.Samples(stack(c, [f"{name}_{i}" for i in range(1, 10)])) for name in ("m", "tight")},
    ),
}


def stack(columns, names):
    return np.column_stack([columns[name] for name in names])


@pytest.mark.parametrize("options", KINDS)
def test_comparisons_of_each_kind_equal_those_of_the_library(forecasts, call, options):
    outcome, models = KINDS[options](forecasts)
    classes = {"classes": ANIMALS} if "--class-score" in options else {}
    expected = cb.compare(forecasts[outcome], models, n_resamples=39, cluster=forecasts["shop"], **classes)
    given = ("compare", "forecasts.parquet", *options.split(), *FEW, "--cluster", "shop")
    found = json.loads(call(*given, "--json", "-"))
    assert {name: found[name] for name in expected.to_dict()} == json.loads(expected.to_json())
    assert (found["n_in"], found["n_used"], found["n_dropped"]) == (2000, 2000, 0)
    assert call(*given).startswith(f"Verdict: {expected.verdict}\n2,000 rows")
    assert f"{list(models)[1]} is worse calibrated than {next(iter(models))}" == expected.verdict


def test_rows_of_other_kinds_are_dropped_for_all_models(here, call):
    lines = [f"{i % 7 + i / 30},{'NA' if i == 3 else i / 30},{'NA' if i in (3, 5) else i / 20}" for i in range(300)]
    Path("holes.csv").write_text("\n".join(["y,a,b", *lines]))
    given = ("compare", "holes.csv", "-y", "y", "--point", "a", "--point", "b", *FEW)
    assert "a in holes.csv has 1 missing value (first at row 3). Pass --missing drop" in call(*given, code=2)
    found = json.loads(call(*given, "--missing", "drop", "--json", "-"))
    assert (found["n_in"], found["n_used"], found["n_dropped"]) == (300, 298, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-y price --point right", "compare needs at least two forecasts; got 1. Repeat --point."),
        ("-y animal --class-score p_*", "compare needs at least two forecasts; got 1. Repeat --class-score."),
        ("-y price --point right --score p_ant", "--score and --point must not be given together; got both."),
        ("-y price --point right --point high --bins 3", "--bins must be given with --score only; got --point."),
    ],
)
def test_comparisons_need_two_forecasts_of_one_kind(forecasts, call, options, words):
    assert words in call("compare", "forecasts.csv", *options.split(), code=2)


@pytest.fixture
def loans(here):
    """Write rows whose scores underestimate in the south from age 65 on, and point predictions that do not."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")

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
    text = call("audit", file, "-y", "event", "-p", "score", "--features", "age,region", *QUICK)
    assert text.startswith("Verdict: ")
    assert re.search("age >= 6|6. <= age", text)
    assert "region = 'south'" in text
    assert "Multicalibration error" in text


def test_results_are_those_of_the_library(loans, call):
    import calibrant as cb

    call(
        "audit", "loans.parquet", "-y", "event", "-p", "score", "-f", "age", "-f", "region", *QUICK, "--json", "a.json"
    )
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
        *QUICK,
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
        *QUICK,
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
    text = call("audit", "loans.csv", "-y", "price", "--point", "predicted", "-f", "age,region", *QUICK)
    assert "Verdict: no miscalibrated segment shown" in text
    text = call("audit", "loans.csv", "-y", "answer", "--class-score", "p_*", "-f", "age,region", *QUICK)
    assert "and the top label" in text
    assert "region = 'south'" in text


def test_rows_in_clusters_and_standard_input(loans, call, monkeypatch):
    text = call("audit", "loans.parquet", "-y", "event", "-p", "score", "-f", "age,region", "--cluster", "shop", *QUICK)
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
    call("audit", "loans.csv", "-y", "event", "-p", "score", *options, *QUICK, code=2)


def test_check_fails_on_a_miscalibrated_segment(loans, call):
    rows = ["loans.csv", "-y", "event", "-p", "score", "--max-ece", "0.9", *QUICK]
    call("check", *rows)
    text = call("check", *rows, "--audit", "age,region", "--json", "c.json", "--junit", "j.xml", code=1)
    assert re.search("FAIL  score, (age >= 6|6. <= age)", text)
    assert "it underestimates: predicted" in text
    found = json.loads(Path("c.json").read_text())
    assert found["audits"]["score"]["segments"]
    assert "region = 'south'" in Path("j.xml").read_text()
    text = call("check", "loans.csv", "-y", "price", "--point", "predicted", "--audit", "age,region", *QUICK)
    assert "PASS  predicted, segments" in text
    call("check", "loans.csv", "-y", "price", "--mean", "predicted", "--sd", "score", "--audit", "age", *QUICK, code=2)
