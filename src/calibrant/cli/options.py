"""Options that several commands share. Each is named as the argument of the Python function that takes it."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import click

from calibrant._support.errors import Argument, InputError

__all__ = [
    "audit_options",
    "cluster_option",
    "evaluation_options",
    "force_option",
    "forecast_options",
    "html_option",
    "input_options",
    "json_option",
    "max_bytes_option",
    "parse_cost",
    "take_settings",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class Decorator(Protocol):
    """A function that adds something to any function."""

    def __call__(self, function: Function, /) -> Function: ...


_UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_NUMBER = r"([0-9.]+(?:e-?[0-9]+)?)"


def parse_size(text: str) -> int:
    """Return a number of bytes, such as 2GB, 500 MB, 1GiB or 1e9."""
    found = re.fullmatch(rf"\s*{_NUMBER}\s*([kmgt]?i?)b?\s*", text, flags=re.IGNORECASE)
    try:
        size = float(found[1]) * _UNITS[found[2].lower()] if found else -1.0
    except (ValueError, KeyError):
        size = -1.0
    if not 1 <= size < 2**63:
        raise click.BadParameter(f"{text!r} is not a number of bytes, such as 2GB.")
    return int(size)


def parse_step(text: str) -> float:
    """Return a number or a power of two, such as 1e-6 or 2**-20."""
    power = re.fullmatch(r"\s*2(?:\*\*|\^)(-[0-9]{1,3})\s*", text)
    try:
        return 2.0 ** int(power[1]) if power else float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number, such as 2**-20 or 1e-6.") from None


def parse_cost(text: str) -> Any:
    """Return the cost of overestimation and underestimation: 1:5 is LinearCost(over=1, under=5)."""
    from calibrant.metrics.costs import LinearCost

    found = re.fullmatch(rf"\s*{_NUMBER}\s*:\s*{_NUMBER}\s*", text, flags=re.IGNORECASE)
    try:
        over, under = map(float, found.groups() if found else ())
    except ValueError:
        raise click.BadParameter(f"{text!r} is not OVER:UNDER, such as 1:5.") from None
    return LinearCost(over=over, under=under)


cluster_option = click.option(
    "--cluster",
    metavar="COLUMN",
    help="Rows with the same value (a patient, a shop) may depend on each other; at least 10 values are needed.",
)
html_option = click.option("--html", metavar="FILE", help="Write an HTML report: one self-contained page.")
json_option = click.option(
    "--json", "json_file", metavar="FILE", help="Write all results as JSON; - is standard output."
)
force_option = click.option("--force", is_flag=True, help="Overwrite existing files.")

# The options that name forecasts, by kind.
_FORECASTS: dict[str, Decorator] = {
    "p": click.option(
        "--score", "-p", "p", multiple=True, metavar="COLUMN", help="Scores of one event: its probability."
    ),
    "class_score": click.option(
        "--class-score",
        multiple=True,
        metavar="LABEL=COLUMN",
        help="Probabilities of classes: once per class, or one pattern such as 'p_*'; * is the label.",
    ),
    "predicted_label": click.option("--predicted-label", multiple=True, metavar="COLUMN", help="Predicted classes."),
    "point": click.option("--point", multiple=True, metavar="COLUMN", help="Point predictions of a number."),
    "mean": click.option("--mean", multiple=True, metavar="COLUMN", help="Means of normal distributions; with --sd."),
    "sd": click.option("--sd", multiple=True, metavar="COLUMN", help="Standard deviations; with --mean."),
    "quantile": click.option(
        "--quantile",
        multiple=True,
        metavar="LEVEL=COLUMN",
        help="Quantiles of distributions: once per level (0.05=q05), or one pattern such as 'q*'; * is the level.",
    ),
    "sample": click.option(
        "--sample",
        multiple=True,
        metavar="COLUMN",
        help="Samples of distributions, such as members of an ensemble: columns, or a pattern such as 'member_*'.",
    ),
}
_BY = click.option(
    "--by", multiple=True, metavar="COLUMN", help="A column that splits the rows into groups; can be repeated."
)
max_bytes_option = click.option(
    "--max-bytes", type=parse_size, metavar="SIZE", help="Largest input, after decompression (not for Parquet)."
)
_READING: tuple[Decorator, ...] = (
    click.option("--sample-weight", "-w", metavar="COLUMN", help="The column of importance weights."),
    click.option("--frequency", metavar="COLUMN", help="The column of frequencies: the number of equal rows."),
    click.option("--pos-label", metavar="LABEL", help="The label of the event, if labels are not 0 and 1."),
    click.option(
        "--missing",
        type=click.Choice(["raise", "drop"]),
        default="raise",
        show_default=True,
        help="Rows with a missing value: raise an error, or drop and count them.",
    ),
    click.option("--format", type=click.Choice(["parquet", "csv", "json"]), help="Default: by the file name."),
    click.option("--encoding", metavar="NAME", help="Encoding of text files, if not UTF-8: utf-16, latin-1, ..."),
    max_bytes_option,
    click.option("--sha256", is_flag=True, help="Add the checksums of the files to the result."),
)
_COUNTING: tuple[Decorator, ...] = (
    click.option(
        "--max-memory",
        type=parse_size,
        metavar="SIZE",
        help="Memory for counting, such as 2GB. Default: the free memory.",
    ),
    click.option(
        "--resolution", type=parse_step, metavar="STEP", help="Round scores to a grid, such as 2**-20 or 1e-6."
    ),
    click.option("--spark", metavar="URL", help="Count Parquet files by Spark: local[4], spark://host:7077."),
)
_EVALUATION: tuple[Decorator, ...] = (
    click.option(
        "--margin",
        type=float,
        show_default="0.1; labels 0.01; point predictions 0.05; distributions 0.01",
        help="Largest deviation that does not matter. Probabilities: log-odds error, 0.1 means odds that are accurate "
        "to about 10 %. Labels: difference of a class proportion. Point predictions: bias by bin in standard "
        "deviations of the outcome. Distributions: coverage error.",
    ),
    click.option(
        "--absolute-margin", type=float, metavar="ACE", help="A margin for ACE instead: 0.01 is one percentage point."
    ),
    click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the tests and of TCE."),
    click.option(
        *("--bins", "n_bins"), type=int, show_default="10", help="Number of bins of ECE and ACE of scores of one event."
    ),
    click.option(
        *("--cost", "costs"),
        type=parse_cost,
        metavar="OVER:UNDER",
        multiple=True,
        help="Add the expected cost of overestimation and underestimation, such as 1:5; can be repeated.",
    ),
    click.option("--confidence-level", type=float, default=0.95, show_default=True, help="Level of the intervals."),
    click.option(
        *("--resamples", "n_resamples"),
        type=int,
        show_default="499 for scores of one event, 199 for other kinds",
        help="Number of bootstrap and null replicates.",
    ),
    click.option(
        "--random-state",
        type=click.IntRange(min=0),
        metavar="SEED",
        default=0,
        show_default=True,
        help="Seed of the random numbers.",
    ),
)
_AUDIT: tuple[Decorator, ...] = (
    click.option(
        "--depth", type=click.IntRange(1, 3), default=2, show_default=True, help="Largest number of conditions."
    ),
    click.option(
        "--min-rows",
        type=click.IntRange(min=1),
        show_default="0.5 % and 50",
        help="Smallest segment, in rows of a half.",
    ),
    click.option("--alpha", type=float, default=0.05, show_default=True, help="Probability of any false segment."),
    *(option for option in _EVALUATION[-3:]),
)


def input_options(
    forecasts: Sequence[str] = tuple(_FORECASTS), *, groups: bool = False, counted: bool = True
) -> Decorator:
    """Add the options of a command that reads rows.

    Parameters
    ----------
    forecasts : sequence of str
        The arguments of the options that name forecasts; by default all.
    groups : bool
        Whether rows can be split into groups.
    counted : bool
        Whether the command needs tables only, so that rows may be counted on a grid or by Spark.
    """
    return _add(
        click.argument("paths", nargs=-1, required=True, metavar="FILES..."),
        click.option(
            "--label", "--outcome", "-y", "y", required=True, metavar="COLUMN", help="The column of outcomes."
        ),
        forecast_options(*forecasts),
        *([_BY] if groups else []),
        *_READING,
        *(_COUNTING if counted else ()),
    )


def forecast_options(*names: str) -> Decorator:
    """Add the options that name forecasts, by their arguments."""
    return _add(*(_FORECASTS[name] for name in names))


def evaluation_options(command: Function) -> Function:
    """Add the options of the metrics, tests and intervals."""
    return _add(*_EVALUATION)(command)


def audit_options(command: Function) -> Function:
    """Add the options of the search for segments, and of their tests and intervals."""
    return _add(*_AUDIT)(command)


def _add(*options: Decorator) -> Decorator:
    """Return one decorator for several options, in the order of the help text."""

    def decorate(command: Function) -> Function:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def take_settings(given: dict[str, Any], kind: str = "binary") -> dict[str, Any]:
    """Remove the options of `evaluation_options`, and return them as arguments of `evaluate` and `compare`."""
    from calibrant.kinds.binary.panel import default_metrics
    from calibrant.results.settings import AbsoluteMargin

    margin, absolute = given.pop("margin"), given.pop("absolute_margin")
    if margin is not None and absolute is not None:
        raise InputError(
            Argument("margin") + " and " + Argument("absolute_margin") + " must not be given together; got both."
        )
    costs = {f"{cost.over:g}:{cost.under:g}": cost for cost in given.pop("costs")}
    n_bins, n_resamples = given.pop("n_bins"), given.pop("n_resamples")
    names = ("alpha", "confidence_level", "random_state")
    found = {
        "margin": margin if absolute is None else AbsoluteMargin(absolute),
        **{name: given.pop(name) for name in names},
        **({} if n_resamples is None else {"n_resamples": n_resamples}),
    }
    if kind != "binary":
        return found
    bins = {} if n_bins is None else {"n_bins": n_bins}
    return found | {"costs": costs or None, "metrics": default_metrics(**bins, alpha=found["alpha"])}
