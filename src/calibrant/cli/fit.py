"""``calibrant fit``."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant.cli.inputs import Source
from calibrant.cli.options import force_option, input_options, parse_cost
from calibrant.cli.outputs import check_outputs, write_text

__all__ = ["METHODS", "fit"]

_FOLDS = 5
_AUTO = "auto"
# The names in calibrant.CALIBRATORS and of recalibrators of points, the default first, repeated here so that --help
# does not import scikit-learn.
METHODS = {
    "binary": (
        *("isotonic", "platt", "temperature", "beta", "binning_average", "venn_abers", "prior_shift", "cats", "caps"),
        _AUTO,
    ),
    "multiclass": (
        *("softmax_temperature", "vector", "matrix", "dirichlet", "spline", "one_vs_rest", "pairwise"),
        _AUTO,
    ),
    "point": ("linear", "isotonic", "local", "cost"),
}


@dataclass(frozen=True)
class _FitRows:
    """Rows of one model: forecasts, outcomes, weights, and further arguments of `fit`."""

    kind: str
    X: Any
    y: Any
    weights: dict[str, Any]
    options: dict[str, Any]
    notes: tuple[Any, ...]
    inputs: list[dict[str, Any]]

    @property
    def weight(self) -> Any:
        """The weights, or the numbers of equal rows: in a fit the sum of weights plays the number of rows."""
        return next((each for each in self.weights.values() if each is not None), None)


@click.command
@input_options(("p", "class_score", "point"), counted=False)
@click.option(
    "--method",
    type=click.Choice(list(dict.fromkeys(name for names in METHODS.values() for name in names))),
    show_default=", ".join(f"{names[0]} ({kind})" for kind, names in METHODS.items()),
    help="The calibrator; auto chooses by log loss, or none if none is shown to improve the scores.",
)
@click.option(
    "--cost",
    type=parse_cost,
    metavar="OVER:UNDER",
    help="Costs of overestimation and underestimation, for cats, caps, cost and auto.",
)
@click.option(
    *("--set", "settings"), multiple=True, metavar="NAME=VALUE", help="A parameter of the calibrator: n_bins=20."
)
@click.option("--output", "-o", required=True, metavar="FILE", help="The file of the calibrator (JSON).")
@force_option
def fit(method: str | None, cost: Any, settings: tuple[str, ...], output: str, force: bool, **given: Any) -> None:
    """Fit a calibrator to the forecasts and outcomes in FILES.

    Calibrators take scores of an event (--score), probabilities of classes (--class-score) or point predictions
    (--point). The rows must not be those that the model was fitted to. The printed metrics are cross-fitted: each fifth
    of the rows is calibrated by a calibrator that was fitted to the others. If --method auto leaves the scores alone,
    no file is written.

    \b
      calibrant fit valid.parquet --label outcome --score probability --method platt -o cal.json
      calibrant fit valid.parquet --label outcome --score probability --method auto -o cal.json
      calibrant apply cal.json new.parquet --score probability -o calibrated.parquet
    """
    check_outputs(output, inputs=given["paths"], force=force, stream=False)
    source = Source.take(given)
    method = METHODS[source.kind][0] if method is None else method
    _check_method(method, source)
    calibrator = _new_calibrator(source.kind, method, cost, settings)
    rows = _read_rows(source, any_score=getattr(calibrator, "accepts_any_score", False))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = _choose(calibrator, rows) if method == _AUTO else _fit(calibrator, rows)
    if fitted is None:
        click.echo("No file is written.")
    else:
        _save(fitted, rows, output)
    for note in dict.fromkeys([*(note.text for note in rows.notes), *(str(each.message) for each in caught)]):
        click.echo(f"note: {note}")
    if fitted is not None:
        _print_improvement(fitted, rows, warn=method != _AUTO)  # auto has its own rule and warning
    _print_checksums(rows.inputs)


def _check_method(method: str, source: Source) -> None:
    known = METHODS[source.kind]
    if method not in known:
        raise InputError(
            Argument("method")
            + f" must be one of {', '.join(known)} with "
            + Argument(source.option)
            + f"; got {method}.",
            value=method,
        )


def _read_rows(source: Source, *, any_score: bool) -> _FitRows:
    """Read the complete rows of one model."""
    if source.kind == "binary":
        _check_one(source.scores)
        rows = source.read_rows(any_score=any_score)
        scores = rows.columns[source.scores[0]]
        return _FitRows("binary", scores, rows.events, rows.weights, {}, rows.notes, rows.inputs)
    import numpy as np

    from calibrant.cli.forecast_rows import read_forecasts
    from calibrant.tables.rows import missing_note

    found = read_forecasts(source)
    _check_one([model.name for model in found.models])
    weights = found.weights()
    used = found.complete(found.models[0])
    for weight in weights.values():
        used = used if weight is None else used & ~np.ma.getmaskarray(weight)
    dropped = int((~used).sum())
    return _FitRows(
        source.kind,
        found.values(found.models[0])[used],
        found.y.values[used],
        {name: None if weight is None else np.ma.getdata(weight)[used] for name, weight in weights.items()},
        found.classes,
        (missing_note(dropped),) if dropped else (),
        found.inputs,
    )


def _check_one(models: list[str]) -> None:
    if len(models) > 1:
        raise InputError(f"fit needs one forecast; got {len(models)}.", hint="Fit one calibrator per forecast.")


def _fit(calibrator: Any, rows: _FitRows) -> Any:
    return calibrator.fit(rows.X, rows.y, sample_weight=rows.weight, **rows.options)


def _choose(auto: Any, rows: _FitRows) -> Any:
    """Print the ranking of all calibrators, and return the chosen one, or None."""
    import numpy as np

    from calibrant.calibrators.auto import UNCALIBRATED
    from calibrant.tables.rows import repeated_rows

    X, y = rows.X, rows.y
    if rows.kind == "multiclass":  # its columns are those of the sorted labels
        labels = np.unique(y).tolist()
        missing = [each for each in rows.options["classes"] if each not in labels]
        if missing:
            raise InputError(
                Argument("method") + f" auto needs rows of each class; got none of {missing[0]!r}.", value=missing[0]
            )
        X = X[:, [rows.options["classes"].index(label) for label in labels]]
    frequency = rows.weights["frequency"]
    if frequency is not None:  # equal rows, each of which may be resampled
        again = repeated_rows(np.asarray(frequency, dtype=np.int64), "resampled")
        X, y = X[again], y[again]
    auto.fit(X, y, sample_weight=rows.weights["sample_weight"])
    click.echo(str(auto.ranking_))
    return None if auto.chosen_ == UNCALIBRATED else auto.calibrator_


def _save(calibrator: Any, rows: _FitRows, output: str) -> None:
    from calibrant.export.calibrator_files import calibrator_text

    write_text(output, calibrator_text(calibrator).rstrip("\n"))
    count = f"{len(rows.y):,} row{'s' * (len(rows.y) > 1)}"
    click.echo(f"{type(calibrator).__name__} fitted to {count}: {Path(output).name}")


def _new_calibrator(kind: str, method: str, cost: Any, settings: tuple[str, ...]) -> Any:
    """Return an unfitted calibrator with the parameters that were given."""
    given: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(Argument("settings") + f" must be NAME=VALUE, such as n_bins=20; got {setting!r}.")
        given[name.strip()] = _parse(value.strip())
    if cost is not None and method == _AUTO:
        from calibrant.metrics.calibration_errors import ECC

        given["scoring"] = ECC(cost)
    elif cost is not None:
        given["cost"] = cost
    class_ = _calibrator_class(kind, method)
    known = list(class_().get_params())
    unknown = [name for name in given if name not in known]
    if unknown:
        there = f"it has {', '.join(known)}" if known else "it has none"
        raise InputError(f"{method} has no parameter {unknown[0]!r}; {there}.", argument=unknown[0])
    return class_(**given)


def _calibrator_class(kind: str, method: str) -> Any:
    from calibrant.calibrators.auto import AutoCalibrator
    from calibrant.calibrators.registry import CALIBRATORS, RECALIBRATORS

    if method == _AUTO:
        return AutoCalibrator
    return RECALIBRATORS[method] if kind == "point" else CALIBRATORS[method]


def _parse(text: str) -> Any:
    """Return a number, list, truth value or null as in JSON, or else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _print_improvement(calibrator: Any, rows: _FitRows, *, warn: bool) -> None:
    """Print metrics before and after cross-fitted calibration, and a warning if the first one, a score, is worse."""
    from calibrant.calibrators.calibrator import cross_fit

    try:
        after = cross_fit(calibrator, rows.X, rows.y, sample_weight=rows.weight, n_folds=_FOLDS, **rows.options)
    except InputError:  # a fold has too few rows, or one outcome only
        click.echo(f"Too few rows for {_FOLDS}-fold cross-fitted metrics.")
        return
    values = {
        name: (before, own)
        for (name, before), own in zip(_metrics(rows, rows.X).items(), _metrics(rows, after).values(), strict=True)
    }
    for name, pair in values.items():
        before, own = ("undefined" if value is None else f"{value:{_form(rows)}}" for value in pair)
        click.echo(f"{name}: {before} before, {own} after ({_FOLDS}-fold cross-fitted)")
    score, (first, last) = next(iter(values.items()))
    if warn and first is not None and last is not None and last > first:
        click.echo(
            f"warning: the calibrator raises the cross-fitted {score}. Keep the forecasts as they are, or use another "
            "--method" + ("; auto compares all." if _AUTO in METHODS[rows.kind] else "."),
            err=True,
        )


