"""Calibration errors over bins: ECE, ACE, MCE, RMSCE, TCE, ECC and the debiased squared error."""

from __future__ import annotations  # so that help() shows the names of types, not their definitions

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant import _kernels
from calibrant._support.arrays import Column
from calibrant._support.errors import InputError, Note, check_count
from calibrant._support.formatting import line_html, short_repr
from calibrant.metrics import norms, significance
from calibrant.metrics.bins import PAVA, PAVABC, Bins, EqualSize, EqualWidth, choose_bins
from calibrant.metrics.costs import Cost, LinearCost
from calibrant.metrics.gce import GCE
from calibrant.metrics.losses import (
    CostLoss,
    RejectionRate,
    absolute_gap,
    debiased_squared_gap,
    max_distance,
    mean_distance,
    signed_gap,
)
from calibrant.metrics.metric import Direction, MetricFunction, UnbinnedMetric, metric_function
from calibrant.metrics.norms import Norm, sup, weighted_l1, weighted_mean
from calibrant.metrics.significance import Test
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable, read_score_table, row_squares


class ECE(GCE):
    r"""Expected calibration error.

    The gap between prediction and outcome, averaged over bins of equal width by size:

    .. math::

       \mathrm{ECE} = \sum_{b=1}^{B} \frac{N_b}{N} \left| \hat P_b - \bar Q_b \right|

    with :math:`\hat P_b` the event rate and :math:`\bar Q_b` the mean prediction in bin b. In [0, 1]; 0 is best.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins :math:`B` of equal width.
    bins : callable, optional
        Bins to use instead, for example ``EqualWidth(10, closed="right")``; not with `n_bins`.

    See Also
    --------
    ece, GCE, ACE, TCE

    Notes
    -----
    Equation (4) of [1]_. Bins are closed on the left, the last one on both sides; an empty bin adds nothing.
    Small samples bias ECE upwards.

    References
    ----------
    .. [1] Matsubara et al. (2023), "TCE: A Test-Based Approach to Measuring Calibration Error".

    Examples
    --------
    >>> round(ece([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9]), 3)
    0.1
    >>> from calibrant import ScoreTable
    >>> table = ScoreTable.from_arrays([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9])
    >>> round(ECE()(table).value, 3)
    0.1
    """

    def __init__(self, *, n_bins: int | None = None, bins: Bins | None = None) -> None:
        super().__init__(choose_bins(EqualWidth, n_bins, bins), absolute_gap, norms.weighted_l1, name="ECE")


class ACE(GCE):
    r"""Adaptive calibration error: ECE over bins of equal size instead of equal width.

    .. math::

       \mathrm{ACE} = \sum_{b=1}^{B} \frac{N_b}{N} \left| \hat P_b - \bar Q_b \right|

    with bins that hold the scores from rank :math:`\lfloor b N / B \rfloor` on. In [0, 1]; 0 is best.

    Parameters
    ----------
    n_bins : int, default=10
        Number of `EqualSize` bins. Equal scores are never split, so bins may differ in size and be fewer.
    bins : callable, optional
        Bins to use instead; not with `n_bins`.

    See Also
    --------
    ace, GCE, ECE, TCE

    Notes
    -----
    Nixon et al. (2019), "Measuring Calibration in Deep Learning". Bins are weighted by their size, which ties make
    unequal; tied scores go whole to the bin that holds the first of them.

    Examples
    --------
    >>> round(ace([0, 0, 1, 1], [0.1, 0.4, 0.5, 0.9], n_bins=2), 3)
    0.275
    >>> ACE(n_bins=2)
    ACE(n_bins=2)
    """

    def __init__(self, *, n_bins: int | None = None, bins: Bins | None = None) -> None:
        super().__init__(choose_bins(EqualSize, n_bins, bins), absolute_gap, norms.weighted_l1, name="ACE")


