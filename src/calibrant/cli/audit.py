"""``calibrant audit``."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant.cli.inputs import Source
from calibrant.cli.options import (
    audit_options,
    cluster_option,
    force_option,
    html_option,
    input_options,
    json_option,
)
from calibrant.cli.outputs import check_outputs, write_json, write_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant._support.errors import Note
    from calibrant.evaluation.audit.result import Audit

__all__ = ["audit", "audit_files", "split_names"]


@click.command
@input_options(("p", "class_score", "point"), counted=False)
@click.option(
    "--features",
    "-f",
    multiple=True,
    required=True,
    metavar="COLUMNS",
    help="The columns that rules are made of, comma-separated; can be repeated.",
)
@cluster_option
@audit_options
@click.option("--csv", "csv_file", metavar="FILE", help="Write one row per segment as CSV; - is standard output.")
@html_option
@json_option
@force_option
def audit(
    features: tuple[str, ...], csv_file: str | None, html: str | None, json_file: str | None, force: bool, **given: Any
) -> None:
    """Find segments of the rows in FILES in which a forecast is miscalibrated.

    Segments are rules of up to --depth conditions on features and on the forecast. Half of the rows are searched; the
    rules are tested on the other half, and the other way round. If the forecast is calibrated in every segment, any
    segment is reported with a probability of at most --alpha. Files may be larger than memory.

    \b
      calibrant audit loans.parquet --label default --score probability --features age,region,income
      calibrant audit prices.csv --label price --point predicted -f rooms -f district --html audit.html
      calibrant audit digits.csv --label digit --class-score 'p_*' --features writer,pen --json -
    """
    check_outputs(html, json_file, csv_file, inputs=given["paths"], force=force)
    source = Source.take(given)
    results, inputs = audit_files(source, split_names(features), given)
    _write(results, inputs, source, csv_file, html, json_file)
    if "-" not in (json_file, html, csv_file):
        _print(results, inputs)
        if html is not None:
            click.echo(f"  report: {Path(html).name}")


def split_names(names: tuple[str, ...]) -> list[str]:
    """Return the columns of a repeated option whose values are comma-separated names."""
    return list(dict.fromkeys(name.strip() for each in names for name in each.split(",") if name.strip()))


def audit_files(
    source: Source, features: list[str], given: dict[str, Any]
) -> "tuple[dict[str, Audit], list[dict[str, Any]]]":
    """Audit each forecast of the input; also return the checksums of the files."""
    from calibrant.evaluation.audit.file_audit import audit_scan
    from calibrant.forecasts.predictions import Point
    from calibrant.ingest.files import column_names, find_files

    if not features:
        raise InputError(Argument("features") + " must name at least one column; got none.")
    settings = {
        **{name: given[name] for name in ("depth", "min_rows", "alpha", "confidence_level", "random_state", "cluster")},
        **({} if given.get("n_resamples") is None else {"n_resamples": given["n_resamples"]}),
        **{name: getattr(source, name) for name in ("y", "sample_weight", "frequency", "missing", "format")},
        "memory_limit": source.reading_memory,
        "features": features,
    }
    found = {}
    with source.open_files() as (files, inputs):
        for model in source.models(column_names(find_files(files, source.format)[0])):
            forecast: Any = model.columns[0]
            if source.kind == "point":
                forecast = Point(forecast)
            elif source.kind == "multiclass":
                forecast = dict(zip(model.keys, model.columns, strict=True))
            scan = partial(audit_scan, files, **settings, p=forecast)
            found[model.name] = source.try_pos_label(partial(_scan_event, scan), _notes)
    return found, inputs


def _scan_event(scan: "Callable[..., Audit]", label: object) -> "Audit":
    return scan(pos_label=label)


def _notes(found: "Audit") -> "tuple[Note, ...]":
    return found.notes


def _write(
    results: "dict[str, Audit]",
    inputs: list[dict[str, Any]],
    source: Source,
    csv_file: str | None,
    html: str | None,
    json_file: str | None,
) -> None:
    if html is not None:
        from calibrant.report import write_audits

        title = source.title.replace("Calibration", "Audit", 1)
        write_text(html, write_audits(results, title=title, inputs=inputs).rstrip("\n"))
    if json_file is not None:
        models = {name: result.to_dict() for name, result in results.items()}
        write_json(json_file, {"schema_version": 2, "result": "audits", "inputs": inputs, "models": models})
    if csv_file is not None:
        write_text(csv_file, _csv(results))


def _csv(results: "dict[str, Audit]") -> str:
    """Return the segments as CSV, with the model where there are several."""
    import csv
    from io import StringIO

    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    first = next(iter(results.values()))
    writer.writerow([*(["model"] if len(results) > 1 else []), *first.columns()])
    for name, result in results.items():
        for row in result.rows():
            writer.writerow([*([name] if len(results) > 1 else []), *row])
    return out.getvalue().rstrip("\n")


def _print(results: "dict[str, Audit]", inputs: list[dict[str, Any]]) -> None:
    from calibrant.cli.console import checksum_lines, console, print_audit

    out = console()
    for place, (name, result) in enumerate(results.items()):
        out.print("\n" if place else "", end="")
        print_audit(result, name=name if len(results) > 1 else "", out=out)
    for text in checksum_lines(inputs):
        out.print(text)
