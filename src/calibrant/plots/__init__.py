"""Diagrams, drawn with matplotlib from what was measured: one display a file.

Every display is made by ``from_predictions``, ``from_estimator`` or ``from_breakdown``, which draw it at once, and is
drawn again elsewhere by ``plot(ax=...)`` or ``plot(fig=...)``. It keeps its artists (``figure_``, ``ax_`` and others),
gives back what it drew as a frame (``data()``) and says it in one sentence (``alt_text()``). `save` and `svg` write
files that are the same bytes for the same input.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

_HOME = {
    "BiasDisplay": "bias",
    "BinningDisplay": "binning",
    "ComparisonDisplay": "overview",
    "CostDisplay": "cost",
    "CoverageDisplay": "covering",
    "CumulativeDisplay": "cumulative",
    "DecompositionDisplay": "decomposition",
    "EvaluationDisplay": "overview",
    "GroupDisplay": "groups",
    "NullDisplay": "null",
    "PITDisplay": "pit",
    "ParetoDisplay": "pareto",
    "ReliabilityDisplay": "reliability",
    "RocHullDisplay": "roc_hull",
    "TestBasedReliabilityDisplay": "rejections",
    "save": "_canvas",
    "svg": "_canvas",
}

__all__ = [*_HOME]  # noqa: PLE0604  (built from the map)

if TYPE_CHECKING:
    from calibrant.plots._canvas import save as save
    from calibrant.plots._canvas import svg as svg
    from calibrant.plots.bias import BiasDisplay as BiasDisplay
    from calibrant.plots.binning import BinningDisplay as BinningDisplay
    from calibrant.plots.cost import CostDisplay as CostDisplay
    from calibrant.plots.covering import CoverageDisplay as CoverageDisplay
    from calibrant.plots.cumulative import CumulativeDisplay as CumulativeDisplay
    from calibrant.plots.decomposition import DecompositionDisplay as DecompositionDisplay
    from calibrant.plots.groups import GroupDisplay as GroupDisplay
    from calibrant.plots.null import NullDisplay as NullDisplay
    from calibrant.plots.overview import ComparisonDisplay as ComparisonDisplay
    from calibrant.plots.overview import EvaluationDisplay as EvaluationDisplay
    from calibrant.plots.pareto import ParetoDisplay as ParetoDisplay
    from calibrant.plots.pit import PITDisplay as PITDisplay
    from calibrant.plots.rejections import TestBasedReliabilityDisplay as TestBasedReliabilityDisplay
    from calibrant.plots.reliability import ReliabilityDisplay as ReliabilityDisplay
    from calibrant.plots.roc_hull import RocHullDisplay as RocHullDisplay


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(_import_module(f"{__name__}.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ModuleNotFoundError(
            'Diagrams need matplotlib: pip install "calibrant[plot]".', name="matplotlib"
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