class MCE(GCE):
    r"""Maximum calibration error: the largest gap of a bin, however few rows the bin has.

    .. math::

       \mathrm{MCE} = \max_b \left| \hat P_b - \bar Q_b \right|

    In [0, 1]; 0 is best.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins of equal width.
    bins : callable, optional
        Bins to use instead; not with `n_bins`. ``MCE(bins=EqualSize(10))`` is the papers' MCE(Q).

    See Also
    --------
    mce, GCE, ECE

    Examples
    --------
    >>> round(mce([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]), 3)
    0.2
    """

    def __init__(self, *, n_bins: int | None = None, bins: Bins | None = None) -> None:
        super().__init__(choose_bins(EqualWidth, n_bins, bins), absolute_gap, norms.sup, name="MCE")


class RMSCE(GCE):
    r"""Root mean squared calibration error: ECE under a 2-norm.

    .. math::

       \mathrm{RMSCE} = \sqrt{ \sum_{b=1}^{B} \frac{N_b}{N} \left( \hat P_b - \bar Q_b \right)^2 }

    In [0, 1]; 0 is best.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins of equal width.
    bins : callable, optional
        Bins to use instead; not with `n_bins`.

    See Also
    --------
    rmsce, GCE, ECE, DebiasedSCE

    Notes
    -----
    ECE <= RMSCE <= MCE over the same bins.

    Examples
    --------
    >>> round(rmsce([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]), 4)
    0.1323
    """

    def __init__(self, *, n_bins: int | None = None, bins: Bins | None = None) -> None:
        super().__init__(choose_bins(EqualWidth, n_bins, bins), absolute_gap, norms.weighted_l2, name="RMSCE")


class TCE(GCE):
    r"""Test-based calibration error: the percentage of predictions that a test rejects, given the outcomes.

    .. math::

       \mathrm{TCE} = \sum_{b=1}^{B} \frac{N_b}{N} \cdot \frac{100}{N_b}
       \sum_{x \in D_b} \mathbf 1\{\text{p-value of } (k_b, N_b) \text{ under } P(x) \le \alpha\}

    In [0, 100]; 0 is best.

    Parameters
    ----------
    alpha : float, default=0.05
        Significance level; a p-value equal to it rejects.
    bins : callable, default=PAVABC()
        Bins. ``PAVABC.consistent()`` keeps TCE of a calibrated model small as the number of rows grows.
    test : callable, default=significance.binomial
        Two-sided test of (k, n, p).
    norm : callable, default=norms.weighted_l1
        Norm of the percentages of the bins.

    See Also
    --------
    tce, GCE, PAVABC, RejectionRate

    Notes
    -----
    Definition 2 of [1]_ with its default bins. Decisions are those of `scipy.stats.binomtest` for each prediction.
    Each prediction is tested against the rate of its whole bin. With the paper's bins of N/20 to N/5 rows, the test
    therefore rejects more predictions of a calibrated model as N grows: its expected TCE is not 5 %.
    TCE also changes if events and non-events are exchanged (p to 1 - p), because PAVA-BC is not symmetric.

    References
    ----------
    .. [1] Matsubara et al. (2023), "TCE: A Test-Based Approach to Measuring Calibration Error".

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.5], [50, 50, 50], [15, 12, 26])
    >>> round(tce(table), 2)
    33.33
    >>> round(TCE(alpha=0.01)(table).value, 2)
    33.33
    """

    def __init__(
        self,
        *,
        alpha: float = 0.05,
        bins: Bins = PAVABC(),  # noqa: B008  (frozen)
        test: Test = significance.binomial,
        norm: Norm = norms.weighted_l1,
    ) -> None:
        super().__init__(bins, RejectionRate(test, alpha), norm, name="TCE")


