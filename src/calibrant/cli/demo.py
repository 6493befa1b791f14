"""``calibrant demo``: the whole story, offline."""

import shlex
import tempfile
from pathlib import Path

import click

from calibrant.cli.outputs import check_outputs, force_option

__all__ = ["demo"]

_FILES = ("digits.csv", "cal.json", "calibrated.csv", "calibration.xml", "report.html")


@click.command(short_help="The whole story on handwritten digits, offline.")
@click.option("--folder", metavar="FOLDER", help="Where to put its files; by default a new temporary folder.")
@force_option
def demo(folder: str | None, force: bool) -> None:
    """Two models of handwritten digits: can their scores be believed, which is better, and can the other be repaired?

    The event is "this is an 8". Everything runs here, on data that ships with scikit-learn; the commands that are shown
    work on your files as well.
    """
    from calibrant.cli.digits import write_digits

    place = Path(folder) if folder is not None else Path(tempfile.mkdtemp(prefix="calibrant-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    check_outputs(*(str(place / name) for name in _FILES), force=force)
    click.echo("Training two models on handwritten digits (5-fold, so that scores are those of unseen digits) ...")
    rows = write_digits(place / "digits.csv")
    click.echo(f"{rows:,} rows in {place / 'digits.csv'}: is_8, forest, logistic, ink\n")
    given = ["digits.csv", "--label", "is_8"]
    steps: list[tuple[str, list[str]]] = [
        (
            "Can the forest's scores be believed?",
            ["evaluate", *given, "--score", "forest", "--by", "ink", "--html", "report.html", "--force"],
        ),
        ("Which of the two is better calibrated?", ["compare", *given, "--score", "forest", "--score", "logistic"]),
        (
            "Learn a repair of the forest's scores:",
            ["fit", *given, "--score", "forest", "--method", "beta", "-o", "cal.json", "--force"],
        ),
        (
            "Apply it, here to the same rows (you would apply it to new ones):",
            ["apply", "cal.json", "digits.csv", "--score", "forest", "-o", "calibrated.csv", "--force"],
        ),
        (
            "A gate for CI, on the forest as it was:",
            ["check", *given, "--score", "forest", "--junit", "calibration.xml", "--force"],
        ),
    ]
    for title, arguments in steps:
        _step(title, arguments, place)
    click.echo(f"The report, to open in a browser: {place / 'report.html'}")


def _step(title: str, arguments: list[str], place: Path) -> None:
    """Show a command and run it as it is shown, in the folder of its files."""
    from contextlib import chdir

    from calibrant.cli.main import run

    click.secho(title, bold=True)
    click.secho(f"$ calibrant {shlex.join(arguments)}\n", fg="cyan")
    with chdir(place):
        code = run(arguments)
    click.echo(f"\n(exit code {code})\n" if code else "")
