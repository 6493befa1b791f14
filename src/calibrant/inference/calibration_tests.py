"""Tests of the calibration of predicted probabilities.

All take rows or a table. The hypothesis is that each outcome has its predicted probability, so any statistic can also
be tested by simulating outcomes from the scores; `consistency` does that for any metric. The p-values of the other
tests hold for many rows; where rows are too few, they have a note and a p-value by resampling.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, Unpack

import numpy as np

from calibrant._support.arrays import Column, Weights
from calibrant._support.errors import InputError, Note, check_count, check_option
from calibrant._support.logistic import EPS
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.inference.design import Design
from calibrant.inference.intervals import resampling_pvalue
from calibrant.inference.paired_rows import read_rows
from calibrant.inference.resampling import draw_replicates, one_by_one
from calibrant.inference.residual_tests import contrast_test, contrasts_test, residual_test
from calibrant.inference.table_replicates import null_sampler
from calibrant.inference.tails import brownian_maximum_tail, brownian_range_tail, normal_two_sided
from calibrant.metrics.bins import Bins, EqualSize, check_bins
from calibrant.metrics.calibration_errors import ecce
from calibrant.metrics.log_odds import Logits
from calibrant.results.verdict import TestResult
from calibrant.tables.rows import Missing, RowOptions
from calibrant.tables.score_table import Partition, ScoreTable, read_score_table

_RESAMPLES = 999


def spiegelhalter(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    cluster: Column | None = None,
    n_resamples: int = _RESAMPLES,
    random_state: RandomState = 0,
    **rows: Unpack[RowOptions],
) -> TestResult:
    r"""Spiegelhalter's test of whether the Brier score has the value that the scores imply.

    .. math::

       Z = \frac{\sum_i (y_i - p_i)(1 - 2 p_i)}{\sqrt{\sum_i (1 - 2 p_i)^2 p_i (1 - p_i)}}

    is standard normal under the hypothesis, for many rows; the p-value is two-sided. Spiegelhalter (1986).

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    cluster : column, optional
        Rows of one cluster may depend on each other. With clusters or importance weights the variance of the residual
        sums is robust.
    n_resamples, random_state
        For the p-value by resampling, which is added where fewer than 10 events, or fewer than 10 rows without the
        event, are expected.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    TestResult
        Statistic, p-value and degrees of freedom.

    See Also
    --------
    hosmer_lemeshow, slope_intercept_test, ecce_test, consistency

    Notes
    -----
    Deviations that leave the Brier score unchanged are not detected: gaps at scores near 0.5, and gaps that cancel.
    Needs a score other than 0, 0.5 and 1.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> result = spiegelhalter(table)
    >>> round(result.statistic, 3), round(result.pvalue, 3)
    (2.333, 0.02)
    """
    design = _design(y_true, y_prob, cluster, rows)
    table = design.table
    p, n = table.score, table.n
    spread = np.sqrt(np.sum(n * (1 - 2 * p) ** 2 * p * (1 - p)))
    if spread == 0:
        raise InputError("y_prob must have a score other than 0, 0.5 and 1 for spiegelhalter.", argument="y_prob")
    if not design.is_independent:
        z, pvalue = contrast_test(design, 1 - 2 * p)
        return TestResult(z, pvalue, "Spiegelhalter", notes=table.notes)

    def statistic(replicate: ScoreTable) -> float:
        return float(np.sum((replicate.k - n * p) * (1 - 2 * p)) / spread)

    z = statistic(table)
    result = TestResult(z, normal_two_sided(z), "Spiegelhalter", notes=table.notes)
    return _resample_if_few(result, table, lambda t: abs(statistic(t)), n_resamples, random_state)


def hosmer_lemeshow(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    bins: Bins = EqualSize(10),  # noqa: B008  (frozen)
    ddof: int = 0,
    cluster: Column | None = None,
    n_resamples: int = _RESAMPLES,
    random_state: RandomState = 0,
    **rows: Unpack[RowOptions],
) -> TestResult:
    r"""Hosmer and Lemeshow's test: observed and expected events over groups of equal size.

    .. math::

       H = \sum_b \frac{(k_b - E_b)^2}{E_b (1 - E_b / n_b)}, \qquad E_b = \sum_{i \in b} p_i

    has a chi-squared distribution under the hypothesis, for many rows, with as many degrees of freedom as groups.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    bins : callable, default=EqualSize(10)
        The groups. They must not depend on the outcomes, as PAVA and PAVA-BC do.
    ddof : int, default=0
        Number that is subtracted from the degrees of freedom: 0 for rows that the model was not fitted to, 2 for rows
        that it was fitted to.
    cluster : column, optional
        Rows of one cluster may depend on each other. With clusters or importance weights the variance of the residual
        sums is robust.
    n_resamples, random_state
        For the p-value by resampling, which is added where fewer than 5 events, or fewer than 5 rows without the event,
        are expected in a group. With 500 rows and 1 % events, the chi-squared p-value is below 0.05 for 13 % of
        calibrated models.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    TestResult
        Statistic, p-value and degrees of freedom.

    See Also
    --------
    spiegelhalter, slope_intercept_test, ecce_test, consistency

    Notes
    -----
    A group without expected and observed events (scores of 0) adds nothing and has no degree of freedom; an event in
    such a group makes the statistic infinite.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> result = hosmer_lemeshow(table, bins=EqualSize(3))
    >>> round(result.statistic, 3), result.df, round(result.pvalue, 3)
    (5.991, 3, 0.112)
    """
    from scipy.special import chdtrc

    check_bins(bins)
    check_count("ddof", ddof, least=0)
    design = _design(y_true, y_prob, cluster, rows)
    table = design.table
    groups = bins(table)
    n = groups.n.astype(np.float64)  # the square of a count needs more than 63 bits
    expected = groups.mean_score * n
    rest = np.maximum(n - expected, 0.0)
    variance = expected * rest / n
    df = int(np.count_nonzero(variance)) - ddof
    if df < 1:
        raise InputError(
            f"bins must leave at least 1 degree of freedom; got {len(groups)} groups, which leave {df}.",
            hint="Use more groups, or a lower ddof.",
            argument="bins",
        )
    if not design.is_independent:
        return _robust_hosmer_lemeshow(design, groups)

    # The rounding error of a sum of scores does not count; of many rows it is far below the standard deviation.
    rounding = np.where(variance > 0, np.minimum(1e-18 * n**2, 1e-6 * variance), 1e-18 * n**2)

    def statistic(events: Weights) -> float:
        squares = (events - expected) ** 2
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            terms = np.where(squares <= rounding, 0.0, squares / variance)
        return float(terms.sum())

    h = statistic(groups.k)
    result = TestResult(h, float(chdtrc(df, h)), "Hosmer-Lemeshow", df=df, notes=table.notes)

    def replicate_statistic(replicate: ScoreTable) -> float:
        return statistic(np.add.reduceat(replicate.k, groups.start))

    fewest = float(np.minimum(expected, rest).min())
    return _resample_if_few(result, table, replicate_statistic, n_resamples, random_state, fewest_in_group=fewest)


def _robust_hosmer_lemeshow(design: Design, groups: Partition) -> TestResult:
    bins = design.logits.bins(groups.start)
    if not (bins.information > 0).all():
        raise InputError(
            "y_prob must have a score other than 0 and 1 in each group for hosmer_lemeshow with weights or clusters.",
            hint="Use fewer groups: bins=cb.bins.EqualSize(5).",
            argument="bins",
        )
    return replace(residual_test(design, bins, "Hosmer-Lemeshow"), notes=design.table.notes)


def ecce_test(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    kind: Literal["r", "mad"] = "r",
    n_resamples: int = _RESAMPLES,
    random_state: RandomState = 0,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> TestResult:
    r"""Test of cumulative differences, without bins and without a bandwidth.

    The statistic is ECCE divided by :math:`\sqrt{\sum_i p_i (1 - p_i)} / N`. Under the hypothesis, for many rows, it is
    distributed as the range (``kind="r"``, Kuiper's) or the largest distance from 0 (``"mad"``, Kolmogorov and
    Smirnov's) of a Brownian motion over [0, 1]. Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022).

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    kind : {"r", "mad"}
        "r" does not change when the event is renamed.
    n_resamples, random_state
        For the p-value by resampling, which is added where fewer than 10 events, or fewer than 10 rows without the
        event, are expected.
    frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`. There is no ``sample_weight``: the test needs counts.

    Returns
    -------
    TestResult
        Statistic, p-value and degrees of freedom.

    See Also
    --------
    spiegelhalter, hosmer_lemeshow, ecce, cumulative_band

    Notes
    -----
    The path is evaluated between distinct scores only, and has jumps, so the p-value for many rows is somewhat too
    large: the test is conservative.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> result = ecce_test(table)
    >>> round(result.statistic, 3), round(result.pvalue, 3)
    (1.327, 0.675)
    """
    options = {"frequency": frequency, "pos_label": pos_label, "missing": missing}
    table = read_score_table(y_true, y_prob, options)
    if table.importance:
        raise InputError(
            "y_true must be a table of counts for ecce_test; got one with importance weights.",
            hint="Use calibrant.consistency.",
            argument="y_true",
        )
    check_option("kind", kind, ("r", "mad"))
    spread = np.sqrt(np.sum(table.n * table.score * (1 - table.score)))
    if spread == 0:
        raise InputError("y_prob must have a score other than 0 and 1 for ecce_test.", argument="y_prob")

    def statistic(replicate: ScoreTable) -> float:
        return float(getattr(ecce(replicate), kind) * table.size / spread)

    value = statistic(table)
    pvalue = brownian_range_tail(value) if kind == "r" else brownian_maximum_tail(value)
    result = TestResult(value, pvalue, f"ECCE-{kind.upper()}", notes=table.notes)
    return _resample_if_few(result, table, statistic, n_resamples, random_state)


def slope_intercept_test(
    y_true: ScoreTable | Column,
    y_prob: Column | None = None,
    *,
    eps: float = EPS,
    cluster: Column | None = None,
    n_resamples: int = _RESAMPLES,
    random_state: RandomState = 0,
    **rows: Unpack[RowOptions],
) -> TestResult:
    """Likelihood ratio test of Cox's calibration: slope 1 and intercept 0.

    Twice the difference of the log likelihoods of the logistic regression of the outcomes on the logits of the scores
    and of the scores themselves; chi-squared with 2 degrees of freedom under the hypothesis, for many rows. The "U"
    test of the validation statistics in R's rms.

    Parameters
    ----------
    y_true, y_prob : columns
        Outcomes and predicted probabilities; or one `ScoreTable` instead of both.
    eps : float
        Scores are clipped to [eps, 1 - eps], as in `slope_intercept`.
    cluster : column, optional
        Rows of one cluster may depend on each other. With clusters or importance weights the variance of the residual
        sums is robust.
    n_resamples, random_state
        For the p-value by resampling, which is added where fewer than 10 events, or fewer than 10 rows without the
        event, are expected.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    TestResult
        Statistic, p-value and degrees of freedom.

    See Also
    --------
    slope_intercept, spiegelhalter, hosmer_lemeshow

    Notes
    -----
    Deviations without a linear component in the logits are not detected. Where slope and intercept do not exist (one
    class, or classes that a threshold separates) the likelihood still has a least upper bound, which is used. With one
    score only there is no slope, and 1 degree of freedom.

    Examples
    --------
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> result = slope_intercept_test(table)
    >>> round(result.statistic, 3), round(result.pvalue, 3)
    (5.251, 0.072)
    """
    from scipy.special import chdtrc

    design = _design(y_true, y_prob, cluster, rows)
    table = design.table
    logits = design.cox_logits if eps == EPS else Logits.from_table(table, eps)
    df = min(2, logits.x.size)
    notes = table.notes + logits.notes
    if not design.is_independent:
        columns = [np.ones(len(table)), logits.by_score][:df]
        return TestResult(*contrasts_test(design, columns), "slope and intercept", df=df, notes=notes)

    def statistic(replicate: ScoreTable, line: tuple[float, float] | None) -> float:
        return max(0.0, 2 * logits.likelihood_gain(replicate, line))

    value = statistic(table, design.cox_line if eps == EPS else logits.fit(table))
    result = TestResult(value, float(chdtrc(df, value)), "slope and intercept", df=df, notes=notes)
    return _resample_if_few(
        result, table, lambda replicate: statistic(replicate, logits.fit(replicate)), n_resamples, random_state
    )


# The tests that `evaluate` reports without using them for the verdict: of sums over rows or bins, and of a fit.
TESTS_OF_SUMS: tuple[Callable[..., TestResult], ...] = (spiegelhalter, hosmer_lemeshow)
TESTS_OF_FITS: tuple[Callable[..., TestResult], ...] = (slope_intercept_test,)


def _design(
    y_true: ScoreTable | Column | Design, y_prob: Column | None, cluster: Column | None, rows: RowOptions
) -> Design:
    """Read rows; `evaluate` computes several tests of one design, which is taken as it is."""
    if isinstance(y_true, Design):
        return y_true
    return Design(*read_rows(y_true, y_prob, cluster, rows))


# Fewest expected events, and rows without the event, for which the p-value for many rows holds; see the size study.
_MIN_EXPECTED = 10
_MIN_EXPECTED_IN_GROUP = 5


def _resample_if_few(
    result: TestResult,
    table: ScoreTable,
    statistic: Callable[[ScoreTable], float],
    n_resamples: int,
    random_state: RandomState,
    *,
    fewest_in_group: float | None = None,
) -> TestResult:
    """Add a p-value by resampling, and a note with the reason, where few events, or few non-events, are expected."""
    events = float(np.sum(table.n * table.score))
    fewest = min(events, float(table.size) - events) if fewest_in_group is None else fewest_in_group
    if fewest >= (_MIN_EXPECTED if fewest_in_group is None else _MIN_EXPECTED_IN_GROUP):
        return result
    sampler = null_sampler(table)
    simulated = draw_replicates(
        one_by_one(lambda stream: [statistic(sampler(stream))]),
        purpose="null",
        n_resamples=n_resamples,
        seed=seed_sequence(random_state),
        rows=table.size,
    )[:, 0]
    pvalue = resampling_pvalue(simulated, statistic(table))
    text = (
        f"The p-value of the {result.name} test holds for many rows, but the scores imply only {fewest:.3g} events, or "
        f"rows without the event{'' if fewest_in_group is None else ', in a group'}. The p-value by resampling is "
        f"{pvalue:.3g}."
    )
    return replace(result, resampling_pvalue=pvalue, notes=(*result.notes, Note("few_events", 1, text)))
