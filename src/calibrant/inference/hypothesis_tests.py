"""Tests of calibration: a small p-value speaks against it.

All take rows or a table. Under the hypothesis every outcome is drawn with its predicted probability, so any statistic
can also be tested by drawing outcomes from the scores; `consistency` does that for any metric. The others have p-values
that hold for many rows, and say so where they are too few.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant._support.errors import InputError, Note
from calibrant._support.json_values import plain
from calibrant._support.logits import EPS
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.typing import Column, Weights
from calibrant.inference import resampling
from calibrant.inference.components import contrast_test, contrasts_test, over_bins
from calibrant.inference.design import Design
from calibrant.inference.intervals import Alternative, null, read_rows
from calibrant.inference.tails import normal_two_sided
from calibrant.metrics.bins import Bins, Quantile
from calibrant.metrics.cumulative import ecce
from calibrant.metrics.log_odds import LogOddsBins
from calibrant.metrics.registry import MetricLike
from calibrant.metrics.slope_intercept import Logits
from calibrant.tables.rows import takes_rows
from calibrant.tables.score_table import ScoreTable

__all__ = [
    "TestResult",
    "consistency",
    "ecce_test",
    "hosmer_lemeshow",
    "slope_intercept_test",
    "spiegelhalter",
]

_RESAMPLES = 999


@dataclass(frozen=True)
class TestResult:
    """A statistic with its p-value; ``statistic, pvalue = result`` works too.

    Attributes
    ----------
    statistic, pvalue : float
    name : str
    df : float or None
        Degrees of freedom, where the statistic has a chi-squared distribution.
    resampling_pvalue : float or None
        Where rows are too few for `pvalue`: the p-value by drawing outcomes from the scores. A note says so.
    notes : tuple of Note
    adjusted_pvalue : float or None
        Of a test behind a verdict: its p-value adjusted for the number of tests by Holm. None for other tests.
    """

    __test__ = False  # not a test case of pytest

    statistic: float
    pvalue: float
    name: str
    df: float | None = None
    resampling_pvalue: float | None = None
    notes: tuple[Note, ...] = ()
    adjusted_pvalue: float | None = None

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return plain(self)


def spiegelhalter(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    cluster: Column | None = None,
    n_resamples: int = _RESAMPLES,
    random_state: RandomState = 0,
    **rows: Any,
) -> TestResult:
    r"""Spiegelhalter's test: is the Brier score that of a calibrated model?

    .. math::

       Z = \frac{\sum_i (y_i - p_i)(1 - 2 p_i)}{\sqrt{\sum_i (1 - 2 p_i)^2 p_i (1 - p_i)}}

    is standard normal under the hypothesis, for many rows; the p-value is two-sided. Spiegelhalter (1986).

    Parameters
    ----------
    y_true, y_prob : columns
        Or one `ScoreTable` instead of both.
    cluster : column, optional
        Rows of one cluster may depend on each other. With clusters or importance weights the variance of the residual
        sums is robust.
    n_resamples, random_state
        For the p-value by resampling that is given as well where fewer than 10 events, or fewer than 10 of the rest,
        were expected.

    Notes
    -----
    Blind to what does not change the Brier score: gaps at scores near 0.5, and gaps that cancel. Needs a score other
    than 0, 0.5 and 1.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> result = spiegelhalter(table)
    >>> round(result.statistic, 3), round(result.pvalue, 3)
    (2.333, 0.02)
    """
    design = _design(y_true, y_prob, cluster, rows)
    return _spiegelhalter(design, n_resamples=n_resamples, random_state=random_state)


def _spiegelhalter(design: Design, *, n_resamples: int, random_state: RandomState) -> TestResult:
    table = design.table
    p, n = table.score, table.n
    spread = np.sqrt(np.sum(n * (1 - 2 * p) ** 2 * p * (1 - p)))
    if spread == 0:
        raise InputError("spiegelhalter needs a score other than 0, 0.5 and 1; got none.", argument="y_prob")
    if not design.is_independent:
        z, pvalue = contrast_test(design, 1 - 2 * p)
        return TestResult(z, pvalue, "Spiegelhalter", notes=table.notes)

    def statistic(drawn: ScoreTable) -> float:
        return float(np.sum((drawn.k - n * p) * (1 - 2 * p)) / spread)

    z = statistic(table)
    result = TestResult(z, normal_two_sided(z), "Spiegelhalter", notes=table.notes)
    few = _fewest_expected(table)
    if few >= _ENOUGH:
        return result
    return _with_resampling(result, table, lambda t: abs(statistic(t)), few, n_resamples, random_state)


def hosmer_lemeshow(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    bins: Bins = Quantile(10),  # noqa: B008  (frozen)
    ddof: int = 0,
    cluster: Column | None = None,
    n_resamples: int = _RESAMPLES,
    random_state: RandomState = 0,
    **rows: Any,
) -> TestResult:
    r"""Hosmer and Lemeshow's test: observed and expected events over groups of equal size.

    .. math::

       H = \sum_b \frac{(k_b - E_b)^2}{E_b (1 - E_b / n_b)}, \qquad E_b = \sum_{i \in b} p_i

    has a chi-squared distribution under the hypothesis, for many rows, with as many degrees of freedom as groups.

    Parameters
    ----------
    y_true, y_prob : columns
        Or one `ScoreTable` instead of both.
    bins : callable, default=Quantile(10)
        The groups. They must not follow the outcomes, so not PAVA or PAVA-BC.
    ddof : int, default=0
        Taken off the degrees of freedom: 0 for rows that the model was not fitted to, 2 for those it was.
    cluster : column, optional
        Rows of one cluster may depend on each other. With clusters or importance weights the variance of the residual
        sums is robust.
    n_resamples, random_state
        For the p-value by resampling that is given as well where a group expects fewer than 5 events, or fewer than 5
        of the rest. At 500 rows of which 1 % have the event, the chi-squared p-value is below 0.05 for 13 % of
        calibrated models.

    Notes
    -----
    A group that expects no event and has none (scores of 0) adds nothing and has no degree of freedom; one that has an
    event nevertheless makes the statistic infinite.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> result = hosmer_lemeshow(table, bins=Quantile(3))
    >>> round(result.statistic, 3), result.df, round(result.pvalue, 3)
    (5.991, 3, 0.112)
    """
    design = _design(y_true, y_prob, cluster, rows)
    return _hosmer_lemeshow(design, bins=bins, ddof=ddof, n_resamples=n_resamples, random_state=random_state)


def _hosmer_lemeshow(
    design: Design,
    *,
    bins: Bins = Quantile(10),  # noqa: B008  (frozen)
    ddof: int = 0,
    n_resamples: int,
    random_state: RandomState,
) -> TestResult:
    table = design.table
    groups = bins(table)
    start, n = groups.start, groups.n
    expected = groups.mean_score * n
    rest = np.maximum(n - expected, 0.0)
    variance = expected * rest / n
    df = int(np.count_nonzero(variance)) - ddof
    if df < 1:
        raise InputError(
            f"There are {len(groups)} groups, which leaves {df} degrees of freedom; at least 1 is needed.",
            hint="More groups, or a lower ddof.",
            argument="bins",
        )

    if not design.is_independent:
        own = LogOddsBins(table, start)
        if not (own.information > 0).all():
            raise InputError(
                "hosmer_lemeshow with weights or clusters needs a score other than 0 and 1 in each group.",
                hint="Use fewer groups: bins=cb.Quantile(5).",
                argument="bins",
            )
        found = over_bins(design, own, "Hosmer-Lemeshow")
        return TestResult(found.statistic, found.pvalue, found.name, df=found.df, notes=table.notes)

    def statistic(events: Weights) -> float:
        surprise = (events - expected) ** 2
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # Rounding of a sum of scores of 1 is no surprise.
            terms = np.where(surprise <= 1e-18 * n**2, 0.0, surprise / variance)
        return float(terms.sum())

    from scipy.special import chdtrc

    h = statistic(groups.k)
    result = TestResult(h, float(chdtrc(df, h)), "Hosmer-Lemeshow", df=df, notes=table.notes)
    few = float(np.minimum(expected, rest).min())
    if few >= _ENOUGH_IN_A_GROUP:
        return result
    return _with_resampling(
        result,
        table,
        lambda t: statistic(np.add.reduceat(t.k, start)),
        few,
        n_resamples,
        random_state,
        "a group expects",
    )


@takes_rows
def ecce_test(
    table: ScoreTable,
    *,
    kind: Literal["r", "mad"] = "r",
    n_resamples: int = _RESAMPLES,
    random_state: RandomState = 0,
) -> TestResult:
    r"""Test by cumulative differences: no bins, no bandwidth.

    ECCE divided by :math:`\sqrt{\sum_i p_i (1 - p_i)} / N`. Under the hypothesis, for many rows, it is distributed as
    the range (``kind="r"``, Kuiper's) or the largest distance from 0 (``"mad"``, Kolmogorov and Smirnov's) of a
    Brownian motion over [0, 1]. Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022).

    Parameters
    ----------
    y_true, y_prob : columns
        Or one `ScoreTable` instead of both.
    kind : {"r", "mad"}
        "r" does not change when the event is renamed.
    n_resamples, random_state
        For the p-value by resampling that is given as well where fewer than 10 events, or fewer than 10 of the rest,
        were expected.

    Notes
    -----
    The path is looked at between distinct scores only, and has jumps, so the p-value for many rows is somewhat too
    large: the test is conservative.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> result = ecce_test(table)
    >>> round(result.statistic, 3), round(result.pvalue, 3)
    (1.327, 0.675)
    """
    _needs_counts(table, "ecce_test")
    if kind not in ("r", "mad"):
        raise InputError(f"kind must be 'r' or 'mad'; it is {kind!r}.", argument="kind", value=kind)
    spread = np.sqrt(np.sum(table.n * table.score * (1 - table.score)))
    if spread == 0:
        raise InputError("ecce_test needs a score other than 0 and 1; there is none.", argument="y_prob")

    def statistic(drawn: ScoreTable) -> float:
        return float(getattr(ecce(drawn), kind) * table.size / spread)

    value = statistic(table)
    pvalue = _range_survival(value) if kind == "r" else maximum_survival(value)
    result = TestResult(value, pvalue, f"ECCE-{kind.upper()}", notes=table.notes)
    few = _fewest_expected(table)
    return result if few >= _ENOUGH else _with_resampling(result, table, statistic, few, n_resamples, random_state)


def slope_intercept_test(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    eps: float = EPS,
    cluster: Column | None = None,
    n_resamples: int = _RESAMPLES,
    random_state: RandomState = 0,
    **rows: Any,
) -> TestResult:
    """Likelihood ratio test of Cox's calibration: slope 1 and intercept 0.

    Twice the log likelihood that the logistic regression of the outcomes on the logits of the scores gains over
    the scores themselves; chi-squared with 2 degrees of freedom under the hypothesis, for many rows. The "U" test
    of the validation statistics in R's rms.

    Parameters
    ----------
    y_true, y_prob : columns
        Or one `ScoreTable` instead of both.
    eps : float
        As for `slope_intercept`: scores are kept so far from 0 and 1.
    cluster : column, optional
        Rows of one cluster may depend on each other. With clusters or importance weights the variance of the residual
        sums is robust.
    n_resamples, random_state
        For the p-value by resampling that is given as well where fewer than 10 events, or fewer than 10 of the rest,
        were expected.

    Notes
    -----
    Blind to gaps that no straight line in logits follows. Where slope and intercept do not exist (one class, or classes
    that a threshold separates) the likelihood still has a least upper bound, which is used. With one score only there
    is no slope, and 1 degree of freedom.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> result = slope_intercept_test(table)
    >>> round(result.statistic, 3), round(result.pvalue, 3)
    (5.251, 0.072)
    """
    design = _design(y_true, y_prob, cluster, rows)
    return _slope_intercept(design, eps=eps, n_resamples=n_resamples, random_state=random_state)


def _slope_intercept(design: Design, *, eps: float = EPS, n_resamples: int, random_state: RandomState) -> TestResult:
    table = design.table
    logits = Logits.of(table, eps)
    df = min(2, logits.x.size)
    notes = table.notes + logits.notes
    if not design.is_independent:
        columns = [np.ones(len(table)), logits.x[logits.place]][:df]
        statistic, pvalue = contrasts_test(design, columns)
        return TestResult(statistic, pvalue, "slope and intercept", df=df, notes=notes)
    from scipy.special import chdtrc

    def gain(drawn: ScoreTable) -> float:
        return max(0.0, 2 * logits.gain(drawn, logits.line(drawn)))

    value = gain(table)
    result = TestResult(value, float(chdtrc(df, value)), "slope and intercept", df=df, notes=notes)
    few = _fewest_expected(table)
    return result if few >= _ENOUGH else _with_resampling(result, table, gain, few, n_resamples, random_state)


# The tests that `evaluate` shows beside its own.
TESTS: tuple[Callable[..., TestResult], ...] = (_spiegelhalter, _hosmer_lemeshow, _slope_intercept)


def _design(y_true: ScoreTable | Column, y_prob: Column | None, cluster: Column | None, rows: dict[str, Any]) -> Design:
    return Design(*read_rows(y_true, y_prob, cluster, rows))


def consistency(
    metric: MetricLike,
    table: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    n_resamples: int = _RESAMPLES,
    random_state: RandomState = None,
    alternative: Alternative | None = None,
    cluster: Column | None = None,
    progress: bool | None = None,
    **rows: Any,
) -> TestResult:
    """Test of calibration by any metric: could a calibrated model have this value?

    Bröcker and Smith's consistency resampling: outcomes are drawn from the scores, and the metric of the data is
    compared with those of the draws. For counts the p-value is exact for any number of rows; with weights or clusters
    signs of residuals are drawn, which holds for many. `null` gives the null range too, and its parameters.

    Examples
    --------
    >>> from calibrant import ECE
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> result = consistency(ECE(), table, random_state=0)
    >>> 0.02 < result.pvalue < 0.2
    True
    """
    found = null(
        metric,
        table,
        y_prob,
        n_resamples=n_resamples,
        random_state=random_state,
        alternative=alternative,
        cluster=cluster,
        progress=progress,
        **rows,
    )
    return TestResult(found.value, found.pvalue, f"consistency of {found.metric}", notes=found.notes)


# How many events (and others) must be expected before the p-value for many rows stands alone; see the size study.
_ENOUGH = 10
_ENOUGH_IN_A_GROUP = 5


def _fewest_expected(table: ScoreTable) -> float:
    """Expected events or expected others, whichever are fewer."""
    events = float(np.sum(table.n * table.score))
    return min(events, float(table.size) - events)


def _with_resampling(
    result: TestResult,
    table: ScoreTable,
    statistic: Callable[[ScoreTable], float],
    few: float,
    n_resamples: int,
    random_state: RandomState,
    who: str = "the scores expect",
) -> TestResult:
    """The result with a p-value by resampling, and a note that says why."""
    sampler = resampling.null(table)
    draws = resampling.replicates(
        lambda bits: [statistic(sampler(bits))],
        purpose="null",
        n_resamples=n_resamples,
        seed=seed_sequence(random_state),
    )[:, 0]
    observed = statistic(table)
    pvalue = (1 + np.count_nonzero(draws >= observed - 1e-12 * max(1.0, abs(observed)))) / (1 + draws.size)
    text = (
        f"The p-value of the {result.name} test is for many rows, but {who} only {few:.3g} events or others: "
        f"by resampling it is {pvalue:.3g}."
    )
    return TestResult(
        result.statistic,
        result.pvalue,
        result.name,
        result.df,
        float(pvalue),
        (*result.notes, Note("few_events", 1, text)),
    )


def _needs_counts(table: ScoreTable, name: str) -> None:
    if table.importance:
        raise InputError(
            f"{name} needs counts; this table holds importance weights.",
            hint="calibrant.consistency takes them.",
            argument="table",
        )


# Two series of reflections, whose terms alternate and die out within so many for every x that is worth asking about.
_TERMS = 400
_LEAST = 0.3  # below, both chances are 1 within 2e-6 and falling


def maximum_survival(x: float) -> float:
    """P(max |W| > x) for a Brownian motion W over [0, 1]."""
    from scipy.special import ndtr

    m = np.arange(_TERMS)
    return 1.0 if x < _LEAST else float(np.clip(4 * np.sum((-1.0) ** m * ndtr(-(2 * m + 1) * x)), 0.0, 1.0))


def _range_survival(x: float) -> float:
    """P(max W - min W > x) for a Brownian motion W over [0, 1]; Feller (1951)."""
    from scipy.special import ndtr

    j = np.arange(1, _TERMS)
    return 1.0 if x < _LEAST else float(np.clip(8 * np.sum((-1.0) ** (j - 1) * j * ndtr(-j * x)), 0.0, 1.0))
