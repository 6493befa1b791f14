"""``calibrant apply``."""

from pathlib import Path
from typing import Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant._support.file_writing import new_file
from calibrant.cli.forecast_columns import KINDS, find_models, forecast_option, parse_label
from calibrant.cli.input_files import check_sizes
from calibrant.cli.inputs import load_calibrator
from calibrant.cli.options import force_option, forecast_options, max_bytes_option
from calibrant.cli.outputs import check_outputs

__all__ = ["apply"]


@click.command
@click.argument("calibrator", metavar="CALIBRATOR")
@click.argument("source", metavar="FILE")
@forecast_options("p", "class_score", "point")
@click.option(
    "--name",
    default="calibrated",
    show_default=True,
    metavar="COLUMN",
    help="The column to add; for several classes the names begin with it: calibrated_LABEL.",
)
@click.option("--output", "-o", required=True, metavar="FILE", help="The new file: .parquet, .csv or .jsonl.")
@max_bytes_option
@force_option
def apply(
    calibrator: str, source: str, name: str, output: str, max_bytes: int | None, force: bool, **given: Any
) -> None:
    """Add the calibrated forecasts to the rows of FILE.

    The other columns do not change: CSV cells keep their text, and so do JSON lines that stay JSON lines. Rows with a
    missing score get a missing value and are counted.

    \b
      calibrant apply cal.json new.parquet --score probability -o calibrated.parquet
      calibrant apply cal.json new.csv --class-score 'p_*' -o calibrated.csv
    """
    from calibrant.export.scored_files import calibrate_file, output_format
    from calibrant.ingest.formats import File, guess_format

    option = forecast_option(given)
    check_outputs(output, inputs=(calibrator, source), force=force, stream=False)
    if not Path(source).is_file():
        raise InputError(f"There is no file {Path(source).name!r}.")
    kind, fitted = output_format(output), load_calibrator(calibrator)
    check_sizes([File(source, guess_format(Path(source).name))], max_bytes)
    scores = _columns(fitted, option, given, source)
    with new_file(output, follow_links=False) as target:
        count = calibrate_file(fitted, Path(source), target, kind, scores=scores, name=name)
    click.echo(f"{count['rows']:,} rows: {Path(output).name}")
    if count["missing"]:
        click.echo(f"Rows with a missing score, whose calibrated score is missing too: {count['missing']:,}.")
    if count["clipped"]:
        click.echo(f"Scores outside [0, 1] by at most 1e-06, which were clipped: {count['clipped']:,}.")


def _columns(calibrator: Any, option: str, given: dict[str, Any], source: str) -> list[str]:
    """Return the columns that the calibrator takes, in the order of its classes."""
    from calibrant.ingest.files import column_names
    from calibrant.ingest.formats import File, guess_format

    if calibrator.kind != KINDS[option]:
        raise InputError(
            Argument("calibrator") + " must be fitted with " + Argument(option) + f"; got {type(calibrator).__name__}, "
            f"which takes forecasts of kind {calibrator.kind!r}.",
        )
    there = column_names(File(source, guess_format(Path(source).name))) if option == "class_score" else []
    models = find_models(option, given, there)
    if len(models) > 1:
        raise InputError("apply needs one forecast; got " + f"{len(models)}.", hint="Apply to one after the other.")
    if option != "class_score":
        return list(models[0].columns)
    classes = {label: place for place, label in enumerate(calibrator.classes_.tolist())}
    found: dict[int, str] = {}
    for key, column in zip(models[0].keys, models[0].columns, strict=True):
        place = classes.get(key, classes.get(parse_label(key)))
        if place is None:
            known = ", ".join(map(str, classes))
            raise InputError(
                Argument(option) + f" must name classes of the calibrator, which are {known}; got {key!r}.", value=key
            )
        found[place] = column
    missing = [str(label) for label, place in classes.items() if place not in found]
    if missing:
        raise InputError(Argument(option) + f" must name each class of the calibrator; got none of {missing[0]!r}.")
    return [found[place] for place in sorted(found)]
