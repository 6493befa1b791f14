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
        "calibrators.auto": "AutoCalibrator",
        "calibrators.beta": "Beta",
        "calibrators.binning": "BinningAverage",
        "calibrators.cost_aware": "CAPS CATS",
        "calibrators.identity": "Identity",
        "calibrators.isotonic": "Isotonic",
        "calibrators.metacal": "MetaCal",
        "calibrators.models": "CalibratedModel",
        "calibrators.multicalibrator": "Multicalibrator",
        "calibrators.multiclass": "OneVsRest ProbabilityMap",
        "calibrators.pairwise": "PairwiseCoupling",
        "calibrators.prior_shift": "PriorShift",
        "calibrators.ranking": "Candidate Ranking",
        "calibrators.registry": "CALIBRATORS",
        "calibrators.score_map": "ScoreMap",
        "calibrators.scorers": "MetricScorer",
        "calibrators.sigmoid": "Platt Temperature",
        "calibrators.softmax_scaling": "Dirichlet MatrixScaling SoftmaxTemperature VectorScaling",
        "calibrators.spline": "Spline",
        "calibrators.proportion_rule": "ProportionRule",
        "calibrators.thresholds": "ProportionThreshold",
        "calibrators.trees": "TreeSmoothing",
        "calibrators.venn_abers": "VennAbers",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
