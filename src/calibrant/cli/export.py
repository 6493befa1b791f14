"""``calibrant export``."""

from pathlib import Path
from typing import Any

import click

from calibrant._support.errors import Argument, InputError
from calibrant._support.file_writing import write_file
from calibrant.cli.inputs import load_calibrator
from calibrant.cli.options import force_option
from calibrant.cli.outputs import check_outputs, write_text

__all__ = ["export"]


@click.command
@click.argument("calibrator", metavar="CALIBRATOR")
@click.option("--sql", is_flag=True, help="Print an SQL expression of the calibrated score.")
@click.option(
    *("--column", "columns"),
    multiple=True,
    default=("score",),
    show_default=True,
    help="With --sql: the column of scores; for several classes repeated, in the order of the classes.",
)
@click.option(
    "--dialect",
    type=click.Choice(
        [
            "duckdb",
            "postgresql",
            "spark",
            "sqlite",
            "snowflake",
            "bigquery",
            "redshift",
            "databricks",
            "sqlserver",
            "mysql",
            "trino",
        ]
    ),
    default="duckdb",
    show_default=True,
    help="With --sql: the database.",
)
@click.option("--onnx", metavar="FILE", help="Write an ONNX model.")
@force_option
def export(calibrator: str, sql: bool, columns: tuple[str, ...], dialect: str, onnx: str | None, force: bool) -> None:
    """Export a calibrator as an SQL expression or as an ONNX model.

    \b
      calibrant export cal.json --sql --column probability --dialect spark
      calibrant export cal.json --onnx cal.onnx
    """
    if not sql and onnx is None:
        raise InputError(Argument("sql") + " or " + Argument("onnx") + " must be given; got neither.")
    check_outputs(onnx, inputs=(calibrator,), force=force, stream=False)
    fitted = load_calibrator(calibrator)
    if sql:
        write_text("-", _write_sql(fitted, columns, dialect))
    if onnx is not None:
        from calibrant.export.onnx_graph import to_onnx

        model = to_onnx(fitted).SerializeToString()
        write_file(onnx, model, follow_links=False)
        click.echo(f"{len(model):,} bytes: {Path(onnx).name}", err=sql)


def _write_sql(calibrator: Any, columns: tuple[str, ...], dialect: str) -> str:
    """Return the expression of the calibrated score, or of several classes one per line with its label as name."""
    from calibrant._support.sql_dialects import get_dialect
    from calibrant.export.sql import to_sql

    one = {"column": columns[0]} if len(columns) == 1 else {}
    found: str | dict[Any, str] = to_sql(calibrator, **one, columns=columns, dialect=dialect)
    if isinstance(found, str):
        return found
    name = get_dialect(dialect).name
    return ",\n".join(f"{expression} AS {name(str(label))}" for label, expression in found.items())
