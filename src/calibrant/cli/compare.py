"""``calibrant compare``."""

from pathlib import Path
from typing import Any

import click

from calibrant._support.errors import InputError
from calibrant.cli.evaluate import title_of
from calibrant.cli.inputs import Source, source_options
from calibrant.cli.measure import asked_of, cluster_option, measure_options
from calibrant.cli.outputs import check_outputs, force_option, write_json, write_text
from calibrant.report import write_comparison

__all__ = ["compare"]


@click.command(short_help="Which of several scores is better calibrated?")
@source_options(several=True, counted=False)
@cluster_option
@measure_options
@click.option("--html", metavar="FILE", help="Write the report: one page with everything in it.")
@click.option("--json", "json_file", metavar="FILE", help="Write everything as JSON; - is standard output.")
@force_option
def compare(cluster: str | None, html: str | None, json_file: str | None, force: bool, **given: Any) -> None:
    """Which of several scores in FILES is better calibrated, on the same rows?

    The squared log-odds errors decide, on the same rows. The first score is the baseline.

    \b
      calibrant compare scores.parquet --label happened --score old --score new
    """
    check_outputs(html, json_file, force=force)
    source, asked = Source.take(given), asked_of(given)
    scores = list(dict.fromkeys(source.scores))
    if len(scores) < 2:
        raise InputError("compare needs at least two scores.", hint="Give --score several times.")
    result, about, left_out = _compared(source, scores, cluster, asked)
    if html is not None:
        write_text(html, write_comparison(result, title=title_of(source.files), inputs=about).rstrip("\n"))
    if json_file is not None:
        used = next(iter(result.models.values())).table.n_used
        counts = {"n_in": used + left_out, "n_used": used, "n_dropped": left_out}
        write_json(json_file, {**result.to_dict(), **counts, "inputs": about})
    if "-" not in (json_file, html):
        from calibrant.cli.console import console, file_lines, line, show_comparison

        out = console()
        show_comparison(result, out=out)
        if left_out:
            out.print(line(f"  note: Rows left out because a value is missing: {left_out:,}.", "dim"))
        for text in [*file_lines(about), *([] if html is None else [line(f"  report: {Path(html).name}")])]:
            out.print(text)


def _compared(
    source: Source, scores: list[str], cluster: str | None, asked: dict[str, Any]
) -> tuple[Any, list[dict[str, Any]], int]:
    """The comparison, what is to be said about the files, and how many rows were left out."""
    import calibrant as cb

    kept, weights, about, dropped = source.complete_rows(scores, [] if cluster is None else [cluster])

    def read(pos_label: object) -> Any:
        return cb.compare(
            kept[source.label],
            {name: kept[name] for name in scores},
            cluster=None if cluster is None else kept[cluster],
            pos_label=pos_label,
            **weights,
            **asked,
        )

    return source.as_meant(read), about, dropped
