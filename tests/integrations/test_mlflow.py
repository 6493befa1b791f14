"""MLflow: runs of a real tracking server, models and metrics."""

import json
import os
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from web_browser import browsed, browser, open_tab  # noqa: F401

import calibrant as cb
from calibrant import regression as rg
from calibrant.integrations.mlflow import (
    calibration_artifacts,
    calibration_metrics,
    load_model,
    log_evaluation,
    log_model,
    save_model,
)
from tests.kinds.cases import KINDS, draw
from tools import servers

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

pytestmark = [
    pytest.mark.xdist_group("mlflow"),
    # MLflow warns about its own type hints and dependencies.
    *(pytest.mark.filterwarnings(f"ignore::{name}") for name in ("UserWarning", "DeprecationWarning", "FutureWarning")),
]
RNG = np.random.default_rng(3)
P = RNG.uniform(0.02, 0.98, 3000)
Y = (RNG.random(3000) < P**1.5).astype(int)
RESULT = cb.evaluate(Y, P, by=np.where(P * 1000 % 2 < 1, "north", "south"), n_resamples=99)


@pytest.fixture(scope="module")
def tracking():
    with servers.mlflow_server() as address:
        before = mlflow.get_tracking_uri()
        os.environ["GIT_PYTHON_REFRESH"] = "quiet"
        mlflow.set_tracking_uri(address)
        mlflow.set_experiment("calibration")
        yield address
        mlflow.set_tracking_uri(before)


def artifacts(run_id, folder=""):
    found = mlflow.MlflowClient().list_artifacts(run_id, folder)
    return {each.path for each in found if not each.is_dir}.union(
        *(artifacts(run_id, each.path) for each in found if each.is_dir)
    )


def test_an_evaluation_is_a_run_with_metrics_tags_and_artifacts(tracking, tmp_path):
    with mlflow.start_run() as run:
        assert log_evaluation(RESULT) == run.info.run_id
    data = mlflow.get_run(run.info.run_id).data
    ece = RESULT["ECE"]
    assert data.metrics["calibration/ECE"] == ece.value
    assert data.metrics["calibration/ECE/low"] == ece.interval.low
    assert data.metrics["calibration/ECE/high"] == ece.interval.high
    assert data.metrics["calibration/ECE/expected"] == ece.null.expected
    assert data.metrics["calibration/n_rows"] == 3000
    assert data.tags["calibration.verdict"] == RESULT.verdict == "miscalibrated"
    assert data.tags["calibration.direction"] == RESULT.direction
    assert data.tags["calibration.passed"] == str(RESULT.passed).lower() == "false"
    found = artifacts(run.info.run_id)
    names = {"report.html", "evaluation.json", "metrics.csv", "overview.png", "overview.svg", "breakdowns/ECE.csv"}
    assert {f"calibration/{name}" for name in names} <= found
    folder = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, dst_path=str(tmp_path))) / "calibration"
    assert json.loads((folder / "evaluation.json").read_text()) == RESULT.to_dict()
    assert (folder / "report.html").read_text(encoding="utf-8") == RESULT.to_html()
    table = pd.read_csv(folder / "metrics.csv")
    assert set(table["group"]) == {"all", "north", "south"}
    bins = pd.read_csv(folder / "breakdowns" / "ECE.csv")
    assert bins["n"].sum() == 3000


def test_a_comparison_and_each_kind_of_forecast_can_be_logged(tracking):
    results = {"compared": cb.compare(Y, {"old": P, "new": P**1.5}, n_resamples=99)}
    for kind in KINDS:
        y, right, _, make = draw(kind, 300)
        results[kind] = cb.evaluate(y, make(right), n_resamples=39)
    with mlflow.start_run() as run:
        for name, result in results.items():
            log_evaluation(result, name=name, step=2)
    data, found = mlflow.get_run(run.info.run_id).data, artifacts(run.info.run_id)
    assert data.tags["compared.verdict"] == "new is better calibrated than old"
    assert data.metrics["compared/new: ECE"] == results["compared"].models["new"]["ECE"].value
    assert data.metrics["labels/accuracy"] == results["labels"]["accuracy"].value
    for name, result in results.items():
        assert f"{name}/report.html" in found
        assert sum(each.startswith(f"{name}/breakdowns/") for each in found) == len(result.breakdowns)
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "labels/accuracy")
    assert [each.step for each in history] == [2]


def test_an_earlier_run_can_be_named(tracking):
    with mlflow.start_run() as run:
        pass
    log_evaluation(RESULT, run_id=run.info.run_id)
    assert mlflow.active_run() is None
    assert "calibration/ECE" in mlflow.get_run(run.info.run_id).data.metrics
    with pytest.raises(cb.InputError, match="must be an Evaluation or a Comparison; got dict"):
        log_evaluation({})


def test_mlflow_evaluates_with_our_metrics_and_artifacts(tracking):
    scored = pd.DataFrame({"y": Y, "p": P})
    with mlflow.start_run() as run:
        found = mlflow.models.evaluate(
            data=scored,
            targets="y",
            predictions="p",
            extra_metrics=calibration_metrics(["ece", "brier", "auc"], n_resamples=99),
            custom_artifacts=[calibration_artifacts(n_resamples=99)],
        )
    assert found.metrics["ECE"] == cb.ece(Y, P)
    assert found.metrics["brier"] == cb.brier(Y, P)
    limits = cb.interval("ece", Y, P, n_resamples=99, random_state=0)
    assert (found.metrics["ECE/low"], found.metrics["ECE/high"]) == (limits.low, limits.high)
    assert "calibration/report.html" in artifacts(run.info.run_id)
    assert mlflow.get_run(run.info.run_id).data.tags["calibration.verdict"] == "miscalibrated"
    assert "ECE" in set(found.artifacts["calibration_table"].content["metric"])


