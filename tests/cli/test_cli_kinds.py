"""Every kind of forecast on the command line."""

import json
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import calibrant as cb
from calibrant.kinds import base
from calibrant.kinds.base import forecast_kind

for library in ("click", "rich", "duckdb", "pyarrow"):
    pytest.importorskip(library, reason=f"{library} is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

FEW = ("--resamples", "39")
ANIMALS = ["ant", "bee", "cat"]


def matrix(columns, pattern):
    before, after = pattern.split("*")
    return np.column_stack([values for name, values in columns.items() if name.startswith(before) and after in name])


def without_notes(value):
    if isinstance(value, dict):
        return {key: without_notes(each) for key, each in value.items() if key != "notes"}
    return [without_notes(each) for each in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Case:
    """The options of calibrated and of miscalibrated forecasts, and the same forecast in Python."""

    options: str
    wrong: str
    name: str
    outcome: str
    forecast: object
    keywords: tuple = ()
    margin: str = "0.5"

    def evaluate(self, columns, **options):
        return cb.evaluate(
            columns[self.outcome], self.forecast(columns), n_resamples=39, **dict(self.keywords), **options
        )


CASES = {
    "class patterns": Case(
        "-y animal --class-score p_*",
        "-y animal --class-score sharp_*",
        "p_*",
        "animal",
        lambda c: matrix(c, "p_*"),
        (("classes", ANIMALS),),
    ),
    "class columns": Case(
        "-y digit --class-score 0=p_ant --class-score 1=p_bee --class-score 2=p_cat",
        "-y digit --class-score 0=sharp_ant --class-score 1=sharp_bee --class-score 2=sharp_cat",
        "class probabilities",
        "digit",
        lambda c: matrix(c, "p_*"),
    ),
    "ordered classes": Case(
        "-y animal --ordinal-score cat=p_cat --ordinal-score ant=p_ant --ordinal-score bee=p_bee",
        "-y animal --ordinal-score cat=sharp_cat --ordinal-score ant=sharp_ant --ordinal-score bee=sharp_bee",
        "class probabilities",
        "animal",
        lambda c: cb.Ordinal(np.column_stack([c["p_cat"], c["p_ant"], c["p_bee"]]), classes=["cat", "ant", "bee"]),
    ),
    "ordered class patterns": Case(
        "-y animal --ordinal-score p_*",
        "-y animal --ordinal-score sharp_*",
        "p_*",
        "animal",
        lambda c: cb.Ordinal(matrix(c, "p_*"), classes=ANIMALS),
        margin="2",
    ),
    "labels": Case(
        "-y animal --predicted-label fair",
        "-y animal --predicted-label unfair",
        "fair",
        "animal",
        lambda c: cb.Labels(c["fair"]),
    ),
    "digits": Case(
        "-y digit --predicted-label fair_digit",
        "-y digit --predicted-label shop",
        "fair_digit",
        "digit",
        lambda c: cb.Labels(c["fair_digit"]),
    ),
    "point": Case("-y price --point right", "-y price --point high", "right", "price", lambda c: cb.Point(c["right"])),
    "gaussian": Case(
        "-y price --mean right --sd sd",
        "-y price --mean right --sd small",
        "right",
        "price",
        lambda c: cb.Gaussian(c["right"], c["sd"]),
    ),
    "quantile patterns": Case(
        "-y price --quantile q*",
        "-y price --quantile narrow*",
        "q*",
        "price",
        lambda c: cb.Quantiles([0.1, 0.5, 0.9], matrix(c, "q0*")),
    ),
    "quantile columns": Case(
        "-y price --quantile 0.9=q0.9 --quantile 0.1=q0.1 --quantile 0.5=q0.5",
        "-y price --quantile 0.1=narrow0.1 --quantile 0.9=narrow0.9",
        "quantiles",
        "price",
        lambda c: cb.Quantiles([0.1, 0.5, 0.9], matrix(c, "q0*")),
    ),
    "samples": Case(
        "-y price --sample m_*",
        "-y price --sample tight_*",
        "m_*",
        "price",
        lambda c: cb.Samples(matrix(c, "m_*")),
    ),
}
# Other spellings of the same columns give the same forecasts, which test_results_equal_those_of_the_library shows.
KINDS = [kind for kind in CASES if kind not in ("class columns", "ordered classes", "digits", "quantile columns")]


def test_every_kind_of_the_registry_has_a_case(forecasts):
    """Scores of an event have the other tests of commands."""
    assert {forecast_kind(None, case.forecast(forecasts)) for case in CASES.values()} == {*base.KINDS} - {"binary"}


def kinds_and_files():
    """Yield each kind with each format of files; one format per kind is fast, and each format is read for three."""
    files = ("forecasts.csv", "forecasts.parquet", "forecasts.jsonl")
    for i, kind in enumerate(CASES):
        for j, file in enumerate(files):
            yield pytest.param(kind, file, marks=() if j == i % 3 else pytest.mark.slow)


@pytest.mark.parametrize(("kind", "file"), list(kinds_and_files()))
def test_results_equal_those_of_the_library(forecasts, call, kind, file):
    case = CASES[kind]
    expected = json.loads(case.evaluate(forecasts).to_json())
    found = json.loads(call("evaluate", file, *case.options.split(), *FEW, "--json", "-"))
    assert found["models"] == {case.name: expected}


@pytest.mark.parametrize("kind", CASES)
def test_the_printed_text_is_that_of_the_library(forecasts, call, kind):
    case = CASES[kind]
    expected = case.evaluate(forecasts, by={"g": forecasts["g"]})
    text = call("evaluate", "forecasts.csv", *case.options.split(), *FEW, "--by", "g")
    assert text.startswith(expected.headline())
    printed = [line.strip() for line in text.splitlines()]
    assert set(filter(None, map(str.strip, str(expected).splitlines()))) <= set(printed)


@pytest.mark.parametrize("kind", CASES)
def test_groups_clusters_and_settings_equal_those_of_the_library(forecasts, call, kind):
    case = CASES[kind]
    options = ("--by", "g", "--cluster", "shop", "--alpha", "0.01", "--confidence-level", "0.9", "--margin", "0.2")
    found = json.loads(call("evaluate", "forecasts.parquet", *case.options.split(), *FEW, *options, "--json", "-"))
    settings = {"alpha": 0.01, "confidence_level": 0.9, "margin": 0.2}
    expected = case.evaluate(forecasts, by={"g": forecasts["g"]}, cluster=forecasts["shop"], **settings)
    assert found["models"][case.name] == json.loads(expected.to_json())


@pytest.mark.parametrize("option", ["sample_weight", "frequency"])
@pytest.mark.parametrize("kind", CASES)
def test_weights_equal_those_of_the_library(forecasts, call, kind, option):
    case = CASES[kind]
    weight = ("--" + option.replace("_", "-"), "count")
    given = ("evaluate", "forecasts.csv", *case.options.split(), *FEW, *weight)
    try:
        expected = json.loads(case.evaluate(forecasts, **{option: forecasts["count"]}).to_json())
    except cb.InputError:  # distributions
        assert f"{weight[0]} must be omitted with predictive distributions" in call(*given, code=2)
        return
    assert json.loads(call(*given, "--json", "-"))["models"][case.name] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_check_fails_for_miscalibrated_forecasts_only(forecasts, call, kind):
    case = CASES[kind]
    call("check", "forecasts.csv", *case.options.split(), *FEW)
    text = call("check", "forecasts.csv", *case.wrong.split(), *FEW, "--junit", "j.xml", "--json", "c.json", code=1)
    assert "must not be miscalibrated; it is miscalibrated" in text
    assert text.startswith("FAIL  ")
    assert json.loads(Path("c.json").read_text())["passed"] is False
    suite = ElementTree.parse("j.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "it is miscalibrated" in suite.find("testcase/failure").get("message")


@pytest.mark.parametrize("kind", KINDS)
def test_require_calibrated_needs_the_margin(forecasts, call, kind):
    case = CASES[kind]
    given = ("check", "forecasts.csv", *case.options.split(), *FEW, "--require", "calibrated")
    assert "PASS" in call(*given, "--margin", case.margin)
    assert "FAIL" in call(*given, "--margin", "1e-6", code=1)


@pytest.mark.parametrize("kind", KINDS)
def test_each_group_must_pass_the_check(forecasts, call, kind):
    case = CASES[kind]
    text = call("check", "forecasts.csv", *case.wrong.split(), *FEW, "--by", "g", code=1)
    assert text.count(", g = ") == 2
    assert "3 of 3 gates failed" in text


@pytest.mark.parametrize("kind", KINDS)
def test_the_gate_is_what_the_evaluation_calls_passed(forecasts, call, kind):
    case = CASES[kind]
    for columns, passed in ((case.options, True), (case.wrong, False)):
        given = ("check", "forecasts.csv", *columns.split(), *FEW, "--by", "g", "--json", "passed.json", "--force")
        call(*given, code=0 if passed else 1)
        found = json.loads(Path("passed.json").read_text())
        assert [model["passed"] for model in found["models"].values()] == [passed] == [found["passed"]]


@pytest.mark.parametrize("kind", CASES)
def test_rows_with_missing_values_are_dropped_as_by_the_library(forecasts, call, kind):
    """Every tenth row has no outcome, and every tenth no forecast."""
    case = CASES[kind]
    table = pq.read_table("forecasts.parquet")
    rows, i = np.arange(2000), table.schema.get_field_index(case.outcome)
    table = table.set_column(i, case.outcome, pa.array(forecasts[case.outcome], mask=rows % 10 == 3))
    used = [part.split("=")[-1] for part in case.options.split()[3::2]]
    first = next(name for name in forecasts if name in used or any(name.startswith(u[:-1]) for u in used if "*" in u))
    i = table.schema.get_field_index(first)
    table = table.set_column(i, first, pa.array(forecasts[first], mask=rows % 10 == 7))
    pq.write_table(table, "holes.parquet")
    given = ("evaluate", "holes.parquet", *case.options.split(), *FEW)
    message = f"{case.outcome} in holes.parquet has 200 missing values (first at row 3). Pass --missing drop"
    assert message in call(*given, code=2)
    found = json.loads(call(*given, "--missing", "drop", "--json", "-"))["models"][case.name]
    kept = np.isin(rows % 10, (3, 7), invert=True)
    expected = json.loads(case.evaluate({name: values[kept] for name, values in forecasts.items()}).to_json())
    counts = {"n_in": 2000, "n_used": 1600, "n_dropped": 400}
    assert {name: found[name] for name in counts} == counts
    assert without_notes(found["metrics"]) == without_notes(expected["metrics"])
    assert found["notes"][0] == {
        "code": "missing",
        "count": 400,
        "text": "Rows dropped because a value is missing: 400.",
    }


def test_several_models_of_one_kind_are_evaluated(forecasts, call):
    given = ("evaluate", "forecasts.csv", *FEW, "--json", "-")
    several = {
        "-y price --point right --point high": ["right", "high"],
        "-y animal --class-score p_* --class-score sharp_*": ["p_*", "sharp_*"],
        "-y animal --ordinal-score p_* --ordinal-score sharp_*": ["p_*", "sharp_*"],
        "-y price --mean right --sd sd --mean high --sd small": ["right", "high"],
        "-y price --quantile q* --quantile narrow*": ["q*", "narrow*"],
        "-y price --sample m_* --sample m_1 --sample m_2": ["samples", "m_*"],
    }
    for options, names in several.items():
        models = json.loads(call(*given, *options.split()))["models"]
        assert list(models) == names
    text = call("evaluate", "forecasts.csv", *FEW, "-y", "price", "--point", "right", "--point", "high")
    assert "right: Verdict: " in text
    assert "high: Verdict: miscalibrated" in text


@pytest.mark.parametrize("kind", ["class patterns", "ordered class patterns", "labels", "point"])
def test_models_are_compared_as_by_the_library(forecasts, call, kind):
    case = CASES[kind]
    wrong = case.wrong.removeprefix(f"-y {case.outcome} ")
    given = ("compare", "forecasts.csv", *case.options.split(), *wrong.split(), *FEW, "--cluster", "shop")
    found = json.loads(call(*given, "--json", "-"))
    assert found["verdict"].startswith(f"{found['differences'][0]['model']} is worse calibrated than {case.name}")
    assert next(iter(found["models"].values()))["kind"] == case.evaluate(forecasts).kind
    assert found["verdict"] in call(*given)


def test_the_report_is_written(forecasts, call):
    pytest.importorskip("jinja2", reason="Jinja2 is not installed")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    for kind in ("class patterns", "ordered class patterns", "labels", "point", "gaussian"):
        case = CASES[kind]
        call("evaluate", "forecasts.csv", *case.options.split(), *FEW, "--html", f"{kind}.html", "--sha256")
        page = Path(f"{kind}.html").read_text()
        assert "<title>Calibration of forecasts.csv</title>" in page
        assert f">{case.evaluate(forecasts).verdict.capitalize()}: " in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            "-y price",
            "--score, --class-score, --ordinal-score, --predicted-label, --point, --mean, "
            "--poisson, --negative-binomial, --quantile or --sample must",
        ),
        ("-y price --point right --score p_ant", "--score and --point must not be given together; got both."),
        ("-y price --mean right --sd sd --quantile 0.5=right", "--mean and --quantile must not be given together"),
        ("-y price --mean right", "--mean and --sd must be given equally often; got 1 and 0."),
        ("-y price --sd sd", "--sd must be given with --mean; got it alone."),
        ("-y price --point right --sd sd", "--sd must be given with --mean; got it alone."),
        ("-y price --mean right --sd sd --mean right --sd small", "--mean must name different columns; got right"),
        ("-y price --point left", "forecasts.csv has no column 'left'; it has 'animal'"),
        ("-y cost --point right", "forecasts.csv has no column 'cost'"),
        ("-y animal --class-score x_*", "--class-score must match columns; 'x_*' matches none of 'animal', 'digit', "),
        ("-y animal --class-score p_ant", "--class-score must be LABEL=COLUMN, or a pattern with one *; got 'p_ant'."),
        ("-y animal --class-score *_*", "--class-score must be LABEL=COLUMN, or a pattern with one *; got '*_*'."),
        ("-y animal --class-score ant=p_ant", "--class-score must name at least two classes; got 'ant' alone. For the"),
        ("-y animal --class-score ant=p_ant --class-score ant=p_bee", "must name each class once; got 'ant' twice."),
        (
            "-y animal --class-score ant=p_ant --class-score bee=p_bee",
            "animal in forecasts.csv must hold labels of the classes 'ant', 'bee'; row ",
        ),
        (
            "-y animal --class-score ant=p_ant --class-score bee=p_bee",
            "Name each class in the data with --class-score.",
        ),
        ("-y digit --class-score 0=p_ant --class-score 0.0=p_bee --class-score 2=p_cat", "some of which are the same"),
        ("-y animal --class-score p_* --class-score m_*", "All models must have the same classes; 'p_*' has ant, bee"),
        ("-y animal --class-score ant=p_ant --class-score bee=p_bee --class-score cat=price", "price in forecasts.csv"),
        ("-y animal --class-score ant=p_ant --class-score bee=p_bee --class-score cat=p_bee", "must sum to 1"),
        ("-y animal --point right", "animal"),
        ("-y price --quantile 5=q0.1", "--quantile must have a level between 0 and 1, as in 0.05=q05; got '5'."),
        ("-y price --quantile low=q0.1", "--quantile must have a level between 0 and 1, as in 0.05=q05; got 'low'."),
        ("-y price --quantile m_*", "--quantile must have a level between 0 and 1, as in 0.05=q05; got '1'."),
        ("-y price --quantile 0.1=q0.1 --quantile 0.10=q0.5", "--quantile must name each level once; got 0.1 twice."),
        ("-y price --quantile q0.1", "--quantile must be LEVEL=COLUMN, or a pattern with one *; got 'q0.1'."),
        ("-y price --sample x_*", "--sample must match columns; 'x_*' matches none of"),
        ("-y price --mean right --sd high --cost 1:5", "--cost must be given with --score only; got --mean."),
        ("-y price --point right --bins 5", "--bins must be given with --score only; got --point."),
        ("-y price --point right --absolute-margin 0.1", "--absolute-margin must be given with --score only;"),
        ("-y price --point right --pos-label 1", "--pos-label must be given with --score only; got --point."),
        ("-y price --point right --resolution 0.1", "--resolution must be given with --score only; got --point."),
        ("-y price --point right --spark local[1]", "--spark must be given with --score only; got --point."),
        ("-y price --point right --max-memory 1GB", "--max-memory must be given with --score only; got --point."),
        (
            "-y price --point right --margin -1",
            "--margin must be a positive number in standard deviations of the outcome, at most 2;",
        ),
        ("-y price --point right --cluster g", "--cluster must have at least 10 distinct values"),
    ],
)
def test_errors_name_options_columns_and_values(forecasts, call, options, words):
    assert words in call("evaluate", "forecasts.csv", *options.split(), *FEW, code=2)


