"""``calibrant fit``, ``calibrant apply`` and ``calibrant export``: calibrators from fit to deployment."""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant._support.file_writing import new_file, write_file
from calibrant._support.sql_dialects import DIALECTS, get_dialect
from calibrant.cli.command_files import check_outputs, check_sizes, load_calibrator, write_text
from calibrant.cli.inputs import Source, given_forecast
from calibrant.cli.options import (
    force_option,
    forecast_options,
    input_options,
    max_bytes_option,
    names_of_forecasts,
    parse_cost,
)
from calibrant.kinds.columns import Fit, Model, columns_by_kind

_FOLDS = 5
_AUTO = "auto"
# The methods of each kind that has calibrators, and the options of such forecasts.
METHODS = {kind: form.fit.methods for kind, form in columns_by_kind().items() if form.fit is not None}
_FITTED = names_of_forecasts(lambda form: form.fit is not None)


@dataclass(frozen=True)
class _Sample:
    """Forecasts and outcomes that a calibrator is fitted to, and further arguments of its `fit`."""

    fit: Fit
    forecasts: Any
    outcomes: Any
    weights: dict[str, Any]
    arguments: dict[str, Any]

    @property
    def weight(self) -> Any:
        """The weights, or the numbers of equal rows: in a fit the sum of weights is used as the number of rows."""
        return next((weight for weight in self.weights.values() if weight is not None), None)

    def metrics(self, forecasts: Any) -> dict[str, float | None]:
        """Return the printed metrics of forecasts for the same rows."""
        return self.fit.metrics(self.outcomes, forecasts, {**self.arguments, **self.weights})


@click.command
@input_options(_FITTED, counted=False)
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

    Calibrators take scores of an event (--score), probabilities of classes (--class-score) or of ordered classes
    (--ordinal-score), or point predictions (--point). The rows must not be those that the model was fitted to. The
    printed metrics are cross-fitted: each fifth of the rows is calibrated by a calibrator that was fitted to the
    others. If --method auto leaves the scores alone, no file is written.

    \b
      calibrant fit valid.parquet --label outcome --score probability --method platt -o cal.json
      calibrant fit valid.parquet --label outcome --score probability --method auto -o cal.json
      calibrant apply cal.json new.parquet --score probability -o calibrated.parquet
    """
    check_outputs(output, inputs=given["paths"], force=force, stream=False)
    source = Source.take(given)
    how = source.form.fit
    assert how is not None
    method = how.methods[0] if method is None else method
    if method not in how.methods:
        raise InputError(
            Argument("method")
            + f" must be one of {', '.join(how.methods)} with "
            + Argument(source.option)
            + f"; got {method}.",
            value=method,
        )
    calibrator = _new_calibrator(how, method, cost, settings)
    rows = source.read_rows(any_score=getattr(calibrator, "accepts_any_score", False), check_models=_check_one)
    (model,) = rows.models
    rows = rows.without_missing(model)
    sample = _Sample(how, rows.values(model), rows.y.values, rows.weights, how.arguments(model))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = _choose(calibrator, sample) if method == _AUTO else _fit(calibrator, sample)
    if fitted is None:
        click.echo("No file is written.")
    else:
        _save(fitted, len(rows.y), output)
    for note in dict.fromkeys([*(note.text for note in rows.notes), *(str(warning.message) for warning in caught)]):
        click.echo(f"note: {note}")
    if fitted is not None:
        _print_improvement(fitted, sample, warn=method != _AUTO)  # auto has its own rule and warning
    if rows.inputs:
        from calibrant.cli.console import console, print_checksums

        print_checksums(rows.inputs, out=console())


def _check_one(models: Sequence[Model]) -> None:
    if len(models) > 1:
        raise InputError(f"fit needs one forecast; got {len(models)}.", hint="Fit one calibrator per forecast.")


def _new_calibrator(how: Fit, method: str, cost: Any, settings: tuple[str, ...]) -> Any:
    """Return an unfitted calibrator with the parameters that were given."""
    from calibrant.calibrators import registry
    from calibrant.calibrators.auto import AutoCalibrator
    from calibrant.metrics.calibration_errors import ECC

    given: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(Argument("settings") + f" must be NAME=VALUE, such as n_bins=20; got {setting!r}.")
        given[name.strip()] = _parse(value.strip())
    if cost is not None:
        given |= {"scoring": ECC(cost)} if method == _AUTO else {"cost": cost}
    class_ = AutoCalibrator if method == _AUTO else getattr(registry, how.registry)[method]
    parameters = list(class_().get_params())
    unknown = next((name for name in given if name not in parameters), None)
    if unknown is not None:
        has = f"it has {', '.join(parameters)}" if parameters else "it has none"
        raise InputError(f"{method} has no parameter {unknown!r}; {has}.", argument=unknown)
    return class_(**given)


def _parse(text: str) -> Any:
    """Return a number, list, truth value or null as in JSON, or else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _fit(calibrator: Any, sample: _Sample) -> Any:
    return calibrator.fit(sample.forecasts, sample.outcomes, sample_weight=sample.weight, **sample.arguments)