class ECC(GCE):
    r"""Expected calibration cost: the cost of the gaps between prediction and outcome, averaged over bins by size.

    .. math::

       \mathrm{ECC} = \sum_{b=1}^{B} \frac{N_b}{N} \, C(\bar Q_b, \hat P_b)

    with :math:`C` the cost of predicting :math:`\bar Q_b` on average where the rate is :math:`\hat P_b`. At least 0;
    0 is best.

    Parameters
    ----------
    cost : callable, default=LinearCost(over=1, under=1)
        One of `calibrant.costs` or any function of arrays (p, a). With equal unit costs ECC is ECE.
    n_bins : int, default=10
        Number of bins of equal width.
    bins : callable, optional
        Bins to use instead; not with `n_bins`. The paper's bins are closed on the right:
        ``bins=EqualWidth(10, closed="right")``.

    See Also
    --------
    ecc, GCE, LinearCost, CostLoss

    Notes
    -----
    Equation (5) of Yang and Bi (2025). ECC rewards deliberate bias towards the cheap side, so its `Breakdown` also
    shows the signed bias; report `bias` with it.

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> table = ScoreTable.from_counts(
    ...     score=[0.10, 0.35, 0.45, 0.70, 0.95], n=[180, 40, 40, 40, 100], k=[9, 12, 24, 28, 85]
    ... )
    >>> round(ecc(table, cost=LinearCost(over=1, under=5), n_bins=5), 4)
    0.1275
    >>> round(ECC(LinearCost(over=1, under=5), n_bins=5)(table).value, 4)
    0.1275
    """

    def __init__(
        self,
        cost: Cost = LinearCost(),  # noqa: B008  (frozen)
        *,
        n_bins: int | None = None,
        bins: Bins | None = None,
    ) -> None:
        super().__init__(choose_bins(EqualWidth, n_bins, bins), CostLoss(cost), norms.weighted_l1, name="ECC")


class DebiasedSCE(GCE):
    """Debiased squared calibration error: mean squared gap over bins of equal size, less its expected noise.

    The estimator of Kumar, Liang and Ma (2019); see `losses.debiased_squared_gap`. 0 is best; it can be negative.

    Parameters
    ----------
    n_bins : int, default=10
        Number of `EqualSize` bins.
    bins : callable, optional
        Bins to use instead; not with `n_bins`.

    See Also
    --------
    debiased_sce, RMSCE

    Examples
    --------
    >>> round(debiased_sce([0, 0, 1, 1], [0.1, 0.4, 0.5, 0.9], n_bins=2), 4)
    0.0763
    >>> from calibrant import ScoreTable
    >>> table = ScoreTable.from_counts([0.2, 0.8], [50, 50], [20, 30])
    >>> round(DebiasedSCE(n_bins=2)(table).value, 4)
    0.0351
    """

    def __init__(self, *, n_bins: int | None = None, bins: Bins | None = None) -> None:
        super().__init__(
            choose_bins(EqualSize, n_bins, bins), debiased_squared_gap, norms.weighted_mean, name="debiased SCE"
        )


ece: MetricFunction = metric_function(ECE)
ace: MetricFunction = metric_function(ACE)
mce: MetricFunction = metric_function(MCE)
rmsce: MetricFunction = metric_function(RMSCE)
tce: MetricFunction = metric_function(TCE)
ecc: MetricFunction = metric_function(ECC)
debiased_sce: MetricFunction = metric_function(DebiasedSCE)


class Bias(GCE):
    """Signed bias: mean prediction minus event rate; 0 is best, and a positive value means overestimation.

    See Also
    --------
    bias, OERatio

    Examples
    --------
    >>> round(bias([0, 0, 1, 1], [0.2, 0.4, 0.8, 0.9]), 4)
    0.075
    """

    def __init__(self) -> None:
        super().__init__(EqualWidth(1), signed_gap, weighted_mean, name="bias")


