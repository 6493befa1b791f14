"""`calibrant apply`."""

import csv
import gzip
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")


def test_rows_with_a_missing_score_get_a_missing_probability(here, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
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
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    cb.save(cb.Platt().fit(scores["p"], scores["y"]), "cal.json")
    Path("ragged.csv").write_text("y,p\n0,0.1\n1,0.2,3\n")
    assert words in call("apply", *arguments, code=2)
    assert not Path("o.csv").exists()
    assert not [name for name in os.listdir() if name.startswith(".")]


def test_apply_keeps_existing_columns(here, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
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
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
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
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
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
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
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
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    proba = np.column_stack([forecasts[f"sharp_{name}"] for name in ("ant", "bee", "cat")])
    fitted = cb.Dirichlet().fit(proba, forecasts["animal"], classes=["ant", "bee", "cat"])
    call("fit", "forecasts.csv", "-y", "animal", "--class-score", "sharp_*", "--method", "dirichlet", "-o", "cal.json")
    given = ("--class-score", "cat=sharp_cat", "--class-score", "ant=sharp_ant", "--class-score", "bee=sharp_bee")
    text = call("apply", "cal.json", f"forecasts.{kind}", *given, "-o", f"out.{kind}", "--name", "new")
    assert text == f"2,000 rows: out.{kind}\n"
    options = (f"out.{kind}", "-y", "animal", "--class-score", "new_*", "--resamples", "19", "--json", "-")
    found = json.loads(call("evaluate", *options))["models"]["new_*"]
    expected = cb.evaluate(forecasts["animal"], fitted(proba), classes=["ant", "bee", "cat"], n_resamples=19)
    assert found["metrics"] == json.loads(expected.to_json())["metrics"]


def test_numbers_of_classes_name_the_classes_of_a_calibrator(forecasts, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    given = ("--class-score", "0=p_ant", "--class-score", "1=p_bee", "--class-score", "2=p_cat")
    call("fit", "forecasts.csv", "-y", "digit", *given, "-o", "cal.json")
    call("apply", "cal.json", "forecasts.parquet", *given, "-o", "out.parquet")
    assert [name for name in pq.read_schema("out.parquet").names if name.startswith("calibrated")] == [
        "calibrated_0",
        "calibrated_1",
        "calibrated_2",
    ]


def test_point_predictions_are_recalibrated_as_by_the_library(forecasts, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    fitted = cb.regression.LinearRecalibrator().fit(forecasts["high"], forecasts["price"])
    call("fit", "forecasts.csv", "-y", "price", "--point", "high", "-o", "cal.json")
    call("apply", "cal.json", "forecasts.csv", "--point", "high", "-o", "out.parquet")
    assert np.array_equal(np.asarray(pq.read_table("out.parquet")["calibrated"]), fitted(forecasts["high"]))


def test_a_missing_class_probability_gives_missing_ones(here, call):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    proba = np.random.default_rng(0).dirichlet([1, 1], 60)
    cb.save(cb.SoftmaxTemperature().fit(proba, ["a", "b"] * 30), "cal.json")
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
        ("", "--score, --class-score or --point must be given; got none of them."),
    ],
)
def test_class_probabilities_that_do_not_fit_are_errors(forecasts, call, options, words):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    proba = np.column_stack([forecasts[f"p_{name}"] for name in ("ant", "bee", "cat")])
    cb.save(cb.SoftmaxTemperature().fit(proba, forecasts["animal"]), "cal.json")
    names = [*(f"{kind}_{name}" for kind in ("p", "far", "sum") for name in ("ant", "bee", "cat")), "p_x"]
    rows = [[0.2, 0.3, 0.5] * 3, [0.2, 0.3, 0.5, 0.2, 0.3, 3, 0.5, 0.5, 0.5]]
    Path("new.csv").write_text("\n".join([",".join(names), *(",".join(map(str, [*row, 0])) for row in rows)]))
    assert words in call("apply", "cal.json", "new.csv", *options.split(), "-o", "out.csv", code=2)
    assert not Path("out.csv").exists()


def test_predictions_outside_the_domain_are_errors(here, call):
    """Predictions may be any finite number; scores of an event must be probabilities."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
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
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    forecast = cb.Gaussian(forecasts["right"], forecasts["small"])
    cb.save(cb.regression.VarianceScaling().fit(forecast, forecasts["price"]), "cal.json")
    text = call("apply", "cal.json", "forecasts.csv", "--point", "right", "-o", "out.csv", code=2)
    assert "CALIBRATOR must be fitted with --point; got VarianceScaling, which takes forecasts of kind" in text


def test_cells_up_to_one_mebibyte_are_kept(here, call):
    """The same limit as in the other commands; Python's reader of CSV alone refuses cells of 128 KiB."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
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
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    cb.save(cb.Platt().fit([0.1, 0.9, 0.4, 0.6] * 9, [0, 1, 1, 0] * 9), here / "cal.json")
    (here / "in.csv").write_text("p\n0.5\n")
    name = os.fsdecode(b"x\xe9." + kind.encode())
    call("apply", "cal.json", "in.csv", "-p", "p", "-o", name)
    assert "must be UTF-8" in call("apply", "cal.json", name, "-p", "calibrated", "-o", "o.csv", code=2)
    (here / name).rename(here / f"in.{kind}")
    assert "1 rows" in call("apply", "cal.json", f"in.{kind}", "-p", "calibrated", "--name", "again", "-o", "o.csv")
