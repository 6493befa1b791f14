"""The named metrics: builders (`ECE`), plain functions (`ece`), and the registry `METRICS`."""

from __future__ import annotations  # so that help() shows the names of types, not their definitions

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from calibrant._support.errors import InputError
from calibrant.metrics import norms, significance
from calibrant.metrics.bins import PAVA, PAVABC, Bins, EqualWidth, Quantile
from calibrant.metrics.costs import Cost, LinearCost
from calibrant.metrics.gce import GCE, Breakdown
from calibrant.metrics.losses import (
    CostLoss,
    RejectionRate,
    absolute_gap,
    debiased_squared_gap,
    max_distance,
    mean_distance,
    signed_gap,
)
from calibrant.metrics.norms import Norm
from calibrant.metrics.scores import Score
from calibrant.metrics.significance import Test
from calibrant.tables.rows import as_number
from calibrant.tables.score_table import ScoreTable

__all__ = [
    "ACE",
    "ECC",
    "ECE",
    "ICI",
    "MCE",
    "METRICS",
    "RMSCE",
    "TCE",
    "Bias",
    "CalBin",
    "DebiasedSCE",
    "Emax",
    "LogOddsError",
    "Metric",
    "ace",
    "bias",
    "debiased_sce",
    "ecc",
    "ece",
    "emax",
    "from_spec",
    "ici",
    "mce",
    "rmsce",
    "tce",
]

_DEFAULT_BINS = 10


def ECE(*, n_bins: int | None = None, bins: Bins | None = None) -> GCE:
    r"""Expected calibration error.

    The gap between prediction and outcome, averaged over equally wide bins by size:

    .. math::

       \mathrm{ECE} = \sum_{b=1}^{B} \frac{N_b}{N} \left| \hat P_b - \bar Q_b \right|

    with :math:`\hat P_b` the rate of the event and :math:`\bar Q_b` the mean prediction in bin b.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins :math:`B` of equal width.
    bins : callable, optional
        A kind of bins to use instead, for example ``EqualWidth(10, closed="right")``; not with `n_bins`.

    Returns
    -------
    GCE
        Call it on a `ScoreTable` for a `Breakdown`; ``value`` lies in [0, 1]; 0 is best.

    Notes
    -----
    Equation (4) of [1]_. Bins are closed on the left, the last one on both sides; an empty bin adds nothing.
    Small samples bias ECE upwards.

    References
    ----------
    .. [1] Matsubara et al. (2023), "TCE: A Test-Based Approach to Measuring Calibration Error".

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9])
    >>> round(ECE()(table).value, 3)
    0.1
    """
    return GCE(_bins(EqualWidth, n_bins, bins), absolute_gap, norms.weighted_l1, name="ECE")


def ACE(*, n_bins: int | None = None, bins: Bins | None = None) -> GCE:
    r"""Adaptive calibration error: ECE over bins of equal size instead of equal width.

    .. math::

       \mathrm{ACE} = \sum_{b=1}^{B} \frac{N_b}{N} \left| \hat P_b - \bar Q_b \right|

    with bins that hold the scores from rank :math:`\lfloor b N / B \rfloor` on.

    Parameters
    ----------
    n_bins : int, default=10
        Number of `Quantile` bins. Equal scores are never split, so bins may differ in size and be fewer.
    bins : callable, optional
        A kind of bins to use instead; not with `n_bins`.

    Notes
    -----
    Nixon et al. (2019), "Measuring Calibration in Deep Learning". Bins are weighted by their size, which ties make
    unequal; tied scores go whole to the bin that holds the first of them.

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 0, 1, 1], [0.1, 0.4, 0.5, 0.9])
    >>> round(ACE(n_bins=2)(table).value, 3)
    0.275
    """
    return GCE(_bins(Quantile, n_bins, bins), absolute_gap, norms.weighted_l1, name="ACE")


def MCE(*, n_bins: int | None = None, bins: Bins | None = None) -> GCE:
    r"""Maximum calibration error: the gap of the worst bin, however few rows it has.

    .. math::

       \mathrm{MCE} = \max_b \left| \hat P_b - \bar Q_b \right|

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins of equal width.
    bins : callable, optional
        A kind of bins to use instead; not with `n_bins`. ``MCE(bins=Quantile(10))`` is the papers' MCE(Q).

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9])
    >>> round(MCE()(table).value, 3)
    0.1
    """
    return GCE(_bins(EqualWidth, n_bins, bins), absolute_gap, norms.sup, name="MCE")


