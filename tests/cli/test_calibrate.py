"""`calibrant fit`, `calibrant apply` and `calibrant export`."""

import csv
import gzip
import json
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
maps = pytest.importorskip("calibrant.calibrators.maps")

FEW = ("--resamples", "39")


def test_fit_takes_weights_and_frequencies(scores, call):
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
    text = call("fit", "scores.csv", "-y", "y", "-p", "p", "--method", "platt", "-o", "cal.json")
    before, after = (float(part.split()[0]) for part in text.split("ACE: ")[1].split(", "))
    assert before == pytest.approx(float(cb.metrics.ace(scores["y"], scores["p"])), abs=1e-5)
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
    given = ["scores.csv", "-y", "y", "-p", "p", "-o", "cal.json"]
    assert words in call("fit", *given, *arguments, code=2)
    assert not Path("cal.json").exists()


def test_settings_and_costs_reach_the_method(scores, call):
    given = ["scores.csv", "-y", "y", "-p", "p", "--force", "-o", "cal.json"]
    call("fit", *given, "--method", "binning_average", "--set", "n_bins=4")
    assert cb.load("cal.json").n_bins == 4
    call("fit", *given, "--method", "cats", "--cost", "1:5")
    assert cb.load("cal.json").cost == cb.costs.LinearCost(over=1, under=5)


def test_the_methods_are_all_calibrators():
    from calibrant.calibrators.registry import RECALIBRATORS
    from calibrant.cli.calibrate import METHODS

    known = {**cb.calibrators.CALIBRATORS, **{f"{name} of points": each for name, each in RECALIBRATORS.items()}}
    of_classes = {"vector", "matrix", "dirichlet"}  # which take probabilities of ordered classes too
    for kind, names in METHODS.items():
        expected = {name.removesuffix(" of points") for name, each in known.items() if each.kind == kind}
        assert set(names) - {"auto"} == (expected | of_classes if kind == "ordinal" else expected)


def test_auto_chooses_a_calibrator_that_improves_the_scores(scores, call):
    given = ["scores.csv", "-y", "y", "-p", "p", "--method", "auto", "-o", "cal.json"]
    text = call("fit", *given, "--set", "n_resamples=499")
    auto = cb.AutoCalibrator().fit(scores["p"], scores["y"])
    assert auto.chosen_ != "uncalibrated"
    assert text.startswith(str(auto.ranking_))
    assert f"{type(auto.calibrator_).__name__} fitted to 1,000 rows: cal.json" in text
    assert maps.to_dict(cb.load("cal.json").map_) == maps.to_dict(auto.calibrator_.map_)
    assert "warning" not in text


def test_auto_leaves_calibrated_scores_alone(scores, call):
    text = call("fit", "scores.csv", "-y", "y", "-p", "q", "--method", "auto", "-o", "cal.json")
    assert text.startswith("Verdict: leave it alone: no calibrator is shown to improve the log loss\n")
    assert text.endswith("No file is written.\n")
    assert not Path("cal.json").exists()


def test_auto_takes_costs_frequencies_and_settings(scores, call):
    given = ["scores.parquet", "-y", "y", "-p", "p", "--method", "auto", "--set", "cv=3", "-o", "cal.json", "--force"]
    text = call("fit", *given, "--frequency", "w", "--cost", "1:5")
    rows = pq.read_table("scores.parquet")
    y, p, w = (np.asarray(rows.column(name)) for name in "ypw")
    scoring = cb.metrics.ECC(cost=cb.costs.LinearCost(over=1, under=5))
    auto = cb.AutoCalibrator(cv=3, scoring=scoring).fit(np.repeat(p, w), np.repeat(y, w))
    assert str(auto.ranking_) in text
    assert "auto has no parameter 'folds'; it has alpha" in call("fit", *given, "--set", "folds=3", code=2)


def test_frequencies_of_too_many_rows_are_refused_before_rows_are_repeated(here, call):
    Path("rows.csv").write_text("y,p,w\n0,0.2,7000000000\n1,0.7,1\n1,0.9,1\n")
    text = call("fit", "rows.csv", "-y", "y", "-p", "p", "--frequency", "w", "--method", "auto", "-o", "c.json", code=2)
    assert (
        "--frequency must add up to at most 134,217,728 rows, which are resampled one by one; got 7,000,000,002. "
        in text
    )


