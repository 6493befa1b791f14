"""``calibrant evaluate``, ``calibrant compare`` and ``calibrant audit``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant.cli.command_files import check_outputs, write_json, write_text
from calibrant.cli.exit_codes import CHECK_FAILED, SUCCESS
from calibrant.cli.inputs import Source, take_dependence, take_settings
from calibrant.cli.options import (
    audit_options,
    comparison_options,
    evaluation_options,
    focus_option,
    input_options,
    names_of_forecasts,
    report_options,
)
from calibrant.kinds.columns import Model, try_pos_label

if TYPE_CHECKING:
    from calibrant.results.audit import Audit
    from calibrant.results.evaluation import Evaluation

_SAME_ROWS = "\n  Each forecast is evaluated on all rows that have it; `calibrant compare` compares on the same rows."


@click.command
@input_options(groups=True)
@evaluation_options
@focus_option
@report_options
def evaluate(html: str | None, json_file: str | None, force: bool, **given: Any) -> None:
    """Evaluate the calibration of the forecasts in FILES.

    The option that names the forecast states its kind: --score the probability of an event, --class-score those of
    several classes, --ordinal-score those of ordered classes, --predicted-label classes, --point numbers, and --mean
    with --sd, --quantile or --sample distributions of numbers, --poisson or --negative-binomial with --dispersion those
    of counts, whose means are rates with --exposure.

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
        from calibrant.report import evaluations_page

        page = evaluations_page(results, title=source.title, inputs=inputs, commands=source.commands)
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
    """Evaluate each forecast of the input; also return the checksums of the files. Dependent rows are not counted."""
    import calibrant as cb

    dependent, settings, focus = take_dependence(given), take_settings(given), given.pop("focus")
    settings |= {} if focus is None else {"focus": focus}
    # Tables of weights do not have the number of rows in the focus.
    if not dependent and source.form.is_counted and not (focus is not None and source.sample_weight):
        tables, inputs = source.read_tables()
        return {name: cb.evaluate(tables.only(name), **settings) for name in tables.models}, inputs
    if source.spark is not None or source.resolution is not None:
        name = next(iter(dependent), "focus")
        raise InputError(
            Argument(name) + " must not be given with " + Argument("spark") + " or " + Argument("resolution") + "."
        )
    rows = source.read_rows(**dependent)
    results = {
        model.name: cb.evaluate(rows.outcomes(model), rows.forecast(model), **rows.arguments(model), **settings)
        for model in rows.models
    }
    return {name: replace(e, own_notes=(*e.own_notes, *rows.notes)) for name, e in results.items()}, rows.inputs


@click.command
@input_options(counted=False)
@comparison_options
@evaluation_options
@report_options
def compare(
    baseline: str | None,
    non_inferiority: tuple[tuple[str | None, float], ...],
    html: str | None,
    json_file: str | None,
    force: bool,
    **given: Any,
) -> int:
    """Compare the calibration of several forecasts in FILES on the same rows.

    The forecasts are of one kind. All pairs are compared, or with --baseline the other forecasts with that one. Scores
    of an event are compared by their squared log-odds errors. Each pattern of --class-score, --ordinal-score,
    --quantile or --sample names one model.

    With --not-worse-than the command is a gate: it exits with 1 unless each other forecast is shown to be not worse
    than the baseline by more than the margin, of the metric that decides or of a named one.

    \b
      calibrant compare scores.parquet --label outcome --score old --score new
      calibrant compare scores.csv -y outcome -p champion -p challenger --baseline champion --not-worse-than 0.1
      calibrant compare scores.csv -y outcome -p old -p new --baseline old --not-worse-than 'log loss=0.002'
      calibrant compare prices.csv --label price --point old --point new
      calibrant compare digits.csv --label digit --class-score 'old_*' --class-score 'new_*'
    """
    import calibrant as cb

    check_outputs(html, json_file, inputs=given["paths"], force=force)
    source = Source.take(given)
    dependent, settings = take_dependence(given), take_settings(given)
    rows = source.read_rows(check_models=lambda models: _check_several(models, source.option), **dependent)
    result = cb.compare(
        rows.outcomes(*rows.models),
        {model.name: rows.forecast(model) for model in rows.models},
        baseline=baseline,
        non_inferiority=_margins(non_inferiority),
        **rows.arguments(rows.models[0]),
        **settings,
    )
    result = replace(result, own_notes=(*result.own_notes, *rows.notes))
    if html is not None:
        from calibrant.report import comparison_page

        page = comparison_page(result, title=source.title, inputs=rows.inputs, commands=source.commands)
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
    return CHECK_FAILED if result.passed is False else SUCCESS


def _margins(given: Sequence[tuple[str | None, float]]) -> float | dict[str, float] | None:
    """Return the margins of non-inferiority as `compare` takes them."""
    metrics = [metric for metric, _ in given]
    if len(set(metrics)) < len(metrics) or (None in metrics and len(metrics) > 1):
        raise InputError(
            Argument("non_inferiority") + " must be given once, or once per named metric; got it several times.",
            hint="Name the metrics: 'log-odds error=0.1' and 'log loss=0.002'.",
        )
    named = {metric: margin for metric, margin in given if metric is not None}
    return named or next((margin for _, margin in given), None)


def _check_several(models: Sequence[Model], option: str) -> None:
    if len(models) < 2:
        raise InputError(
            f"compare needs at least two forecasts; got {len(models)}.", hint="Repeat " + Argument(option) + "."
        )


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
@audit_options
@click.option("--csv", "csv_file", metavar="FILE", help="Write one row per segment as CSV; - is standard output.")
@report_options
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
        from calibrant.report import audits_page

        title = source.title.replace("Calibration", "Audit", 1)
        write_text(html, audits_page(results, title=title, inputs=inputs).rstrip("\n"))
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
    from calibrant.evaluation.audit.segment_audit import audit
    from calibrant.ingest.files import column_names, find_files

    if not features:
        raise InputError(Argument("features") + " must name at least one column; got none.")
    assert source.form.audited is not None
    names = ("depth", "min_rows", "alpha", "confidence_level", "n_resamples", "random_state", "cluster")
    settings: dict[str, Any] = {name: given[name] for name in names if given[name] is not None}
    settings |= {name: getattr(source, name) for name in ("y", "sample_weight", "frequency", "missing", "format")}
    settings |= {"max_memory": source.max_memory, "features": features}
    results = {}
    with source.open_files() as (files, inputs):
        for model in source.find_models(lambda: column_names(find_files(files, source.format)[0])):
            settings["forecast"] = source.form.audited(model)
            results[model.name] = try_pos_label(
                source.pos_label,
                lambda label: audit(files, **settings, pos_label=label),
                lambda result: result.notes,
            )
    return results, inputs


def _csv(results: "Mapping[str, Audit]") -> str:
    """Return the segments as CSV, with the model where there are several."""
    import csv
    from io import StringIO

    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    is_one = len(results) == 1
    writer.writerow([*([] if is_one else ["model"]), *next(iter(results.values())).columns()])
    for name, result in results.items():
        writer.writerows([*([] if is_one else [name]), *row] for row in result.rows())
    return out.getvalue().rstrip("\n")
