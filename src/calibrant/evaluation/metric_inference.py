"""Inference for one metric of any kind of forecast: confidence interval, null distribution, equivalence and test."""

from collections.abc import Mapping
from typing import Any, Unpack, get_args

from calibrant._support.arrays import Column
from calibrant._support.errors import InputError, check_option, check_share, is_number
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.evaluation.settings_checks import time_option
from calibrant.inference.intervals import (
    bootstrap_metric,
    equivalence_from_replicates,
    interval_from_replicates,
    null_from_replicates,
)
from calibrant.inference.resampling import Sample, check_resamples, resample_metrics
from calibrant.kinds.base import KINDS
from calibrant.metrics.metric import Metric, declared
from calibrant.metrics.registry import MetricLike, as_metric
from calibrant.results.uncertainty import Alternative, Equivalence, Interval, Null
from calibrant.results.verdict import TestResult
from calibrant.tables.rows import RowOptions


def interval(
    metric: MetricLike,
    y_true: Any,
    forecast: Any = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    time: Column | None = None,
    progress: bool | None = None,
    **rows: Unpack[RowOptions],
) -> Interval:
    """Confidence interval of a metric, by the bootstrap.

    Parameters
    ----------
    metric : metric object, its function or class, or a name in `METRICS`
        ``ECE(n_bins=15)``, ``brier``, ``"brier"``.
    y_true, forecast : columns
        Outcomes and forecasts of the kind that the metric measures; for predicted probabilities also one `ScoreTable`
        instead of both.
    confidence_level : float, default=0.95
    n_resamples : int, default=999
        Number of bootstrap replicates; metrics of gaps use as many null replicates.
    random_state : int, Generator or None, default=0
        The same seed gives bitwise identical results on any number of threads, and the same draws on both kernels.
    cluster : column, optional
        Rows of one cluster (a patient, a shop) are resampled together. Needs rows, not a table, and at least 10
        clusters.
    time : column, optional
        Times of the rows. Blocks of consecutive times, longer than their errors depend on each other, are resampled
        together; see `evaluate`. Not together with `cluster`.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal and in a notebook, after a second.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    Interval
        ``low``, ``high``, ``level``, ``method``, ``value``.

    See Also
    --------
    null, equivalence, Interval

    Notes
    -----
    The target: for metrics over bins (ECE, ACE, MCE ...) the value of the population over the bins of the sample that
    contain rows; for TCE, whose population value depends on the number of rows, its mean over samples of this size; for
    all others the value of the population. The metric declares its method (``interval_method``), chosen by a study of
    coverage: see "Inference" in the documentation. Limits are clipped to the range that the metric declares, ECE to at
    most 1, and contain the value. Gaps are clipped to those that the scores allow: the bias of scores with the mean
    0.05 is at most 0.05, where the event rate is 0.

    A metric without a valid interval raises an `InputError` with the reason: `auc` with fewer than 10 rows of a class,
    `stratified_brier` with fewer than 20, `log_loss` and `oe_ratio` with none, `calloss` where more than 10 % of rows
    have a score of their own.

    Examples
    --------
    >>> from calibrant import ECE, ScoreTable
    >>> table = ScoreTable.from_counts([0.2, 0.5, 0.8], [300, 300, 300], [100, 160, 210])
    >>> interval(ECE(), table, random_state=0)
    Interval(ECE = 0.0889, 95% CI 0.0561 to 0.1212)
    """
    measured = as_metric(metric)
    level, seed = check_share("confidence_level", confidence_level), seed_sequence(random_state)
    sample = read_sample(measured, y_true, forecast, cluster, {**rows, **time_option(y_true, time)})
    found = bootstrap_metric(measured, sample, seed=seed, n_resamples=n_resamples, show=progress)
    return interval_from_replicates(found, level)


def null(
    metric: MetricLike,
    y_true: Any,
    forecast: Any = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: RandomState = 0,
    alternative: Alternative | None = None,
    cluster: Column | None = None,
    time: Column | None = None,
    progress: bool | None = None,
    **rows: Unpack[RowOptions],
) -> Null:
    """Null distribution of a metric: its values if the model is calibrated, over the same kind of bins.

    Parameters
    ----------
    metric, y_true, forecast, n_resamples, random_state, time, progress
        See `interval`.
    confidence_level : float, default=0.95
        Level of the null range, the middle of the distribution.
    alternative : {"greater", "two-sided"}, optional
        Which values are evidence against calibration. By default high ones for metrics of gaps, extreme ones for all
        others: underconfident scores have a Brier score below that of a calibrated model.
    cluster : column, optional
        Outcomes of one cluster may depend on each other. Needs rows, not a table, and at least 10 clusters.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    Null
        ``expected``, the null range ``low`` to ``high``, ``pvalue``, and ``excess``, the value minus ``expected``.

    See Also
    --------
    interval, consistency, Null

    Notes
    -----
    For counts, outcomes are simulated from the scores, and the p-value, (1 + replicates at least as extreme) /
    (1 + replicates), is exact: under the null the data are one more replicate. With importance weights or clusters,
    residuals keep their sizes and get random signs (one per score, one per cluster); the p-value is then approximate
    and holds for many rows or clusters. A metric that needs counts (TCE with the exact test, calbin) then has no null:
    its numbers are NaN, and a note gives the reason.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import TCE
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = null(TCE(), rng.random(2000) < p, p, random_state=0)
    >>> bool(found.low <= found.value <= found.high), found.pvalue > 0.05
    (True, True)
    """
    measured = as_metric(metric)
    if not declared(measured, "has_null"):
        raise InputError(
            f"metric must have a null distribution; got {measured.name}, which declares that none exists.",
            hint=getattr(measured, "null_hint", "Use calibrant.interval."),
            argument="metric",
            value=metric,
        )
    if alternative is not None:
        check_option("alternative", alternative, get_args(Alternative))
    level, seed = check_share("confidence_level", confidence_level), seed_sequence(random_state)
    sample = read_sample(measured, y_true, forecast, cluster, {**rows, **time_option(y_true, time)})
    options: dict[str, Any] = {"seed": seed, "n_resamples": n_resamples, "show": progress}
    (found,) = resample_metrics([measured], sample, bootstrap=False, **options)
    return null_from_replicates(found, level, alternative)