def _choose(auto: Any, sample: _Sample) -> Any:
    """Print the ranking of all calibrators, and return the chosen one, or None."""
    import numpy as np

    from calibrant.calibrators.auto import UNCALIBRATED
    from calibrant.tables.rows import repeated_rows

    y = sample.outcomes
    X = sample.fit.sorted_columns(sample.forecasts, y, sample.arguments)
    frequency = sample.weights["frequency"]
    if frequency is not None:  # equal rows, each of which may be resampled
        again = repeated_rows(np.asarray(frequency, dtype=np.int64), "resampled")
        X, y = X[again], y[again]
    auto.fit(X, y, sample_weight=sample.weights["sample_weight"])
    click.echo(str(auto.ranking_))
    return None if auto.chosen_ == UNCALIBRATED else auto.calibrator_


def _save(calibrator: Any, n_rows: int, output: str) -> None:
    from calibrant.export.calibrator_files import calibrator_text

    write_text(output, calibrator_text(calibrator).rstrip("\n"))
    click.echo(f"{type(calibrator).__name__} fitted to {n_rows:,} row{'s' * (n_rows > 1)}: {Path(output).name}")


def _print_improvement(calibrator: Any, sample: _Sample, *, warn: bool) -> None:
    """Print metrics before and after cross-fitted calibration, and a warning if the first one, a score, is worse."""
    from calibrant.calibrators.calibrator import cross_fit

    options = {"sample_weight": sample.weight, "n_folds": _FOLDS, **sample.arguments}
    try:
        calibrated = cross_fit(calibrator, sample.forecasts, sample.outcomes, **options)
    except InputError:  # a fold has too few rows, or one outcome only
        click.echo(f"Too few rows for {_FOLDS}-fold cross-fitted metrics.")
        return
    before, after = sample.metrics(sample.forecasts), sample.metrics(calibrated)
    for name in before:
        first, last = (
            "undefined" if value is None else f"{value:{sample.fit.number_format}}"
            for value in (before[name], after[name])
        )
        click.echo(f"{name}: {first} before, {last} after ({_FOLDS}-fold cross-fitted)")
    score = next(iter(before))
    old, new = before[score], after[score]
    if warn and old is not None and new is not None and new > old:
        click.echo(
            f"warning: the calibrator raises the cross-fitted {score}. Keep the forecasts as they are, or use another "
            "--method" + ("; auto compares all." if _AUTO in sample.fit.methods else "."),
            err=True,
        )