def RMSCE(*, n_bins: int | None = None, bins: Bins | None = None) -> GCE:
    r"""Root mean squared calibration error: ECE under a 2-norm.

    .. math::

       \mathrm{RMSCE} = \sqrt{ \sum_{b=1}^{B} \frac{N_b}{N} \left( \hat P_b - \bar Q_b \right)^2 }

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins of equal width.
    bins : callable, optional
        A kind of bins to use instead; not with `n_bins`.

    Notes
    -----
    ECE <= RMSCE <= MCE over the same bins.

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    >>> round(RMSCE()(table).value, 4)
    0.1323
    """
    return GCE(_bins(EqualWidth, n_bins, bins), absolute_gap, norms.weighted_l2, name="RMSCE")


def TCE(
    *,
    alpha: float = 0.05,
    bins: Bins = PAVABC(),  # noqa: B008  (frozen)
    test: Test = significance.binomial,
    norm: Norm = norms.weighted_l1,
) -> GCE:
    r"""Test-based calibration error: the percentage of predictions that a test finds incompatible with the outcomes.

    .. math::

       \mathrm{TCE} = \sum_{b=1}^{B} \frac{N_b}{N} \cdot \frac{100}{N_b}
       \sum_{x \in D_b} \mathbf 1\{\text{p-value of } (k_b, N_b) \text{ under } P(x) \le \alpha\}

    Parameters
    ----------
    alpha : float, default=0.05
        Significance level; a p-value equal to it rejects.
    bins : callable, default=PAVABC()
        Kind of bins. ``PAVABC.consistent()`` keeps TCE of a calibrated model small as rows grow in number.
    test : callable, default=significance.binomial
        Two-sided test of (k, n, p).
    norm : callable, default=norms.weighted_l1
        How the bins' percentages become one.

    Returns
    -------
    GCE
        Call it on a `ScoreTable` for a `Breakdown`; ``value`` lies in [0, 100]; 0 is best.

    Notes
    -----
    Definition 2 of [1]_ with its default bins. Decisions are those of `scipy.stats.binomtest` for every
    prediction. Each prediction is tested against the rate of its whole bin, so with the paper's bins of N/20 to
    N/5 rows even a perfect model is rejected more and more as N grows; 5 % is not what to expect of one.
    TCE also changes when the event is renamed (p to 1 - p), because PAVA-BC goes from left to right.

    References
    ----------
    .. [1] Matsubara et al. (2023), "TCE: A Test-Based Approach to Measuring Calibration Error".

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.5], [50, 50, 50], [15, 12, 26])
    >>> round(TCE()(table).value, 2)
    33.33
    """
    return GCE(bins, RejectionRate(test, alpha), norm, name="TCE")


def ECC(
    cost: Cost = LinearCost(),  # noqa: B008  (frozen)
    *,
    n_bins: int | None = None,
    bins: Bins | None = None,
) -> GCE:
    r"""Expected calibration cost: what the gaps between prediction and outcome cost, averaged over bins by size.

    .. math::

       \mathrm{ECC} = \sum_{b=1}^{B} \frac{N_b}{N} \, C(\bar Q_b, \hat P_b)

    with :math:`C` the cost of predicting :math:`\bar Q_b` on average where the rate is :math:`\hat P_b`.

    Parameters
    ----------
    cost : callable, default=LinearCost(over=1, under=1)
        One of `calibrant.costs` or any function of arrays (p, a). With equal unit costs ECC is ECE.
    n_bins : int, default=10
        Number of bins of equal width.
    bins : callable, optional
        A kind of bins to use instead; not with `n_bins`. The paper's bins are closed on the right:
        ``bins=EqualWidth(10, closed="right")``.

    Notes
    -----
    Equation (5) of Yang and Bi (2025). ECC rewards deliberate bias towards the cheap side, so a `Breakdown` of it
    always shows the signed bias too.

    Examples
    --------
    >>> table = ScoreTable.from_counts(
    ...     score=[0.10, 0.35, 0.45, 0.70, 0.95], n=[180, 40, 40, 40, 100], k=[9, 12, 24, 28, 85]
    ... )
    >>> round(ECC(LinearCost(over=1, under=5), n_bins=5)(table).value, 4)
    0.1275
    """
    return GCE(_bins(EqualWidth, n_bins, bins), CostLoss(cost), norms.weighted_l1, name="ECC")


def Bias() -> GCE:
    """Signed bias: mean prediction minus rate of the event; 0 is best, positive means too high.

    Examples
    --------
    >>> table = ScoreTable.from_arrays([0, 0, 1, 1], [0.2, 0.4, 0.8, 0.9])
    >>> round(Bias()(table).value, 4)
    0.075
    """
    return GCE(EqualWidth(1), signed_gap, norms.weighted_mean, name="bias")


