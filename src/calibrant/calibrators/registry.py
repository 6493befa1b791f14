"""`CALIBRATORS` and `RECALIBRATORS`, the registries by name, and the resolvers of calibrators that users give."""

from collections.abc import Mapping
from typing import Any

from calibrant._support.errors import InputError, nearest
from calibrant.calibrators.cost_aware import CAPS, CATS
from calibrant.calibrators.distribution import DistributionMap, PITRecalibrator, QuantileRecalibrator, VarianceScaling
from calibrant.calibrators.isotonic import BinningAverage, Isotonic, VennAbers
from calibrant.calibrators.logit_scaling import Beta, Platt, PriorShift, Temperature
from calibrant.calibrators.logit_spline import LogitSpline
from calibrant.calibrators.multiclass import Cumulative, OneVsRest, PairwiseCoupling, ProbabilityMap, Spline
from calibrant.calibrators.pareto import ParetoRecalibrator
from calibrant.calibrators.point import (
    CostRecalibrator,
    IsotonicRecalibrator,
    LinearRecalibrator,
    LocalRecalibrator,
    PointMap,
)
from calibrant.calibrators.score_map import ScoreMap
from calibrant.calibrators.softmax_scaling import Dirichlet, MatrixScaling, SoftmaxTemperature, VectorScaling
from calibrant.calibrators.structured_scaling import StructuredScaling

# Of scores and of class probabilities: each class has a `kind`.
CALIBRATORS: dict[str, type[ScoreMap] | type[ProbabilityMap]] = {
    "binning_average": BinningAverage,
    "logit_spline": LogitSpline,
    "isotonic": Isotonic,
    "platt": Platt,
    "temperature": Temperature,
    "beta": Beta,
    "venn_abers": VennAbers,
    "prior_shift": PriorShift,
    "cats": CATS,
    "caps": CAPS,
    "one_vs_rest": OneVsRest,
    "pairwise": PairwiseCoupling,
    "softmax_temperature": SoftmaxTemperature,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "dirichlet": Dirichlet,
    "structured": StructuredScaling,
    "spline": Spline,
    "cumulative": Cumulative,
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


def as_calibrator(calibrator: Any) -> ScoreMap | ProbabilityMap:
    """Return the calibrator that is meant by an object or a name.

    >>> as_calibrator("isotonic"), as_calibrator(Dirichlet())
    (Isotonic(), Dirichlet())
    """
    resolved: ScoreMap | ProbabilityMap = _resolve(
        calibrator, CALIBRATORS, (ScoreMap, ProbabilityMap), "one of calibrant's calibrators (cb.Platt()) or of"
    )
    return resolved


def as_score_map(calibrator: Any) -> ScoreMap:
    """Return the binary calibrator that is meant by an object or a name; Platt's for None.

    >>> as_score_map("isotonic"), as_score_map(Beta())
    (Isotonic(), Beta())
    """
    if calibrator is None:
        return Platt()
    known = {name: class_ for name, class_ in CALIBRATORS.items() if issubclass(class_, ScoreMap)}
    resolved: ScoreMap = _resolve(calibrator, known, (ScoreMap,), "a binary calibrator (cb.Platt()) or one of")
    return resolved


def _resolve(calibrator: Any, known: Mapping[str, Any], bases: tuple[type, ...], allowed: str) -> Any:
    named = isinstance(calibrator, str)
    resolved = known[calibrator]() if named and calibrator in known else calibrator
    if isinstance(resolved, bases):
        return resolved
    raise InputError(
        f"calibrator must be {allowed} the names {', '.join(known)}; got {calibrator!r}.",
        hint=nearest(calibrator, list(known)).strip() if named else "",
        value=calibrator,
    )