@pytest.mark.parametrize("option", ["--max-ece", "--max-tce-excess", "--equivalence"])
def test_thresholds_are_those_of_scores(forecasts, call, option):
    text = call("check", "forecasts.csv", "-y", "price", "--point", "right", option, "0.5", code=2)
    assert f"{option} must be given with --score only; got --point. For other kinds the verdict decides;" in text


def test_labels_of_text_files_are_numbers_only_if_all_are(here, call):
    """1 and 1.0 are the same label, but 1_0 is text, and so are numbers beside text."""
    rows = [("1", "1.0"), ("2", "2.0"), ("2", "1.0"), ("1", "2.0")] * 10
    Path("a.csv").write_text("y,p\n" + "".join(f"{y},{p}\n" for y, p in rows))
    Path("b.csv").write_text("y,p\n" + "".join(f"{y},{y}_0\n" for y, _ in rows))
    found = json.loads(call("evaluate", "a.csv", "-y", "y", "--predicted-label", "p", "--json", "-"))["models"]["p"]
    assert found["n_classes"] == 2
    found = json.loads(call("evaluate", "b.csv", "-y", "y", "--predicted-label", "p", "--json", "-"))["models"]["p"]
    assert found["n_classes"] == 4


def test_labels_stay_one_type_over_batches(here, call, monkeypatch):
    monkeypatch.setattr("calibrant.ingest.files._BATCH", 4)
    labels = ["1", "2"] * 10 + ["x"] * 20
    Path("a.csv").write_text("y,p\n" + "".join(f"{label},{label}\n" for label in labels))
    found = json.loads(call("evaluate", "a.csv", "-y", "y", "--predicted-label", "p", "--json", "-"))["models"]["p"]
    assert found["breakdowns"]["proportions"]["labels"] == ["1", "2", "x"]