def test_auto_takes_class_probabilities(forecasts, call):
    given = ["forecasts.csv", "-y", "animal", "--method", "auto", "--set", 'calibrators=["vector", "dirichlet"]']
    columns = [f"{name}=sharp_{name}" for name in ("cat", "ant", "bee")]  # the ranking has the order of the labels
    text = call("fit", *given, *(part for each in columns for part in ("--class-score", each)), "-o", "cal.json")
    proba = np.column_stack([forecasts[f"sharp_{name}"] for name in ("ant", "bee", "cat")])
    auto = cb.AutoCalibrator(calibrators=["vector", "dirichlet"]).fit(proba, forecasts["animal"])
    assert text.startswith(str(auto.ranking_))
    assert auto.chosen_ in ("vector", "dirichlet")
    assert np.array_equal(cb.load("cal.json")(proba), auto.calibrator_(proba))
    text = call("fit", *given, "--class-score", "p_*", "-o", "no.json")
    assert "leave it alone" in text
    assert not Path("no.json").exists()


def test_a_fit_that_raises_the_brier_score_gives_a_warning(here, call):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    lines = [f"{int(event)},{score},{score**3}" for event, score in zip(y, p, strict=True)]
    Path("few.csv").write_text("\n".join(["y,p,cubed", *lines]))
    warned = []
    for column in ("p", "cubed"):
        text = call("fit", "few.csv", "-y", "y", "-p", column, "-o", f"{column}.json")
        before, after = map(float, re.search("Brier score: (\\S+) before, (\\S+) after", text).groups())
        warned.append("warning: the calibrator raises the cross-fitted Brier score. Keep the forecasts" in text)
        assert warned[-1] == (after > before)
    assert warned == [True, False]


@pytest.mark.parametrize(
    ("options", "calibrator"),
    [
        ("-y animal --class-score sharp_*", "SoftmaxTemperature"),
        ("-y animal --class-score sharp_* --method one_vs_rest --set calibrator=platt", "OneVsRest"),
        ("-y animal --ordinal-score sharp_*", "Cumulative"),
        ("-y animal --ordinal-score sharp_* --method cumulative --set calibrator=beta", "Cumulative"),
        ("-y animal --ordinal-score sharp_* --method vector", "VectorScaling"),
        ("-y price --point high", "LinearRecalibrator"),
        ("-y price --point high --method local", "LocalRecalibrator"),
        ("-y price --point high --method cost --cost 1:5", "CostRecalibrator"),
    ],
)
def test_other_kinds_are_fitted(forecasts, call, options, calibrator):
    text = call("fit", "forecasts.parquet", *options.split(), "-o", "cal.json")
    assert text.startswith(f"{calibrator} fitted to 2,000 rows: cal.json\n")
    assert type(cb.load("cal.json")).__name__ == calibrator


def test_fitted_maps_of_other_kinds_equal_those_of_the_library(forecasts, call):
    labels = ["ant", "bee", "cat"]
    proba = np.column_stack([forecasts[f"sharp_{name}"] for name in labels])
    frequency = forecasts["count"]
    text = call(
        *("fit", "forecasts.csv", "-y", "animal", "--class-score", "sharp_*", "--method", "vector"),
        *("--frequency", "count", "-o", "cal.json"),
    )
    expected = cb.calibrators.VectorScaling().fit(proba, forecasts["animal"], sample_weight=frequency)
    assert np.array_equal(cb.load("cal.json")(proba), expected(proba))
    before = cb.evaluate(forecasts["animal"], proba, classes=labels, frequency=frequency, n_resamples=19)
    assert f"Brier score: {before['Brier'].value:.5f} before, " in text
    assert f"log loss: {before['log loss'].value:.5f} before, " in text
    text = call("fit", "forecasts.csv", "-y", "price", "--point", "high", "-o", "cal.json", "--force")
    expected = cb.regression.LinearRecalibrator().fit(forecasts["high"], forecasts["price"])
    assert np.array_equal(cb.load("cal.json")(forecasts["high"]), expected(forecasts["high"]))
    assert f"MSE: {cb.regression.mse(forecasts['price'], forecasts['high']):.5g} before, " in text


