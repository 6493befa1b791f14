"""Sample sizes for external validation: rows with which performance is estimated precisely (Riley et al. 2021)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.option_checks import check_share, is_number
from calibrant._support.typing import Floats

__all__ = ["ValidationPrecision", "auc_rows", "net_benefit_rows", "oe_rows", "slope_rows", "validation_rows"]

_MOST_ROWS = 2**53


@dataclass(frozen=True)
class ValidationPrecision:
    """Widths of confidence intervals that an external validation should reach; see `calibrant.sample_size`.

    Parameters
    ----------
    oe_ratio : float or None, default=0.2
        Width of the interval of observed over expected events, on the ratio scale.
    slope : float or None, default=0.2
        Width of the interval of the calibration slope.
    auc : float or None, default=0.1
        Width of the interval of the AUC (C statistic).
    net_benefit : float or None, default=0.2
        Width of the interval of the standardised net benefit, which is net benefit over event rate. Needs `threshold`.
    threshold : float, optional
        Of decisions, for the net benefit.
    expected_auc : float, optional
        The AUC to expect; by default that of calibrated scores with the given distribution.
    confidence_level : float, default=0.95

    See Also
    --------
    SampleSize, sample_size

    Notes
    -----
    None skips a criterion. The criteria assume a calibrated model and independent rows.

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> wanted = ValidationPrecision(slope=0.4, auc=None, net_benefit=None)
    >>> dict(cb.sample_size(np.linspace(0.01, 0.4, 40), precision=wanted).validation)
    {'O/E': 1495, 'calibration slope': 1497}
    """

    oe_ratio: float | None = 0.2
    slope: float | None = 0.2
    auc: float | None = 0.1
    net_benefit: float | None = 0.2
    threshold: float | None = None
    expected_auc: float | None = None
    confidence_level: float = 0.95

    def __post_init__(self) -> None:
        for name in ("oe_ratio", "slope", "auc", "net_benefit"):
            width = getattr(self, name)
            if width is not None and not (is_number(width) and width > 0):
                raise InputError(f"{name} must be a width above 0, or None; got {width!r}.", argument=name, value=width)
        for name in ("threshold", "expected_auc"):
            if getattr(self, name) is not None:
                check_share(name, getattr(self, name))
        check_share("confidence_level", self.confidence_level)
        default = type(self).__dataclass_fields__["net_benefit"].default
        if self.threshold is None and self.net_benefit not in (None, default):
            raise InputError(
                f"threshold must be given with net_benefit; got net_benefit={self.net_benefit!r} alone.",
                hint="Pass the threshold of the decisions.",
                argument="threshold",
            )

    @property
    def quantile(self) -> float:
        """The normal quantile of the intervals."""
        from scipy.special import ndtri

        return float(ndtri((1 + self.confidence_level) / 2))


def validation_rows(
    precision: ValidationPrecision, score: Floats, share: Floats, *, has_spread: bool
) -> dict[str, int | None]:
    """Return the rows that each criterion needs; None where the expected scores do not determine it."""
    rate, z = float(share @ score), precision.quantile
    found: dict[str, int | None] = {}
    if precision.oe_ratio is not None:
        found["O/E"] = oe_rows(rate, precision.oe_ratio, z)
    if precision.slope is not None:
        found["calibration slope"] = slope_rows(score, share, precision.slope, z) if has_spread else None
    if precision.auc is not None:
        expected = precision.expected_auc or (_expected_auc(score, share) if has_spread else None)
        found["AUC"] = None if expected is None else auc_rows(expected, rate, precision.auc, z)
    if precision.net_benefit is not None and precision.threshold is not None:
        found["net benefit"] = None
        act, t = score >= precision.threshold, precision.threshold
        if has_spread and act.any():
            sensitivity = float(np.sum(share * score * act)) / rate
            specificity = 1 - float(np.sum(share * (1 - score) * act)) / (1 - rate)
            found["net benefit"] = net_benefit_rows(sensitivity, specificity, rate, t, precision.net_benefit, z)
    return found


def oe_rows(rate: float, width: float, z: float) -> int:
    """Return the rows for an interval of O/E of this width around 1: exp(z SE) - exp(-z SE) = width.

    SE(ln O/E)^2 = (1 - rate) / (N rate).
    """
    error = math.asinh(width / 2) / z
    return math.ceil((1 - rate) / (rate * error**2))


def slope_rows(score: Floats, share: Floats, width: float, z: float) -> int:
    """Return the rows for an interval of the calibration slope of this width, from the information of the scores.

    N = I_a / (SE^2 (I_a I_b - I_ab^2)), with I_a, I_ab, I_b the means of p (1 - p) times 1, x and x^2, x = logit p.
    """
    inside = (score > 0) & (score < 1)
    p, weight = score[inside], share[inside]
    x, information = np.log(p) - np.log1p(-p), weight * p * (1 - p)
    a, ab, b = (float(np.sum(information * x**j)) for j in range(3))
    determinant = a * b - ab**2
    if not determinant > 1e-12 * a * b:
        raise InputError(
            "scores must have at least two distinct values between 0 and 1 for the calibration slope; got one.",
            hint="Pass ValidationPrecision(slope=None), or the scores of a validation set.",
            argument="scores",
        )
    return math.ceil(a / ((width / (2 * z)) ** 2 * determinant))


def auc_rows(auc: float, rate: float, width: float, z: float) -> int:
    """Return the rows for an interval of the AUC of this width, by Newcombe's variance (2006, method 4)."""

    def error(n: float) -> float:
        half = n / 2 - 1
        inner = 1 + half * (1 - auc) / (2 - auc) + half * auc / (1 + auc)
        return math.sqrt(max(auc * (1 - auc) * inner / (n**2 * rate * (1 - rate)), 0.0))

    return _smallest(lambda n: 2 * z * error(n) <= width)


def net_benefit_rows(
    sensitivity: float, specificity: float, rate: float, threshold: float, width: float, z: float
) -> int:
    """Return the rows for an interval of the standardised net benefit of this width (Marsh et al. 2020).

    N SE^2 = sens (1 - sens) / rate + w^2 spec (1 - spec) / (1 - rate) + w^2 (1 - spec)^2 / (rate (1 - rate)), with w =
    (1 - rate) / rate times threshold / (1 - threshold).
    """
    w = (1 - rate) / rate * threshold / (1 - threshold)
    variance = sensitivity * (1 - sensitivity) / rate + w**2 * specificity * (1 - specificity) / (1 - rate)
    variance += w**2 * (1 - specificity) ** 2 / (rate * (1 - rate))
    return max(math.ceil(variance / (width / (2 * z)) ** 2), 1)


def _expected_auc(score: Floats, share: Floats) -> float:
    """Return the AUC of calibrated scores: the probability that an event has a higher score than another row."""
    events, others = share * score, share * (1 - score)
    below = np.cumsum(others) - others / 2
    return float(np.sum(events * below) / (events.sum() * others.sum()))


def _smallest(enough: Callable[[float], bool]) -> int:
    """Return the smallest number of rows that is enough."""
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST_ROWS:
            raise InputError("auc must be a width that fewer than 2**53 rows reach; it is too small.", argument="auc")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def describe_rows(found: dict[str, int | None], precision: ValidationPrecision) -> Any:
    """Return pairs of criterion and width, in the order of the results."""
    widths = {
        "O/E": precision.oe_ratio,
        "calibration slope": precision.slope,
        "AUC": precision.auc,
        "net benefit": precision.net_benefit,
    }
    return [(name, widths[name], rows) for name, rows in found.items()]