def test_truth_values_and_categories_are_classes(here, call):
    y = np.tile([True, False, False, True], 30)
    p = np.where(y, 0.6, 0.3)
    columns = {"y": y, "p_True": p, "p_False": 1 - p}
    pq.write_table(pa.table({**columns, "c": pa.array(y.astype(str)).dictionary_encode()}), "a.parquet")
    Path("a.csv").write_text("\n".join(["y,p_True,p_False", *(f"{a},{b},{1 - b}" for a, b in zip(y, p, strict=True))]))
    expected = cb.evaluate(y, np.column_stack([p, 1 - p]), classes=[True, False], n_resamples=39).to_dict()["metrics"]
    for file, outcome in (("a.parquet", "y"), ("a.csv", "y"), ("a.parquet", "c")):
        given = ("evaluate", file, "-y", outcome, "--class-score", "p_*", *FEW, "--json", "-")
        assert json.loads(call(*given))["models"]["p_*"]["metrics"] == json.loads(json.dumps(expected))


def test_several_files_and_standard_input_are_read(forecasts, call, monkeypatch):
    import io
    import sys

    text = Path("forecasts.csv").read_text()
    head, *lines = text.splitlines(keepends=True)
    Path("one.csv").write_text(head + "".join(lines[:700]))
    Path("two.csv").write_text(head + "".join(lines[700:]))
    given = ("-y", "animal", "--class-score", "p_*", *FEW, "--json", "-")
    whole = call("evaluate", "forecasts.csv", *given)
    assert call("evaluate", "one.csv", "two.csv", *given) == whole
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert call("evaluate", "-", *given) == whole