def test_rows_with_missing_values_are_dropped_before_a_fit(here, call):
    rows = [(i % 3, (i * 7 % 10) / 10, 1 - (i * 7 % 10) / 10) for i in range(60)]
    lines = [f"{'ab'[y > 0]},{a},{'' if i in (3, 5) else b},1" for i, (y, a, b) in enumerate(rows)]
    Path("a.csv").write_text("\n".join(["y,a,b,w", *lines, "a,0.5,0.5,"]))
    given = ("a.csv", "-y", "y", "--class-score", "a=a", "--class-score", "b=b", "-w", "w", "-o", "cal.json")
    assert "b in a.csv has 2 missing values (first at row 3). Pass --missing drop" in call("fit", *given, code=2)
    text = call("fit", *given, "--missing", "drop")
    assert "SoftmaxTemperature fitted to 58 rows" in text
    assert "note: Rows dropped because a value is missing: 3." in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-y price --point high --method platt", "--method must be one of linear, isotonic, local, cost with --point;"),
        ("-y price --point high --method auto", "--method must be one of linear, isotonic, local, cost with --point;"),
        ("-y animal --class-score p_* --method platt", "--method must be one of softmax_temperature, structured"),
        ("-y animal --class-score p_* --class-score sharp_*", "fit needs one forecast; got 2."),
        ("-y price --point high --point right", "fit needs one forecast; got 2."),
        ("-y price", "--score, --class-score, --ordinal-score or --point must be given; got none of them."),
        ("-y price --mean right --sd sd", "No such option"),
    ],
)
def test_fits_that_do_not_fit_the_kind_are_errors(forecasts, call, options, words):
    assert words in call("fit", "forecasts.csv", *options.split(), "-o", "cal.json", code=2)
    assert not Path("cal.json").exists()


def test_rows_with_a_missing_score_get_a_missing_probability(here, call):
    rows = [(i % 2, "" if i == 7 else f"{i / 40:.3f}", "NA") for i in range(40)]
    Path("s.csv").write_text("y,p,note\n" + "".join(f"{y},{p},{note}\n" for y, p, note in rows))
    assert "dropped because a value is missing: 1" in call(
        "fit", "s.csv", "-y", "y", "-p", "p", "-o", "cal.json", "--missing", "drop"
    )
    text = call("apply", "cal.json", "s.csv", "-p", "p", "-o", "out.jsonl", "--name", "c")
    assert "Rows with a missing score, whose calibrated score is missing too: 1." in text
    found = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert found[7] == {"y": "1", "p": "", "note": "NA", "c": None}
    assert found[8]["note"] == "NA"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cal.json", "none.csv", "-p", "p", "-o", "o.csv"], "There is no file 'none.csv'"),
        (["none.json", "scores.csv", "-p", "p", "-o", "o.csv"], "There is no file 'none.json'"),
        (
            ["scores.csv", "scores.csv", "-p", "p", "-o", "o.csv"],
            "scores.csv is not a calibrator",
        ),
        (["cal.json", "scores.csv", "-p", "x", "-o", "o.csv"], "scores.csv has no column 'x'"),
        (["cal.json", "scores.csv", "-p", "g", "-o", "o.csv"], "must hold numbers; row 0 is"),
        (["cal.json", "scores.csv", "-p", "p", "--name", "q", "-o", "o.csv"], "has a column 'q' already"),
        (["cal.json", "scores.csv", "-p", "p", "--name", "", "-o", "o.csv"], "--name must hold at least one character"),
        (["cal.json", "scores.csv", "-p", "p", "--name", "a\nb", "-o", "o.csv"], "characters; got 'a\\nb'."),
        (["cal.json", "scores.csv", "-p", "p", "-o", "o.xlsx"], "Use .parquet, .csv or .jsonl"),
        (["cal.json", "scores.csv", "-p", "p", "-o", "scores.jsonl"], "'scores.jsonl' exists already. Pass --force"),
        (["cal.json", "scores.csv", "-p", "p", "-o", "scores.csv"], "must not be an input; 'scores.csv' is one."),
        (["cal.json", "ragged.csv", "-p", "p", "-o", "o.csv"], "ragged.csv, line 3 cannot be read: it has 3 cells"),
    ],
)
def test_invalid_applications_are_refused(scores, call, arguments, words):
    cb.save(cb.Platt().fit(scores["p"], scores["y"]), "cal.json")
    Path("ragged.csv").write_text("y,p\n0,0.1\n1,0.2,3\n")
    assert words in call("apply", *arguments, code=2)
    assert not Path("o.csv").exists()
    assert not [name for name in os.listdir() if name.startswith(".")]


