"""Binary calibrators by name."""

from typing import Any

from calibrant._support.errors import InputError, nearest
from calibrant.calibrators.beta import Beta
from calibrant.calibrators.binning import BinningAverage
from calibrant.calibrators.cost_aware import CAPS, CATS
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.prior_shift import PriorShift
from calibrant.calibrators.score_map import ScoreMap
from calibrant.calibrators.sigmoid import Platt, Temperature
from calibrant.calibrators.venn_abers import VennAbers

__all__ = ["BINARY_CALIBRATORS", "as_score_map"]

BINARY_CALIBRATORS: dict[str, type[ScoreMap]] = {
    "binning_average": BinningAverage,
    "isotonic": Isotonic,
    "platt": Platt,
    "temperature": Temperature,
    "beta": Beta,
    "venn_abers": VennAbers,
    "prior_shift": PriorShift,
    "cats": CATS,
    "caps": CAPS,
}


def as_score_map(calibrator: Any) -> ScoreMap:
    """Return the binary calibrator that is meant by an object or a name; Platt's for None.

    >>> as_score_map("isotonic"), as_score_map(Beta())
    (Isotonic(), Beta())
    """
    if calibrator is None:
        return Platt()
    known = BINARY_CALIBRATORS.get(calibrator) if isinstance(calibrator, str) else None
    found = calibrator if known is None else known()
    if isinstance(found, ScoreMap):
        return found
    raise InputError(
        f"calibrator must be a binary calibrator (cb.Platt()) or one of the names {', '.join(BINARY_CALIBRATORS)}; "
        f"got {calibrator!r}.",
        hint=nearest(calibrator, list(BINARY_CALIBRATORS)).strip() if isinstance(calibrator, str) else "",
        argument="calibrator",
        value=calibrator,
    )
