"""``calibrant compare``."""

from collections.abc import Sequence
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
    from calibrant.results.comparison import Comparison

__all__ = ["compare"]


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
    check_outputs(html, json_file, inputs=given["paths"], force=force)
    source = Source.take(given)
    settings = take_settings(given, source.kind)
    read = _compare_scores if source.kind == "binary" else _compare_forecasts
    result, counts, inputs = read(source, cluster, settings)
    if html is not None:
        from calibrant.report import write_comparison

        page = write_comparison(result, title=source.title, inputs=inputs, commands=source.commands)
        write_text(html, page.rstrip("\n"))
    if json_file is not None:
        write_json(json_file, {**result.to_dict(), **counts, "inputs": inputs})
    if "-" not in (json_file, html):
        from calibrant.cli.console import checksum_lines, console, print_comparison

        out = console()
        print_comparison(result, out=out)
        for text in checksum_lines(inputs):
            out.print(text)
        if html is not None:
            click.echo(f"  report: {Path(html).name}")


def _compare_scores(
    source: Source, cluster: str | None, settings: dict[str, Any]
) -> "tuple[Comparison, dict[str, int], list[dict[str, Any]]]":
    """Compare scores of one event; also return numbers of rows and the checksums of the files."""
    from calibrant.evaluation.compare import compare as compare_scores

    _check_count(source.option, source.scores)
    rows = source.read_rows(*([] if cluster is None else [cluster]), whole=True)
    forecasts = {score: rows.columns[score] for score in source.scores}
    clusters = None if cluster is None else rows.columns[cluster]
    result = compare_scores(
        rows.events, forecasts, cluster=clusters, missing=source.missing, **rows.weights, **settings
    )
    return replace(result, own_notes=(*result.own_notes, *rows.notes)), _row_counts(result), rows.inputs


def _compare_forecasts(
    source: Source, cluster: str | None, settings: dict[str, Any]
) -> "tuple[Comparison, dict[str, int], list[dict[str, Any]]]":
    """Compare forecasts of any kind but binary, on the rows that have all of them."""
    from calibrant.cli.forecast_rows import read_forecasts
    from calibrant.evaluation.compare import compare as compare_forecasts

    rows = read_forecasts(source, cluster=cluster)
    _check_count(source.option, [model.name for model in rows.models])
    forecasts = {model.name: rows.forecast(model) for model in rows.models}
    options = {**rows.options, **rows.classes, **settings}
    result = compare_forecasts(rows.outcomes(*rows.models), forecasts, **options)
    return result, _row_counts(result), rows.inputs


def _row_counts(result: "Comparison") -> dict[str, int]:
    table = result.models[result.baseline].table
    return {"n_in": table.n_in, "n_used": table.n_in - table.n_dropped, "n_dropped": table.n_dropped}


def _check_count(option: str, names: Sequence[str]) -> None:
    if len(names) < 2:
        raise InputError(
            f"compare needs at least two forecasts; got {len(names)}.", hint="Repeat " + Argument(option) + "."
        )
