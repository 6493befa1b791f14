"""``calibrant evaluate``."""

from typing import Any

import click

from calibrant.cli.inputs import Source, source_options
from calibrant.cli.measure import asked_of, measure_options
from calibrant.cli.outputs import check_output, force_option, write_json
from calibrant.errors import InputError

__all__ = ["evaluate", "evaluated"]


@click.command(short_help="Can these scores be believed?")
@source_options(several=True, groups=True)
@measure_options
@click.option("--html", metavar="FILE", help="Write the report.")
@click.option("--json", "json_file", metavar="FILE", help="Write everything as JSON; - is standard output.")
@force_option
def evaluate(html: str | None, json_file: str | None, force: bool, **given: Any) -> None:
    """Can the scores in FILES be believed?

    Every metric with its interval and with what a right model would read on the same scores, tests, and a verdict:
    calibrated within the margin, miscalibrated (and which way), miscalibrated but within the margin, or too few data.

    \b
      calibrant evaluate scores.parquet --label happened --score probability
      calibrant evaluate day1.csv day2.csv -y happened -p old -p new --by country --json result.json
      cat scores.csv | calibrant evaluate - -y happened -p probability --cost 1:5
    """
    if html is not None:
        raise InputError("The report (--html) is not part of this version yet.", hint="--json holds all its numbers.")
    check_output(json_file, force=force)
    results, about = evaluated(given)
    if json_file != "-":
        from calibrant.cli.console import console, show_evaluation

        out = console()
        for place, (model, result) in enumerate(results.items()):
            out.print("\n" if place else "", end="")
            show_evaluation(result, name=model if len(results) > 1 else "", out=out)
        for each in about:
            out.print(f"  {each['file']}: {each['bytes']:,} bytes, SHA-256 {each['sha256']}", highlight=False)
        if len(results) > 1:
            out.print("\n  Scores are evaluated each for itself; `calibrant compare` says which is better.")
    if json_file is not None:
        models = {model: result.to_dict() for model, result in results.items()}
        write_json(json_file, {"schema_version": 1, "kind": "evaluations", "inputs": about, "models": models})


def evaluated(given: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The evaluation of every score that the options name, and what is to be said about the files."""
    import calibrant as cb

    source = Source.take(given)
    asked = asked_of(given)
    tables, about = source.tables()
    return {model: cb.evaluate(tables.only(model), **asked) for model in tables.models}, about