def test_apply_keeps_existing_columns(here, call):
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), "cal.json")
    objects = [
        {"p": 0.5, "day": "2020-01-01T10:00:00Z", "id": 9007199254740993, "deep": {"a": [1, 2.5, None]}},
        {"p": None, "other": True},
        {"p": 1},
    ]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, objects)))
    call("apply", "cal.json", "a.jsonl", "-p", "p", "-o", "b.jsonl", "--name", "c")
    found = [json.loads(line) for line in Path("b.jsonl").read_text().splitlines()]
    assert [{k: v for k, v in row.items() if k != "c"} for row in found] == objects
    assert found[1]["c"] is None
    text = 'id;p;"a ""b"""\n007;0.5;"x;\ny"\n1_0;1e-1;" z "\n'
    Path("a.tsv").write_text(text)
    Path("a.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    for file in ("a.tsv", "a.csv.gz"):
        call("apply", "cal.json", file, "-p", "p", "-o", "b.csv", "--force")
        with Path("b.csv").open(newline="") as read:
            cells = [row[:3] for row in csv.reader(read)]
        assert cells == [["id", "p", 'a "b"'], ["007", "0.5", "x;\ny"], ["1_0", "1e-1", " z "]]
    table = pa.table({"p": pa.array([0.5, None], pa.float32()), "t": [[1], []], "b": [b"x", b""]})
    pq.write_table(table, "a.parquet")
    call("apply", "cal.json", "a.parquet", "-p", "p", "-o", "b.parquet")
    assert pq.read_table("b.parquet").drop_columns(["calibrated"]) == table
    assert "JSON cannot hold 'b', which has values of type bytes" in call(
        "apply", "cal.json", "a.parquet", "-p", "p", "-o", "c.jsonl", code=2
    )
    assert "CSV cannot hold 't'" in call("apply", "cal.json", "a.parquet", "-p", "p", "-o", "c.csv", code=2)
    Path("odd.csv").write_text("p\n0.5\n\n0.1_5\n")
    assert "row 2 is '0.1_5'" in call("apply", "cal.json", "odd.csv", "-p", "p", "-o", "c.csv", code=2)
    Path("far.csv").write_text("p,q\n0.5,1\nNA,1\n7,1\n")
    assert "p in far.csv must lie in [0, 1]; 1 of 3 values do not, the first at row 2 is 7" in call(
        "apply", "cal.json", "far.csv", "-p", "p", "-o", "c.csv", code=2
    )


def test_lines_of_json_keep_their_text(here, call):
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), "cal.json")
    lines = ['{"p":0.20,"x":1e400,"amount":12345678901234567.89, "e": "\\u00e9}" }', "{}", '{"p": null, "n": NaN}']
    Path("a.jsonl").write_text("\r\n\n".join(lines))
    call("apply", "cal.json", "a.jsonl", "-p", "p", "-o", "b.jsonl", "--name", "c")
    found = Path("b.jsonl").read_text().splitlines()
    assert found[0].startswith(lines[0][:-2] + ', "c": 0.')
    assert found[1:] == ['{"c": null}', '{"p": null, "n": NaN, "c": null}']
    assert 0 < json.loads(found[0])["c"] < 1


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_clipped_scores_are_counted_without_a_warning(here, call, monkeypatch, kind):
    monkeypatch.setattr("calibrant.export.scored_files._BATCH", 2)
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), "cal.json")
    scores = [1.0000001, 0.5, -1e-7, 1.0, 0.0]
    Path("a.csv").write_text("p\n" + "".join(f"{p}\n" for p in scores))
    Path("a.jsonl").write_text("".join(json.dumps({"p": p}) + "\n" for p in scores))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = call("apply", "cal.json", f"a.{kind}", "-p", "p", "-o", "b.jsonl")
    assert text == "5 rows: b.jsonl\nScores outside [0, 1] by at most 1e-06, which were clipped: 2.\n"
    found = [json.loads(line)["calibrated"] for line in Path("b.jsonl").read_text().splitlines()]
    assert (found[0], found[2]) == (found[3], found[4])


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_rows_are_counted_from_the_start_of_the_file(here, call, monkeypatch, kind):
    monkeypatch.setattr("calibrant.export.scored_files._BATCH", 4)
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), "cal.json")
    scores = [0.5, None, *[0.5] * 7, 7.0, 0.5, 0.5]
    if kind == "parquet":
        pq.write_table(pa.table({"p": scores}), "a.parquet")
    elif kind == "csv":
        Path("a.csv").write_text("p,q\n" + "".join(f"{'' if p is None else p},1\n" for p in scores))
    else:
        Path("a.jsonl").write_text("".join(json.dumps({"p": p}) + "\n" for p in scores))
    text = call("apply", "cal.json", f"a.{kind}", "-p", "p", "-o", "out.jsonl", code=2)
    assert f"p in a.{kind} must lie in [0, 1]; " in text
    assert "the first at row 9 is 7." in text


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_class_probabilities_are_calibrated_as_by_the_library(forecasts, call, kind):
    proba = np.column_stack([forecasts[f"sharp_{name}"] for name in ("ant", "bee", "cat")])
    fitted = cb.calibrators.Dirichlet().fit(proba, forecasts["animal"], classes=["ant", "bee", "cat"])
    call("fit", "forecasts.csv", "-y", "animal", "--class-score", "sharp_*", "--method", "dirichlet", "-o", "cal.json")
    given = ("--class-score", "cat=sharp_cat", "--class-score", "ant=sharp_ant", "--class-score", "bee=sharp_bee")
    text = call("apply", "cal.json", f"forecasts.{kind}", *given, "-o", f"out.{kind}", "--name", "new")
    assert text == f"2,000 rows: out.{kind}\n"
    options = (f"out.{kind}", "-y", "animal", "--class-score", "new_*", "--resamples", "19", "--json", "-")
    found = json.loads(call("evaluate", *options))["models"]["new_*"]
    expected = cb.evaluate(forecasts["animal"], fitted(proba), classes=["ant", "bee", "cat"], n_resamples=19)
    assert found["metrics"] == json.loads(expected.to_json())["metrics"]


