"""Figures 1 to 7 of the paper and its supplement, drawn by `calibrant.plots`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure, SubFigure

import calibrant as cb
from calibrant import plots
from calibrant.tables.score_table import ScoreTable
from research.reproduction.sources import NoDataError, imagenet, uci

Columns = tuple[object, object]


def figure1() -> Figure:
    """Gradient boosting on abalone: the test-based diagram beside the standard one."""
    figure = Figure(figsize=(14, 6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1))
    table = _uci("abalone", "GB")
    plots.TestBasedReliabilityDisplay.from_predictions(table, metric=cb.TCE(), n_resamples=199, fig=left)
    plots.ReliabilityDisplay.from_predictions(table, fig=right)
    return figure


def figure2() -> Figure:
    """Bins of a random forest on satimage (also Figure 3)."""
    return _bins("satimage", None)


def figure4() -> Figure:
    """Bins of a random forest on coil_2000, from 0 to 0.1."""
    return _bins("coil_2000", 0.1)


def figure5() -> Figure:
    """Logistic regression on four sets: diagrams of TCE, ECE and ACE."""
    return _diagrams({name: _uci(name, "LR") for name in _FOUR})


def figure6() -> Figure:
    """Gradient boosting on four sets (the caption names logistic regression)."""
    return _diagrams({name: _uci(name, "GB") for name in _FOUR})


def figure7() -> Figure:
    """Four networks on ImageNet."""
    return _diagrams({n: ScoreTable.from_arrays(*imagenet(n)) for n in ("AlexNet", "VGG19", "Res18", "Res152")})


_FOUR = ("abalone", "coil_2000", "isolet", "webpage")


def _uci(name: str, algorithm: str) -> ScoreTable:
    y, p, _ = uci(name, algorithm)
    return ScoreTable.from_arrays(y, p)


def _bins(name: str, xmax: float | None) -> Figure:
    figure = Figure(figsize=(10, 7), layout="constrained")
    plots.BinningDisplay.from_predictions(_uci(name, "RF"), xmax=xmax, fig=figure)
    return figure


def _diagrams(tables: Mapping[str, ScoreTable]) -> Figure:
    figure = Figure(figsize=(18, 5.4 * len(tables)), layout="constrained")
    rows: list[SubFigure] = list(figure.subfigures(len(tables), 1))
    for (name, table), row in zip(tables.items(), rows, strict=True):
        tested, width, quantile = row.subfigures(1, 3, width_ratios=(1.3, 1, 1))
        row.suptitle(name, x=0.01, ha="left", weight="bold")
        plots.TestBasedReliabilityDisplay.from_predictions(table, metric=cb.TCE(), n_resamples=99, fig=tested)
        plots.ReliabilityDisplay.from_predictions(table, fig=width)
        plots.ReliabilityDisplay.from_predictions(table, bins=cb.bins.EqualSize(10), fig=quantile)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "figure1": figure1,
    "figure2": figure2,
    "figure4": figure4,
    "figure5": figure5,
    "figure6": figure6,
    "figure7": figure7,
}


def write(out: Path, only: list[str] | None) -> None:
    """Write all figures as PNG."""
    for name, draw in FIGURES.items():
        if only and name not in only:
            continue
        try:
            figure = draw()
        except NoDataError as error:
            print(f"{name}: left out. {error}")
            continue
        figure.savefig(out / f"{name}.png", dpi=60)
        print(f"{name}: drawn", flush=True)
