"""Inference: intervals, null distributions, tests of calibration, equivalence, sample sizes; and classes of results."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "evaluation.binary_details": "BinaryDetails CumulativeDifferences",
        "evaluation.comparison_result": "Difference",
        "evaluation.decisions": "DecisionResult Decisions",
        "evaluation.metric_result": "MetricResult",
        "evaluation.regression_details": "RegressionDetails",
        "evaluation.settings": "Settings",
        "inference.bands": "Band consistency_band cumulative_band",
        "inference.coefficients": "Coefficient",
        "inference.decision": "AbsoluteMargin Decision",
        "inference.hypothesis_tests": "TestResult consistency ecce_test hosmer_lemeshow slope_intercept_test "
        "spiegelhalter",
        "inference.intervals": "Equivalence Interval Null equivalence interval null",
        "inference.joint_test": "JointTest",
        "inference.multiplicity": "benjamini_hochberg holm",
        "inference.power": "Detectable detectable",
        "inference.regression_verdict": "Deviation",
        "inference.sample_size": "SampleSize",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
