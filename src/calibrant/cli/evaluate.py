"""``calibrant evaluate``."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from calibrant._support.errors import InputError
from calibrant.cli.inputs import Source, source_options
from calibrant.cli.measure import asked_of, cluster_option, measure_options
from calibrant.cli.outputs import check_outputs, force_option, write_json, write_text
from calibrant.report import write_evaluations
from calibrant.tables.score_table import left_out

__all__ = ["evaluate", "evaluated", "title_of"]


@click.command(short_help="Evaluate the calibration of scores.")
@source_options(several=True, groups=True)
@cluster_option
@measure_options
@click.option("--html", metavar="FILE", help="Write the report: one page with everything in it.")
@click.option("--json", "json_file", metavar="FILE", help="Write everything as JSON; - is standard output.")
@force_option
def evaluate(html: str | None, json_file: str | None, force: bool, **given: Any) -> None:
    """Evaluate the calibration of the scores in FILES.

    Metrics with confidence intervals and null ranges, tests, and a verdict: calibrated, negligible (significant, but
    shown to lie within the margin), miscalibrated (and which way), or inconclusive.

    \b
      calibrant evaluate scores.parquet --label happened --score probability
      calibrant evaluate day1.csv day2.csv -y happened -p old -p new --by country --json result.json
      cat scores.csv | calibrant evaluate - -y happened -p probability --cost 1:5
    """
    check_outputs(html, json_file, force=force)
    files = given["files"]
    results, about = evaluated(given)
    if html is not None:
        write_text(html, write_evaluations(results, title=title_of(files), inputs=about).rstrip("\n"))
    if json_file is not None:
        models = {model: result.to_dict() for model, result in results.items()}
        write_json(json_file, {"schema_version": 1, "kind": "evaluations", "inputs": about, "models": models})
    if "-" not in (json_file, html):  # what is written comes first: nobody may read what is printed
        _show(results, about)
        if html is not None:
            click.echo(f"  report: {Path(html).name}")


def _show(results: dict[str, Any], about: list[dict[str, Any]]) -> None:
    from calibrant.cli.console import console, file_lines, show_evaluation

    out = console()
    for place, (model, result) in enumerate(results.items()):
        out.print("\n" if place else "", end="")
        show_evaluation(result, name=model if len(results) > 1 else "", out=out)
    for text in file_lines(about):
        out.print(text)
    if len(results) > 1:
        out.print("\n  Each score for itself, on the rows that have it; `calibrant compare` says which is better.")


def title_of(files: tuple[str, ...]) -> str:
    """What a report is about: its files, without their folders."""
    names = ", ".join("standard input" if name == "-" else Path(name).name or name for name in files[:3])
    return f"Calibration of {names}{', ...' if len(files) > 3 else ''}"


def evaluated(given: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The evaluation of every score that the options name, and what is to be said about the files."""
    import calibrant as cb

    source, cluster = Source.take(given), given.pop("cluster", None)
    asked = asked_of(given)
    if cluster is not None:
        return _clustered(source, cluster, asked)
    tables, about = source.tables()
    return {model: cb.evaluate(tables.only(model), **asked) for model in tables.models}, about


def _clustered(source: Source, cluster: str, asked: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Evaluations of rows in clusters, which tables do not know."""
    import numpy as np

    import calibrant as cb

    if source.spark is not None or source.resolution is not None or len(source.by) > 1:
        raise InputError("--cluster takes neither --spark nor --resolution, and at most one --by.")
    scores, by = list(dict.fromkeys(source.scores)), list(source.by)
    kept, weights, about, dropped = source.complete_rows(scores, [cluster, *by])
    note = () if not dropped else (left_out(dropped),)

    def read(score: str, pos_label: object) -> Any:
        groups = None if not by else np.asarray(kept[by[0]])
        options = {**weights, **asked, "pos_label": pos_label, "by": groups, "cluster": kept[cluster]}
        found = cb.evaluate(kept[source.label], kept[score], **options)
        return replace(found, by=by[0] if by else None, own_notes=(*found.own_notes, *note))

    return {score: source.as_meant(partial(read, score)) for score in scores}, about
