"""``calibrant demo``."""

import csv
import io
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import click

from calibrant._support.errors import MissingExtraError
from calibrant._support.file_writing import write_file
from calibrant.cli.command_files import check_outputs
from calibrant.cli.options import force_option

_FILES = ("digits.csv", "past.csv", "new.csv", "cal.json", "calibrated.csv", "calibration.xml", "report.html")
_GATE = ("--max-ece", "0.03")
_STEPS = {
    "Evaluate the scores of the forest, overall and by the amount of ink:": (
        *("evaluate", "digits.csv", "--label", "is_8", "--score", "forest", "--by", "ink"),
    ),
    "Compare the two models:": (
        *("compare", "digits.csv", "--label", "is_8", "--score", "forest", "--score", "logistic"),
    ),
    "Check the scores of the forest on new rows, as in CI; the gate fails:": (
        *("check", "new.csv", "--label", "is_8", "--score", "forest", *_GATE),
    ),
    "Fit a calibrator to past rows; they have few events, so one with two parameters:": (
        *("fit", "past.csv", "--label", "is_8", "--score", "forest", "--method", "platt"),
        *("-o", "cal.json", "--force"),
    ),
    "Apply it to the new rows:": (
        *("apply", "cal.json", "new.csv", "--score", "forest", "-o", "calibrated.csv", "--force"),
    ),
    "Check the recalibrated scores; the gate passes:": (
        *("check", "calibrated.csv", "--label", "is_8", "--score", "calibrated", *_GATE),
        *("--junit", "calibration.xml", "--force"),
    ),
    "Write a report of the scores before and after. After recalibration no deviation is significant; the verdict is\n"
    "'inconclusive', because 86 events are too few to show that the odds are accurate to within 10 %:": (
        *("evaluate", "calibrated.csv", "--label", "is_8", "--score", "forest", "--score", "calibrated"),
        *("--by", "ink", "--html", "report.html", "--force"),
    ),
}


@click.command
@click.option("--folder", metavar="FOLDER", help="The folder of the files; by default a new temporary folder.")
@force_option
@click.option("--monitor", is_flag=True, help="Simulate a month of monitored models and show their pages.")
@click.option("--browser/--no-browser", default=True, help="With --monitor: open a browser, where there is a display.")
@click.option(
    "--duration", type=click.FloatRange(min=0), metavar="SECONDS", help="With --monitor: stop after this time."
)
def demo(folder: str | None, force: bool, monitor: bool, browser: bool, duration: float | None) -> None:
    """Evaluate, compare, check and recalibrate two models of handwritten digits, and write a report.

    The event is "this digit is an 8". The data ship with scikit-learn, so the demo needs no network. The commands that
    are shown work on your files as well. With --monitor, a month of rows is posted to a service on this machine; one of
    its models drifts, and the pages show it.
    """
    if not monitor and duration is not None:
        raise click.UsageError("--duration needs --monitor.")
    place = Path(folder) if folder is not None else Path(tempfile.mkdtemp(prefix="calibrant-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    if monitor:
        _show_monitor(place, force, browser, duration)
    else:
        _show_commands(place, force)


def _show_monitor(place: Path, force: bool, browser: bool, duration: float | None) -> None:
    from calibrant.cli.serve import STORE, run_monitor_demo

    check_outputs(str(place / STORE), force=force)
    for old in place.glob(f"{STORE}*"):  # with the files of its write-ahead log
        old.unlink()
    run_monitor_demo(place, browser=browser, duration=duration)


def _show_commands(place: Path, force: bool) -> None:
    check_outputs(*(str(place / name) for name in _FILES), force=force)
    click.echo("Fitting two models to handwritten digits; scores are out of fold (5 folds) ...")
    rows = _write_digits(place)
    click.echo(f"{rows:,} rows in {place / 'digits.csv'}. The column is_8 says whether the digit is an 8, forest and")
    click.echo("logistic are the scores of two models, and ink is the amount of black in the image, in five groups.")
    click.echo("Every second row is in past.csv, the others are in new.csv.\n")
    for title, arguments in _STEPS.items():
        _run_step(title, arguments, place)
    click.echo(f"The report, to open in a browser: {place / 'report.html'}")


def _run_step(title: str, arguments: tuple[str, ...], place: Path) -> None:
    """Show a command and run it in the folder of its files."""
    from calibrant.cli.main import calibrant

    click.secho(title, bold=True)
    click.secho(f"$ calibrant {shlex.join(arguments)}\n", fg="cyan")
    with chdir(place):
        code = calibrant.main(args=list(arguments), prog_name="calibrant", standalone_mode=False)
    click.echo(f"\n(exit code {code})\n" if code else "")


def digit_scores() -> dict[str, Any]:
    """Return the outcome "this digit is an 8", the scores of a forest and a logistic model, and the amount of ink.

    Scores are out of fold (five folds); the ink is in five groups of equal size.
    """
    try:
        import numpy as np
        from sklearn.datasets import load_digits
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import cross_val_predict
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ModuleNotFoundError as error:
        raise MissingExtraError("The demo needs scikit-learn", "sklearn", name=error.name) from error
    pixels, digit = load_digits(return_X_y=True)
    is_8 = digit == 8
    models = {
        "forest": RandomForestClassifier(random_state=0),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)),
    }
    scores = {
        name: cross_val_predict(model, pixels, is_8, cv=5, method="predict_proba")[:, 1]
        for name, model in models.items()
    }
    amount = pixels.sum(axis=1)
    fifth = np.searchsorted(np.quantile(amount, (0.2, 0.4, 0.6, 0.8)), amount, side="right")
    ink = np.array(["1 least ink", "2", "3", "4", "5 most ink"])[fifth]
    return {"is_8": is_8, **scores, "ink": ink}


def _write_digits(folder: Path) -> int:
    """Write `digit_scores` to digits.csv, its rows by turns to past.csv and new.csv, and return their number."""
    columns = digit_scores()
    columns["is_8"] = columns["is_8"].astype(int)
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    for name, part in {"digits": rows, "past": rows[::2], "new": rows[1::2]}.items():
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows(part)
        write_file(folder / f"{name}.csv", text.getvalue(), follow_links=False)
    return len(rows)
