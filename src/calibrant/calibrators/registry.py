"""`CALIBRATORS` and `RECALIBRATORS`, the registries by name, and the resolver of calibrators that users give."""

from typing import Any

from calibrant._support.errors import InputError, nearest
from calibrant.calibrators.binary import BINARY_CALIBRATORS
from calibrant.calibrators.distribution import PITRecalibrator, QuantileRecalibrator, VarianceScaling
from calibrant.calibrators.distribution_map import DistributionMap
from calibrant.calibrators.multiclass import OneVsRest, ProbabilityMap
from calibrant.calibrators.pairwise import PairwiseCoupling
from calibrant.calibrators.pareto import ParetoRecalibrator
from calibrant.calibrators.point import IsotonicRecalibrator, LinearRecalibrator, LocalRecalibrator
from calibrant.calibrators.point_cost import CostRecalibrator
from calibrant.calibrators.point_map import PointMap
from calibrant.calibrators.score_map import ScoreMap
from calibrant.calibrators.softmax_scaling import Dirichlet, MatrixScaling, SoftmaxTemperature, VectorScaling
from calibrant.calibrators.spline import Spline

__all__ = ["CALIBRATORS", "RECALIBRATORS", "as_calibrator"]

# Each class has a `kind`: "binary" takes one column of scores, "multiclass" takes class probabilities.
CALIBRATORS: dict[str, type[ScoreMap] | type[ProbabilityMap]] = {
    **BINARY_CALIBRATORS,
    "one_vs_rest": OneVsRest,
    "pairwise": PairwiseCoupling,
    "softmax_temperature": SoftmaxTemperature,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "dirichlet": Dirichlet,
    "spline": Spline,
}

# Of point predictions and of predictive distributions: each class has a `kind`.
RECALIBRATORS: dict[str, type[PointMap] | type[DistributionMap]] = {
    "linear": LinearRecalibrator,
    "isotonic": IsotonicRecalibrator,
    "local": LocalRecalibrator,
    "cost": CostRecalibrator,
    "variance_scaling": VarianceScaling,
    "pit": PITRecalibrator,
    "quantile": QuantileRecalibrator,
    "pareto": ParetoRecalibrator,
}


def as_calibrator(calibrator: Any, argument: str = "calibrator") -> ScoreMap | ProbabilityMap:
    """Return the calibrator that is meant by an object or a name.

    >>> as_calibrator("isotonic"), as_calibrator(Dirichlet())
    (Isotonic(), Dirichlet())
    """
    known = CALIBRATORS.get(calibrator) if isinstance(calibrator, str) else None
    found = calibrator if known is None else known()
    if isinstance(found, (ScoreMap, ProbabilityMap)):
        return found
    raise InputError(
        f"{argument} must be one of calibrant's calibrators (cb.Platt()) or of the names {', '.join(CALIBRATORS)}; "
        f"got {calibrator!r}.",
        hint=nearest(calibrator, list(CALIBRATORS)).strip() if isinstance(calibrator, str) else "",
        argument=argument,
        value=calibrator,
    )
