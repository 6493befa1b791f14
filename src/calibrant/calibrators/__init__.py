"""Calibrators: scikit-learn estimators that recalibrate probabilities, one module per family.

Score maps turn one column of scores into probabilities; models on features hold a classifier and a calibrator of its
scores.
"""

from calibrant._support.errors import MissingExtraError as _MissingExtraError
from calibrant._support.lazy import LazyNames as _LazyNames

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    raise _MissingExtraError("Calibrators need scikit-learn", "sklearn", name="sklearn") from error

_lazy = _LazyNames(
    __name__,
    {
        "calibrators.auto": "AutoCalibrator Candidate Ranking",
        "calibrators.logit_scaling": "Beta Platt PriorShift Temperature",
        "calibrators.logit_spline": "LogitSpline",
        "calibrators.structured_scaling": "StructuredScaling",
        "calibrators.isotonic": "BinningAverage Isotonic VennAbers",
        "calibrators.cost_aware": "CAPS CATS MetaCal",
        "calibrators.score_map": "Identity ScoreMap",
        "calibrators.calibrated_model": "CalibratedModel",
        "calibrators.multicalibrator": "Multicalibrator",
        "calibrators.multiclass": "Cumulative OneVsRest PairwiseCoupling ProbabilityMap Spline",
        "calibrators.registry": "CALIBRATORS",
        "calibrators.scorers": "MetricScorer",
        "calibrators.softmax_scaling": "Dirichlet MatrixScaling SoftmaxTemperature VectorScaling",
        "calibrators.proportion_rules": "ProportionRule ProportionThreshold",
        "calibrators.trees": "TreeSmoothing",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