def test_labels_are_not_measured_as_probabilities(tracking):
    from sklearn.linear_model import LogisticRegression

    frame = pd.DataFrame({"x": np.log(P / (1 - P)), "p": P, "y": Y})
    scored = frame.assign(label=LogisticRegression().fit(frame[["x"]], Y).predict(frame[["x"]]))
    options = {"data": scored, "targets": "y", "predictions": "label", "model_type": "classifier"}
    config = {"log_explainer": False}
    with mlflow.start_run(), pytest.raises(Exception, match="must be probabilities; got labels"):
        mlflow.models.evaluate(**options, evaluator_config=config, extra_metrics=calibration_metrics(["ece"]))
    with mlflow.start_run():
        extra = calibration_metrics(["ece"], score="p", n_resamples=0)
        found = mlflow.models.evaluate(**options, evaluator_config=config, extra_metrics=extra)
    assert found.metrics["ECE"] == cb.ece(Y, P)


def test_a_calibrator_is_a_model_of_the_registry(tracking):
    cal = cb.Platt().fit(P, Y)
    with mlflow.start_run():
        info = log_model(cal, registered_model_name="risk-calibrator")
    for uri in (info.model_uri, "models:/risk-calibrator/1"):
        same = load_model(uri)
        assert type(same) is cb.Platt
        assert np.array_equal(same(P), cal(P))
    model = mlflow.pyfunc.load_model("models:/risk-calibrator/1")
    found = model.predict(pd.DataFrame({"score": P}))
    assert np.array_equal(found["probability"], cal(P))
    assert model.metadata.flavors["calibrant"]["calibrator"] == "Platt"
    with pytest.raises(Exception, match="score"):
        model.predict(pd.DataFrame({"margin": P}))


def test_models_of_classes_and_points_hold_json_and_no_pickle(tmp_path):
    proba = RNG.dirichlet([1, 1, 1], 400)
    label = np.array(["cat", "dog", "fox"])[RNG.integers(0, 3, 400)]
    classes = cb.calibrators.SoftmaxTemperature().fit(proba, label)
    points = rg.LinearRecalibrator(cv=None).fit(P, Y + P)
    given = {"classes": (classes, proba, ["cat", "dog", "fox"]), "points": (points, P[:, None], ["prediction"])}
    for name, (cal, values, columns) in given.items():
        save_model(cal, str(tmp_path / name))
        files = {path.name for path in (tmp_path / name).rglob("*") if path.is_file()}
        assert "calibrator.json" in files
        assert not [file for file in files if file.endswith((".pkl", ".pickle", ".skops"))]
        found = mlflow.pyfunc.load_model(str(tmp_path / name)).predict(pd.DataFrame(values, columns=columns))
        assert found.columns.tolist() == columns
        assert np.array_equal(
            found.to_numpy(), np.asarray(cal(values if len(columns) > 1 else values[:, 0])).reshape(len(values), -1)
        )
    with pytest.raises(cb.InputError, match="recalibrator of point predictions, to be a model; got VarianceScaling"):
        save_model(rg.VarianceScaling().fit(rg.Gaussian(P, np.ones(3000)), Y.astype(float)), str(tmp_path / "forecast"))


def test_a_model_of_another_flavor_is_not_loaded_as_a_calibrator(tmp_path):
    class Constant(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):
            return model_input

    mlflow.pyfunc.save_model(str(tmp_path / "other"), python_model=Constant())
    with pytest.raises(cb.InputError, match="flavor 'calibrant'; got python_function"):
        load_model(str(tmp_path / "other"))


def test_the_code_of_the_documentation_runs(tracking):
    text = (Path(__file__).parents[2] / "docs" / "integrations.rst").read_text(encoding="utf-8")
    section = text.partition("\nMLflow\n------\n")[2].partition("\ndbt\n---\n")[0]
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", section)
    assert len(blocks) == 2
    names = {"y": Y, "p": P, "frame": pd.DataFrame({"score": P}), "scored": pd.DataFrame({"y": Y, "p": P})}
    for block in blocks:
        exec(textwrap.dedent(block), names)
    assert type(load_model(names["info"].model_uri)) is cb.Platt


@browsed
def test_the_page_of_a_run_shows_verdict_and_report(tracking, open_tab, tmp_path):  # noqa: F811
    with mlflow.start_run() as run:
        log_evaluation(RESULT)
    page = f"{tracking}/#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}"
    tab = open_tab(page, viewport={"width": 1440, "height": 1000})
    tab.get_by_text("calibration.verdict").first.wait_for(timeout=60_000)
    folder = Path(os.environ.get("CALIBRANT_SCREENSHOTS", tmp_path))
    tab.screenshot(path=folder / "mlflow_run.png")
    tab.goto(f"{page}/artifacts/calibration/report.html")
    report = tab.frame_locator("iframe").get_by_text("Verdict").first
    report.wait_for(timeout=60_000)
    tab.screenshot(path=folder / "mlflow_report.png")
