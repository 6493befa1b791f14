"""The named metrics: builders (`ECE`), plain functions (`ece`), and the registry `METRICS`."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Unpack, overload

from calibrant import norms, significance
from calibrant._typing import Column
from calibrant.bins import PAVABC, Bins, EqualWidth, Quantile
from calibrant.errors import CalibrantWarning, InputError
from calibrant.gce import GCE
from calibrant.losses import RejectionRate, absolute_gap
from calibrant.norms import Norm
from calibrant.significance import Test
from calibrant.table import RowOptions, ScoreTable, as_table

__all__ = ["ACE", "ECE", "MCE", "METRICS", "RMSCE", "TCE", "Metric", "ace", "ece", "mce", "rmsce", "tce"]

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


@dataclass(frozen=True)
class Metric:
    """An entry of `METRICS`: a builder that knows how its values read."""

    build: Callable[..., GCE]
    lower_is_better: bool = True

    def __call__(self, **options: Any) -> GCE:
        return self.build(**options)

    @property
    def unit(self) -> str:
        """Unit of the values: "%" or "1"."""
        return self.build().unit


METRICS: dict[str, Metric] = {
    "ece": Metric(ECE),
    "ace": Metric(ACE),
    "mce": Metric(MCE),
    "rmsce": Metric(RMSCE),
    "tce": Metric(TCE),
}


@overload
def ece(table: ScoreTable, /, *, n_bins: int | None = None, bins: Bins | None = None) -> float: ...
@overload
def ece(
    y_true: Column,
    y_prob: Column,
    *,
    n_bins: int | None = None,
    bins: Bins | None = None,
    **rows: Unpack[RowOptions],
) -> float: ...
def ece(y_true: Any, y_prob: Any = None, *, n_bins: Any = None, bins: Any = None, **rows: Any) -> float:
    """Expected calibration error, in [0, 1]; `ECE` is its specification.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    n_bins : int, default=10
        Number of bins of equal width.
    bins : callable, optional
        A kind of bins to use instead; not with `n_bins`.
    sample_weight, pos_label, missing, importance
        How rows are read; see `ScoreTable.from_arrays`.

    Examples
    --------
    >>> round(ece([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9]), 3)
    0.1
    """
    return _value(ECE(n_bins=n_bins, bins=bins), y_true, y_prob, rows)


@overload
def ace(table: ScoreTable, /, *, n_bins: int | None = None, bins: Bins | None = None) -> float: ...
@overload
def ace(
    y_true: Column,
    y_prob: Column,
    *,
    n_bins: int | None = None,
    bins: Bins | None = None,
    **rows: Unpack[RowOptions],
) -> float: ...
def ace(y_true: Any, y_prob: Any = None, *, n_bins: Any = None, bins: Any = None, **rows: Any) -> float:
    """Adaptive calibration error, in [0, 1]; `ACE` is its specification, `ece` describes the arguments.

    Examples
    --------
    >>> round(ace([0, 0, 1, 1], [0.1, 0.4, 0.5, 0.9], n_bins=2), 3)
    0.275
    """
    return _value(ACE(n_bins=n_bins, bins=bins), y_true, y_prob, rows)


@overload
def mce(table: ScoreTable, /, *, n_bins: int | None = None, bins: Bins | None = None) -> float: ...
@overload
def mce(
    y_true: Column,
    y_prob: Column,
    *,
    n_bins: int | None = None,
    bins: Bins | None = None,
    **rows: Unpack[RowOptions],
) -> float: ...
def mce(y_true: Any, y_prob: Any = None, *, n_bins: Any = None, bins: Any = None, **rows: Any) -> float:
    """Maximum calibration error, in [0, 1]; `MCE` is its specification, `ece` describes the arguments.

    Examples
    --------
    >>> round(mce([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]), 3)
    0.2
    """
    return _value(MCE(n_bins=n_bins, bins=bins), y_true, y_prob, rows)


@overload
def rmsce(table: ScoreTable, /, *, n_bins: int | None = None, bins: Bins | None = None) -> float: ...
@overload
def rmsce(
    y_true: Column,
    y_prob: Column,
    *,
    n_bins: int | None = None,
    bins: Bins | None = None,
    **rows: Unpack[RowOptions],
) -> float: ...
def rmsce(y_true: Any, y_prob: Any = None, *, n_bins: Any = None, bins: Any = None, **rows: Any) -> float:
    """Root mean squared calibration error, in [0, 1]; `RMSCE` is its specification, `ece` describes the arguments.

    Examples
    --------
    >>> round(rmsce([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8]), 4)
    0.1323
    """
    return _value(RMSCE(n_bins=n_bins, bins=bins), y_true, y_prob, rows)


@overload
def tce(
    table: ScoreTable, /, *, alpha: float = 0.05, bins: Bins = ..., test: Test = ..., norm: Norm = ...
) -> float: ...
@overload
def tce(
    y_true: Column,
    y_prob: Column,
    *,
    alpha: float = 0.05,
    bins: Bins = ...,
    test: Test = ...,
    norm: Norm = ...,
    **rows: Unpack[RowOptions],
) -> float: ...
def tce(
    y_true: Any,
    y_prob: Any = None,
    *,
    alpha: float = 0.05,
    bins: Bins = PAVABC(),  # noqa: B008  (frozen)
    test: Test = significance.binomial,
    norm: Norm = norms.weighted_l1,
    **rows: Any,
) -> float:
    """Test-based calibration error, in [0, 100]; `TCE` is its specification.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    alpha, bins, test, norm
        See `TCE`.
    sample_weight, pos_label, missing, importance
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
    return _value(TCE(alpha=alpha, bins=bins, test=test, norm=norm), y_true, y_prob, rows)


def _bins(kind: Callable[[int], Bins], n_bins: int | None, bins: Bins | None) -> Bins:
    if bins is None:
        return kind(_DEFAULT_BINS if n_bins is None else n_bins)
    if n_bins is not None:
        raise InputError(
            "Both n_bins and bins were given.", hint="bins already says how many: leave n_bins out.", argument="n_bins"
        )
    return bins


def _value(metric: GCE, y_true: Any, y_prob: Any, rows: Any) -> float:
    """A bare number cannot carry notes, so they become warnings."""
    breakdown = metric(as_table(y_true, y_prob, rows))
    for note in breakdown.notes:
        warnings.warn(note.text, CalibrantWarning, stacklevel=3)
    return breakdown.value
