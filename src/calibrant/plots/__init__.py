"""Diagrams of results, drawn with matplotlib: one display per module.

A display is created by ``from_predictions``, ``from_estimator`` or ``from_breakdown``, which also draw it.
``plot(ax=...)`` and ``plot(fig=...)`` draw it again elsewhere. It keeps its artists (``figure_``, ``ax_`` and others),
returns the drawn values as a frame (``data()``) and describes itself in one sentence (``alt_text()``). `save` and `svg`
write identical bytes for identical input.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

_HOME = {
    "BiasDisplay": "bias_scatter",
    "BinningDisplay": "bin_comparison",
    "ComparisonDisplay": "overview",
    "CostDisplay": "cost_curve",
    "CoverageDisplay": "coverage_curve",
    "CumulativeDisplay": "cumulative_differences",
    "DecompositionDisplay": "brier_decomposition",
    "EvaluationDisplay": "overview",
    "GroupDisplay": "group_metrics",
    "NullDisplay": "null_distribution",
    "PITDisplay": "pit_histogram",
    "ParetoDisplay": "pareto_front",
    "ReliabilityDisplay": "reliability",
    "RocHullDisplay": "roc_hull",
    "TestBasedReliabilityDisplay": "tce_reliability",
    "save": "_canvas",
    "svg": "_canvas",
}

__all__ = [*_HOME]  # noqa: PLE0604  (built from the map)

if TYPE_CHECKING:
    from calibrant.plots._canvas import save as save
    from calibrant.plots._canvas import svg as svg
    from calibrant.plots.bias_scatter import BiasDisplay as BiasDisplay
    from calibrant.plots.bin_comparison import BinningDisplay as BinningDisplay
    from calibrant.plots.brier_decomposition import DecompositionDisplay as DecompositionDisplay
    from calibrant.plots.cost_curve import CostDisplay as CostDisplay
    from calibrant.plots.coverage_curve import CoverageDisplay as CoverageDisplay
    from calibrant.plots.cumulative_differences import CumulativeDisplay as CumulativeDisplay
    from calibrant.plots.group_metrics import GroupDisplay as GroupDisplay
    from calibrant.plots.null_distribution import NullDisplay as NullDisplay
    from calibrant.plots.overview import ComparisonDisplay as ComparisonDisplay
    from calibrant.plots.overview import EvaluationDisplay as EvaluationDisplay
    from calibrant.plots.pareto_front import ParetoDisplay as ParetoDisplay
    from calibrant.plots.pit_histogram import PITDisplay as PITDisplay
    from calibrant.plots.reliability import ReliabilityDisplay as ReliabilityDisplay
    from calibrant.plots.roc_hull import RocHullDisplay as RocHullDisplay
    from calibrant.plots.tce_reliability import TestBasedReliabilityDisplay as TestBasedReliabilityDisplay


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
