"""MLflow: evaluations in runs, metrics and artifacts of `mlflow.models.evaluate`, and calibrators as models.

A model folder holds the JSON file that `calibrant.save` writes, and no pickle.
"""

import math
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._support.columns import read
from calibrant._support.errors import Argument, InputError, MissingExtraError
from calibrant._support.file_writing import write_file
from calibrant._support.plain_data import frame_from_columns
from calibrant.kinds.base import KINDS
from calibrant.kinds.columns import columns_of
from calibrant.metrics.metric import Metric, declared
from calibrant.metrics.registry import MetricLike, as_metrics
from calibrant.versions import __version__

FLAVOR = "calibrant"
_FILE = "calibrator.json"
_LABELS_HINT = (
    "MLflow passes labels for model_type='classifier'. Name the column of probabilities by score=..., or evaluate a "
    "model that returns probabilities without model_type."
)


def _mlflow(module: str = "mlflow") -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mlflow":
            raise
        raise MissingExtraError("Logging to MLflow needs mlflow", "mlflow", name="mlflow") from error


# Runs


def log_evaluation(
    result: Any, *, name: str = "calibration", run_id: str | None = None, step: int | None = None
) -> str:
    """Log an evaluation or a comparison to a run of MLflow.

    Metrics are logged with the limits of their confidence intervals and the value expected if calibrated; numbers that
    are undefined are not logged. The verdict and its direction are tags, and so is `passed` ("true" or
    "false"). The folder `name` of the run's artifacts gets the report (``report.html``), the overview
    (``overview.png``, ``overview.svg``), all numbers (``evaluation.json``), the table of metrics and groups
    (``metrics.csv``) and one table for each breakdown (``breakdowns/*.csv``).

    Parameters
    ----------
    result : Evaluation or Comparison
        What `evaluate` or `compare` returned.
    name : str, default="calibration"
        Prefix of metrics and tags, and folder of the artifacts.
    run_id : str, optional
        The run. By default the active one; if there is none, a new run begins and stays active, as in MLflow.
    step : int, optional
        Step of the metrics, for example the epoch.

    Returns
    -------
    str
        The id of the run.

    See Also
    --------
    calibration_metrics, calibration_artifacts, log_model, evaluate

    Examples
    --------
    .. code-block:: python

       import mlflow
       from calibrant.integrations.mlflow import log_evaluation

       with mlflow.start_run():
           log_evaluation(cb.evaluate(y, p))
    """
    mlflow = _mlflow()
    if not all(hasattr(result, attribute) for attribute in ("verdict", "metrics", "to_html", "plot")):
        raise InputError(
            Argument("result") + f" must be an Evaluation or a Comparison; got {type(result).__name__}.",
            hint="Call calibrant.evaluate first.",
        )
    if run_id is None:
        run_id = str((mlflow.active_run() or mlflow.start_run()).info.run_id)
    mlflow.log_metrics({f"{name}/{key}": value for key, value in _metrics(result).items()}, step=step, run_id=run_id)
    client = mlflow.MlflowClient()
    for key, value in _tags(result).items():
        client.set_tag(run_id, f"{name}.{key}", value)
    with tempfile.TemporaryDirectory(prefix="calibrant-") as folder:
        _write_artifacts(result, Path(folder))
        mlflow.log_artifacts(folder, artifact_path=name, run_id=run_id)
    return run_id


def _metrics(result: Any) -> dict[str, float]:
    """Return the finite numbers of the metrics, by a name that MLflow accepts."""
    numbers = {"n_rows": float(result.n_rows)}
    if hasattr(result, "pvalue"):
        numbers["pvalue"] = result.pvalue
    for name, metric in result.metrics.items():
        limits = {"low": metric.interval.low, "high": metric.interval.high, "expected": metric.null.expected}
        numbers |= {name: metric.value, **{f"{name}/{key}": value for key, value in limits.items()}}
    return {_accepted(name): float(value) for name, value in numbers.items() if math.isfinite(value)}


