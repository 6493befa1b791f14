"""`evaluate`: metrics with intervals and null distributions, tests, and a verdict, for every kind of forecast."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.random import SeedSequence

from calibrant._support.arrays import Column
from calibrant._support.errors import Note
from calibrant._support.progress import progress_bar
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant._support.workers import Submit, map_groups
from calibrant.evaluation.settings_checks import check_settings, time_option
from calibrant.inference.multiplicity import benjamini_hochberg, holm
from calibrant.inference.paired_rows import FEWEST_CLUSTERS, MIN_CLUSTERS, check_clusters
from calibrant.kinds.base import FEWER_RESAMPLES, Kind, forecast_kind, kind_of
from calibrant.kinds.sample import GroupedSample, S, has_few_clusters
from calibrant.metrics.bins import MeanBins
from calibrant.metrics.costs import Cost
from calibrant.results.evaluation import Evaluation
from calibrant.results.settings import Margin, Settings
from calibrant.tables.rows import Missing

if TYPE_CHECKING:
    from calibrant.metrics.registry import MetricLike

_MOST_COMPLETE_GROUPS = 20


def evaluate(
    y_true: Any,
    forecast: Any = None,
    *,
    classes: Sequence[Any] | None = None,
    by: Any = None,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None = None,
    margin: Margin | None = None,
    alpha: float = 0.05,
    metrics: "Mapping[str, MetricLike] | Sequence[MetricLike] | None" = None,
    n_bins: int | None = None,
    bins: MeanBins | None = None,
    confidence_level: float = 0.95,
    n_resamples: int | None = None,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    time: Column | None = None,
    focus: float | str | None = None,
    progress: bool | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> Evaluation:
    """Evaluate the calibration of a forecast of any kind: metrics, tests and a verdict.

    =============  =============  ==================================================================================
    kind           outcomes       forecast
    =============  =============  ==================================================================================
    binary         0 and 1        one column of probabilities; or a `ScoreTable`, or a mapping of tables by group
    multiclass     labels         (n, K) class probabilities: an array, or a frame with a column per class
    ordinal        labels         `Ordinal`: probabilities of ordered classes, a column per class
    labels         labels         `Labels`: predicted classes
    point          numbers        `Point`: predicted means; or a `MeanTable` instead of both
    distribution   numbers        `Gaussian`, `Quantiles`, `Samples`, or a frozen distribution of scipy.stats
                   counts         `Poisson`, `NegativeBinomial`
    =============  =============  ==================================================================================

    Parameters
    ----------
    y_true, forecast : columns
        Outcomes and forecasts, as in the table; the kind is never guessed from values.
    classes : sequence, optional
        Multiclass: the class of each column; by default the names of a frame's columns, else 0 to K - 1.
    by : column, several columns or frame, optional
        Group of each row: a country, a week. Several columns are a list, a mapping of names to columns, or a frame;
        groups are then the observed combinations, with tuples as keys. Each group is evaluated too; p-values are
        adjusted by Holm for the number of groups. A missing group is an error, and so are more than 1,000 groups of
        fewer than 20 rows on average, which a column of ids has.
    costs : cost, mapping or sequence of costs, optional
        Binary: adds the expected calibration cost of each: ``{"fraud": LinearCost(over=1, under=20)}``.
    margin : float, AbsoluteMargin or RelativeMargin, optional
        Largest deviation that does not matter. Probabilities: the log-odds error, by default 0.1, which means odds that
        are right to about 10 % on average: 2.5 points at a score of 50 %, 0.1 points at 1 %. ``AbsoluteMargin(0.01)``
        tests ACE of binary scores instead, in probability. Labels: the largest difference of a class proportion, by
        default 0.01. Points: the root mean square bias by bin, by default 0.05 standard deviations of the outcome, or
        5 % of the mean outcome where outcomes are not negative and that is less; ``RelativeMargin(0.1)`` is 10 % of the
        mean outcome. Distributions: the mean absolute coverage error, by default 0.01, which may be twice as large in
        groups of the predicted width; their means have the default margin of points, or a `RelativeMargin`.
    alpha : float, default=0.05
        Level of the tests behind the verdict, and of TCE among the default metrics.
    metrics : list of metrics or mapping of names to metrics, optional
        Replaces the default panel (not for labels). Metrics are objects, their functions, or names in `METRICS`:
        ``["ece", cb.brier]``. They must be of the kind of the forecast; a binary metric of class probabilities is its
        class-wise mean, of ordered classes the mean over the cumulative probabilities. The mean error of points and
        distributions is always shown.
    n_bins, bins
        Binary: `n_bins` is the number of bins of ECE and ACE among the default metrics, by default 10. Points and
        distributions: the bins of the breakdown "bias by bin" and of its test; see `calibrant.regression.bias_by_bin`.
        By default ten bins, or fewer so that each has fifty rows.
    confidence_level : float, default=0.95
        Of intervals and null ranges.
    n_resamples : int, optional
        Bootstrap and null replicates of the metrics: by default 499 for binary scores, none for labels, and 199 for
        other kinds (99 for more than 10,000,000 class probabilities). The verdict needs none. For points and
        distributions they are those of TCE, whose errors get random signs, or of the given `metrics`; 0 for none.
    random_state : int, Generator or None, default=0
        0, so that the same data get the same numbers.
    cluster : column, optional
        Rows of one cluster (a patient, a shop) may depend on each other. At least 10 clusters are needed; with 3 to 9,
        calibration in the large of binary scores is tested, as the mean over clusters, and nothing else. A group with
        few clusters is treated alike.
    time : column, optional
        Times of the rows: numbers, datetimes or ISO 8601 text, in any order. Errors of neighbouring times may depend on
        each other: blocks of consecutive times, longer than errors depend on each other, take the place of clusters;
        see the Notes. Not together with `cluster`.
    focus : float or str, optional
        Binary: evaluate only the rows at which decisions are taken: those whose score is at least a number, such as
        ``0.5``, or the highest scores, such as ``"top 5%"`` (of all rows, also where there are groups; rows with equal
        scores stay together). Verdict, metrics and groups are those of these rows; a note counts them.
    progress : bool, optional
        Draw a progress bar; by default on a terminal and in a notebook, after a second.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`. With ``missing="drop"`` a row without a cluster or
        a time is dropped too.

    Returns
    -------
    Evaluation
        ``verdict``, ``direction``, ``metrics``, ``groups``, ``to_frame()``, ``to_dict()``; print it. With `by`,
        ``heterogeneity`` tests whether groups differ, and has shrunken estimates of each.

    See Also
    --------
    compare, audit, Monitor, decisions

    Notes
    -----
    The verdict follows from an omnibus test of calibration and an equivalence test at the margin:

    =================  ====================================  ==================
    omnibus test       shown to lie within the margin        not shown
    =================  ====================================  ==================
    significant        negligible                            miscalibrated
    not significant    calibrated                            inconclusive
    =================  ====================================  ==================

    The omnibus test rejects if one of up to five tests does after Holm's adjustment: calibration in the large, slope,
    the deviations over coarse and fine bins of equal information, and the deviation in regions at both ends of the
    scores. A calibrated model is "miscalibrated" with a
    probability of at most about `alpha`. Each direction is claimed by its own test. The equivalence test inverts the
    distribution of the squared log-odds errors of the coarse bins; a model whose error over these bins is exactly the
    margin is shown to lie within it with a probability of at most about `alpha`. Errors that cancel within a bin are
    not seen by it, so a significant deviation over fine bins must lie within the margin as well. Scores count by their
    information, so each region of the scores with an information of at least 40 must also be shown to have its odds
    right within a factor of 2 (those with 20, and halves of the rows with 8, within a factor of 3);
    ``details.regions.not_judged`` has those for which no claim is made. It needs an information (sum of
    p (1 - p)) of at least 20, and of about 2,000 to show a calibrated model within 0.1: 10,000 rows at 50 % events,
    200,000 at 1 %. An event with score 0, or its absence with score 1, contradicts calibration: the verdict is then
    miscalibrated.

    p-values shown with a verdict are adjusted so that they cannot contradict it: none is at most `alpha` unless the
    omnibus test rejects. ``result[name].null.pvalue`` is the p-value of one metric without this adjustment.

    Multiclass: the omnibus test has calibration in the large over classes, temperature, top-label deviation, and
    class-wise deviations over coarse and fine bins and in regions (of more than ten classes, the tests of single
    classes); the log-odds error is the information-weighted mean over classes.
    Null replicates draw the class of each row from its probabilities. Ordinal: the omnibus test has a shift and a slope
    of all cumulative log-odds, and the test of the cumulative probability of each class. Labels: the omnibus test has
    the Stuart-Maxwell test and the exact tests of single classes.

    Points and distributions: the omnibus test has the components mean error, bias by bins and slope of the outcome on
    the prediction; for distributions also uniformity of the PIT values, coverage (all levels jointly), coverage in up
    to five groups of the predicted width, and the tails beyond 2.5 % on either side. Forecasts
    that know medians but no means have the share of outcomes below the median instead of the first three. The verdict
    on distributions is within the margin if the coverage error, that by width, and the bias by bin of the means all
    are; `decision` has the one that is farthest from its margin. Errors are
    averaged within bins; with fewer than five bins (250 rows) equivalence is not shown unless `bins` are given. The
    tests are corrected for skewness. Where the squared skewness exceeds a fifth of the number of rows, a mean error or
    slope towards the short tail of the errors is not tested, and bins are merged until their rows exceed twenty times
    the squared skewness; a note with the code ``skewed`` names the limited tests. Non-negative outcomes whose upper
    tail implies a squared skewness above the number of rows are tested by errors in units of their standard deviation,
    or not at all. The mean of a few members of an
    ensemble (`Samples`) is noisy, so outcomes regress to the mean even if the ensemble is calibrated: bins and slope
    group rows by the mean of one half of the members and measure the error of the other half. With clusters, the
    intervals of "bias by bin" and the tests of PIT values still take rows as independent.

    Rows in time order: the dependence of errors is estimated from the autocorrelation of their sums over 1, 2, 4, ...
    consecutive times, and blocks of six times its reach are tested and resampled as clusters;
    ``serial_dependence`` has the estimates. Rows of one time are in one block. Distances between times do not matter,
    only their order. Groups have the blocks of all rows. Where fewer than 10 blocks are left, nothing is tested and the
    verdict is inconclusive.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> found = evaluate(rng.random(3000) < p**1.3, p, n_resamples=99)
    >>> found.verdict, found.direction
    ('miscalibrated', 'overestimates')
    """
    kind = kind_of(forecast_kind(y_true, forecast))
    given: dict[str, Any] = {
        "classes": classes,
        "costs": costs,
        "metrics": metrics,
        "n_bins": n_bins,
        "bins": bins,
        "focus": focus,
    }
    given |= {"sample_weight": sample_weight, "frequency": frequency, "pos_label": pos_label}
    given["missing"] = None if missing == "raise" else missing  # the default needs no rows
    settings, options = check_settings(kind, given, margin, alpha, confidence_level, n_resamples, random_state)
    options |= time_option(y_true, time)
    seed, by_default = seed_sequence(random_state), n_resamples is None
    return evaluate_rows(
        kind, y_true, forecast, settings, seed, progress, by_default, by=by, cluster=cluster, **options
    )


def evaluate_rows(
    kind: Kind,
    y_true: Any,
    forecast: Any,
    settings: Settings,
    seed: SeedSequence,
    progress: bool | None,
    n_resamples_by_default: bool,
    **reading: Any,
) -> Evaluation:
    """Evaluate all rows, then each group; up to 20 groups get all results now, others when they are read.

    `reading` are arguments of ``kind.sample.read_groups``.
    """
    sample: GroupedSample[Any] = kind.sample.read_groups(y_true, forecast, **reading)
    if n_resamples_by_default and sample.is_large:
        settings = replace(settings, n_resamples=FEWER_RESAMPLES)
    if sample.serial_dependence is None:  # the number of blocks of times follows from the data
        _check_clusters(kind, sample.whole)
    evaluate_sample = kind.evaluation.evaluate
    whole = evaluate_sample(_testable(sample.whole), settings, seed, progress)
    whole = _with_few_clusters(kind, whole, sample.whole)
    whole = replace(whole, serial_dependence=sample.serial_dependence)
    complete = kind.optional("evaluation.complete")
    if complete is not None:
        complete(whole)
    group_settings = settings
    if not (kind.defaults.DEFAULTS.resamples_groups or settings.metrics):
        group_settings = replace(settings, n_resamples=0)
    make_starter = kind.optional("evaluation.starter")
    starter = None if make_starter is None else make_starter(sample.whole)
    result = evaluate_groups(
        whole,
        sample.groups,
        lambda group: _with_few_clusters(kind, evaluate_sample(_testable(group), group_settings, seed, False), group),
        None if starter is None else lambda group, submit: starter(group, group_settings, seed, submit),
        name=sample.group_name,
        progress=progress,
    )
    compare_groups = kind.optional("evaluation.heterogeneity")
    if result.groups and compare_groups is not None:
        used = {key: group for key, group in sample.groups.items() if group is not None}
        result = replace(result, heterogeneity=compare_groups(used, sample.whole, settings.confidence_level))
    if complete is not None and len(result.groups) <= _MOST_COMPLETE_GROUPS:
        for group in result.groups.values():
            complete(group)
    return result


def _check_clusters(kind: Kind, whole: Any) -> None:
    """Raise an error if there are too few clusters for any answer."""
    if whole.n_clusters is not None:
        has_mean = kind.optional("evaluation.mean_over_clusters") is not None
        check_clusters(whole.n_clusters, FEWEST_CLUSTERS if has_mean else MIN_CLUSTERS)


def _testable(sample: Any) -> Any:
    """Return the sample, without its clusters (or blocks of times) if they are too few for most tests."""
    return sample.without_clusters() if has_few_clusters(sample) else sample


def _with_few_clusters(kind: Kind, estimated: Evaluation, sample: Any) -> Evaluation:
    """Return an evaluation; one of few clusters has calibration in the large, or estimates alone."""
    if not has_few_clusters(sample):
        return estimated
    text = f"There are {sample.n_clusters} clusters; tests need at least {MIN_CLUSTERS}."
    mean = kind.optional("evaluation.mean_over_clusters")
    found = None if mean is None else mean(sample, estimated.settings.confidence_level)
    if found is not None:
        text = (
            f"There are {sample.n_clusters} clusters: calibration in the large is tested as the mean over clusters, "
            f"with Student's t of {found.df:.0f} degrees of freedom. Other tests need at least {MIN_CLUSTERS} "
            "clusters; other results are valid for these clusters, not for the next one."
        )
    return estimated.without_inference(Note("few_clusters", 1, text), sample.n_clusters, found)


def evaluate_groups(
    whole: Evaluation,
    samples: Mapping[Any, S | None],
    evaluate: Callable[[S], Evaluation],
    start: Callable[[S, Submit], Callable[[], Evaluation]] | None = None,
    *,
    name: str | None,
    progress: bool | None,
) -> Evaluation:
    """Evaluate the sample of each group and return the whole with its groups.

    `samples` has None for a group in which no row is used. Notes name these groups, and those with too few clusters.
    `start` begins the evaluation of a group and returns the function that finishes it, if the kind has it.
    """
    used = {key: sample for key, sample in samples.items() if sample is not None}
    evaluated = map_groups(evaluate, list(used.values()), start, rows=whole.n_rows / max(len(used), 1))
    results = progress_bar(evaluated, len(used), "evaluating groups", show=progress)
    found = dict(zip(used, results, strict=True))
    groups, adjusted = adjust_groups(found)
    notes = (*whole.own_notes, *_empty_groups(samples), *_few_clusters(samples))
    return replace(whole, groups=groups, adjusted=adjusted, by=name, own_notes=notes)


def _empty_groups(samples: Mapping[Any, S | None]) -> list[Note]:
    empty = [str(key) for key, sample in samples.items() if sample is None]
    return [Note("empty_groups", len(empty), f"Groups in which no row is used: {', '.join(empty)}.")] if empty else []


def _few_clusters(samples: Mapping[Any, S | None]) -> list[Note]:
    few = [str(key) for key, sample in samples.items() if sample is not None and has_few_clusters(sample)]
    text = f"Groups with fewer than {MIN_CLUSTERS} clusters, of which little or nothing is tested: {', '.join(few)}."
    return [Note("few_clusters", len(few), text)] if few else []


def adjust_groups(groups: Mapping[Any, Evaluation]) -> tuple[dict[Any, Evaluation], dict[Any, dict[str, float]]]:
    """Adjust the p-values of groups for their number by Holm; groups without a test stay as they are.

    Also return for each group its p-value as it was, adjusted by Holm, and by Benjamini and Hochberg.
    """
    tested = {name: p for name, e in groups.items() if not math.isnan(p := e.decision.own_pvalue)}
    raw = list(tested.values())
    columns = zip(tested, raw, holm(raw).tolist(), benjamini_hochberg(raw).tolist(), strict=True)
    pvalues = {name: {"pvalue": p, "holm": h, "benjamini_hochberg": b} for name, p, h, b in columns}
    untested = dict.fromkeys(("pvalue", "holm", "benjamini_hochberg"), math.nan)
    adjusted = {
        name: _adjust(group, pvalues[name]["holm"], len(tested)) if name in tested else _untested(group)
        for name, group in groups.items()
    }
    return adjusted, {name: pvalues.get(name, untested) for name in groups}


def _untested(group: Evaluation) -> Evaluation:
    return replace(group, decision=group.decision.in_group(math.nan, 1))


def _adjust(group: Evaluation, adjusted: float, n_groups: int) -> Evaluation:
    decision = group.decision.in_group(adjusted, n_groups)
    metrics = {
        name: replace(metric, pvalue=group.details.metric_pvalue(metric.pvalue, adjusted, decision.group_factor))
        for name, metric in group.metrics.items()
    }
    return replace(group, metrics=metrics, decision=decision)
