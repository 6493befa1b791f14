"""Results of evaluations, comparisons, audits and tests: pure data with text, frames and JSON.

The modules of this folder name no kind of forecast. The details of each kind are defined in its folder, and listed here
so that users have one place to import results from.
"""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "evaluation.decision_curves": "DecisionCurve",
        "evaluation.decisions": "DecisionResult Decisions",
        "evaluation.net_benefit": "NetBenefit",
        "kinds.binary.details": "BinaryDetails CumulativeDifferences Sensitivity",
        "kinds.distribution.details": "DistributionDetails",
        "kinds.labels.details": "LabelsDetails",
        "kinds.labels.verdict": "ClassProportion",
        "kinds.multiclass.confusions": "Confusion",
        "kinds.multiclass.details": "MulticlassDetails",
        "kinds.multiclass.verdict": "ClassDeviation",
        "kinds.ordinal.details": "OrdinalDetails",
        "kinds.ordinal.verdict": "Threshold",
        "kinds.point.details": "PointDetails",
        "metrics.gce": "RejectionProfile",
        "results.audit": "Audit MulticalibrationError Segment",
        "results.audit_conditions": "Condition",
        "results.comparison": "Comparison Difference NonInferiority RankedModel",
        "results.evaluation": "Evaluation",
        "results.group_differences": "GroupEstimate Heterogeneity",
        "results.regions": "Region Regions",
        "results.settings": "AbsoluteMargin Focus RelativeMargin Settings",
        "results.uncertainty": "Equivalence Estimate Interval MetricResult Null SerialDependence",
        "results.verdict": "Deviation OmnibusTest TestResult Verdict",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
