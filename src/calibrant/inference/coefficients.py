"""Calibration in the large and calibration slope, with confidence intervals."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.errors import InputError
from calibrant._support.json_values import plain
from calibrant._support.logits import EPS, expit
from calibrant._support.typing import Floats
from calibrant.inference.design import Design
from calibrant.metrics.log_odds import LogOddsBins, squares_of_events
from calibrant.metrics.slope_intercept import Logits

__all__ = ["Coefficient", "coefficients"]


@dataclass(frozen=True)
class Coefficient:
    """An estimate with its confidence interval and the value of a calibrated model."""

    name: str
    value: float
    low: float
    high: float
    level: float
    target: float

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return plain(self)


def coefficients(design: Design, level: float) -> tuple[Coefficient, ...]:
    """Those that exist of calibration in the large, calibration slope and Cox's intercept.

    Calibration in the large is the intercept of the logistic regression whose offset is the logit of the score: what
    must be added to all logits to predict the number of events. The slope (and the intercept beside it) is that of the
    logistic regression on the logits. Standard errors are robust (sandwich), by clusters where there are any.
    """
    return (*_in_the_large(design, level), *_line(design, level))


def _in_the_large(design: Design, level: float) -> tuple[Coefficient, ...]:
    bins = LogOddsBins(design.table, np.zeros(1, dtype=np.int64))
    if not bins.information[0] > 0 or not design.table.has_both_classes:
        return ()
    d = float(bins.error[0])
    information = float(bins.curvature(bins.error)[0])
    variance = max(float(design.covariance(bins, bins.error)[0, 0]), float(bins.variance(bins.error)[0]))
    reach = _quantile(design, level) * variance**0.5 / information
    return (Coefficient("calibration in the large", d, d - reach, d + reach, level, 0.0),)


def _line(design: Design, level: float) -> tuple[Coefficient, ...]:
    table = design.table
    logits = Logits.of(table, EPS)
    try:
        line = logits.line(table)
    except InputError:  # almost separated: none was found, though one may exist
        line = None
    if line is None:
        return ()
    x = logits.x[logits.place]
    q = expit(line[1] + line[0] * x)
    columns = np.stack([x, np.ones(x.size)])
    bread = (columns * (table.n * q * (1 - q))) @ columns.T
    try:
        inverse = np.linalg.inv(bread)
    except np.linalg.LinAlgError:
        return ()
    variance = inverse @ _meat(design, columns, q, bread) @ inverse
    reach = _quantile(design, level) * np.sqrt(np.diag(variance))
    names, targets = ("calibration slope", "Cox intercept"), (1.0, 0.0)
    return tuple(
        Coefficient(name, value, value - float(r), value + float(r), level, target)
        for name, value, r, target in zip(names, line, reach, targets, strict=True)
    )


def _meat(design: Design, columns: Floats, q: Floats, bread: Floats) -> Floats:
    """Covariance of the score of the logistic regression; at least that of independent rows where scores fit."""
    table = design.table
    if design.rows is not None:
        sums = np.stack([design.cluster_sums(q, column) for column in columns])
        centred = sums - sums.mean(axis=1, keepdims=True)
        found: Floats = centred @ centred.T * (sums.shape[1] / (sums.shape[1] - 1))
        return found
    events = squares_of_events(table)
    others = (table.n if table.w2 is None else table.w2) - events
    robust: Floats = (columns * (events * (1 - q) ** 2 + others * q**2)) @ columns.T
    # Squared residuals of fitted rows are too small; counts have the Bernoulli variance at least.
    return robust if table.importance or np.trace(robust) > np.trace(bread) else bread


def _quantile(design: Design, level: float) -> float:
    from scipy.special import ndtri, stdtrit

    share = (1 + level) / 2
    return float(ndtri(share) if np.isinf(design.degrees) else stdtrit(design.degrees, share))