@click.command
@click.argument("calibrator", metavar="CALIBRATOR")
@click.argument("source", metavar="FILE")
@forecast_options(_FITTED)
@click.option(
    "--name",
    default="calibrated",
    show_default=True,
    metavar="COLUMN",
    help="The column to add; for several classes the names begin with it: calibrated_LABEL.",
)
@click.option("--output", "-o", required=True, metavar="FILE", help="The new file: .parquet, .csv or .jsonl.")
@max_bytes_option
@force_option
def apply(
    calibrator: str, source: str, name: str, output: str, max_bytes: int | None, force: bool, **given: Any
) -> None:
    """Add the calibrated forecasts to the rows of FILE.

    The other columns do not change: CSV cells keep their text, and so do JSON lines that stay JSON lines. Rows with a
    missing score get a missing value and are counted.

    \b
      calibrant apply cal.json new.parquet --score probability -o calibrated.parquet
      calibrant apply cal.json new.csv --class-score 'p_*' -o calibrated.csv
    """
    from calibrant.export.scored_files import calibrate_file, output_format
    from calibrant.ingest.files import column_names
    from calibrant.ingest.formats import File, guess_format

    kind, option = given_forecast(given)
    form = columns_by_kind()[kind]
    assert form.fit is not None
    check_outputs(output, inputs=(calibrator, source), force=force, stream=False)
    if not Path(source).is_file():
        raise InputError(f"There is no file {Path(source).name!r}.")
    format, fitted = output_format(output), load_calibrator(calibrator)
    file = File(source, guess_format(Path(source).name))
    check_sizes([file], max_bytes)
    if fitted.kind not in (form.fit.kinds or (kind,)):
        raise InputError(
            Argument("calibrator") + " must be fitted with " + Argument(option) + f"; got {type(fitted).__name__}, "
            f"which takes forecasts of kind {fitted.kind!r}."
        )
    models = form.find_models(option, given, lambda: column_names(file))
    if len(models) > 1:
        raise InputError(f"apply needs one forecast; got {len(models)}.", hint="Apply to one after the other.")
    scores = form.applied_columns(fitted, option, models[0])
    with new_file(output, follow_links=False) as target:
        count = calibrate_file(fitted, Path(source), target, format, scores=scores, name=name)
    click.echo(f"{count['rows']:,} rows: {Path(output).name}")
    if count["missing"]:
        click.echo(f"Rows with a missing score, whose calibrated score is missing too: {count['missing']:,}.")
    if count["clipped"]:
        click.echo(f"Scores outside [0, 1] by at most 1e-06, which were clipped: {count['clipped']:,}.")


@click.command
@click.argument("calibrator", metavar="CALIBRATOR")
@click.option("--sql", is_flag=True, help="Print an SQL expression of the calibrated score.")
@click.option(
    *("--column", "columns"),
    multiple=True,
    default=("score",),
    show_default=True,
    help="With --sql: the column of scores; for several classes repeated, in the order of the classes.",
)
@click.option(
    "--dialect",
    type=click.Choice(list(DIALECTS)),
    default="duckdb",
    show_default=True,
    help="With --sql: the database.",
)
@click.option("--onnx", metavar="FILE", help="Write an ONNX model.")
@force_option
def export(calibrator: str, sql: bool, columns: tuple[str, ...], dialect: str, onnx: str | None, force: bool) -> None:
    """Export a calibrator as an SQL expression or as an ONNX model.

    \b
      calibrant export cal.json --sql --column probability --dialect spark
      calibrant export cal.json --onnx cal.onnx
    """
    if not sql and onnx is None:
        raise InputError(Argument("sql") + " or " + Argument("onnx") + " must be given; got neither.")
    check_outputs(onnx, inputs=(calibrator,), force=force, stream=False)
    fitted = load_calibrator(calibrator)
    if sql:
        write_text("-", _write_sql(fitted, columns, dialect))
    if onnx is not None:
        from calibrant.export.onnx_graph import to_onnx

        model = to_onnx(fitted).SerializeToString()
        write_file(onnx, model, follow_links=False)
        click.echo(f"{len(model):,} bytes: {Path(onnx).name}", err=sql)


def _write_sql(calibrator: Any, columns: tuple[str, ...], dialect: str) -> str:
    """Return the expression of the calibrated score, or of several classes one per line with its label as name."""
    from calibrant.export.sql import to_sql

    one = {"column": columns[0]} if len(columns) == 1 else {}
    sql: str | dict[Any, str] = to_sql(calibrator, **one, columns=columns, dialect=dialect)
    if isinstance(sql, str):
        return sql
    name = get_dialect(dialect).name
    return ",\n".join(f"{expression} AS {name(str(label))}" for label, expression in sql.items())