def _accepted(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_\-. :/]", "_", name)


def _tags(result: Any) -> dict[str, str]:
    tags = {
        "verdict": result.verdict,
        "direction": result.direction,
        "kind": result.kind,
        "calibrant": __version__,
    }
    return tags if result.passed is None else tags | {"passed": str(result.passed).lower()}


def _write_artifacts(result: Any, folder: Path) -> None:
    """Write report, figures, JSON and tables to a folder."""
    from matplotlib import pyplot as plt

    from calibrant import plots

    result.to_html(folder / "report.html")
    write_file(folder / "evaluation.json", result.to_json())
    write_file(folder / "metrics.csv", result.to_frame().to_csv(index=False))
    display = result.plot()
    for kind in ("png", "svg"):
        plots.save(display, folder / f"overview.{kind}")
    plt.close(display.figure_)
    (folder / "breakdowns").mkdir()
    for name, breakdown in result.breakdowns.items():
        file = re.sub(r"[^\w\-. ]", "_", name)
        write_file(folder / "breakdowns" / f"{file}.csv", _table(breakdown).to_csv(index=False))


def _table(breakdown: Any) -> Any:
    """Return a breakdown as a frame with one row per bin, level or class."""
    content = breakdown.to_dict()
    columns = next((content[key] for key in ("per_bin", "per_level") if key in content), None)
    return frame_from_columns(columns or {key: content[key] for key in ("labels", "actual", "predicted")}, "pandas")


# mlflow.models.evaluate


def calibration_metrics(
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike] = ("ece", "log_odds_error", "brier", "log_loss"),
    *,
    score: str = "predictions",
    n_resamples: int = 199,
    random_state: int = 0,
) -> list[Any]:
    """Return metrics for ``extra_metrics`` of `mlflow.models.evaluate`, each with its confidence interval.

    Parameters
    ----------
    metrics : list or mapping of metrics, default=("ece", "log_odds_error", "brier", "log_loss")
        Names, metric objects or metric functions of binary probabilities or of point predictions.
    score : str, default="predictions"
        Column of the evaluated data that holds the probabilities; by default the predictions. MLflow passes labels as
        predictions of a model of type "classifier": name a column then.
    n_resamples : int, default=199
        Number of resamples of the intervals; 0 for metrics without intervals.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    list of mlflow.models.EvaluationMetric
        They log ``ECE``, ``ECE/low`` and ``ECE/high``.

    See Also
    --------
    calibration_artifacts, log_evaluation, interval

    Examples
    --------
    .. code-block:: python

       mlflow.models.evaluate(
           data=scored, targets="y", predictions="p",
           extra_metrics=calibration_metrics(["ece", "brier"]),
           custom_artifacts=[calibration_artifacts()],
       )
    """
    make = _mlflow("mlflow.models").make_metric
    functions = []
    for name, metric in as_metrics(metrics).items():
        better = getattr(metric, "direction", "lower") == "higher"
        function = _metric_function(name, metric, score, n_resamples, random_state)
        functions.append(make(eval_fn=function, greater_is_better=better, name=_accepted(name)))
    return functions


def _metric_function(name: str, metric: Metric, score: str, n_resamples: int, seed: int) -> Callable[..., Any]:
    """Return a function whose parameters name the columns that MLflow passes to it."""
    from calibrant.evaluation.metric_inference import interval

    value_type = _mlflow("mlflow.metrics").MetricValue

    def calibration_metric(*columns: Any) -> Any:
        p, y = (np.asarray(column) for column in columns)
        if len(y) == 1:  # MLflow tries each metric on the first row, where most are undefined
            return value_type(aggregate_results={_accepted(name): math.nan})
        _refuse_labels(p, declared(metric, "kind"))
        values = {_accepted(name): float(metric(y, p))}  # type: ignore[operator]
        if n_resamples:
            limits = interval(metric, y, p, n_resamples=n_resamples, random_state=seed)
            values |= {"low": float(limits.low), "high": float(limits.high)}
        return value_type(aggregate_results=values)

    names = [score, "targets"]
    signature = Signature([Parameter(column, Parameter.POSITIONAL_OR_KEYWORD) for column in names])
    calibration_metric.__signature__ = signature  # type: ignore[attr-defined]
    return calibration_metric