def _form(rows: _FitRows) -> str:
    return ".5g" if rows.kind == "point" else ".5f"


def _metrics(rows: _FitRows, forecast: Any) -> dict[str, float | None]:
    """Return the values of the printed metrics, a proper score first; None where a metric is undefined."""
    if rows.kind == "binary":
        from calibrant.metrics.calibration_errors import ACE
        from calibrant.metrics.proper_scores import Brier
        from calibrant.tables.score_table import ScoreTable

        try:
            table: Any = ScoreTable.from_arrays(rows.y, forecast, **rows.weights)
        except InputError:  # scores that are not probabilities, such as margins
            return {"Brier score": None, "ACE": None}
        return {"Brier score": float(Brier()(table)), "ACE": float(ACE()(table))}
    if rows.kind == "multiclass":
        from calibrant.metrics.multiclass import MulticlassBrier, MulticlassLogLoss
        from calibrant.tables.class_table import ClassTable

        table = ClassTable.from_arrays(rows.y, forecast, **rows.options, **rows.weights)
        return {"Brier score": MulticlassBrier().value(table), "log loss": MulticlassLogLoss().value(table)}
    from calibrant.metrics.point import mae, mse

    return {"MSE": mse(rows.y, forecast, **rows.weights), "MAE": mae(rows.y, forecast, **rows.weights)}


def _print_checksums(inputs: list[dict[str, Any]]) -> None:
    from calibrant.cli.console import checksum_lines

    for text in checksum_lines(inputs):
        click.echo(text.plain)