@pytest.mark.parametrize("method", ["cumulative", "vector"])
def test_ordered_classes_are_calibrated_in_their_order(forecasts, call, method):
    labels = ["cat", "ant", "bee"]
    proba = np.column_stack([forecasts[f"sharp_{name}"] for name in labels])
    expected = cb.calibrators.CALIBRATORS[method]().fit(proba, forecasts["animal"], classes=labels)(proba)
    given = [part for name in labels for part in ("--ordinal-score", f"{name}=sharp_{name}")]
    text = call("fit", "forecasts.csv", "-y", "animal", *given, "--method", method, "-o", "cal.json")
    before, after = map(float, re.search(r"RPS: (\S+) before, (\S+) after", text).groups())
    assert after < before
    assert cb.load("cal.json").classes_.tolist() == labels
    call("apply", "cal.json", "forecasts.csv", *given[2:], *given[:2], "-o", "out.parquet")
    table = pq.read_table("out.parquet")
    assert np.array_equal(np.column_stack([table[f"calibrated_{name}"] for name in labels]), expected)


def test_numbers_of_classes_name_the_classes_of_a_calibrator(forecasts, call):
    given = ("--class-score", "0=p_ant", "--class-score", "1=p_bee", "--class-score", "2=p_cat")
    call("fit", "forecasts.csv", "-y", "digit", *given, "-o", "cal.json")
    call("apply", "cal.json", "forecasts.parquet", *given, "-o", "out.parquet")
    assert [name for name in pq.read_schema("out.parquet").names if name.startswith("calibrated")] == [
        "calibrated_0",
        "calibrated_1",
        "calibrated_2",
    ]


def test_point_predictions_are_recalibrated_as_by_the_library(forecasts, call):
    fitted = cb.regression.LinearRecalibrator().fit(forecasts["high"], forecasts["price"])
    call("fit", "forecasts.csv", "-y", "price", "--point", "high", "-o", "cal.json")
    call("apply", "cal.json", "forecasts.csv", "--point", "high", "-o", "out.parquet")
    assert np.array_equal(np.asarray(pq.read_table("out.parquet")["calibrated"]), fitted(forecasts["high"]))


