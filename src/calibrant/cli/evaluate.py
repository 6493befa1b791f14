"""``calibrant evaluate``."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant.cli.inputs import Source
from calibrant.cli.options import (
    cluster_option,
    evaluation_options,
    force_option,
    html_option,
    input_options,
    json_option,
    take_settings,
)
from calibrant.cli.outputs import check_outputs, write_json, write_text

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation

__all__ = ["evaluate", "evaluate_files"]


@click.command
@input_options(groups=True)
@cluster_option
@evaluation_options
@html_option
@json_option
@force_option
def evaluate(html: str | None, json_file: str | None, force: bool, **given: Any) -> None:
    """Evaluate the calibration of the forecasts in FILES.

    The option that names the forecast states its kind: --score the probability of an event, --class-score those of
    several classes, --predicted-label classes, --point numbers, and --mean with --sd, --quantile or --sample
    distributions of numbers.

    Metrics with confidence intervals and null ranges, tests, and a verdict: calibrated, negligible (significant, but
    shown to lie within the margin), miscalibrated (with its direction), or inconclusive.

    \b
      calibrant evaluate scores.parquet --label outcome --score probability
      calibrant evaluate day1.csv day2.csv -y outcome -p old -p new --by country --json result.json
      cat scores.csv | calibrant evaluate - -y outcome -p probability --cost 1:5
      calibrant evaluate digits.csv --label digit --class-score 'p_*'
      calibrant evaluate prices.csv --label price --mean predicted --sd spread
    """
    check_outputs(html, json_file, inputs=given["paths"], force=force)
    source = Source.take(given)
    results, inputs = evaluate_files(source, given)
    if html is not None:
        from calibrant.report import write_evaluations

        page = write_evaluations(results, title=source.title, inputs=inputs, commands=source.commands)
        write_text(html, page.rstrip("\n"))
    if json_file is not None:
        models = {score: result.to_dict() for score, result in results.items()}
        write_json(json_file, {"schema_version": 2, "result": "evaluations", "inputs": inputs, "models": models})
    if "-" not in (json_file, html):  # after the files, because the reader of the output may close it
        _print(results, inputs)
        if html is not None:
            click.echo(f"  report: {Path(html).name}")


def evaluate_files(source: Source, given: dict[str, Any]) -> "tuple[dict[str, Evaluation], list[dict[str, Any]]]":
    """Evaluate each forecast of the input; also return the checksums of the files."""
    from calibrant.evaluation.evaluate import evaluate as evaluate_scores

    cluster, settings = given.pop("cluster"), take_settings(given, source.kind)
    if source.kind != "binary":
        return _evaluate_forecasts(source, cluster, settings)
    if cluster is not None:
        return _evaluate_rows(source, cluster, settings)
    tables, inputs = source.read_tables()
    return {score: evaluate_scores(tables.only(score), **settings) for score in tables.models}, inputs


def _evaluate_rows(
    source: Source, cluster: str, settings: dict[str, Any]
) -> "tuple[dict[str, Evaluation], list[dict[str, Any]]]":
    """Evaluate rows in clusters, which tables do not keep."""
    from calibrant.evaluation.evaluate import evaluate as evaluate_scores

    if source.spark is not None or source.resolution is not None:
        raise InputError(
            Argument("cluster") + " must not be given with " + Argument("spark") + " or " + Argument("resolution") + "."
        )
    rows = source.read_rows(cluster, *source.by, whole=True)
    by = {name: rows.columns[name] for name in source.by} or None
    options = {**rows.weights, **settings, "by": by, "cluster": rows.columns[cluster], "missing": source.missing}
    found = {score: evaluate_scores(rows.events, rows.columns[score], **options) for score in source.scores}
    return {
        score: replace(result, own_notes=(*result.own_notes, *rows.notes)) for score, result in found.items()
    }, rows.inputs


def _evaluate_forecasts(
    source: Source, cluster: str | None, settings: dict[str, Any]
) -> "tuple[dict[str, Evaluation], list[dict[str, Any]]]":
    """Evaluate forecasts of any kind but binary, each on all rows that have it."""
    from calibrant.cli.forecast_rows import read_forecasts
    from calibrant.evaluation.evaluate import evaluate as evaluate_forecast

    rows = read_forecasts(source, cluster=cluster)
    options = {**rows.options, **rows.classes, **settings}
    return {
        model.name: evaluate_forecast(rows.outcomes(model), rows.forecast(model), **options) for model in rows.models
    }, rows.inputs


def _print(results: "dict[str, Evaluation]", inputs: list[dict[str, Any]]) -> None:
    from calibrant.cli.console import checksum_lines, console, print_evaluation

    out = console()
    for place, (score, result) in enumerate(results.items()):
        out.print("\n" if place else "", end="")
        print_evaluation(result, name=score if len(results) > 1 else "", out=out)
    for text in checksum_lines(inputs):
        out.print(text)
    if len(results) > 1:
        out.print(
            "\n  Each forecast is evaluated on all rows that have it; `calibrant compare` compares on the same rows."
        )
