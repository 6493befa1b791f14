"""`evaluate`: measures of point predictions or predictive distributions with intervals, a joint test and a verdict."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import InputError, Note, join_notes
from calibrant._support.options import check_count, check_share
from calibrant._support.progress import progress as counted
from calibrant._support.random_streams import RandomState, generator
from calibrant._support.typing import Column, Floats, Ints
from calibrant.evaluation.regression_results import NumberEvaluation
from calibrant.forecasts.distributions import Quantiles, Samples
from calibrant.forecasts.frozen import is_frozen
from calibrant.forecasts.reading import as_forecast
from calibrant.forecasts.transformed import is_mean
from calibrant.inference import joint_test
from calibrant.inference.bias_by_bin import bias_by_bin, too_alike
from calibrant.inference.estimates import Estimate, from_error, from_influence
from calibrant.inference.joint_test import Component, JointTest
from calibrant.inference.multiplicity import holm
from calibrant.inference.point_tce import TestBasedError, tce_with_null
from calibrant.inference.regression_verdict import (
    DISTRIBUTION_MARGIN,
    POINT_MARGIN,
    Deviation,
    bias_deviation,
    coverage_deviation,
)
from calibrant.metrics import point as means
from calibrant.metrics.bins import Quantile
from calibrant.metrics.distribution import (
    Coverage,
    anderson_darling,
    chi_square,
    coverage,
    kolmogorov_smirnov,
    transforms,
)
from calibrant.metrics.point_bins import Bins, bins_of, group
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable

__all__ = ["evaluate"]

_MOST_GROUPS = 1_000


@dataclass(frozen=True)
class _Rows:
    """Rows as they were read: what belongs to each stays together."""

    table: MeanTable
    forecast: Any | None
    cluster: Ints | None

    def part(self, rows: Any) -> "_Rows":
        table = self.table.part(rows)
        cluster = None if self.cluster is None else np.unique(self.cluster[rows], return_inverse=True)[1]
        return _Rows(table, None if self.forecast is None else self.forecast.part(rows), cluster)


@dataclass(frozen=True)
class _Settings:
    bins: Bins | None
    margin: float | None
    alpha: float
    level: float
    n_resamples: int
    random_state: RandomState
    progress: bool | None


def evaluate(
    y_true: Column | MeanTable,
    y_pred: Any = None,
    *,
    by: Column | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    cluster: Column | None = None,
    n_bins: int | None = None,
    bins: Bins | None = None,
    margin: float | None = None,
    alpha: float = 0.05,
    confidence_level: float = 0.95,
    n_resamples: int = 199,
    random_state: RandomState = 0,
    progress: bool | None = None,
) -> NumberEvaluation:
    """Evaluate the calibration of point predictions or predictive distributions: measures, a joint test, a verdict.

    Parameters
    ----------
    y_true : column of n outcomes
        Or one `MeanTable` of rows instead of both.
    y_pred : column of n predictions, or forecasts
        `Gaussian`, `Quantiles`, `Samples` or a frozen distribution of scipy.stats. Their means (of quantiles: medians)
        are evaluated as point predictions too.
    by : column, optional
        The group of each row. Each group is evaluated too, and its p-values are adjusted for the number of groups.
    sample_weight, frequency : column, optional
        Importance weights, or numbers of equal rows; see `MeanTable.from_arrays`. For point predictions only.
    cluster : column, optional
        Rows of one cluster (a patient, a shop) are not independent: all tests and intervals use sums per cluster,
        except the intervals and p-values of `bins` and the raw p-values of `uniformity`. At least 10 clusters are
        needed; a group with fewer is not tested.
    n_bins, bins
        See `bias_by_bin`; by default ten bins, or fewer so that each has fifty rows.
    margin : float, optional
        Largest deviation that does not matter. For point predictions the root mean square bias by bin in standard
        deviations of the outcome, by default 0.05; for distributions the mean absolute coverage error, by default 0.01.
    alpha, confidence_level : float
        Level of the tests and bounds behind the verdict, and of intervals.
    n_resamples : int, default=199
        Number of resamples for the null distribution of TCE: errors, centred in each bin, with random signs. 0 for
        none. (Random signs take errors as symmetric: with skewed ones, in 200 rows, its p-value is below 5 % in 11 % of
        cases.)
    random_state : int, Generator or None
        For TCE, for PIT values inside a cell, and for the two halves of an ensemble.
    progress : bool, optional
        Whether to draw a bar; by default on a terminal and in notebooks.

    Returns
    -------
    NumberEvaluation

    Notes
    -----
    The joint test has the components mean error, bias by bins and slope of the outcome on the prediction; for
    distributions also uniformity of the PIT values and coverage (all levels jointly). Forecasts that know medians but
    no means have the share of outcomes below the median instead of the first three. p-values are adjusted by Holm, and
    a deviation is significant if the smallest adjusted p-value is at most alpha.

    ============== ============ ==================================================
    verdict        significant  deviation shown to lie within the margin
    ============== ============ ==================================================
    calibrated     no           yes
    negligible     yes          yes
    miscalibrated  yes          no
    inconclusive   no           no
    ============== ============ ==================================================

    If the model is calibrated, ``miscalibrated`` or ``negligible`` has a probability of about alpha; if the deviation
    equals the margin, ``calibrated`` or ``negligible`` has a probability of at most about alpha. Errors are averaged
    within bins; with fewer than five bins (250 rows) equivalence is not shown unless `bins` are given.

    Skewed errors: the tests are corrected for skewness. Where the squared skewness exceeds a fifth of the number of
    rows, a mean error or slope towards the short tail of the errors is not tested; bins are merged until their
    rows exceed twenty times the squared skewness. A note with the code ``skewed`` names the limited tests.

    Ensembles (`Samples`): the mean of a few members is noisy, so outcomes regress to the mean even if the ensemble is
    calibrated. Bins and slope therefore group rows by the mean of one half of the members and measure the error of the
    other half.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 10, 2000)
    >>> result = evaluate(x + rng.normal(size=2000), 1.1 * x - 0.2, n_resamples=0)
    >>> result.verdict, result.direction
    ('miscalibrated', 'overestimates, overconfident')
    """
    settings = _Settings(
        None if bins is None and n_bins is None else bins_of(bins, n_bins),
        _checked_margin(margin),
        check_share("alpha", alpha),
        check_share("confidence_level", confidence_level),
        n_resamples if n_resamples == 0 else check_count("n_resamples", n_resamples),
        random_state,
        progress,
    )
    rows, code, names = _read(y_true, y_pred, by, sample_weight, frequency, cluster)
    whole = _evaluated(rows, settings)
    if by is None:
        return whole
    order = np.argsort(code, kind="stable")
    bounds = np.searchsorted(code[order], np.arange(len(names) + 1))
    found = {}
    for i in counted(range(len(names)), len(names), "groups", show=progress):
        own = rows.part(np.sort(order[bounds[i] : bounds[i + 1]]))
        found[names[i]] = _evaluated(own, replace(settings, n_resamples=0))
    name = getattr(by, "name", None)
    return replace(whole, groups=_adjusted(found), by=None if name is None else str(name))


def _checked_margin(margin: float | None) -> float | None:
    if margin is not None and not (isinstance(margin, (int, float)) and 0 < margin < math.inf):
        raise InputError(
            f"margin must be a positive number; got {margin!r}.",
            hint="Pass None for the default.",
            argument="margin",
            value=margin,
        )
    return margin


def _adjusted(groups: dict[Any, NumberEvaluation]) -> dict[Any, NumberEvaluation]:
    """The groups with p-values adjusted for their number by Holm."""
    known = [name for name, part in groups.items() if not math.isnan(part.pvalue)]
    raw = [groups[name].pvalue for name in known]
    again = dict(zip(known, holm(raw), strict=True)) if known else {}

    def factor(name: Any) -> float:
        own = groups[name].pvalue
        return float(again[name]) / own if own > 0 else float(len(known))

    return {
        name: replace(part, joint=part.joint.scaled(factor(name))) if name in again else part
        for name, part in groups.items()
    }


def _read(
    y_true: Column | MeanTable,
    y_pred: Any,
    by: Column | None,
    sample_weight: Column | None,
    frequency: Column | None,
    cluster: Column | None,
) -> tuple[_Rows, Ints, list[Any]]:
    weights = {"sample_weight": sample_weight, "frequency": frequency}
    if isinstance(y_true, MeanTable):
        given = {"y_pred": y_pred, "by": by, **weights, "cluster": cluster}
        beside = [name for name, value in given.items() if value is not None]
        if beside:
            raise InputError(f"A MeanTable was given, and {', '.join(beside)} with it.", argument=beside[0])
        means.need_rows(y_true, "evaluate")
        return _Rows(y_true, None, None), np.zeros(0, dtype=np.int64), []
    if y_pred is None or isinstance(y_pred, Mapping):
        found = "is missing" if y_pred is None else "is a mapping; this takes one model"
        raise InputError(f"y_pred {found}.", hint="Pass one column, one forecast, or a MeanTable.", argument="y_pred")
    outcomes = _columns.read(y_true, "y_true", hint=ONE_COLUMN)
    _columns.check_alignment({"y_true": y_true, "by": by, **weights, "cluster": cluster})
    forecast = None
    if is_frozen(y_pred) or hasattr(y_pred, "cells"):
        if sample_weight is not None or frequency is not None:
            raise InputError("Weights are for predicted numbers; forecasts take none.", argument="sample_weight")
        forecast = as_forecast(y_pred, len(outcomes))
    predicted = y_pred if forecast is None else forecast.point()
    _columns.refuse_missing([outcomes, _columns.read(predicted, "y_pred", hint=ONE_COLUMN)])
    _columns.check_alignment({"y_true": y_true, "y_pred": y_pred})
    table = MeanTable.from_arrays(outcomes.values, predicted, sample_weight=sample_weight, frequency=frequency)
    codes = [_codes(column, name, outcomes) for column, name in ((by, "by"), (cluster, "cluster"))]
    names = codes[0][0]
    if len(names) > _MOST_GROUPS:
        raise InputError(
            f"by must have at most {_MOST_GROUPS:,} distinct values; got {len(names):,}.",
            hint="Round times to days or weeks, and numbers to groups.",
            argument="by",
        )
    kept: Any = slice(None)
    if table.n_dropped:  # rows of weight or frequency 0
        kept = _columns.weights(_columns.read(frequency if sample_weight is None else sample_weight, "w")).values > 0
    code, clusters = (None if each is None else each[kept] for _, each in codes)
    if clusters is not None:
        clusters = np.unique(clusters, return_inverse=True)[1]
        _check_clusters(int(clusters.max()) + 1)
    return _Rows(table, forecast, clusters), np.zeros(0, dtype=np.int64) if code is None else code, names


def _codes(column: Column | None, name: str, outcomes: _columns.Column) -> tuple[list[Any], Ints | None]:
    if column is None:
        return [], None
    read = _columns.read(column, name)
    _columns.check_lengths([outcomes, read])
    _columns.refuse_missing([read], hint="Give such rows a value of their own.")
    return _columns.encode(read)


def _check_clusters(count: int) -> None:
    fewest = joint_test.FEWEST_CLUSTERS
    if count < fewest:
        raise InputError(
            f"cluster must have at least {fewest} distinct values for inference; got {count}.",
            hint="Use a finer clustering, or measures without inference such as mean_error.",
            argument="cluster",
            value=count,
        )


def _evaluated(rows: _Rows, settings: _Settings) -> NumberEvaluation:
    table = rows.table
    notes: tuple[Note, ...] = table.notes
    clusters = None if rows.cluster is None else int(rows.cluster.max()) + 1
    of_means = rows.forecast is None or is_mean(rows.forecast)
    if not of_means:
        text = "Predictions are medians, which need not be the mean outcome: bias and slope are not tested."
        notes = join_notes(notes, [Note("medians", 1, text)])
    halves = _halves(rows, settings)
    if halves is not table:
        text = "Bins and slope group rows by one half of the members and use the error of the other half."
        notes = join_notes(notes, [Note("split_members", 1, text)])
    bins = settings.bins or Quantile(int(np.clip(table.effective_size / joint_test.ROWS_PER_BIN + 1e-9, 1, 10)))
    apart = bool(np.ptp(halves.prediction) > 0)
    whole = NumberEvaluation(
        table=table,
        lines={e.name: e for e in _estimates(rows, settings.level, of_means)},
        bins=bias_by_bin.of_table(halves, bins=bins, alpha=settings.alpha, confidence_level=settings.level),
        line=means.fitted_line(halves, level=settings.level, cluster=rows.cluster) if apart and of_means else None,
        decomposition=means.mse_decomposition.of_table(table),
        alpha=settings.alpha,
        joint=JointTest(),
        deviation=Deviation("", "", math.nan, math.nan, math.nan, math.nan, math.nan),
        tce=_tce(halves, rows.cluster, settings) if settings.n_resamples and of_means else None,
        clusters=clusters,
        notes=notes,
    )
    u = None
    if rows.forecast is not None:
        u = transforms(table.mean, rows.forecast, random_state=settings.random_state)
        whole = _with_distributions(whole, rows, u, settings)
    return _judged(whole, rows, halves, u, settings)


def _tce(table: MeanTable, cluster: Ints | None, settings: _Settings) -> TestBasedError:
    return tce_with_null(
        table,
        cluster,
        alpha=settings.alpha,
        level=settings.level,
        n_resamples=settings.n_resamples,
        random_state=settings.random_state,
        progress=settings.progress,
    )


def _halves(rows: _Rows, settings: _Settings) -> MeanTable:
    """The table whose errors, given its predictions, have mean 0 if the forecasts are calibrated.

    The mean of few members is itself noisy: given it, outcomes regress to the mean. Of an ensemble the prediction is
    therefore the mean of one half of the members, and its error that of the other half.
    """
    if not isinstance(rows.forecast, Samples) or rows.forecast.draws.shape[1] < 2:
        return rows.table
    # Members are stored in rising order: a random half of each row is exchangeable with the other half.
    members = generator(settings.random_state).permuted(rows.forecast.draws, axis=1)
    half = members.shape[1] // 2
    first, second = members[:, :half].mean(axis=1), members[:, half:].mean(axis=1)
    return replace(rows.table, prediction=first, mean=rows.table.mean + first - second)


def _judged(
    whole: NumberEvaluation, rows: _Rows, halves: MeanTable, u: Floats | None, settings: _Settings
) -> NumberEvaluation:
    """The evaluation with its joint test and its deviation."""
    of_means = rows.forecast is None or is_mean(rows.forecast)
    few = whole.clusters is not None and whole.clusters < joint_test.FEWEST_CLUSTERS
    components: list[Component | None] = []
    limited: list[str] = []
    notes: tuple[Note, ...] = whole.notes
    sums = joint_test.bin_sums(halves, rows.cluster, settings.bins)
    testable = of_means and not (isinstance(rows.forecast, Samples) and halves is rows.table)
    if few:
        text = f"There are {whole.clusters} clusters; tests need at least {joint_test.FEWEST_CLUSTERS}."
        notes = join_notes(notes, [Note("few_clusters", 1, text)])
    elif of_means:
        mean, skewed_mean = joint_test.mean_component(rows.table, rows.cluster, whole.lines["mean error"])
        slope, skewed_slope = (
            joint_test.slope_component(halves, rows.cluster, sums.skewness) if testable else (None, False)
        )
        if whole.lines["mean error"].pvalue is None:
            slope = None
        components += [mean, joint_test.bins_component(sums) if testable else None, slope]
        flags = (("mean error", skewed_mean), ("slope", skewed_slope), ("bias by bins", sums.limited))
        limited = [name for name, flag in flags if flag]
    if u is None:
        spread = math.sqrt(max(means.variance(rows.table), 0.0))
        distinct = np.unique(halves.prediction).size
        margin = POINT_MARGIN if settings.margin is None else settings.margin
        deviation = bias_deviation(sums, spread, margin, settings.alpha, distinct)
    else:
        components += [] if few else _distribution_components(u, rows, of_means, settings.alpha)
        margin = DISTRIBUTION_MARGIN if settings.margin is None else settings.margin
        deviation = coverage_deviation(u, rows.forecast, rows.cluster, margin, settings.alpha)
    if few or (u is None and limited):
        deviation = replace(deviation, low=math.nan, high=math.nan)
    notes = join_notes(notes, joint_test.skewness_note(limited))
    kind = "point" if u is None else "distribution"
    return replace(whole, joint=JointTest.of(components), deviation=deviation, kind=kind, notes=notes)


def _distribution_components(u: Floats, rows: _Rows, of_means: bool, alpha: float) -> list[Component | None]:
    return [
        None if of_means else joint_test.median_component(u, rows.forecast, rows.cluster),
        joint_test.pit_component(u, rows.forecast, rows.cluster),
        joint_test.coverage_component(u, rows.forecast, rows.cluster, alpha),
    ]


def _with_distributions(whole: NumberEvaluation, rows: _Rows, u: Floats, settings: _Settings) -> NumberEvaluation:
    forecast, y = rows.forecast, rows.table.mean
    edges = forecast.levels if isinstance(forecast, Quantiles) else None
    tests = (anderson_darling(u), kolmogorov_smirnov(u), chi_square(u, edges=edges))
    levels = None if isinstance(forecast, (Quantiles, Samples)) else (0.5, 0.9)
    try:
        covered: Coverage | None = coverage(y, forecast, levels=levels, confidence_level=settings.level)
    except InputError:  # quantiles of which no two are a pair
        covered = None
    if covered is not None and rows.cluster is not None:
        covered = _clustered(covered, y, forecast, rows.cluster)
    notes = join_notes(whole.notes, *(test.notes for test in tests))
    return replace(whole, uniformity=tests, coverage=covered, notes=notes)


def _clustered(covered: Coverage, y: Floats, forecast: Any, cluster: Ints) -> Coverage:
    """Coverage with intervals and tests of cluster sums."""
    found: dict[str, list[float]] = {"low": [], "high": [], "pvalue": []}
    for level, observed in zip(covered.per_level["level"], covered.per_level["observed"], strict=True):
        low, high = forecast.quantile([(1 - level) / 2, (1 + level) / 2]).T
        sums = np.bincount(cluster, weights=((y >= low) & (y <= high)) - observed)
        m = sums.size
        error = math.sqrt(m / max(m - 1, 1) * float(sums @ sums)) / y.size
        e = from_error("", float(observed), error, m - 1, null=float(level), level=covered.confidence_level)
        for name, value in (("low", max(e.low, 0.0)), ("high", min(e.high, 1.0)), ("pvalue", e.pvalue or 0.0)):
            found[name].append(value)
    per_level = {name: np.array(found.get(name, values)) for name, values in covered.per_level.items()}
    return Coverage(per_level, covered.size, covered.confidence_level)


def _estimates(rows: _Rows, level: float, of_means: bool) -> Iterator[Estimate]:
    """The averages, each with what every row adds to it."""
    table = rows.table
    p, y = table.prediction, table.mean
    alike = _too_alike(table)
    testable = of_means and not alike
    options: dict[str, Any] = {"cluster": rows.cluster, "level": level}

    def mean_of(name: str, values: Floats, null: float | None = None) -> Estimate:
        value = table.average(values)
        return from_influence(name, value, values - value, table, null=null, **options)

    error = mean_of("mean error", p - y, 0.0 if testable else None)
    yield replace(error, standard_error=math.nan, low=math.nan, high=math.nan) if alike else error
    outcome = table.mean_outcome
    if (y >= 0).all() and outcome > 0:
        share = table.mean_prediction / outcome
        null = 1.0 if testable else None
        yield from_influence("ratio", share, (p - share * y) / outcome, table, null=null, **options)
    squares = (p - y) ** 2
    yield mean_of("MSE", squares)
    yield mean_of("MAE", np.abs(p - y))
    spread = means.variance(table)
    if spread > 0:
        relative = table.average(squares) / spread
        influence = (squares - relative * (y - outcome) ** 2) / spread
        yield from_influence("relative MSE", relative, influence, table, **options)
    if rows.forecast is not None:
        yield mean_of("CRPS", rows.forecast.crps(y))
        try:
            density = rows.forecast.log_density(y)
        except InputError:
            density = None
        if density is not None and np.isfinite(density).all():
            yield mean_of("NLL", -density)
        try:
            low, high = rows.forecast.quantile([0.05, 0.95]).T
        except InputError:
            return
        yield mean_of("width of 90 % intervals", high - low)


def _too_alike(table: MeanTable) -> bool:
    """Whether outcomes tell too little of how they vary, and differ from their predictions."""
    groups = group(table, Quantile(1))
    y, p = table.mean, table.prediction
    still = groups.spread(lambda run: y[run], groups.mean(lambda run: y[run]))
    right = float(np.abs(p - y).max()) <= table.rounding
    return not right and bool(too_alike(groups, still.error)[0])
