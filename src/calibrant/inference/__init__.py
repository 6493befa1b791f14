"""Inference: intervals, null distributions, tests of calibration, equivalence, sample sizes; and classes of results."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "evaluation.audit.conditions": "Condition",
        "evaluation.audit.file_audit": "audit_scan",
        "evaluation.audit.multicalibration_error": "MulticalibrationError",
        "evaluation.audit.result": "Audit Segment",
        "evaluation.decision_curves": "DecisionCurve decision_curve",
        "evaluation.decisions": "DecisionResult Decisions",
        "evaluation.net_benefit": "NetBenefit",
        "inference.bands": "Band consistency_band cumulative_band",
        "inference.calibration_tests": "consistency ecce_test hosmer_lemeshow slope_intercept_test spiegelhalter",
        "inference.curves.belts": "CalibrationBelt calibration_belt",
        "inference.curves.calibration_curves": "CalibrationCurve calibration_curve",
        "inference.equivalence_tests": "equivalence",
        "inference.event_rates": "EventRate estimate_event_rate",
        "inference.intervals": "interval",
        "inference.levels": "CalibrationLevels",
        "inference.multiplicity": "benjamini_hochberg holm",
        "inference.nulls": "null",
        "inference.power": "Detectable detectable",
        "inference.sample_size": "SampleSize ValidationPrecision",
        "inference.sequential.change_points": "ChangePoint Dispersion WindowSums change_point dispersion",
        "inference.sequential.e_processes": "EProcess Evidence ShiftSequence pit_table",
        "inference.sequential.e_values": "e_bh log_mean_e",
        "kinds.binary.details": "BinaryDetails CumulativeDifferences",
        "metrics.rejection_profile": "RejectionProfile",
        "kinds.binary.sensitivity": "Sensitivity",
        "kinds.binary.verdict": "Decision",
        "kinds.labels.details": "LabelsDetails",
        "kinds.labels.verdict": "ClassProportion ProportionDecision",
        "kinds.multiclass.confusions": "Confusion",
        "kinds.multiclass.details": "MulticlassDetails",
        "kinds.multiclass.verdict": "ClassDecision MulticlassDecision",
        "kinds.point.details": "RegressionDetails",
        "kinds.point.deviations": "Deviation",
        "results.comparison": "Difference",
        "results.uncertainty": "Equivalence Estimate Interval Null",
        "results.hypothesis_tests": "OmnibusTest TestResult",
        "results.metric_result": "MetricResult",
        "results.settings": "AbsoluteMargin Settings",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
