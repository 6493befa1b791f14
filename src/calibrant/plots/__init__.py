"""Diagrams of results, drawn with matplotlib: related displays in one module.

A display is created by ``from_predictions``, ``from_estimator`` or ``from_breakdown``, which also draw it.
``plot(ax=...)`` and ``plot(fig=...)`` draw it again elsewhere. It keeps its artists (``figure_``, ``ax_`` and others),
returns the drawn values as a frame (``data()``) and describes itself in one sentence (``alt_text()``). `save` and `svg`
write identical bytes for identical input.
"""

from calibrant._support.errors import MissingExtraError as _MissingExtraError
from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "evaluation.overview": "ComparisonDisplay EvaluationDisplay",
        "plots.audit_segments": "SegmentDisplay SegmentMapDisplay",
        "plots.bias_scatter": "BiasDisplay",
        "plots.bin_comparison": "BinningDisplay",
        "plots.brier_decomposition": "DecompositionDisplay",
        "plots.class_diagrams": "ClasswiseDisplay ProportionDisplay",
        "plots.cost_curve": "CostDisplay",
        "plots.cumulative_differences": "CumulativeDisplay",
        "plots.curve_bands": "CalibrationCurveDisplay",
        "plots.decision_curve_bands": "DecisionCurveDisplay",
        "plots.display": "save svg",
        "plots.error_characteristic": "RECDisplay",
        "plots.group_metrics": "GroupDisplay",
        "plots.monitor_history": "MonitorDisplay",
        "plots.null_distribution": "NullDisplay",
        "plots.pareto_front": "ParetoDisplay",
        "plots.pit_diagrams": "CoverageDisplay PITDisplay",
        "plots.reliability": "ReliabilityDisplay",
        "plots.roc_hull": "RocHullDisplay",
        "plots.rootograms": "RootogramDisplay",
        "plots.tce_reliability": "TestBasedReliabilityDisplay",
    },
    needs=_MissingExtraError("Diagrams need matplotlib", "plot", name="matplotlib"),
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