def _refuse_labels(p: Any, kind: str) -> None:
    """Raise an error where predictions are labels in place of forecasts of a kind."""
    if p.ndim == 1 and columns_of(kind).are_labels(p):
        raise InputError(
            Argument("predictions") + " must be probabilities; got labels, or zeros and ones alone.", hint=_LABELS_HINT
        )


def calibration_artifacts(*, name: str = "calibration", **options: Any) -> Callable[..., dict[str, Any]]:
    """Return a function for ``custom_artifacts`` of `mlflow.models.evaluate` that evaluates and logs the result.

    Parameters
    ----------
    name : str, default="calibration"
        As in `log_evaluation`, which it calls.
    **options
        Options of `evaluate`, for example ``margin``. Predictions are probabilities of the event.

    Returns
    -------
    function
        Of the evaluated frame, MLflow's metrics and a folder. It returns the table of metrics as an artifact.

    See Also
    --------
    calibration_metrics, log_evaluation
    """

    def calibration(eval_df: Any, builtin_metrics: Any, artifacts_dir: str) -> dict[str, Any]:
        from calibrant.evaluation.evaluate import evaluate
        from calibrant.kinds.base import forecast_kind

        y, p = np.asarray(eval_df["target"]), np.asarray(eval_df["prediction"])
        _refuse_labels(p, forecast_kind(y, p))
        result = evaluate(y, p, **options)
        log_evaluation(result, name=name)
        return {f"{name}_table": result.to_frame()}

    return calibration


# Models


class CalibratorModel:
    """A calibrator as MLflow calls it: from a frame of scores to a frame of calibrated values.

    Attributes
    ----------
    calibrator : calibrator
        The fitted calibrator.

    See Also
    --------
    log_model, load_model
    """

    def __init__(self, calibrator: Any) -> None:
        self.calibrator = calibrator

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Return the calibrated values of each row, with the names of the model's signature."""
        inputs, outputs = _column_names(self.calibrator)
        given = _values(model_input, inputs)
        values = self.calibrator(given if len(inputs) > 1 else given[:, 0])
        columns = np.asarray(values).reshape(len(given), -1).T
        return frame_from_columns(dict(zip(outputs, columns, strict=True)), "pandas")


def _column_names(calibrator: Any) -> tuple[list[str], list[str]]:
    """Return the names of the columns that a calibrator reads and returns."""
    kind = getattr(calibrator, "kind", None)
    model_columns = columns_of(kind).model_columns if kind in KINDS else None
    if model_columns is None:
        raise InputError(
            Argument("calibrator") + " must be a calibrator of scores or of class probabilities, or a recalibrator of "
            f"point predictions, to be a model; got {type(calibrator).__name__}.",
            hint="Log the file of calibrant.save as an artifact, or log a model on features with mlflow.sklearn.",
        )
    return model_columns(calibrator)


def _values(model_input: Any, names: list[str]) -> Any:
    """Return the named columns of a frame, or as many columns without these names."""
    columns = [str(column) for column in getattr(model_input, "columns", [])]
    if set(names) <= set(columns):
        given = [read(model_input[model_input.columns[columns.index(name)]], name) for name in names]
        return np.column_stack([column.values for column in given])
    values = np.asarray(model_input)
    values = values.reshape(-1, 1) if values.ndim == 1 else values
    if values.ndim != 2 or values.shape[1] != len(names):
        raise InputError(
            Argument("model_input")
            + f" must have the columns {', '.join(names)}; got {', '.join(columns) or values.shape}."
        )
    return values


