"""`calibrant fit`."""

import re
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
    from calibrant.calibrators.registry import RECALIBRATORS
    from calibrant.cli.fit import METHODS

    known = {**cb.CALIBRATORS, **{f"{name} of points": each for name, each in RECALIBRATORS.items()}}
    for kind, names in METHODS.items():
        expected = {name.removesuffix(" of points") for name, each in known.items() if each.kind == kind}
        assert set(names) - {"auto"} == expected


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
    assert text.startswith("Verdict: leave it alone: no calibrator is shown to improve the log_loss\n")
    assert text.endswith("No file is written.\n")
    assert not Path("cal.json").exists()


def test_auto_takes_costs_frequencies_and_settings(scores, call):
    given = ["scores.parquet", "-y", "y", "-p", "p", "--method", "auto", "--set", "cv=3", "-o", "cal.json", "--force"]
    text = call("fit", *given, "--frequency", "w", "--cost", "1:5")
    rows = pq.read_table("scores.parquet")
    y, p, w = (np.asarray(rows.column(name)) for name in "ypw")
    scoring = cb.ECC(cost=cb.LinearCost(over=1, under=5))
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
    expected = cb.VectorScaling().fit(proba, forecasts["animal"], sample_weight=frequency)
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
        ("-y animal --class-score p_* --method platt", "--method must be one of softmax_temperature, vector"),
        ("-y animal --class-score p_* --class-score sharp_*", "fit needs one forecast; got 2."),
        ("-y price --point high --point right", "fit needs one forecast; got 2."),
        ("-y price", "--score, --class-score or --point must be given; got none of them."),
        ("-y price --mean right --sd sd", "No such option"),
    ],
)
def test_fits_that_do_not_fit_the_kind_are_errors(forecasts, call, options, words):
    assert words in call("fit", "forecasts.csv", *options.split(), "-o", "cal.json", code=2)
    assert not Path("cal.json").exists()