def test_a_missing_class_probability_gives_missing_ones(here, call):
    proba = np.random.default_rng(0).dirichlet([1, 1], 60)
    cb.save(cb.calibrators.SoftmaxTemperature().fit(proba, ["a", "b"] * 30), "cal.json")
    Path("new.csv").write_text("a,b\n0.5,0.5\n0.2,NA\n")
    given = ("--class-score", "a=a", "--class-score", "b=b")
    text = call("apply", "cal.json", "new.csv", *given, "-o", "out.jsonl")
    assert "Rows with a missing score, whose calibrated score is missing too: 1." in text
    found = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [list(row)[2:] for row in found] == [["calibrated_a", "calibrated_b"]] * 2
    assert found[1]["calibrated_a"] is found[1]["calibrated_b"] is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-p p_ant", "CALIBRATOR must be fitted with --score; got SoftmaxTemperature"),
        ("--class-score p_*", "--class-score must name classes of the calibrator, which are ant, bee, cat; got 'x'."),
        (
            "--class-score ant=p_ant --class-score bee=p_bee",
            "must name each class of the calibrator; got none of 'cat'",
        ),
        (
            "--class-score far_*",
            "far_cat in new.csv must lie in [0, 1]; 1 of 2 values do not, the first at row 1 is 3.",
        ),
        ("--class-score sum_*", "The class probabilities in new.csv must sum to 1 in each row; row 1 has 1.5."),
        ("--class-score z_*", "--class-score must match columns; 'z_*' matches none of 'p_ant'"),
        ("", "--score, --class-score, --ordinal-score or --point must be given; got none of them."),
    ],
)
def test_class_probabilities_that_do_not_fit_are_errors(forecasts, call, options, words):
    proba = np.column_stack([forecasts[f"p_{name}"] for name in ("ant", "bee", "cat")])
    cb.save(cb.calibrators.SoftmaxTemperature().fit(proba, forecasts["animal"]), "cal.json")
    names = [*(f"{kind}_{name}" for kind in ("p", "far", "sum") for name in ("ant", "bee", "cat")), "p_x"]
    rows = [[0.2, 0.3, 0.5] * 3, [0.2, 0.3, 0.5, 0.2, 0.3, 3, 0.5, 0.5, 0.5]]
    Path("new.csv").write_text("\n".join([",".join(names), *(",".join(map(str, [*row, 0])) for row in rows)]))
    assert words in call("apply", "cal.json", "new.csv", *options.split(), "-o", "out.csv", code=2)
    assert not Path("out.csv").exists()


def test_predictions_outside_the_domain_are_errors(here, call):
    """Predictions may be any finite number; scores of an event must be probabilities."""
    cb.save(cb.regression.LinearRecalibrator().fit(np.arange(20.0), np.arange(20.0) + 1), "point.json")
    cb.save(cb.Isotonic().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), "score.json")
    Path("new.csv").write_text("x,q\n-5,0.5\n1e6,0.5\ninf,1.5\n")
    Path("finite.csv").write_text("x\n-5\n1e6\n")
    assert "2 rows" in call("apply", "point.json", "finite.csv", "--point", "x", "-o", "out.csv")
    text = call("apply", "score.json", "new.csv", "--score", "q", "-o", "no.csv", code=2)
    assert "q in new.csv must lie in [0, 1]; 1 of 3 values do not, the first at row 2 is 1.5." in text
    text = call("apply", "score.json", "finite.csv", "--score", "x", "-o", "no.csv", code=2)
    assert "x in finite.csv must lie in [0, 1]; 2 of 2 values do not, the first at row 0 is -5." in text
    assert "row 2 is inf" in call("apply", "point.json", "new.csv", "--point", "x", "-o", "no.csv", code=2)


def test_recalibrators_of_distributions_are_not_applied_to_files(forecasts, call):
    forecast = cb.Gaussian(forecasts["right"], forecasts["small"])
    cb.save(cb.regression.VarianceScaling().fit(forecast, forecasts["price"]), "cal.json")
    text = call("apply", "cal.json", "forecasts.csv", "--point", "right", "-o", "out.csv", code=2)
    assert "CALIBRATOR must be fitted with --point; got VarianceScaling, which takes forecasts of kind" in text


