"""The score maps by name, for the command line, reports and tests."""

from calibrant.calibrators.beta import Beta
from calibrant.calibrators.binning import BinningAverage
from calibrant.calibrators.cost_aware import CAPS, CATS
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.prior_shift import PriorShift
from calibrant.calibrators.score_map import ScoreMap
from calibrant.calibrators.sigmoid import Platt, Temperature
from calibrant.calibrators.venn_abers import VennAbers

__all__ = ["CALIBRATORS"]

CALIBRATORS: dict[str, type[ScoreMap]] = {
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
