"""Calibration errors over bins: ECE, ACE, MCE, RMSCE, TCE, ECC and the debiased squared error."""

from __future__ import annotations  # so that help() shows the names of types, not their definitions

from calibrant.metrics import norms, significance
from calibrant.metrics.bins import PAVABC, Bins, EqualWidth, Quantile, choose_bins
from calibrant.metrics.costs import Cost, LinearCost
from calibrant.metrics.gce import GCE
from calibrant.metrics.losses import CostLoss, RejectionRate, absolute_gap, debiased_squared_gap
from calibrant.metrics.metric import metric_function
from calibrant.metrics.norms import Norm
from calibrant.metrics.significance import Test

__all__ = [
    "ACE",
    "ECC",
    "ECE",
    "MCE",
    "RMSCE",
    "TCE",
    "DebiasedSCE",
    "ace",
    "debiased_sce",
    "ecc",
    "ece",
    "mce",
    "rmsce",
    "tce",
]


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
        Number of `Quantile` bins. Equal scores are never split, so bins may differ in size and be fewer.
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
        super().__init__(choose_bins(Quantile, n_bins, bins), absolute_gap, norms.weighted_l1, name="ACE")


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
        Bins to use instead; not with `n_bins`. ``MCE(bins=Quantile(10))`` is the papers' MCE(Q).

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
        Number of `Quantile` bins.
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
            choose_bins(Quantile, n_bins, bins), debiased_squared_gap, norms.weighted_mean, name="debiased_sce"
        )


ece = metric_function(ECE)
ace = metric_function(ACE)
mce = metric_function(MCE)
rmsce = metric_function(RMSCE)
tce = metric_function(TCE)
ecc = metric_function(ECC)
debiased_sce = metric_function(DebiasedSCE)
