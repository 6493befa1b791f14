"""Inference: confidence intervals, null distributions, tests of calibration, multiplicity and sample size."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "inference.bands": "Band consistency_band cumulative_band",
        "inference.decision": "AbsoluteMargin",
        "inference.hypothesis_tests": "TestResult consistency ecce_test hosmer_lemeshow slope_intercept_test "
        "spiegelhalter",
        "inference.intervals": "Equivalence Interval Null equivalence interval null",
        "inference.multiplicity": "benjamini_hochberg holm",
        "inference.power": "Detectable detectable",
        "inference.sample_size": "SampleSize",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
