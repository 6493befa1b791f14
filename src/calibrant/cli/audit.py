"""``calibrant audit``."""

import csv
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant.cli.command_files import check_outputs, write_json, write_text
from calibrant.cli.inputs import Source
from calibrant.cli.options import (
    audit_options,
    cluster_option,
    force_option,
    html_option,
    input_options,
    json_option,
    names_of_forecasts,
)
from calibrant.kinds.forecast_columns import try_pos_label

if TYPE_CHECKING:
    from calibrant.results.audit import Audit

__all__ = ["audit", "audit_files", "split_names"]


@click.command
@input_options(names_of_forecasts(lambda form: form.audited), counted=False)
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
    if html is not None:
        from calibrant.report import write_audits

        title = source.title.replace("Calibration", "Audit", 1)
        write_text(html, write_audits(results, title=title, inputs=inputs).rstrip("\n"))
    if json_file is not None:
        models = {name: result.to_dict() for name, result in results.items()}
        write_json(json_file, {"schema_version": 2, "result": "audits", "inputs": inputs, "models": models})
    if csv_file is not None:
        write_text(csv_file, _csv(results))
    if "-" not in (json_file, html, csv_file):
        from calibrant.cli.console import print_audit, print_results

        print_results(results, print_audit, inputs)
        if html is not None:
            click.echo(f"  report: {Path(html).name}")


def split_names(names: tuple[str, ...]) -> list[str]:
    """Return the columns of a repeated option whose values are comma-separated names."""
    return list(dict.fromkeys(name.strip() for listed in names for name in listed.split(",") if name.strip()))


def audit_files(
    source: Source, features: list[str], given: Mapping[str, Any]
) -> "tuple[dict[str, Audit], list[dict[str, Any]]]":
    """Audit each forecast of the input; also return the checksums of the files."""
    from calibrant.evaluation.audit.file_audit import audit_scan
    from calibrant.ingest.files import column_names, find_files

    if not features:
        raise InputError(Argument("features") + " must name at least one column; got none.")
    assert source.form.audited is not None
    names = ("depth", "min_rows", "alpha", "confidence_level", "n_resamples", "random_state", "cluster")
    settings: dict[str, Any] = {name: given[name] for name in names if given[name] is not None}
    settings |= {name: getattr(source, name) for name in ("y", "sample_weight", "frequency", "missing", "format")}
    settings |= {"memory_limit": source.reading_memory, "features": features}
    results = {}
    with source.open_files() as (files, inputs):
        for model in source.find_models(lambda: column_names(find_files(files, source.format)[0])):
            settings["p"] = source.form.audited(model)
            results[model.name] = try_pos_label(
                source.pos_label,
                lambda label: audit_scan(files, **settings, pos_label=label),
                lambda result: result.notes,
            )
    return results, inputs


def _csv(results: "Mapping[str, Audit]") -> str:
    """Return the segments as CSV, with the model where there are several."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    is_one = len(results) == 1
    writer.writerow([*([] if is_one else ["model"]), *next(iter(results.values())).columns()])
    for name, result in results.items():
        writer.writerows([*([] if is_one else [name]), *row] for row in result.rows())
    return out.getvalue().rstrip("\n")
