"""Inference: intervals, null distributions, tests of calibration, equivalence, sample sizes; and classes of results."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "evaluation.audit.conditions": "Condition",
        "evaluation.audit.file_audit": "audit_scan",
        "evaluation.audit.multicalibration_error": "MulticalibrationError",
        "evaluation.audit.result": "Audit Segment",
        "evaluation.binary_details": "BinaryDetails CumulativeDifferences",
        "evaluation.decision_curves": "DecisionCurve decision_curve",
        "evaluation.net_benefit": "NetBenefit",
        "evaluation.decisions": "DecisionResult Decisions",
        "evaluation.differences": "Difference",
        "evaluation.labels_details": "LabelsDetails",
        "evaluation.metric_result": "MetricResult",
        "evaluation.multiclass_details": "MulticlassDetails",
        "evaluation.regression_details": "RegressionDetails",
        "evaluation.rejection_profile": "RejectionProfile",
        "evaluation.sensitivity": "Sensitivity",
        "evaluation.settings": "Settings",
        "inference.bands": "Band consistency_band cumulative_band",
        "inference.calibration_tests": "consistency ecce_test hosmer_lemeshow slope_intercept_test spiegelhalter",
        "inference.curves.belts": "CalibrationBelt calibration_belt",
        "inference.curves.calibration_curves": "CalibrationCurve calibration_curve",
        "inference.decision": "AbsoluteMargin Decision",
        "inference.deviations": "Deviation",
        "inference.equivalence_tests": "Equivalence equivalence",
        "inference.estimates": "Estimate",
        "inference.event_rates": "EventRate estimate_event_rate",
        "inference.hypothesis_tests": "JointTest TestResult",
        "inference.intervals": "Interval interval",
        "inference.levels": "CalibrationLevels",
        "inference.multiclass.confusions": "Confusion",
        "inference.multiclass.decision": "ClassDecision MulticlassDecision",
        "inference.multiplicity": "benjamini_hochberg holm",
        "inference.nulls": "Null null",
        "inference.power": "Detectable detectable",
        "inference.proportions": "ClassProportion ProportionDecision",
        "inference.sample_size": "SampleSize ValidationPrecision",
        "inference.sequential.change_points": "ChangePoint Dispersion WindowSums change_point dispersion",
        "inference.sequential.e_processes": "EProcess Evidence ShiftSequence pit_table",
        "inference.sequential.e_values": "e_bh log_mean_e",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