@dataclass(frozen=True)
class OERatio(UnbinnedMetric):
    """Ratio of observed to expected events; 1 is best, and a value below 1 means overestimation.

    Infinite where events are observed and none is expected.

    See Also
    --------
    oe_ratio, Bias

    Examples
    --------
    >>> round(oe_ratio([0, 1, 1, 0], [0.2, 0.9, 0.8, 0.6]), 4)
    0.8
    """

    name: ClassVar[str] = "OE ratio"
    direction: ClassVar[Direction] = 1.0
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    min_class_size: ClassVar[int] = 1
    interval_method: ClassVar[str] = "ratio"

    def value(self, table: ScoreTable) -> float:
        expected = float(EqualWidth(1)(table).total_score[0]) if len(table) else 0.0
        if expected == 0 and table.positives == 0:
            raise InputError("y_true must have observed or expected events for oe_ratio; got neither, so it is 0 / 0.")
        return float(table.positives / expected) if expected > 0 else math.inf

    def value_of_rows(self, score: NDArray[Any], label: NDArray[Any]) -> float | None:
        """Return the value of rows in any order, or None where a table is needed; see `Metric`.

        Parameters
        ----------
        score : array
            Scores of the rows.
        label : array
            Outcomes of the rows, 0 or 1.

        Returns
        -------
        float or None
            Bitwise the value of the table of these rows.
        """
        sums = _kernels.row_sums(score, label, EqualWidth(1).row_edges())
        return None if sums is None or not 0 < sums[1][0] < label.size else float(sums[1][0] / sums[2][0])


bias: MetricFunction = metric_function(Bias)
oe_ratio: MetricFunction = metric_function(OERatio)


class ICI(GCE):
    """Integrated calibration index: mean distance of scores to their isotonic recalibration, in [0, 1]; 0 is best.

    Austin and Steyerberg (2019), with PAV instead of a smoother; `isotonic_errors` gives the percentiles too.

    See Also
    --------
    ici, Emax, isotonic_errors

    Examples
    --------
    >>> round(ici([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]), 4)
    0.175
    """

    def __init__(self) -> None:
        super().__init__(PAVA(), mean_distance, weighted_l1, name="ICI")


class Emax(GCE):
    """Largest distance of a score to its isotonic recalibration, in [0, 1]; 0 is best.

    See Also
    --------
    emax, ICI, isotonic_errors

    Examples
    --------
    >>> round(emax([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]), 4)
    0.3
    """

    def __init__(self) -> None:
        super().__init__(PAVA(), max_distance, sup, name="Emax")


ici: MetricFunction = metric_function(ICI)
emax: MetricFunction = metric_function(Emax)


@dataclass(frozen=True)
class IsotonicErrors:
    """Distances of scores to their isotonic recalibration, over rows; see `isotonic_errors`.

    Attributes
    ----------
    ici, e50, e90, emax : float
        Mean, median, 90th percentile and maximum of the distances.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    isotonic_errors, SmoothErrors

    Examples
    --------
    >>> from calibrant.metrics import isotonic_errors
    >>> errors = isotonic_errors([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(errors.e90, 3), round(errors.emax, 3)
    (0.3, 0.3)
    """

    ici: float
    e50: float
    e90: float
    emax: float
    notes: tuple[Note, ...] = ()


def isotonic_errors(
    y_true: ScoreTable | Column, y_prob: Column | None = None, **rows: Unpack[RowOptions]
) -> IsotonicErrors:
    """Distances of scores to their isotonic recalibration: mean (ICI), median, 90th percentile and maximum.

    Harrell's E-statistics and the integrated calibration index of Austin and Steyerberg (2019), with the isotonic fit
    (PAV) instead of a smoother. A percentile is the smallest distance that is not exceeded by at least that share of
    rows.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    IsotonicErrors
        The four distances.

    See Also
    --------
    IsotonicErrors, loess_errors, ici

    Examples
    --------
    >>> errors = isotonic_errors([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(errors.ici, 3), round(errors.e50, 3), round(errors.emax, 3)
    (0.175, 0.1, 0.3)
    """
    table = read_score_table(y_true, y_prob, rows)
    blocks = PAVA()(table)
    distance = np.abs(table.score - blocks.rate[blocks.labels])
    order = np.argsort(distance, kind="stable")
    share = np.cumsum(table.n[order]) / table.size

    def percentile(q: float) -> float:
        # 1e-12: 0.9 of ten rows are nine rows, however 9 / 10 is rounded
        return float(distance[order][np.searchsorted(share, q - 1e-12)])

    mean = float(np.sum(table.n * distance) / table.size)
    return IsotonicErrors(mean, percentile(0.5), percentile(0.9), float(distance.max()), table.notes)


