"""Diagrams of predictive distributions."""

from collections.abc import Mapping
from typing import Any

from calibrant._support.arrays import Floats
from calibrant.kinds.distribution.words import WORDS
from calibrant.kinds.figures import ComparedModels, Drawing, on_page
from calibrant.kinds.point.figures import PointFigures, bias
from calibrant.plots.display import display_names
from calibrant.plots.pit_diagrams import CoverageDisplay, PITDisplay, default_bars
from calibrant.plots.rootograms import RootogramDisplay
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation


class DistributionFigures(PointFigures):
    """Diagrams of predictive distributions."""

    def draw_panels(self, e: Evaluation, figure: Any, grid: Any) -> dict[str, Any]:
        right = grid[0, 1].subgridspec(2, 1, height_ratios=[1, 1.4])
        places = {"bias": grid[0, 0], "pit": right[0, 0], "coverage": right[1, 0]}
        displays = {"bias": bias(e), "pit": pit(e), "coverage": coverage(e)}
        return {name: displays[name].plot(ax=figure.add_subplot(place)) for name, place in places.items()}

    def draw_models(self, c: Comparison, figure: Any, grid: Any, height: float) -> ComparedModels:
        joint = coverage_of(c.models).plot(fig=figure.add_subfigure(grid[0, 0]))
        place = grid[0, 1].subgridspec(2, 1, height_ratios=[height, 1])[0, 0]
        return ComparedModels(figure.add_subplot(place), {"coverage": joint})

    def lead(self, e: Evaluation) -> Drawing:
        """Return the figure of the first screen of a report: the coverage of central intervals."""
        return on_page("lead", coverage(e), 4.9)

    def further(self, e: Evaluation) -> dict[str, list[Drawing]]:
        frequencies = rootogram(e)
        counts = [] if frequencies is None else [on_page("rootogram", frequencies, 3.6)]
        return {"reasons": [on_page("pit", pit(e), 3.6), *counts], "bins": [on_page("bias", bias(e), 4.6)]}

    def group_metrics(self, e: Evaluation) -> list[str]:
        size = WORDS.group_metric(e) or next(iter(e.metrics))
        return [size, *(["mean error"] if "mean error" in e.metrics and size != "mean error" else [])]

    def all_models(self, models: Mapping[str, Evaluation]) -> Drawing | None:
        return on_page("coverage", coverage_of(models), 4.9)


FIGURES = DistributionFigures()


def pit(e: Evaluation) -> PITDisplay:
    """Return the histogram of the PIT values, not yet drawn."""
    details: Any = e.details
    test, cells = e.tests.get("Anderson-Darling"), None
    if details.is_discrete:
        test, cells = e.tests.get("PIT"), (details.pit_low, details.pit_high)
    u = details.pit if cells is None else (cells[0] + cells[1]) / 2
    return PITDisplay(u, default_bars(u.size), test, e.settings.confidence_level, cells)


def rootogram(e: Evaluation) -> RootogramDisplay | None:
    """Return the observed and expected frequencies of counts, not yet drawn; None for other outcomes."""
    details: Any = e.details
    return None if details.counts is None else RootogramDisplay(details.counts, e.settings.confidence_level)


def coverage(e: Evaluation) -> CoverageDisplay:
    """Return the coverage curve, not yet drawn."""
    details: Any = e.details
    central: Any = e.breakdowns.get("coverage")
    stated = any(note.code == "levels" for note in e.notes) and central is not None
    levels = tuple(float(level) for level in central.per_level["level"]) if stated else ()
    return CoverageDisplay(
        {"forecast": details.pit}, e.settings.confidence_level, levels, _cells({"forecast": details})
    )


def coverage_of(models: Mapping[str, Evaluation]) -> CoverageDisplay:
    """Return the coverage curves of several models, not yet drawn."""
    details: list[Any] = [e.details for e in models.values()]
    values = {name: d.pit for name, d in zip(display_names(models), details, strict=True)}
    cells = _cells(dict(zip(values, details, strict=True)))
    return CoverageDisplay(values, next(iter(models.values())).settings.confidence_level, cells=cells)


def _cells(details: Mapping[str, Any]) -> dict[str, tuple[Floats, Floats]]:
    """Return the bounds of the PIT values of discrete forecasts."""
    return {name: (each.pit_low, each.pit_high) for name, each in details.items() if each.is_discrete}