def test_cells_up_to_one_mebibyte_are_kept(here, call):
    """The same limit as in the other commands; Python's reader of CSV alone refuses cells of 128 KiB."""
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), "cal.json")
    Path("a.csv").write_text(f"p,t\n0.5,{'x' * 900_000}\n")
    call("apply", "cal.json", "a.csv", "-p", "p", "-o", "b.jsonl")
    assert json.loads(Path("b.jsonl").read_text())["t"] == "x" * 900_000
    Path("a.csv").write_text(f"p,t\n0.5,{'x' * 1_100_000}\n")
    text = call("apply", "cal.json", "a.csv", "-p", "p", "-o", "c.jsonl", code=2)
    assert "line 2 cannot be read: the cell of 't' must have at most 1,048,576 bytes" in text


@pytest.mark.skipif(os.name != "posix", reason="names of files are text on this system")
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_the_name_of_an_output_need_not_be_utf_8(here, call, kind):
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), here / "cal.json")
    (here / "in.csv").write_text("p\n0.5\n")
    name = os.fsdecode(b"x\xe9." + kind.encode())
    call("apply", "cal.json", "in.csv", "-p", "p", "-o", name)
    assert "must be UTF-8" in call("apply", "cal.json", name, "-p", "calibrated", "-o", "o.csv", code=2)
    (here / name).rename(here / f"in.{kind}")
    assert "1 rows" in call("apply", "cal.json", f"in.{kind}", "-p", "calibrated", "--name", "again", "-o", "o.csv")


def test_export_gives_sql_and_onnx(scores, call):
    pytest.importorskip("onnx", reason="onnx is not installed")
    calibrator = cb.Platt().fit(scores["p"], scores["y"])
    cb.save(calibrator, "cal.json")
    text = call("export", "cal.json", "--sql", "--column", "p", "--dialect", "spark")
    assert text.strip() == cb.to_sql(calibrator, "p", dialect="spark")
    call("export", "cal.json", "--onnx", "cal.onnx")
    assert Path("cal.onnx").read_bytes() == cb.to_onnx(calibrator).SerializeToString()
    assert "--sql or --onnx must be given; got neither." in call("export", "cal.json", code=2)


def test_export_of_several_classes_takes_one_column_per_class(here, call):
    import duckdb

    proba = np.random.default_rng(0).dirichlet([1, 1, 1], 90)
    calibrator = cb.calibrators.SoftmaxTemperature().fit(proba, np.array(["cat", "dog", "eel"])[np.arange(90) % 3])
    cb.save(calibrator, "cal.json")
    given = ("export", "cal.json", "--sql")
    text = call(*given, "--column", "a", "--column", "b", "--column", "c")
    source = f"(SELECT {proba[0, 0]!r} AS a, {proba[0, 1]!r} AS b, {proba[0, 2]!r} AS c)".replace("np.float64", "")
    answer = duckdb.sql(f"SELECT {text} FROM {source}")
    assert answer.columns == ["cat", "dog", "eel"]
    np.testing.assert_allclose(answer.fetchall()[0], calibrator(proba[:1])[0], rtol=1e-12)
    words = "--column must name one column for each of the classes ['cat', 'dog', 'eel']; got ('score',)."
    assert words in call(*given, code=2)


def test_export_of_one_score_takes_one_column(scores, call):
    cb.save(cb.Platt().fit(scores["p"], scores["y"]), "cal.json")
    text = call("export", "cal.json", "--sql", "--column", "a", "--column", "b", code=2)
    assert "--column must be the name of one column for Platt; got ('a', 'b')." in text


def test_a_fitted_map_of_point_predictions_is_exported(forecasts, call):
    import duckdb

    call("fit", "forecasts.csv", "-y", "price", "--point", "high", "--method", "isotonic", "-o", "cal.json")
    text = call("export", "cal.json", "--sql", "--column", "high")
    found = duckdb.sql(f"SELECT {text} AS c FROM 'forecasts.parquet'").fetchnumpy()["c"]
    expected = cb.regression.IsotonicRecalibrator().fit(forecasts["high"], forecasts["price"])(forecasts["high"])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