@dataclass(frozen=True)
class Ecce:
    """Largest deviations of the cumulative differences; `float` gives `mad`. See `ecce`.

    Attributes
    ----------
    mad : float
        Largest absolute cumulative difference.
    r : float
        Range of the cumulative differences.
    notes : tuple of Note
        Notes about the input.

    See Also
    --------
    ecce, ecce_mad, ecce_r

    Examples
    --------
    >>> from calibrant.metrics import ecce
    >>> found = ecce([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])
    >>> round(found.mad, 3), round(found.r, 3), float(found) == found.mad
    (0.175, 0.2, True)
    """

    __repr__ = short_repr
    _repr_html_ = line_html

    mad: float
    r: float
    notes: tuple[Note, ...] = ()

    def __float__(self) -> float:
        return self.mad


def ecce(y_true: ScoreTable | Column, y_prob: Column | None = None, **rows: Unpack[RowOptions]) -> Ecce:
    r"""Empirical cumulative calibration errors: no bins, no bandwidth.

    With rows in order of score, :math:`C_j = \frac1N \sum_{i \le j} (y_i - p_i)` and :math:`C_0 = 0`:

    - ``mad`` is the largest \|C_j\|, the statistic of Kolmogorov and Smirnov;
    - ``r`` is the range, max C - min C, that of Kuiper.

    C is evaluated between distinct scores only, so the order of tied rows does not matter. Arrieta-Ibarra, Gujral,
    Tannen, Tygert and Xu (2022).

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    Ecce
        Both statistics.

    See Also
    --------
    ecce_mad, ecce_r, ecce_test

    Examples
    --------
    >>> result = ecce([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9])
    >>> round(result.mad, 4), round(result.r, 4)
    (0.05, 0.075)
    """
    table = read_score_table(y_true, y_prob, rows)
    low, high = (end / table.size for end in _kernels.cumulative_extremes(table.score, table.n, table.k))
    return Ecce(max(-low, high), high - low, table.notes)


@dataclass(frozen=True)
class EcceMad(UnbinnedMetric):
    """ECCE-MAD, the largest cumulative difference (Kolmogorov-Smirnov), in [0, 1]; 0 is best. See `ecce`.

    See Also
    --------
    ecce_mad, EcceR, ecce

    Examples
    --------
    >>> round(ecce_mad([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9]), 4)
    0.05
    """

    name: ClassVar[str] = "ECCE-MAD"
    measures_gaps: ClassVar[bool] = True
    interval_method: ClassVar[str] = "anchored"

    def value(self, table: ScoreTable) -> float:
        return ecce(table).mad


@dataclass(frozen=True)
class EcceR(UnbinnedMetric):
    """ECCE-R, the range of cumulative differences (Kuiper), in [0, 1]; 0 is best. See `ecce`.

    See Also
    --------
    ecce_r, EcceMad, ecce

    Examples
    --------
    >>> round(ecce_r([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9]), 4)
    0.075
    """

    name: ClassVar[str] = "ECCE-R"
    measures_gaps: ClassVar[bool] = True
    interval_method: ClassVar[str] = "anchored"

    def value(self, table: ScoreTable) -> float:
        return ecce(table).r


ecce_mad: MetricFunction = metric_function(EcceMad)
ecce_r: MetricFunction = metric_function(EcceR)


_MAX_ROWS = 10**9
_MAX_SINGLE = 0.1  # share of rows without ties, above which CalLoss is mostly noise


