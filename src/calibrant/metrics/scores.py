"""Proper scores, their decompositions, and measures of calibration that use no bins.

Each is a function of a `ScoreTable`; `Score` gives it a name, so that it can stand in `METRICS` beside the binned ones.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant import _kernels
from calibrant._support.errors import InputError, Note
from calibrant._support.json_values import number
from calibrant._support.properties import declare
from calibrant._support.typing import Column, Floats
from calibrant.metrics.bins import PAVA, Bins, EqualWidth
from calibrant.metrics.log_odds import log_odds_error
from calibrant.tables.partition import Partition
from calibrant.tables.rows import as_number, need_both_classes, table_of, takes_rows
from calibrant.tables.score_table import ScoreTable

__all__ = [
    "CorpDecomposition",
    "Ecce",
    "IsotonicErrors",
    "MurphyDecomposition",
    "Reading",
    "Score",
    "auc",
    "brier",
    "calbin",
    "calloss",
    "corp_decomposition",
    "ecce",
    "ecce_mad",
    "ecce_r",
    "isotonic_errors",
    "log_loss",
    "log_odds_error",
    "mcb",
    "murphy_decomposition",
    "oe_ratio",
    "smooth_ece",
    "stratified_brier",
]


@dataclass(frozen=True)
class Score:
    """A measure without bins, by its name among the functions of this module. Call it on a `ScoreTable`.

    Examples
    --------
    >>> Score("brier")(ScoreTable.from_arrays([0, 1], [0.2, 0.9])).value
    0.025
    """

    name: str
    settings: tuple[tuple[str, Any], ...] = ()
    unit: ClassVar[str] = "1"

    def __post_init__(self) -> None:
        if not hasattr(globals().get(self.name), "of_table"):
            raise InputError(f"There is no score named {self.name!r}.", argument="name", value=self.name)

    def __call__(self, y_true: ScoreTable | Column, y_prob: Column | None = None, **rows: Any) -> "Reading":
        """Measure a table, or rows of (y_true, y_prob) with the options of `ScoreTable.from_arrays`."""
        table = table_of(y_true, y_prob, rows)
        return Reading(self.value(table), self, table)

    def value(self, table: ScoreTable) -> float:
        """The value alone: what the thousands of replicates behind an interval need."""
        return float(globals()[self.name].of_table(table, **dict(self.settings)))

    @property
    def measures_gaps(self) -> bool:
        """Whether the value only grows with gaps of either sign, so that a calibrated model has the lowest.

        The Brier score and others can also be lower than expected if calibrated (scores that are too flat).
        """
        return bool(self._declared("measures_gaps", False))

    @property
    def degree(self) -> float:
        """Power of the gaps with which the value grows."""
        return float(self._declared("degree", 1.0))

    @property
    def range(self) -> tuple[float, float]:
        """Between which the value of the population lies."""
        low, high = self._declared("range", (0.0 if self.measures_gaps else -math.inf, math.inf))
        return low, high

    @property
    def interval_method(self) -> str:
        """How `calibrant.interval` finds limits."""
        return str(self._declared("interval_method", "anchored" if self.measures_gaps else "symmetric"))

    @property
    def min_class_size(self) -> int:
        """Fewest rows of each class for which an interval exists."""
        return int(self._declared("min_class_size", 0))

    def interval_refusal(self, table: ScoreTable) -> str:
        """Why no interval exists for this table; empty where one does."""
        refusal = self._declared("interval_refusal", None)
        return "" if refusal is None else str(refusal(table))

    def _declared(self, name: str, default: Any) -> Any:
        return getattr(globals()[self.name], name, default)

    @property
    def spec(self) -> dict[str, Any]:
        """All that decides the value, as plain JSON-able data."""
        return {"name": self.name, **dict(self.settings)}


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """A value with the specification that produced it; what a `Breakdown` is for measures without bins."""

    value: float
    score: Score
    table: ScoreTable

    @property
    def metric(self) -> str:
        """Name of the metric."""
        return self.score.name

    @property
    def unit(self) -> str:
        """Unit of the value."""
        return self.score.unit

    @property
    def spec(self) -> dict[str, Any]:
        """All that decided the value, JSON-able."""
        return self.score.spec

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the input."""
        return self.table.notes

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; where it has no number for the value, null and the reason."""
        return {
            "schema_version": 1,
            "metric": self.metric,
            **number("value", self.value),
            "unit": self.unit,
            "spec": self.spec,
            "n_in": self.table.n_in,
            "n_used": self.table.n_used,
            "n_dropped": self.table.n_dropped,
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        lines = [f"{self.metric} = {self.value:.5f}   ({self.table!r})"]
        return "\n".join(lines + [f"  note: {note.text}" for note in self.notes])


# Proper scores


@declare(range=(0.0, 1.0))
@as_number
def brier(table: ScoreTable) -> float:
    """Brier score: mean of (p - y)^2 over rows; lower is better.

    The convention of the binary score; Brier's own of 1950 adds both classes and is twice as large.

    Examples
    --------
    >>> round(brier([0, 1, 1], [0.2, 0.6, 0.9]), 4)
    0.07
    """
    return _kernels.squared_errors(table.score, table.n, table.k) / table.size


@declare(range=(0.0, math.inf), min_class_size=1)
@as_number
def log_loss(table: ScoreTable) -> float:
    """Log loss: mean of -ln of the probability given to what happened; lower is better.

    Infinite where an event of probability 0 happened, or one of probability 1 did not: nothing is clipped.

    Examples
    --------
    >>> round(log_loss([0, 1, 1], [0.2, 0.6, 0.9]), 4)
    0.2798
    """
    from scipy.special import xlog1py, xlogy

    p, n, k = table.score, table.n, table.k
    return float(0.0 - np.sum(xlogy(k, p) + xlog1py(n - k, -p)) / table.size)


# With 10 rows of a class its 95 % interval covered 90 % (calibrated, 1 % events), with 20 or more 93 %.
@declare(range=(0.0, 1.0), min_class_size=20)
@as_number
def stratified_brier(table: ScoreTable) -> float:
    """Mean of the Brier scores of the two classes, so that a rare class weighs as much as a common one.

    Wallace and Dahabreh (2014). Needs rows of both classes.

    Examples
    --------
    >>> round(stratified_brier([0, 1, 1], [0.2, 0.6, 0.9]), 4)
    0.0625
    """
    need_both_classes(table, "stratified_brier")
    p, n, k = table.score, table.n, table.k
    events, others = np.sum(k), np.sum(n - k)
    return float(np.sum(k * (1 - p) ** 2) / events + np.sum((n - k) * p**2) / others) / 2


@declare(range=(0.0, 1.0), min_class_size=10)
@as_number
def auc(table: ScoreTable) -> float:
    """Area under the ROC curve: the chance that an event has a higher score than a non-event; ties count half.

    Insensitive to calibration; higher is better. Needs rows of both classes.

    Examples
    --------
    >>> auc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.9])
    0.875
    """
    need_both_classes(table, "auc")
    others = table.n - table.k
    below = np.cumsum(others) - others
    pairs = np.sum(table.k * (below + others / 2.0))
    return float(pairs / float(np.sum(table.k)) / float(np.sum(others)))


# Decompositions


@dataclass(frozen=True)
class MurphyDecomposition:
    """Five terms that add up to the Brier score; see `murphy_decomposition`."""

    reliability: float
    resolution: float
    uncertainty: float
    within_variance: float
    within_covariance: float
    notes: tuple[Note, ...] = ()

    @property
    def brier(self) -> float:
        """reliability - resolution + uncertainty + within_variance + within_covariance."""
        return self.reliability - self.resolution + self.uncertainty + self.within_variance + self.within_covariance


@takes_rows
def murphy_decomposition(table: ScoreTable, *, bins: Bins = EqualWidth(10)) -> MurphyDecomposition:  # noqa: B008  (frozen)
    r"""Murphy's decomposition of the Brier score over bins, exact also where scores vary inside a bin.

    .. math::

       \mathrm{BS} = \tfrac1N \sum_b N_b (\bar p_b - \bar y_b)^2 - \tfrac1N \sum_b N_b (\bar y_b - \bar y)^2
       + \bar y (1 - \bar y) + \tfrac1N \sum_i (p_i - \bar p_b)^2 - \tfrac2N \sum_i (p_i - \bar p_b)(y_i - \bar y_b)

    reliability (lower is better), resolution (higher is better), uncertainty, and Stephenson's two terms for the
    spread inside bins, which vanish when every bin holds one score.

    Examples
    --------
    >>> from calibrant import EqualWidth
    >>> parts = murphy_decomposition([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9], bins=EqualWidth(10))
    >>> round(parts.reliability, 4), round(parts.resolution, 4), parts.uncertainty
    (0.01, 0.125, 0.25)
    >>> abs(parts.brier - brier([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9])) < 1e-15
    True
    """
    partition = bins(table)
    n, rate, mean, size = partition.n, partition.rate, partition.mean_score, table.size
    offset = table.score - mean[partition.labels]
    surprise = table.k - table.n * rate[partition.labels]
    return MurphyDecomposition(
        reliability=float(np.sum(n * (mean - rate) ** 2) / size),
        resolution=float(np.sum(n * (rate - table.prevalence) ** 2) / size),
        uncertainty=table.prevalence * (1 - table.prevalence),
        within_variance=float(np.sum(table.n * offset**2) / size),
        within_covariance=float(-2 * np.sum(offset * surprise) / size),
        notes=table.notes,
    )


@dataclass(frozen=True)
class CorpDecomposition:
    """Miscalibration, discrimination and uncertainty; see `corp_decomposition`."""

    mcb: float
    dsc: float
    unc: float
    notes: tuple[Note, ...] = ()

    @property
    def brier(self) -> float:
        """mcb - dsc + unc."""
        return self.mcb - self.dsc + self.unc


@takes_rows
def corp_decomposition(table: ScoreTable) -> CorpDecomposition:
    """CORP decomposition of the Brier score, by isotonic recalibration: brier = mcb - dsc + unc.

    mcb is what recalibrating by PAV would save (0 is best; the loss of the ROC convex hull's segments), dsc what the
    recalibrated scores save over the constant forecast (higher is better), unc the Brier score of that constant.
    Dimitriadis, Gneiting and Jordan (2021).

    Examples
    --------
    >>> parts = corp_decomposition([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(parts.mcb, 4), round(parts.dsc, 4), parts.unc
    (0.0625, 0.125, 0.25)
    """
    blocks = PAVA()(table)
    recalibrated = float(np.sum(blocks.n * blocks.rate * (1 - blocks.rate)) / table.size)
    unc = table.prevalence * (1 - table.prevalence)
    return CorpDecomposition(brier.of_table(table) - recalibrated, unc - recalibrated, unc, table.notes)


@declare(measures_gaps=True, degree=2, range=(0.0, 1.0), interval_method="triangle")
@as_number
def mcb(table: ScoreTable) -> float:
    """Miscalibration: what isotonic recalibration would save of the Brier score; `corp_decomposition` has its sisters.

    Examples
    --------
    >>> round(mcb([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]), 4)
    0.0625
    """
    return corp_decomposition(table).mcb


# Measures of Bella et al.

_MOST_WINDOWS = 10**9
_MOST_SINGLE = 0.1  # share of rows with a score of their own, above which CalLoss is mostly noise


def _mostly_single(table: ScoreTable) -> str:
    """Why CalLoss has no interval, where most rows have a score of their own."""
    single = float(np.sum(table.n[table.n**2 <= (table.n if table.w2 is None else table.w2) * (1 + 1e-9)]))
    if single <= _MOST_SINGLE * table.size:
        return ""
    return (
        f"calloss needs tied scores for an interval; got {100 * single / table.size:.0f} % of rows with a score of "
        "their own, for which it is the Brier score. Use mcb or ace instead."
    )


@declare(measures_gaps=True, degree=2, range=(0.0, 1.0), interval_method="triangle", interval_refusal=_mostly_single)
@as_number
def calloss(table: ScoreTable) -> float:
    """CalLoss: mean squared distance of each distinct score and the rate of its rows; 0 is best.

    sum of n (p - k/n)^2 / N over distinct scores, which is Murphy's reliability with a bin for every score. The
    chapter of Bella et al. prints it without the square and without 1/N. The version over segments of the ROC
    convex hull is ``corp_decomposition(...).mcb``.

    Examples
    --------
    >>> round(calloss([0, 1, 1, 1], [0.4, 0.4, 0.9, 0.9]), 4)
    0.01
    """
    return float(np.sum(table.n * (table.score - table.k / table.n) ** 2) / table.size)


@declare(measures_gaps=True, range=(0.0, 1.0))
@as_number
def calbin(table: ScoreTable, *, window: int | None = None) -> float:
    r"""CalBin: mean distance of scores and rate in overlapping windows; 0 is best.

    Rows in order of score, every window of s of them, N - s + 1 windows:

    .. math::

       \mathrm{CalBin} = \frac{1}{N - s + 1} \sum_b \frac1s \sum_{i=b}^{b+s-1} \left| p_i - \hat f_b \right|

    with :math:`\hat f_b` the mean outcome in the window; rows with equal scores each carry the rate of them all, so
    the order of rows does not matter. The chapter of Bella et al. prints it without 1/s and with one window fewer.

    Parameters
    ----------
    window : int, optional
        s; by default max(1, N // 10).

    Examples
    --------
    >>> round(calbin([0, 0, 1, 1], [0.1, 0.4, 0.5, 0.9], window=2), 4)
    0.2
    """
    if table.importance:
        raise InputError(
            "calbin slides over rows, so it needs counts; this table holds importance weights.",
            hint="Pass frequency for numbers of equal rows, or use calibrant.ace.",
            argument="sample_weight",
        )
    size = int(table.size)
    if size > _MOST_WINDOWS:
        raise InputError(
            f"calbin slides over every row, so it takes at most {_MOST_WINDOWS:,} of them; there are {size:,}.",
            hint="Use calibrant.ace, or calibrant.calloss.",
        )
    s = max(1, size // 10) if window is None else window
    if not (isinstance(s, (int, np.integer)) and not isinstance(s, bool) and 1 <= s <= size):
        raise InputError(f"window must be a whole number from 1 to {size:,}; it is {window!r}.", argument="window")
    rates = table.k / table.n
    tied = len(table) < size
    p, f = (np.repeat(table.score, table.n), np.repeat(rates, table.n)) if tied else (table.score, rates)
    return float(np.mean(_kernels.window_distances(p, f, int(s))) / s)


# Measures of the related work


@declare(range=(0.0, math.inf), min_class_size=1)
@as_number
def oe_ratio(table: ScoreTable) -> float:
    """Observed over expected events: 1 is best, below 1 predictions are too high, infinite if none was expected.

    Examples
    --------
    >>> round(oe_ratio([0, 1, 1, 0], [0.2, 0.9, 0.8, 0.6]), 4)
    0.8
    """
    expected = float(np.sum(table.n * table.score))
    if expected == 0 and table.positives == 0:
        raise InputError("The ratio of observed to expected events is 0 / 0: no event happened and none was expected.")
    return float(table.positives / expected) if expected > 0 else float("inf")


@dataclass(frozen=True)
class Ecce:
    """Largest deviations of the cumulative differences; `float` gives `mad`. See `ecce`."""

    mad: float
    r: float
    notes: tuple[Note, ...] = ()

    def __float__(self) -> float:
        return self.mad


@takes_rows
def ecce(table: ScoreTable) -> Ecce:
    r"""Empirical cumulative calibration errors: no bins, no bandwidth.

    With rows in order of score, :math:`C_j = \frac1N \sum_{i \le j} (y_i - p_i)` and :math:`C_0 = 0`:

    - ``mad`` is the largest \|C_j\|, the statistic of Kolmogorov and Smirnov;
    - ``r`` is the range, max C - min C, that of Kuiper.

    C is looked at between distinct scores only, so the order of tied rows does not matter. Arrieta-Ibarra, Gujral,
    Tannen, Tygert and Xu (2022).

    Examples
    --------
    >>> result = ecce([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9])
    >>> round(result.mad, 4), round(result.r, 4)
    (0.05, 0.075)
    """
    low, high = (end / table.size for end in _kernels.cumulative_extremes(table.score, table.n, table.k))
    return Ecce(max(-low, high), high - low, table.notes)


@declare(measures_gaps=True, range=(0.0, 1.0))
@as_number
def ecce_mad(table: ScoreTable) -> float:
    """ECCE-MAD, the largest cumulative difference (Kolmogorov-Smirnov), in [0, 1]; `ecce` is its specification.

    Examples
    --------
    >>> round(ecce_mad([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9]), 4)
    0.05
    """
    return ecce(table).mad


@declare(measures_gaps=True, range=(0.0, 1.0))
@as_number
def ecce_r(table: ScoreTable) -> float:
    """ECCE-R, the range of cumulative differences (Kuiper), in [0, 1]; `ecce` is its specification.

    Examples
    --------
    >>> round(ecce_r([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9]), 4)
    0.075
    """
    return ecce(table).r


@dataclass(frozen=True)
class IsotonicErrors:
    """Distances of scores to their isotonic recalibration, over rows; see `isotonic_errors`."""

    ici: float
    e50: float
    e90: float
    emax: float
    notes: tuple[Note, ...] = ()


@takes_rows
def isotonic_errors(table: ScoreTable) -> IsotonicErrors:
    """How far scores lie from their isotonic recalibration: mean (ICI), median, 90th percentile and maximum.

    Harrell's E-statistics and the integrated calibration index of Austin and Steyerberg (2019), with the isotonic fit
    (PAV) in the place of a smoother. A percentile is the smallest distance that at least that share of rows
    does not exceed.

    Examples
    --------
    >>> errors = isotonic_errors([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(errors.ici, 3), round(errors.e50, 3), round(errors.emax, 3)
    (0.175, 0.1, 0.3)
    """
    blocks: Partition = PAVA()(table)
    distance = np.abs(table.score - blocks.rate[blocks.labels])
    order = np.argsort(distance, kind="stable")
    share = np.cumsum(table.n[order]) / table.size

    def percentile(q: float) -> float:
        # 1e-12: 0.9 of ten rows is nine of them, whatever 9 / 10 rounds to
        return float(distance[order][np.searchsorted(share, q - 1e-12)])

    ici = float(np.sum(table.n * distance) / table.size)
    return IsotonicErrors(ici, percentile(0.5), percentile(0.9), float(distance.max()), table.notes)


# Smooth ECE

_SMOOTH_GRID = 2**16  # scores are shared between the two nearest points of this grid
_SMOOTH_LEAST = 2.0**-12  # the least bandwidth


@declare(measures_gaps=True, range=(0.0, 1.0), interval_method="triangle")
@as_number
def smooth_ece(table: ScoreTable) -> float:
    r"""Smooth ECE: ECE with a smoother in the place of bins, and the bandwidth that the data ask for; 0 is best.

    .. math::

       \mathrm{smECE}_\sigma = \int_0^1 \left| \frac1N \sum_i (y_i - p_i) K_\sigma(p_i, t) \right| \mathrm d t

    with the Gaussian kernel reflected at 0 and 1; the value is that of the bandwidth :math:`\sigma^*` at which
    :math:`\mathrm{smECE}_{\sigma^*} = \sigma^*`. Błasiok and Nakkiran (2023).

    Notes
    -----
    A reflected Gaussian multiplies the j-th cosine coefficient by :math:`e^{-(\pi j \sigma)^2 / 2}`, so one cosine
    transform serves all bandwidths. Scores are first shared between the two nearest points of a grid of 2^-16, and
    bandwidths below 2^-12 are not tried: a value below that is the one of this bandwidth.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> smooth_ece(rng.random(5000) < p, p) < 0.02 < smooth_ece(rng.random(5000) < p**2, p)
    True
    """
    from scipy.optimize import brentq

    coefficients = _cosine_coefficients(table)
    # smECE falls as the bandwidth grows, and at 1 it is at most 1: one crossing. Small bandwidths cost most, so the
    # crossing is bracketed from above.
    high = 1.0
    if smooth_ece_at(coefficients, high) >= high:
        return 1.0
    while True:
        low = max(high / 8, _SMOOTH_LEAST)
        at_low = smooth_ece_at(coefficients, low)
        if at_low > low:
            break
        if low == _SMOOTH_LEAST:
            return at_low
        high = low
    return float(brentq(lambda sigma: smooth_ece_at(coefficients, sigma) - sigma, low, high, xtol=1e-13))


def _cosine_coefficients(table: ScoreTable) -> Floats:
    """Mean of (y - p) cos(pi j p) over rows, for j = 0, 1, ..., up to what the least bandwidth lets through."""
    from scipy.fft import dct

    residual = (table.k - table.n * table.score) / table.size
    # Scores are sorted, so every cell of the grid is a run of them; its mass goes to its two ends, by nearness.
    start = np.searchsorted(table.score, np.arange(_SMOOTH_GRID) / _SMOOTH_GRID)
    cell = np.flatnonzero(np.diff(np.append(start, len(table))))
    total = np.add.reduceat(residual, start[cell])
    moment = np.add.reduceat(residual * table.score, start[cell]) * _SMOOTH_GRID - cell * total
    mass = np.zeros(_SMOOTH_GRID + 1)
    mass[cell] += total - moment
    mass[cell + 1] += moment
    mass[[0, -1]] *= 2  # this transform takes its two ends half
    coefficients: Floats = dct(mass, type=1)[: _reach(_SMOOTH_LEAST)] / 2
    # Sharing between two points damps the j-th coefficient by sinc^2: undone here.
    return coefficients / np.sinc(np.arange(coefficients.size) / (2 * _SMOOTH_GRID)) ** 2


def _reach(sigma: float) -> int:
    """How many coefficients the bandwidth lets through: those above 1e-17."""
    return int(np.sqrt(2 * 39.2) / (np.pi * sigma)) + 2


def smooth_ece_at(coefficients: Floats, sigma: float) -> float:
    from scipy.fft import dct, next_fast_len

    kept = coefficients[: _reach(sigma)]
    j = np.arange(kept.size)
    damped = kept * np.exp(-((np.pi * sigma * j) ** 2) / 2)
    points = max(512, next_fast_len(16 * kept.size))
    padded = np.zeros(points + 1)
    padded[: kept.size] = damped
    smoothed = np.abs(dct(padded, type=1))  # f(t) = a_0 + 2 sum a_j cos(pi j t) at t = 0, 1/points, ..., 1
    return float((smoothed.sum() - (smoothed[0] + smoothed[-1]) / 2) / points)
