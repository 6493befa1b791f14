"""Options that several commands share. Each is named as the argument of the Python function that takes it."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import click

from calibrant.kinds.columns import ForecastColumns, columns_by_kind

Function = TypeVar("Function", bound=Callable[..., Any])


class Decorator(Protocol):
    """A function that adds something to any function."""

    def __call__(self, function: Function, /) -> Function: ...


_NUMBER = r"([0-9.]+(?:e-?[0-9]+)?)"


def parse_size(text: str) -> int:
    """Return a number of bytes, such as 2GB, 500 MB, 1GiB or 1e9."""
    from calibrant.ingest.memory import parse_size as parse

    size = parse(text)
    if size is None:
        raise click.BadParameter(f"{text!r} is not a number of bytes, such as 2GB.")
    return size


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

    match = re.fullmatch(rf"\s*{_NUMBER}\s*:\s*{_NUMBER}\s*", text, flags=re.IGNORECASE)
    try:
        over, under = map(float, match.groups() if match else ())
    except ValueError:
        raise click.BadParameter(f"{text!r} is not OVER:UNDER, such as 1:5.") from None
    return LinearCost(over=over, under=under)


def parse_margin(text: str) -> tuple[str | None, float]:
    """Return the metric and the margin of 'log loss=0.002'; without a metric, None and the margin."""
    metric, _, number = text.rpartition("=")
    try:
        return metric.strip() or None, float(number)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not MARGIN or METRIC=MARGIN, such as 0.1 or 'log loss=0.002'.") from None


_FORMS = columns_by_kind().values()


def add_options(*options: Decorator) -> Decorator:
    """Return one decorator for several options, in the order of the help text."""

    def decorate(command: Function) -> Function:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


force_option: Decorator = click.option("--force", is_flag=True, help="Overwrite existing files.")
json_options: Decorator = add_options(
    click.option("--json", "json_file", metavar="FILE", help="Write all results as JSON; - is standard output."),
    force_option,
)
report_options: Decorator = add_options(
    click.option("--html", metavar="FILE", help="Write an HTML report: one self-contained page."), json_options
)


def names_of_forecasts(takes: Callable[[ForecastColumns], object] = lambda form: True) -> list[str]:
    """Return the arguments of the options that name forecasts of the kinds that a command takes, by default of all."""
    return [option.name for form in _FORMS if takes(form) for option in form.options]


def forecast_options(names: Sequence[str]) -> Decorator:
    """Add the options that name forecasts, by their arguments."""
    return add_options(
        *(
            click.option(
                *(option.flags or [option.flag]), option.name, multiple=True, metavar=option.metavar, help=option.help
            )
            for form in _FORMS
            for option in form.options
            if option.name in names
        )
    )


max_bytes_option: Decorator = click.option(
    "--max-bytes", type=parse_size, metavar="SIZE", help="Largest input, after decompression (not for Parquet)."
)


def input_options(forecasts: Sequence[str] | None = None, *, groups: bool = False, counted: bool = True) -> Decorator:
    """Add the options of a command that reads rows.

    Parameters
    ----------
    forecasts : sequence of str, optional
        The arguments of the options that name forecasts; by default all.
    groups : bool
        Whether rows can be split into groups.
    counted : bool
        Whether the command needs tables only, so that rows may be counted on a grid or by Spark.
    """
    by = click.option(
        "--by", multiple=True, metavar="COLUMN", help="A column that splits the rows into groups; can be repeated."
    )
    counting = (
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
    return add_options(
        click.argument("paths", nargs=-1, required=True, metavar="FILES..."),
        click.option(
            "--label", "--outcome", "-y", "y", required=True, metavar="COLUMN", help="The column of outcomes."
        ),
        forecast_options(names_of_forecasts() if forecasts is None else forecasts),
        *([by] if groups else []),
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
        *(counting if counted else ()),
    )


def threshold_options(command: Function) -> Function:
    """Add the thresholds of ``calibrant check``."""
    thresholds = {threshold.name: threshold for form in _FORMS for threshold in form.thresholds}
    return add_options(
        *(
            click.option("--" + name.replace("_", "-"), type=float, metavar=threshold.metavar, help=threshold.help)
            for name, threshold in thresholds.items()
        )
    )(command)


_cluster_option = click.option(
    "--cluster",
    metavar="COLUMN",
    help="Rows with the same value (a patient, a shop) may depend on each other; at least 10 values are needed.",
)
_time_option = click.option(
    "--time",
    metavar="COLUMN",
    help="Times of the rows, whose errors may depend on those of neighbouring times; at least 10 values are needed.",
)
focus_option: Decorator = click.option(
    "--focus",
    metavar="SCORES",
    help='Evaluate only the rows at which decisions are taken: a lowest score such as 0.5, or "top 5%".',
)
# Options of all tests and intervals.
_resampling_options = add_options(
    click.option("--confidence-level", type=float, default=0.95, show_default=True, help="Level of the intervals."),
    click.option(
        *("--resamples", "n_resamples"),
        type=int,
        show_default="499 for scores of one event, 0 for predicted labels, 199 for other kinds",
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
# Options of ``calibrant compare``.
comparison_options: Decorator = add_options(
    click.option(
        "--baseline",
        metavar="NAME",
        help="The forecast that the others are compared with; without it all pairs are compared.",
    ),
    click.option(
        *("--not-worse-than", "non_inferiority"),
        type=parse_margin,
        metavar="MARGIN",
        multiple=True,
        help="Exit with 1 unless the others are shown to be worse than the baseline by less than MARGIN of the metric "
        "that decides, or by METRIC=MARGIN, such as 'log loss=0.002'; can be repeated.",
    ),
)
# Options of the metrics, tests and intervals of an evaluation.
evaluation_options: Decorator = add_options(
    _cluster_option,
    _time_option,
    click.option(
        "--margin",
        type=float,
        show_default="; ".join(dict.fromkeys(form.margin[0] for form in _FORMS)),
        help=" ".join(["Largest deviation that does not matter.", *dict.fromkeys(form.margin[1] for form in _FORMS)]),
    ),
    click.option(
        "--absolute-margin", type=float, metavar="ACE", help="A margin for ACE instead: 0.01 is one percentage point."
    ),
    click.option(
        "--relative-margin", type=float, metavar="SHARE", help="A margin for means: 0.05 is 5 % of the mean outcome."
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
    _resampling_options,
)
# Options of the search for segments, and of their tests and intervals.
audit_options: Decorator = add_options(
    _cluster_option,
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
    _resampling_options,
)