@dataclass(frozen=True)
class CalBin(UnbinnedMetric):
    r"""CalBin: mean distance between scores and event rate in overlapping windows, in [0, 1]; 0 is best.

    Rows are sorted by score; each run of s rows is a window, so there are N - s + 1 windows:

    .. math::

       \mathrm{CalBin} = \frac{1}{N - s + 1} \sum_b \frac1s \sum_{i=b}^{b+s-1} \left| p_i - \hat f_b \right|

    with :math:`\hat f_b` the mean outcome in the window. Rows with equal scores each have the rate of all of them, so
    the order of rows does not matter. The chapter of Bella et al. prints it without 1/s and with one window fewer.

    Parameters
    ----------
    window : int, optional
        s; by default max(1, N // 10).

    See Also
    --------
    calbin, CalLoss

    Examples
    --------
    >>> round(calbin([0, 0, 1, 1], [0.1, 0.4, 0.5, 0.9], window=2), 4)
    0.2
    """

    window: int | None = None
    name: ClassVar[str] = "CalBin"
    measures_gaps: ClassVar[bool] = True
    needs_counts: ClassVar[bool] = True
    interval_method: ClassVar[str] = "anchored"

    def __post_init__(self) -> None:
        if self.window is not None:
            object.__setattr__(self, "window", check_count("window", self.window))

    def value(self, table: ScoreTable) -> float:
        if table.importance:
            raise InputError(
                "sample_weight must be omitted for calbin, whose windows contain whole rows; got importance weights.",
                hint="Pass frequency for numbers of equal rows, or use calibrant.metrics.ace.",
            )
        size = int(table.size)
        if size > _MAX_ROWS:
            raise InputError(
                f"y_true must have at most {_MAX_ROWS:,} rows for calbin, which has a window for each; got {size:,}.",
                hint="Use calibrant.metrics.ace, or calibrant.metrics.calloss.",
            )
        s = max(1, size // 10) if self.window is None else check_count("window", self.window, size)
        rates = table.k / table.n
        tied = len(table) < size
        p, f = (np.repeat(table.score, table.n), np.repeat(rates, table.n)) if tied else (table.score, rates)
        return float(np.mean(_kernels.window_distances(p, f, s)) / s)


@dataclass(frozen=True)
class CalLoss(UnbinnedMetric):
    """CalLoss: mean squared distance between each distinct score and the rate of its rows, in [0, 1]; 0 is best.

    The sum of n (p - k/n)^2 / N over distinct scores: Murphy's reliability with one bin per score. The chapter of
    Bella et al. prints it without the square and without 1/N. The version over segments of the ROC convex hull is
    ``corp_decomposition(...).mcb``.

    See Also
    --------
    calloss, CalBin

    Examples
    --------
    >>> round(calloss([0, 1, 1, 1], [0.4, 0.4, 0.9, 0.9]), 4)
    0.01
    """

    name: ClassVar[str] = "CalLoss"
    measures_gaps: ClassVar[bool] = True
    degree: ClassVar[float] = 2.0
    interval_method: ClassVar[str] = "triangle"

    def value(self, table: ScoreTable) -> float:
        return float(np.sum(table.n * (table.score - table.k / table.n) ** 2) / table.size)

    def interval_refusal(self, table: ScoreTable) -> str:
        """Return why no interval exists if many rows have no ties; else an empty text.

        Parameters
        ----------
        table : ScoreTable, MeanTable or ForecastTable
            Table of the kind of the metric.

        Returns
        -------
        str
            One or two sentences, or ''.
        """
        single = float(np.sum(table.n[table.n**2 <= row_squares(table) * (1 + 1e-9)]))
        if single <= _MAX_SINGLE * table.size:
            return ""
        return (
            f"calloss needs tied scores for an interval; got {100 * single / table.size:.0f} % of rows without ties, "
            "for which it is the Brier score. Use mcb or ace instead."
        )


calbin: MetricFunction = metric_function(CalBin)
calloss: MetricFunction = metric_function(CalLoss)
