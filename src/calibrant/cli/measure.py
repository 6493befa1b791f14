"""What is measured, and how surely: options that evaluate, compare and check share."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from calibrant._support.errors import InputError

__all__ = ["asked_of", "cluster_option", "cost_of", "measure_options"]

F = TypeVar("F", bound=Callable[..., Any])


def measure_options(command: F) -> F:
    """--alpha, --bins, --cost, --margin, --absolute-margin, --seed, --replicates, --confidence."""
    options: list[Callable[[F], F]] = [
        click.option(
            "--margin",
            type=float,
            show_default="0.1",
            help="Largest log-odds error that does not matter: 0.1 means odds that are right to about 10 %.",
        ),
        click.option(
            "--absolute-margin",
            type=float,
            metavar="ACE",
            help="A margin for ACE instead: 0.01 is one percentage point.",
        ),
        click.option("--alpha", type=float, default=0.05, show_default=True, help="Level of the tests, and of TCE's."),
        click.option("--bins", type=int, default=10, show_default=True, help="Bins of ECE and ACE."),
        click.option(
            "--cost",
            multiple=True,
            metavar="OVER:UNDER",
            help="Add the expected cost of predicting too high and too low, such as 1:5; may be given several times.",
        ),
        click.option("--confidence", type=float, default=0.95, show_default=True, help="Level of the intervals."),
        click.option("--replicates", type=int, default=499, show_default=True, help="Of the bootstrap and the null."),
        click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same numbers."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def cluster_option(command: F) -> F:
    """--cluster."""
    text = "Rows of one cluster (a patient, a shop) may depend on each other; at least 10 clusters are needed."
    return click.option("--cluster", metavar="COLUMN", help=text)(command)


def asked_of(given: dict[str, Any]) -> dict[str, Any]:
    """What `calibrant.evaluate` and `calibrant.compare` are asked for, by these options."""
    import calibrant as cb

    alpha, bins = given.pop("alpha"), given.pop("bins")
    margin, absolute = given.pop("margin"), given.pop("absolute_margin")
    if margin is not None and absolute is not None:
        raise click.UsageError("Give --margin or --absolute-margin, not both.")
    asked = {
        "margin": margin if absolute is None else cb.AbsoluteMargin(absolute),
        "alpha": alpha,
        "costs": {f"{cost.over:g}:{cost.under:g}": cost for cost in map(cost_of, given.pop("cost"))} or None,
        "confidence_level": given.pop("confidence"),
        "n_resamples": given.pop("replicates"),
        "random_state": given.pop("seed"),
    }
    if (alpha, bins) != (0.05, 10):
        asked["metrics"] = {
            "bias": cb.metrics.Bias(),
            "ECE": cb.ECE(n_bins=bins),
            "ACE": cb.ACE(n_bins=bins),
            "TCE": cb.TCE(alpha=alpha),
            "TCE (consistent)": cb.TCE(alpha=alpha, bins=cb.PAVABC.consistent()),
            "Brier": cb.METRICS["brier"](),
        }
    return asked


def cost_of(text: str) -> Any:
    """The cost that OVER:UNDER says: 1:5 is LinearCost(over=1, under=5)."""
    import calibrant as cb

    found = re.fullmatch(r"\s*([0-9.]+(?:e-?[0-9]+)?)\s*:\s*([0-9.]+(?:e-?[0-9]+)?)\s*", text, flags=re.IGNORECASE)
    try:
        over, under = (float(part) for part in found.groups()) if found else (None, None)
    except ValueError:
        over = under = None
    if over is None or under is None:
        raise InputError(
            f"--cost must be OVER:UNDER, such as 1:5; it is {text!r}.",
            hint="OVER is what a point too high costs, UNDER a point too low.",
        )
    return cb.LinearCost(over=over, under=under)