def save_model(
    calibrator: Any,
    path: str,
    *,
    mlflow_model: Any = None,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Any = None,
    metadata: Any = None,
) -> None:
    """Write a fitted calibrator as an MLflow model: the JSON file of `save`, a signature and the requirements.

    Parameters
    ----------
    calibrator : calibrator of one score or of class probabilities, or recalibrator of point predictions
        Fitted.
    path : str
        Folder of the model, which must not exist.
    mlflow_model, signature, input_example, pip_requirements, metadata
        As in `mlflow.pyfunc.save_model`. By default the signature is one column ``score`` to ``probability``, one
        column per class, or ``prediction`` to ``prediction``; the requirement is this version of Calibrant.

    See Also
    --------
    log_model, load_model, save
    """
    from calibrant.export.calibrator_files import save

    models, pyfunc = _mlflow("mlflow.models"), _mlflow("mlflow.pyfunc")
    model = mlflow_model or models.Model()
    model.add_flavor(FLAVOR, calibrant_version=__version__, calibrator=type(calibrator).__name__, data=f"data/{_FILE}")
    by_default = _signature(calibrator)
    with tempfile.TemporaryDirectory(prefix="calibrant-") as folder:
        save(calibrator, Path(folder, _FILE))
        pyfunc.save_model(
            path,
            loader_module=__name__,
            data_path=str(Path(folder, _FILE)),
            mlflow_model=model,
            signature=signature or by_default,
            input_example=input_example,
            pip_requirements=pip_requirements or [f"calibrant[sklearn,mlflow]=={__version__}"],
            metadata=metadata,
        )


def _signature(calibrator: Any) -> Any:
    types, models = _mlflow("mlflow.types"), _mlflow("mlflow.models")
    inputs, outputs = (
        types.Schema([types.ColSpec("double", name) for name in names]) for names in _column_names(calibrator)
    )
    return models.ModelSignature(inputs=inputs, outputs=outputs)


def log_model(
    calibrator: Any, name: str = "calibrator", *, registered_model_name: str | None = None, **options: Any
) -> Any:
    """Log a fitted calibrator as a model of the active run; register it if a name is given.

    Parameters
    ----------
    calibrator : calibrator
        As in `save_model`.
    name : str, default="calibrator"
        Name of the model.
    registered_model_name : str, optional
        Name in the model registry.
    **options
        Other options of `save_model` and of ``mlflow.models.Model.log``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        ``model_uri`` of it is what `load_model` and `mlflow.pyfunc.load_model` take.

    See Also
    --------
    save_model, load_model, log_evaluation

    Examples
    --------
    .. code-block:: python

       with mlflow.start_run():
           info = log_model(cb.Platt().fit(p, y))
       mlflow.pyfunc.load_model(info.model_uri).predict(pd.DataFrame({"score": [0.2, 0.7]}))
    """
    return _mlflow("mlflow.models").Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        registered_model_name=registered_model_name,
        calibrator=calibrator,
        **options,
    )


def load_model(model_uri: str) -> Any:
    """Return the calibrator of a model that `log_model` or `save_model` wrote, bitwise equal; no code is executed.

    Parameters
    ----------
    model_uri : str
        ``models:/name/1``, ``runs:/id/calibrator``, or a folder.

    Returns
    -------
    calibrator
        The fitted calibrator.

    See Also
    --------
    log_model, load
    """
    from calibrant.export.calibrator_files import load

    folder = Path(_mlflow("mlflow.artifacts").download_artifacts(artifact_uri=model_uri))
    flavors = _mlflow("mlflow.models").Model.load(str(folder)).flavors
    if FLAVOR not in flavors:
        raise InputError(
            Argument("model_uri") + f" must name a model of flavor {FLAVOR!r}; got {', '.join(flavors)}.",
            hint="Load it with mlflow.pyfunc.load_model.",
        )
    return load(folder / "data" / _FILE)


def _load_pyfunc(path: str) -> CalibratorModel:
    """Return the model that `mlflow.pyfunc.load_model` calls."""
    from calibrant.export.calibrator_files import load

    return CalibratorModel(load(path))
