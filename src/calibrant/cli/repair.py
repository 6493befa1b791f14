"""``calibrant fit``, ``apply`` and ``export``."""

import json
import warnings
from pathlib import Path
from typing import Any

import click

from calibrant._support.errors import InputError
from calibrant.cli.inputs import Source, source_options
from calibrant.cli.measure import cost_of
from calibrant.cli.outputs import check_outputs, force_option, write_text, written

__all__ = ["apply", "export", "fit"]

_FOLDS = 5
# Named here so that --help need not import scikit-learn; a test compares them with calibrant.CALIBRATORS.
METHODS = (
    "binning_average",
    "isotonic",
    "platt",
    "temperature",
    "beta",
    "venn_abers",
    "prior_shift",
    "cats",
    "caps",
)


@click.command(short_help="Learn a calibrator, and keep it in a file.")
@source_options(counted=False)
@click.option("--method", type=click.Choice(METHODS), default="isotonic", show_default=True, help="What to learn.")
@click.option("--cost", metavar="OVER:UNDER", help="For cats and caps: the costs of predicting too high and too low.")
@click.option(
    *("--set", "settings"), multiple=True, metavar="NAME=VALUE", help="A setting of the method, such as n_bins=20."
)
@click.option("--output", "-o", required=True, metavar="FILE", help="Where to keep the calibrator (JSON).")
@force_option
def fit(method: str, cost: str | None, settings: tuple[str, ...], output: str, force: bool, **given: Any) -> None:
    """Learn a calibrator from the scores and outcomes in FILES.

    The rows must not be those that the model learned from. What the calibrator is worth is said by cross-fitting: each
    fifth of the rows is calibrated by what the others taught.

    \b
      calibrant fit valid.parquet --label happened --score probability --method platt -o cal.json
      calibrant apply cal.json new.parquet --score probability -o calibrated.parquet
    """
    import calibrant as cb
    from calibrant._support import columns as _columns
    from calibrant.cli.console import file_lines

    check_outputs(output, force=force, stream=False)
    source = Source.take(given)
    if len(source.scores) > 1:
        raise InputError("fit takes one score.", hint="Fit one calibrator for each.")
    calibrator = _new(method, cost, settings)
    weighting = source.weighting
    score, weights = source.scores[0], [] if weighting is None else [weighting.name]
    names = list(dict.fromkeys([source.label, score, *weights]))
    columns, about = source.rows(names, [score, *weights])
    looked_at = _columns.finite if calibrator.takes_any_score else _columns.scores
    looked_at(columns[score])  # here, so that an error names the column and the row of the file
    if weighting is not None:
        weighting.checked(columns[weighting.name])
    events = source.as_meant(lambda label: _columns.labels(columns[source.label], label))
    read = [events, columns[score], *(columns[name] for name in weights)]
    if source.missing == "raise":
        _columns.refuse_missing(read, hint="Pass --missing drop to leave such rows out.")
    kept = ~_any_missing(read)
    y, x = events.values[kept] == 1, columns[score].values[kept]
    # In fit the sum of weights plays the number of rows, so that weights and frequencies give the same map.
    w = columns[weighting.name].values[kept] if weighting is not None else None
    if not len(x):
        raise InputError("No row has a label and a score.")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _taught(calibrator, x, y, w)
    with written(output) as target:
        cb.save(calibrator, target)
    click.echo(f"{type(calibrator).__name__} of {len(x):,} row{'s' * (len(x) > 1)}: {Path(output).name}")
    if not kept.all():
        click.echo(f"Rows left out because a value is missing: {(~kept).sum():,}.")
    for note in dict.fromkeys(str(each.message) for each in caught):
        click.echo(f"note: {note}")
    for line in [
        *_worth(calibrator, x, y, w, counts=source.frequency is not None),
        *(text.plain for text in file_lines(about)),
    ]:
        click.echo(line)


def _taught(calibrator: Any, x: Any, y: Any, w: Any) -> None:
    try:
        calibrator.fit(x, y, sample_weight=w)
    except InputError as error:  # about its own settings, which are no options of ours
        raise InputError(str(error)) from error


def _new(method: str, cost: str | None, settings: tuple[str, ...]) -> Any:
    import calibrant as cb

    given: dict[str, Any] = {}
    for setting in settings:
        name, mark, value = setting.partition("=")
        if not mark:
            raise InputError(f"--set must be NAME=VALUE; it is {setting!r}.", hint="For example --set n_bins=20.")
        given[name.strip()] = _value(value.strip())
    if cost is not None:
        given["cost"] = cost_of(cost)
    kind = cb.CALIBRATORS[method]
    unknown = [name for name in given if name not in kind().get_params()]
    if unknown:
        known = ", ".join(kind().get_params()) or "none"
        raise InputError(f"{method} has no setting {unknown[0]!r}; it has {known}.", argument=unknown[0])
    return kind(**given)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _any_missing(columns: list[Any]) -> Any:
    import numpy as np

    return np.logical_or.reduce([column.mask for column in columns])


