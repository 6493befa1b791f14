"""``calibrant fit``."""

import json
import warnings
from pathlib import Path
from typing import Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant.cli.inputs import Source
from calibrant.cli.options import force_option, input_options, parse_cost
from calibrant.cli.outputs import check_outputs, new_file

__all__ = ["METHODS", "fit"]

_FOLDS = 5
# The binary calibrators of calibrant.CALIBRATORS, repeated here so that --help does not import scikit-learn.
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


@click.command
@input_options(("p",), counted=False)
@click.option("--method", type=click.Choice(METHODS), default="isotonic", show_default=True, help="The calibrator.")
@click.option(
    "--cost",
    type=parse_cost,
    metavar="OVER:UNDER",
    help="Costs of overestimation and underestimation, for cats and caps.",
)
@click.option(
    *("--set", "settings"), multiple=True, metavar="NAME=VALUE", help="A parameter of the calibrator: n_bins=20."
)
@click.option("--output", "-o", required=True, metavar="FILE", help="The file of the calibrator (JSON).")
@force_option
def fit(method: str, cost: Any, settings: tuple[str, ...], output: str, force: bool, **given: Any) -> None:
    """Fit a calibrator to the scores and outcomes in FILES.

    The rows must not be those that the model was fitted to. The printed metrics are cross-fitted: each fifth of the
    rows is calibrated by a calibrator that was fitted to the others.

    \b
      calibrant fit valid.parquet --label outcome --score probability --method platt -o cal.json
      calibrant apply cal.json new.parquet --score probability -o calibrated.parquet
    """
    from calibrant.export.calibrator_files import save

    check_outputs(output, force=force, stream=False)
    source, calibrator = Source.take(given), _new_calibrator(method, cost, settings)
    if len(source.scores) > 1:
        raise InputError(f"fit needs one score; got {len(source.scores)}.", hint="Fit one calibrator per score.")
    rows = source.read_rows(any_score=calibrator.accepts_any_score)
    scores = rows.columns[source.scores[0]]
    # In fit the sum of weights plays the number of rows, so that weights and frequencies give the same map.
    weight = next((each for each in rows.weights.values() if each is not None), None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        calibrator.fit(scores, rows.events, sample_weight=weight)
    with new_file(output) as file:
        save(calibrator, file)
    count = f"{len(scores):,} row{'s' * (len(scores) > 1)}"
    click.echo(f"{type(calibrator).__name__} fitted to {count}: {Path(output).name}")
    for note in dict.fromkeys([*(note.text for note in rows.notes), *(str(each.message) for each in caught)]):
        click.echo(f"note: {note}")
    for text in _improvement(calibrator, scores, rows.events, rows.weights):
        click.echo(text)
    _print_checksums(rows.inputs)


def _new_calibrator(method: str, cost: Any, settings: tuple[str, ...]) -> Any:
    """Return an unfitted calibrator with the parameters that were given."""
    from calibrant.calibrators.registry import CALIBRATORS

    given: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(Argument("settings") + f" must be NAME=VALUE, such as n_bins=20; got {setting!r}.")
        given[name.strip()] = _parse(value.strip())
    if cost is not None:
        given["cost"] = cost
    kind = CALIBRATORS[method]
    known = list(kind().get_params())
    unknown = [name for name in given if name not in known]
    if unknown:
        there = f"it has {', '.join(known)}" if known else "it has none"
        raise InputError(f"{method} has no parameter {unknown[0]!r}; {there}.", argument=unknown[0])
    return kind(**given)


def _parse(text: str) -> Any:
    """Return a number, list, truth value or null as in JSON, or else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _improvement(calibrator: Any, scores: Any, events: Any, weights: dict[str, Any]) -> list[str]:
    """Return the Brier score and ACE before and after cross-fitted calibration, as text."""
    from calibrant.calibrators.cross_fitting import cross_fit
    from calibrant.metrics.calibration_errors import ACE
    from calibrant.metrics.proper_scores import Brier
    from calibrant.tables.score_table import ScoreTable

    weight = next((each for each in weights.values() if each is not None), None)
    try:
        after = cross_fit(calibrator, scores, events, sample_weight=weight, n_folds=_FOLDS)
    except InputError:  # a fold has too few rows, or one outcome only
        return [f"Too few rows for {_FOLDS}-fold cross-fitted metrics."]

    def value(metric: Any, forecast: Any) -> str:
        try:
            return f"{float(metric(ScoreTable.from_arrays(events, forecast, **weights))):.5f}"
        except InputError:  # scores that are not probabilities, such as margins
            return "undefined"

    metrics = {"Brier score": Brier(), "ACE": ACE()}
    return [
        f"{name}: {value(metric, scores)} before, {value(metric, after)} after ({_FOLDS}-fold cross-fitted)"
        for name, metric in metrics.items()
    ]


def _print_checksums(inputs: list[dict[str, Any]]) -> None:
    from calibrant.cli.console import checksum_lines

    for text in checksum_lines(inputs):
        click.echo(text.plain)