def DebiasedSCE(*, n_bins: int | None = None, bins: Bins | None = None) -> GCE:
    """Squared calibration error over bins of equal size, less what chance adds to it; 0 is best, it can be negative.

    The debiased estimator of Kumar, Liang and Ma (2019); see `losses.debiased_squared_gap`.

    Parameters
    ----------
    n_bins : int, default=10
        Number of `Quantile` bins.
    bins : callable, optional
        A kind of bins to use instead; not with `n_bins`.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.2, 0.8], [50, 50], [20, 30])
    >>> round(DebiasedSCE(n_bins=2)(table).value, 4)
    0.0351
    """
    return GCE(_bins(Quantile, n_bins, bins), debiased_squared_gap, norms.weighted_mean, name="debiased_sce")


def ICI() -> GCE:
    """Integrated calibration index: mean distance of scores to their isotonic recalibration; 0 is best.

    Austin and Steyerberg (2019), with PAV in the place of a smoother; `isotonic_errors` gives the percentiles too.

    Examples
    --------
    >>> round(ICI()(ScoreTable.from_arrays([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])).value, 4)
    0.175
    """
    return GCE(PAVA(), mean_distance, norms.weighted_l1, name="ICI")


def Emax() -> GCE:
    """Largest distance of a score to its isotonic recalibration; 0 is best.

    Examples
    --------
    >>> round(Emax()(ScoreTable.from_arrays([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9])).value, 4)
    0.3
    """
    return GCE(PAVA(), max_distance, norms.sup, name="Emax")


def LogOddsError() -> Score:
    """Log-odds error as a metric object; `log_odds_error` is its specification.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.01, 0.1, 0.5], [20_000, 3_000, 400], [400, 540, 268])
    >>> round(LogOddsError()(table).value, 2)
    0.69
    """
    return Score("log_odds_error")


def CalBin(*, window: int | None = None) -> Score:
    """CalBin as a metric object; `calbin` is its specification."""
    if window is not None and (isinstance(window, bool) or window != int(window) or window < 1):
        raise InputError(f"window must be a whole number of at least 1; it is {window!r}.", argument="window")
    return Score("calbin", (("window", window),))


@dataclass(frozen=True, repr=False)
class Metric:
    """An entry of `METRICS`: a builder that knows how its values read."""

    build: Callable[..., GCE | Score]
    lower_is_better: bool | None = True  # None: best is a value in the middle, such as 0 for a bias

    def __call__(self, **options: Any) -> GCE | Score:
        return self.build(**options)

    @property
    def unit(self) -> str:
        """Unit of the values: "%" or "1"."""
        return self.build().unit

    def __repr__(self) -> str:
        better = {True: "lower is better", False: "higher is better", None: "best in the middle"}
        return f"<{self.build().name}{' in %' if self.unit == '%' else ''}, {better[self.lower_is_better]}>"


def _score(name: str) -> Callable[[], Score]:
    """The builder of a score that has no settings."""
    return lambda: Score(name)


METRICS: dict[str, Metric] = {
    "ece": Metric(ECE),
    "ace": Metric(ACE),
    "mce": Metric(MCE),
    "rmsce": Metric(RMSCE),
    "tce": Metric(TCE),
    "ecc": Metric(ECC),
    "bias": Metric(Bias, lower_is_better=None),
    "oe_ratio": Metric(_score("oe_ratio"), lower_is_better=None),
    "debiased_sce": Metric(DebiasedSCE),
    "smooth_ece": Metric(_score("smooth_ece")),
    "ecce_mad": Metric(_score("ecce_mad")),
    "ecce_r": Metric(_score("ecce_r")),
    "ici": Metric(ICI),
    "emax": Metric(Emax),
    "calbin": Metric(CalBin),
    "log_odds_error": Metric(LogOddsError),
    "calloss": Metric(_score("calloss")),
    "mcb": Metric(_score("mcb")),
    "brier": Metric(_score("brier")),
    "stratified_brier": Metric(_score("stratified_brier")),
    "log_loss": Metric(_score("log_loss")),
    "auc": Metric(_score("auc"), lower_is_better=False),
}


def from_spec(spec: Mapping[str, Any]) -> GCE | Score:
    """The metric that a specification (``metric.spec``) describes, with bins or without.

    >>> from_spec(METRICS["brier"]().spec).name
    'brier'
    """
    if "bins" in spec:
        return GCE.from_spec(spec)
    settings = {key: value for key, value in spec.items() if key != "name"}
    if spec.get("name") not in METRICS:
        raise InputError(f"There is no metric named {spec.get('name')!r}.", argument="spec", value=spec)
    try:
        return METRICS[spec["name"]](**settings)
    except TypeError as error:
        raise InputError(f"{spec['name']} has no such settings: {settings}.", argument="spec", value=spec) from error