def equivalence(
    metric: MetricLike,
    y_true: Any,
    forecast: Any = None,
    *,
    margin: float,
    alpha: float = 0.05,
    n_resamples: int = 999,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    time: Column | None = None,
    progress: bool | None = None,
    **rows: Unpack[RowOptions],
) -> Equivalence:
    """Equivalence test: the hypothesis is that the metric is at least as large as the margin.

    With many rows every model has a significant deviation, however small; a small p-value here shows that the metric
    lies within the margin.

    Parameters
    ----------
    metric, y_true, forecast, n_resamples, random_state, cluster, time, progress
        See `interval`.
    margin : float
        In the unit of the metric: 0.01 for ECE is one percentage point, 10 for TCE is 10 %. A metric with a sign, such
        as the bias, must lie between -margin and margin.
    alpha : float, default=0.05
        Level of the test, below 0.5.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    Equivalence
        ``pvalue``; ``within``, whether it is at most alpha; ``bound``, the upper limit at level 1 - alpha, which is
        below the margin where `within` holds, up to the resolution of the replicates.

    See Also
    --------
    interval, null, Equivalence, AbsoluteMargin

    Examples
    --------
    >>> from calibrant import ECE, ScoreTable
    >>> table = ScoreTable.from_counts([0.2, 0.5, 0.8], [30_000, 30_000, 30_000], [6_050, 15_020, 24_060])
    >>> equivalence(ECE(), table, margin=0.01, random_state=0).within
    True
    """
    measured = as_metric(metric)
    _check_options(margin, alpha, n_resamples)
    seed = seed_sequence(random_state)
    sample = read_sample(measured, y_true, forecast, cluster, {**rows, **time_option(y_true, time)})
    found = bootstrap_metric(measured, sample, seed=seed, n_resamples=n_resamples, show=progress)
    return equivalence_from_replicates(found, margin, alpha)


def _check_options(margin: float, alpha: float, n_resamples: int) -> None:
    if not (is_number(margin) and margin > 0):
        raise InputError(f"margin must be a positive number; got {margin!r}.", argument="margin", value=margin)
    if check_share("alpha", alpha) >= 0.5:
        raise InputError(f"alpha must lie below 0.5; got {alpha!r}.", argument="alpha", value=alpha)
    check_resamples(n_resamples, alpha)


def consistency(
    metric: MetricLike,
    y_true: Any,
    forecast: Any = None,
    *,
    n_resamples: int = 999,
    random_state: RandomState = 0,
    alternative: Alternative | None = None,
    cluster: Column | None = None,
    time: Column | None = None,
    progress: bool | None = None,
    **rows: Unpack[RowOptions],
) -> TestResult:
    """Test of calibration by any metric, with the p-value of its null distribution.

    Bröcker and Smith's consistency resampling: outcomes are simulated from the scores, and the metric of the data is
    compared with the metric of the replicates. For counts the p-value is exact for any number of rows; with weights or
    clusters residuals get random signs, which holds for many rows or clusters. Parameters as for `null`, which returns
    the null range too.

    Parameters
    ----------
    metric : metric, metric function or name
        The metric whose value is the statistic.
    y_true, forecast : columns
        Outcomes and predictions; or one table instead of both.
    n_resamples, random_state, alternative, cluster, time, progress
        As for `null`.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`.

    Returns
    -------
    TestResult
        The value of the metric and its p-value.

    See Also
    --------
    null, spiegelhalter, hosmer_lemeshow, ecce_test

    Examples
    --------
    >>> from calibrant import ECE, ScoreTable
    >>> table = ScoreTable.from_counts([0.1, 0.3, 0.8], [100, 100, 100], [16, 33, 75])
    >>> result = consistency(ECE(), table, random_state=0)
    >>> 0.02 < result.pvalue < 0.2
    True
    """
    found = null(
        metric,
        y_true,
        forecast,
        n_resamples=n_resamples,
        random_state=random_state,
        alternative=alternative,
        cluster=cluster,
        time=time,
        progress=progress,
        **rows,
    )
    return TestResult(found.value, found.pvalue, f"consistency of {found.metric}", notes=found.notes)


def read_sample(
    metric: Metric, y_true: Any, forecast: Any, cluster: Column | None, options: Mapping[str, Any]
) -> Sample:
    """Read the rows for a metric, as the kind of forecast that it measures requires."""
    kind = declared(metric, "kind")
    read = KINDS[kind].optional("sample.read") if kind in KINDS else None
    if read is not None:
        sample: Sample = read(y_true, forecast, cluster, options)
        return sample
    known = ", ".join(name for name, each in KINDS.items() if each.optional("sample.read"))
    raise InputError(
        f"metric must measure a kind of forecast that can be resampled ({known}); got {metric.name}, whose kind is "
        f"{kind!r}.",
        argument="metric",
        value=kind,
    )
