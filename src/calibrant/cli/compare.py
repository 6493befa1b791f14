"""``calibrant compare``."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant.cli.inputs import FileRows, Source
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
    from calibrant.evaluation.comparison_result import Comparison

__all__ = ["compare"]


@click.command
@input_options(several=True, counted=False)
@cluster_option
@evaluation_options
@html_option
@json_option
@force_option
def compare(cluster: str | None, html: str | None, json_file: str | None, force: bool, **given: Any) -> None:
    """Compare the calibration of several scores in FILES on the same rows.

    The difference of the squared log-odds errors decides. The first score is the baseline.

    \b
      calibrant compare scores.parquet --label outcome --score old --score new
    """
    check_outputs(html, json_file, force=force)
    source, settings = Source.take(given), take_settings(given)
    if len(source.scores) < 2:
        hint = "Repeat " + Argument("p") + "."
        raise InputError(f"compare needs at least two scores; got {len(source.scores)}.", hint=hint)
    rows = source.read_rows(*([] if cluster is None else [cluster]))
    result = _compare(rows, source.scores, cluster, settings)
    if html is not None:
        from calibrant.report import write_comparison

        write_text(html, write_comparison(result, title=source.title, inputs=rows.inputs).rstrip("\n"))
    if json_file is not None:
        table = result.models[result.baseline].table  # counts no row that was dropped before
        dropped = table.n_dropped + rows.n_dropped
        counts = {"n_in": table.n_in + rows.n_dropped, "n_used": table.n_used, "n_dropped": dropped}
        write_json(json_file, {**result.to_dict(), **counts, "inputs": rows.inputs})
    if "-" not in (json_file, html):
        from calibrant.cli.console import checksum_lines, console, print_comparison

        out = console()
        print_comparison(result, out=out)
        for text in checksum_lines(rows.inputs):
            out.print(text)
        if html is not None:
            click.echo(f"  report: {Path(html).name}")


def _compare(rows: FileRows, scores: list[str], cluster: str | None, settings: dict[str, Any]) -> "Comparison":
    from calibrant.evaluation.comparison import compare as compare_scores

    forecasts = {score: rows.columns[score] for score in scores}
    clusters = None if cluster is None else rows.columns[cluster]
    result = compare_scores(rows.events, forecasts, cluster=clusters, **rows.weights, **settings)
    return replace(result, own_notes=(*result.own_notes, *rows.notes))