@as_number
def ece(table: ScoreTable, *, n_bins: int | None = None, bins: Bins | None = None) -> Breakdown:
    """Expected calibration error, in [0, 1]; `ECE` is its specification.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    n_bins : int, default=10
        Number of bins of equal width.
    bins : callable, optional
        A kind of bins to use instead; not with `n_bins`.
    sample_weight, frequency, pos_label, missing
        How rows are read; see `ScoreTable.from_arrays`.

    Examples
    --------
    >>> round(ece([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9]), 3)
    0.1
    """
    return ECE(n_bins=n_bins, bins=bins)(table)


@as_number
def ace(table: ScoreTable, *, n_bins: int | None = None, bins: Bins | None = None) -> Breakdown:
    """Adaptive calibration error, in [0, 1]; `ACE` is its specification, `ece` describes the arguments.

    Examples
    --------
    >>> round(ace([0, 0, 1, 1], [0.1, 0.4, 0.5, 0.9], n_bins=2), 3)
    0.275
    """
    return ACE(n_bins=n_bins, bins=bins)(table)


@as_number
def mce(table: ScoreTable, *, n_bins: int | None = None, bins: Bins | None = None) -> Breakdown:
    """Maximum calibration error, in [0, 1]; `MCE` is its specification, `ece` describes the arguments.

    Examples
    --------
    >>> round(mce([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]), 3)
    0.2
    """
    return MCE(n_bins=n_bins, bins=bins)(table)


@as_number
def rmsce(table: ScoreTable, *, n_bins: int | None = None, bins: Bins | None = None) -> Breakdown:
    """Root mean squared calibration error, in [0, 1]; `RMSCE` is its specification, `ece` describes the arguments.

    Examples
    --------
    >>> round(rmsce([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]), 4)
    0.1323
    """
    return RMSCE(n_bins=n_bins, bins=bins)(table)


@as_number
def tce(
    table: ScoreTable,
    *,
    alpha: float = 0.05,
    bins: Bins = PAVABC(),  # noqa: B008  (frozen)
    test: Test = significance.binomial,
    norm: Norm = norms.weighted_l1,
) -> Breakdown:
    """Test-based calibration error, in [0, 100]; `TCE` is its specification.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    alpha, bins, test, norm
        See `TCE`.
    sample_weight, frequency, pos_label, missing
        How rows are read; see `ScoreTable.from_arrays`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2  # predictions that are far too high
    >>> tce(y, p) > 80
    True
    """
    return TCE(alpha=alpha, bins=bins, test=test, norm=norm)(table)


@as_number
def ecc(
    table: ScoreTable,
    *,
    cost: Cost = LinearCost(),  # noqa: B008  (frozen)
    n_bins: int | None = None,
    bins: Bins | None = None,
) -> Breakdown:
    """Expected calibration cost; `ECC` is its specification, `ece` describes the other arguments.

    Never read it without `bias`: it rewards deliberate bias towards the cheap side.

    Examples
    --------
    >>> round(ecc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], cost=LinearCost(over=1, under=5)), 4)
    0.525
    """
    return ECC(cost, n_bins=n_bins, bins=bins)(table)


@as_number
def debiased_sce(table: ScoreTable, *, n_bins: int | None = None, bins: Bins | None = None) -> Breakdown:
    """Debiased squared calibration error; `DebiasedSCE` is its specification, `ece` describes the arguments.

    Examples
    --------
    >>> round(debiased_sce([0, 0, 1, 1], [0.1, 0.4, 0.5, 0.9], n_bins=2), 4)
    0.0763
    """
    return DebiasedSCE(n_bins=n_bins, bins=bins)(table)


@as_number
def bias(table: ScoreTable) -> Breakdown:
    """Signed bias, mean prediction minus rate: positive means too high. `Bias` is the metric object.

    Examples
    --------
    >>> round(bias([0, 0, 1, 1], [0.2, 0.4, 0.8, 0.9]), 4)
    0.075
    """
    return Bias()(table)


@as_number
def ici(table: ScoreTable) -> Breakdown:
    """Integrated calibration index, in [0, 1]; `ICI` is its specification.

    Examples
    --------
    >>> round(ici([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]), 4)
    0.175
    """
    return ICI()(table)


@as_number
def emax(table: ScoreTable) -> Breakdown:
    """Largest distance of a score to its isotonic recalibration, in [0, 1]; `Emax` is its specification.

    Examples
    --------
    >>> round(emax([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9]), 4)
    0.3
    """
    return Emax()(table)


def _bins(kind: Callable[[int], Bins], n_bins: int | None, bins: Bins | None) -> Bins:
    if bins is None:
        return kind(_DEFAULT_BINS if n_bins is None else n_bins)
    if n_bins is not None:
        raise InputError(
            "Both n_bins and bins were given.", hint="bins already says how many: leave n_bins out.", argument="n_bins"
        )
    return bins