def test_outcome_is_another_name_of_label(forecasts, call):
    given = ("--point", "right", *FEW, "--json", "-")
    assert call("evaluate", "forecasts.csv", "--outcome", "price", *given) == call(
        "evaluate", "forecasts.csv", "--label", "price", *given
    )


def test_real_class_probabilities_equal_the_library(here, call, data_folder):
    scores = np.load(data_folder / "forecasts" / "cifar10_lenet5.npz")
    y, proba = scores["ground_truth"][:2000], scores["predictions"][:2000]
    columns = {"label": y, **{f"p_{i}": column for i, column in enumerate(proba.T)}}
    pq.write_table(pa.table({**columns, "predicted": proba.argmax(axis=1)}), "cifar.parquet")
    given = ("evaluate", "cifar.parquet", "-y", "label", *FEW, "--json", "-")
    found = json.loads(call(*given, "--class-score", "p_*"))["models"]["p_*"]
    assert found == json.loads(cb.evaluate(y, proba, n_resamples=39).to_json())
    found = json.loads(call(*given, "--predicted-label", "predicted"))["models"]["predicted"]
    assert found == json.loads(cb.evaluate(y, cb.Labels(proba.argmax(axis=1)), n_resamples=39).to_json())


def test_real_point_predictions_equal_the_library(call, data_folder):
    import csv
    import gzip

    file = data_folder / "forecasts" / "538_governors_elections.csv.gz"
    with gzip.open(file, "rt") as stream:
        rows = list(csv.DictReader(stream))
    names = ("actual_voteshare", "projected_voteshare")
    y, predicted = (np.array([float(row[name] or "nan") for row in rows]) for name in names)
    cluster, by = ([row[name] for row in rows] for name in ("candidate", "year"))
    options = {"cluster": np.array(cluster), "by": {"year": np.array(by)}, "missing": "drop"}
    given = ("-y", names[0], "--point", names[1], "--cluster", "candidate", "--by", "year", "--missing", "drop")
    found = json.loads(call("evaluate", str(file), *given, *FEW, "--json", "-"))["models"][names[1]]
    expected = json.loads(cb.evaluate(y, cb.Point(predicted), n_resamples=39, **options).to_json())
    assert found == expected
    assert found["n_dropped"] > 0