def _worth(calibrator: Any, x: Any, y: Any, w: Any, *, counts: bool) -> list[str]:
    """Brier score and ACE before and after, on rows that the calibrator did not learn from."""
    import numpy as np
    from sklearn.base import clone

    import calibrant as cb

    order = np.random.default_rng(0).permutation(len(x))
    after = np.zeros(len(x))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit of all rows has said it
            for fold in np.array_split(order, _FOLDS):
                rest = np.setdiff1d(order, fold, assume_unique=True)
                taught = clone(calibrator).fit(x[rest], y[rest], sample_weight=None if w is None else w[rest])
                after[fold] = taught(x[fold])
    except InputError:  # too few rows, or only one outcome among them
        return [f"Too few rows to say what it is worth ({_FOLDS}-fold cross-fitting)."]
    weights = {"frequency" if counts else "sample_weight": w}
    lines = []
    for name, metric in {"Brier score": cb.METRICS["brier"](), "ACE": cb.ACE()}.items():
        values = []
        for scores in (x, after):
            try:
                values.append(f"{float(metric(cb.ScoreTable.from_arrays(y, scores, **weights))):.5f}")
            except InputError:  # scores that are no probabilities, such as margins
                values.append("none (no probabilities)")
        lines.append(f"{name}: {values[0]} before, {values[1]} after ({_FOLDS}-fold cross-fitted)")
    return lines


@click.command(short_help="Calibrate the scores in a file.")
@click.argument("calibrator", metavar="CALIBRATOR")
@click.argument("file", metavar="FILE")
@click.option("--score", "-p", required=True, metavar="COLUMN", help="The column of scores.")
@click.option("--name", default="calibrated", show_default=True, metavar="COLUMN", help="The column to add.")
@click.option("--output", "-o", required=True, metavar="FILE", help="Where to write: .parquet, .csv or .jsonl.")
@force_option
def apply(calibrator: str, file: str, score: str, name: str, output: str, force: bool) -> None:
    """Add the calibrated probability to the rows of FILE.

    All other columns stay as they are: cells of CSV files the text they were, objects of JSON lines with their keys.
    A row without a score gets no probability, and is counted.

    \b
      calibrant apply cal.json new.parquet --score probability -o calibrated.parquet
    """
    import calibrant as cb
    from calibrant.export.scored_files import calibrate_file, kind_of

    check_outputs(output, force=force, stream=False)
    if not Path(file).is_file():
        raise InputError(f"There is no file {Path(file).name!r}.")
    kind, known = kind_of(output), _loaded(cb, calibrator)
    with written(output) as target:
        count = calibrate_file(known, Path(file), target, kind, score=score, name=name)
    click.echo(f"{count['rows']:,} rows: {Path(output).name}")
    if count["missing"]:
        click.echo(f"Rows without a score, which get no probability: {count['missing']:,}.")


def _loaded(cb: Any, path: str) -> Any:
    if not Path(path).is_file():
        raise InputError(f"There is no file {Path(path).name!r}.", hint="`calibrant fit` makes one.")
    return cb.load(path)


@click.command(short_help="A calibrator as SQL or ONNX.")
@click.argument("calibrator", metavar="CALIBRATOR")
@click.option("--sql", is_flag=True, help="Print an SQL expression of the calibrated probability.")
@click.option("--column", default="score", show_default=True, help="With --sql: the column of scores.")
@click.option(
    "--dialect",
    type=click.Choice(["duckdb", "postgresql", "spark", "sqlite"]),
    default="duckdb",
    show_default=True,
    help="With --sql: of which database.",
)
@click.option("--onnx", metavar="FILE", help="Write an ONNX model.")
@force_option
def export(calibrator: str, sql: bool, column: str, dialect: str, onnx: str | None, force: bool) -> None:
    """A calibrator for where scores are made: an SQL expression, or an ONNX model.

    \b
      calibrant export cal.json --sql --column probability --dialect spark
      calibrant export cal.json --onnx cal.onnx
    """
    import calibrant as cb

    if not sql and onnx is None:
        raise click.UsageError("Say --sql, or --onnx FILE.")
    check_outputs(onnx, force=force, stream=False)
    known = _loaded(cb, calibrator)
    if sql:
        write_text("-", cb.to_sql(known, column, dialect=dialect))
    if onnx is not None:
        model = cb.to_onnx(known).SerializeToString()
        with written(onnx) as target:
            target.write_bytes(model)
        click.echo(f"{len(model):,} bytes: {Path(onnx).name}", err=sql)
