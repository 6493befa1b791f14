"""``calibrant evaluate`` and ``calibrant compare``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant.cli.command_files import check_outputs, write_json, write_text
from calibrant.cli.inputs import Source, take_settings
from calibrant.cli.options import (
    cluster_option,
    evaluation_options,
    force_option,
    html_option,
    input_options,
    json_option,
)
from calibrant.kinds.forecast_columns import Model

if TYPE_CHECKING:
    from calibrant.results.evaluation import Evaluation

__all__ = ["compare", "evaluate", "evaluate_files"]

_SAME_ROWS = "\n  Each forecast is evaluated on all rows that have it; `calibrant compare` compares on the same rows."


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
        models = {name: result.to_dict() for name, result in results.items()}
        write_json(json_file, {"schema_version": 3, "result": "evaluations", "inputs": inputs, "models": models})
    if "-" not in (json_file, html):  # after the files, because the reader of the output may close it
        from calibrant.cli.console import print_evaluation, print_results

        print_results(results, print_evaluation, inputs)
        if len(results) > 1:
            click.echo(_SAME_ROWS)
        if html is not None:
            click.echo(f"  report: {Path(html).name}")


def evaluate_files(source: Source, given: dict[str, Any]) -> "tuple[Mapping[str, Evaluation], list[dict[str, Any]]]":
    """Evaluate each forecast of the input; also return the checksums of the files. Rows in clusters are not counted."""
    import calibrant as cb

    cluster, settings = given.pop("cluster"), take_settings(given)
    if cluster is None and source.form.is_counted:
        tables, inputs = source.read_tables()
        return {name: cb.evaluate(tables.only(name), **settings) for name in tables.models}, inputs
    if source.spark is not None or source.resolution is not None:
        raise InputError(
            Argument("cluster") + " must not be given with " + Argument("spark") + " or " + Argument("resolution") + "."
        )
    rows = source.read_rows(cluster=cluster)
    results = {
        model.name: cb.evaluate(rows.outcomes(model), rows.forecast(model), **rows.arguments(model), **settings)
        for model in rows.models
    }
    return {name: replace(e, own_notes=(*e.own_notes, *rows.notes)) for name, e in results.items()}, rows.inputs


@click.command
@input_options(counted=False)
@cluster_option
@evaluation_options
@html_option
@json_option
@force_option
def compare(cluster: str | None, html: str | None, json_file: str | None, force: bool, **given: Any) -> None:
    """Compare the calibration of several forecasts in FILES on the same rows.

    The forecasts are of one kind; the first is the baseline. Scores of an event are compared by their squared log-odds
    errors. Each pattern of --class-score, --quantile or --sample names one model.

    \b
      calibrant compare scores.parquet --label outcome --score old --score new
      calibrant compare prices.csv --label price --point old --point new
      calibrant compare digits.csv --label digit --class-score 'old_*' --class-score 'new_*'
    """
    import calibrant as cb

    check_outputs(html, json_file, inputs=given["paths"], force=force)
    source = Source.take(given)
    settings = take_settings(given)
    rows = source.read_rows(cluster=cluster, check_models=lambda models: _check_several(models, source.option))
    result = cb.compare(
        rows.outcomes(*rows.models),
        {model.name: rows.forecast(model) for model in rows.models},
        **rows.arguments(rows.models[0]),
        **settings,
    )
    result = replace(result, own_notes=(*result.own_notes, *rows.notes))
    if html is not None:
        from calibrant.report import write_comparison

        page = write_comparison(result, title=source.title, inputs=rows.inputs, commands=source.commands)
        write_text(html, page.rstrip("\n"))
    if json_file is not None:
        table = result.models[result.baseline].table
        counts = {"n_in": table.n_in, "n_used": table.n_in - table.n_dropped, "n_dropped": table.n_dropped}
        write_json(json_file, {**result.to_dict(), **counts, "inputs": rows.inputs})
    if "-" not in (json_file, html):
        from calibrant.cli.console import print_comparison, print_results

        print_results({"": result}, print_comparison, rows.inputs)
        if html is not None:
            click.echo(f"  report: {Path(html).name}")


def _check_several(models: Sequence[Model], option: str) -> None:
    if len(models) < 2:
        raise InputError(
            f"compare needs at least two forecasts; got {len(models)}.", hint="Repeat " + Argument(option) + "."
        )
