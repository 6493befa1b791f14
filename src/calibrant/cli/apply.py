"""``calibrant apply``."""

from pathlib import Path

import click

from calibrant._support.errors import InputError
from calibrant.cli.inputs import load_calibrator
from calibrant.cli.options import force_option
from calibrant.cli.outputs import check_outputs, new_file

__all__ = ["apply"]


@click.command
@click.argument("calibrator", metavar="CALIBRATOR")
@click.argument("source", metavar="FILE")
@click.option("--score", "-p", required=True, metavar="COLUMN", help="The column of scores.")
@click.option("--name", default="calibrated", show_default=True, metavar="COLUMN", help="The column to add.")
@click.option("--output", "-o", required=True, metavar="FILE", help="The new file: .parquet, .csv or .jsonl.")
@force_option
def apply(calibrator: str, source: str, score: str, name: str, output: str, force: bool) -> None:
    """Add the calibrated scores to the rows of FILE.

    The other columns do not change: CSV cells keep their text, JSON objects their keys. Rows with a missing score get
    a missing value and are counted.

    \b
      calibrant apply cal.json new.parquet --score probability -o calibrated.parquet
    """
    from calibrant.export.scored_files import calibrate_file, output_format

    check_outputs(output, force=force, stream=False)
    if not Path(source).is_file():
        raise InputError(f"There is no file {Path(source).name!r}.")
    kind, fitted = output_format(output), load_calibrator(calibrator)
    with new_file(output) as target:
        count = calibrate_file(fitted, Path(source), target, kind, score=score, name=name)
    click.echo(f"{count['rows']:,} rows: {Path(output).name}")
    if count["missing"]:
        click.echo(f"Rows with a missing score, whose calibrated score is missing too: {count['missing']:,}.")
