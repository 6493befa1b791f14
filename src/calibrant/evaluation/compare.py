"""`compare`: compare the calibration of several models on the same rows, for every kind of forecast."""

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from calibrant._support.arrays import Column
from calibrant._support.errors import Argument, InputError
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.evaluation.evaluate import evaluate_rows
from calibrant.evaluation.settings_checks import check_settings, time_option
from calibrant.inference.model_pairs import ComparisonPlan
from calibrant.kinds.base import Kind, forecast_kind, kind_of
from calibrant.kinds.differences import compare_models
from calibrant.metrics.costs import Cost
from calibrant.metrics.registry import MetricLike
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation
from calibrant.results.settings import Margin
from calibrant.tables.rows import Missing


def compare(
    y_true: Column,
    forecasts: Mapping[str, Any],
    *,
    baseline: str | None = None,
    non_inferiority: float | Mapping[str, float] | None = None,
    classes: Sequence[Any] | None = None,
    costs: Cost | Mapping[str, Cost] | Sequence[Cost] | None = None,
    margin: Margin | None = None,
    alpha: float = 0.05,
    metrics: Mapping[str, MetricLike] | Sequence[MetricLike] | None = None,
    n_bins: int | None = None,
    confidence_level: float = 0.95,
    n_resamples: int | None = None,
    random_state: RandomState = 0,
    cluster: Column | None = None,
    time: Column | None = None,
    progress: bool | None = None,
    sample_weight: Column | None = None,
    frequency: Column | None = None,
    pos_label: object = None,
    missing: Missing = "raise",
) -> Comparison:
    """Compare the calibration of several models on the same rows.

    =============  =====================================================  =============================================
    kind           difference that decides                                further differences
    =============  =====================================================  =============================================
    binary         squared log-odds errors; absolute and squared gaps     Brier score, log loss, other metrics
                   must confirm it
    multiclass     squared class-wise log-odds errors; squared gaps       Brier score, log loss
                   must confirm it, those of the top label not object
    ordinal        squared log-odds errors of the cumulative              ranked probability score (RPS), log loss
                   probabilities; squared gaps must confirm it
    labels         squared differences between predicted and actual       accuracy
                   proportions of the classes
    point          squared bias by bin of the prediction                  mean squared and mean absolute error
    distribution   squared coverage errors over levels                    CRPS or pinball loss, log score (NLL)
    =============  =====================================================  =============================================

    Parameters
    ----------
    y_true : column
    forecasts : mapping of name to forecast
        Forecasts of two models or more for the same rows, all of one kind; see `evaluate` for the kinds. Distributions
        may be of different types.
    baseline : str, optional
        Name of the model that the others are compared with; it comes first in the result. By default all pairs are
        compared, and tables show the differences from the first model.
    non_inferiority : float or mapping of metric to float, optional
        Margins by which the other models may be worse than the baseline: tests of "not worse by more than the margin".
        A number is the margin of the metric that decides, in its own units (0.1: in log-odds). Others are those of
        losses, such as ``{"log loss": 0.002}``. ``passed`` says whether all of them are shown.
    classes : sequence, optional
        Multiclass: the class of each column of all forecasts; by default the names of a frame's columns, else 0 to
        K - 1. Frames may have their columns in different orders.
    cluster : column, optional
        Rows of one cluster may depend on each other; there must be at least 10 clusters.
    time : column, optional
        Times of the rows. Blocks of consecutive times, longer than the errors and the differences of losses depend on
        each other, take the place of clusters; see `evaluate`. Losses are compared by the Diebold-Mariano test. Not
        together with `cluster`.
    costs, margin, alpha, metrics, n_bins, confidence_level, n_resamples, random_state, progress
        See `evaluate`. Tables cannot be given: they do not keep the forecasts per row.
    sample_weight, frequency, pos_label, missing
        Options for reading rows; see `ScoreTable.from_arrays`. With ``missing="drop"`` a row is dropped for all models
        if the forecast of one of them, or its cluster, is missing.

    Returns
    -------
    Comparison
        ``verdict``, ``ranking``, ``best``, ``models`` (an `Evaluation` each), ``differences``, ``passed``,
        ``to_frame()``, ``to_dict()``; print it.

    See Also
    --------
    evaluate, Comparison, decisions

    Notes
    -----
    A model is better or worse calibrated than another one if the p-value of the difference that decides, adjusted for
    the number of compared pairs by Holm, is at most `alpha`. Squares are debiased, and variances are robust: they hold
    for miscalibrated models, for any dependence between the two models, and for clusters and weights. So a difference
    between two equally miscalibrated models is shown in at most about 5 % of data sets. Kinds other than binary need
    20 effective rows or clusters; below 100 rows or 50 clusters of distributions it is up to 8 %.

    ``best`` has the models that are not shown to be worse than another one. It contains the best calibrated models with
    a probability of at least 1 - `alpha`.

    A model is shown to be not worse than the baseline if the one-sided confidence bound of the difference, at level 1 -
    `alpha`, is at most the margin. For the metric that decides, differences and margin are squared: the model adds at
    most a root mean square error of the margin to that of the baseline. With about 100 rare events (0.5 %) and scores
    that are too low, this test has an error of 7 to 10 % at the margin; those of losses have about 5 %.

    Binary: errors are those of bins of equal information of each model. Mean absolute and mean squared gaps of the
    probabilities over the same bins must differ significantly in the same direction; the p-value is the largest of the
    three. The result therefore does not depend on the scale on which two models are equally miscalibrated. Where the
    information of a model is below 20 (with importance weights 100), no difference is shown.

    Multiclass: log-odds errors and squared gaps over the bins of all classes must differ significantly in the same
    direction; the p-value is the larger one. No difference is shown if the squared gaps of the highest probability (the
    top label) differ significantly in the other direction. They need not confirm it: if few classes are miscalibrated,
    the highest probability hardly is.

    Ordinal: log-odds errors and squared gaps over the bins of all cumulative probabilities must differ significantly in
    the same direction; the p-value is the larger one.

    Labels: a model is better calibrated if it predicts the classes in proportions nearer to those of the outcomes.

    Points: "better calibrated" refers to the bias by bin: the mean error over ten quantile bins (fewer for fewer than
    500 rows) of the model's own prediction, in standard deviations of the outcome. Where errors are so skewed that even
    their mean is hardly known, no difference is shown.

    Distributions: "better calibrated" refers to coverage: the share of outcomes at or below the predicted quantiles
    minus the level, over the common levels of `Quantiles`, the ranks of `Samples` of equal size, or 0.05 to 0.95.
    CRPS is compared if it is defined in the same way for all models; otherwise the mean pinball loss over the common
    levels.

    Proper scores or losses are compared too, by paired t tests. Where the better calibrated
    model has the worse score, the output states it. With `time` the paired test is that of Diebold and Mariano (1995)
    for sums of blocks of times, by Student's distribution with one degree of freedom less than there are blocks; few
    blocks then have the right critical values (Bester, Conley and Hansen 2011).

    Metrics of gaps (ECE, ACE, TCE and others) have neither interval nor p-value here: their bias depends on the model,
    and a bootstrap of their difference has no known error rate. Other metrics of binary scores have the interval of
    their replicates, moved so that the mean of the replicates is the difference of the data. All p-values are adjusted
    by Holm for the number of compared pairs; intervals are not, except those of ``ranking``, which hold for all pairs
    together. A model whose mean loss is infinite differs infinitely from others; a note names it.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> y = rng.random(3000) < p
    >>> compare(y, {"squared": p**2, "plain": p}, n_resamples=99).verdict
    'plain is better calibrated than squared'
    >>> models = {"champion": p, "challenger": 0.01 + 0.98 * p}
    >>> found = compare(y, models, baseline="champion", non_inferiority={"log loss": 0.005}, n_resamples=99)
    >>> found.passed, found.best
    (True, ('challenger', 'champion'))
    >>> import calibrant as cb
    >>> y = p + rng.normal(size=3000)
    >>> compare(y, {"shifted": cb.Point(p + 0.2), "plain": cb.Point(p)}).verdict
    'plain is better calibrated than shifted'
    """
    named = _check_models(forecasts)
    if baseline is not None:
        named = _first(baseline, named)
    kind = _common_kind(y_true, named)
    given: dict[str, Any] = {"classes": classes, "costs": costs, "metrics": metrics, "n_bins": n_bins}
    given |= {"sample_weight": sample_weight, "frequency": frequency, "pos_label": pos_label}
    given["missing"] = None if missing == "raise" else missing  # the default needs no rows
    if n_bins is not None and "bins" in kind.defaults.DEFAULTS.options:  # its bins are those of the bias by bin
        raise InputError(Argument("n_bins") + f" must be omitted in a comparison of kind {kind.name!r}; got {n_bins}.")
    settings, options = check_settings(kind, given, margin, alpha, confidence_level, n_resamples, random_state)
    options |= time_option(y_true, time)
    seed = seed_sequence(random_state)
    margins = _check_margins(non_inferiority, baseline, kind)
    plan = ComparisonPlan(list(named), is_all_pairs=baseline is None, margins=margins)

    def evaluate_model(y: Any, forecast: Any, **reading: Any) -> Evaluation:
        return evaluate_rows(kind, y, forecast, settings, seed, progress, n_resamples is None, **reading)

    compare_by_itself = kind.optional("differences.compare")
    if compare_by_itself is not None:
        found: Comparison = compare_by_itself(
            y_true, named, settings, seed, plan=plan, cluster=cluster, progress=progress, **options
        )
        return found
    return compare_models(
        y_true, named, kind.differences, plan=plan, evaluate=evaluate_model, cluster=cluster, **options
    )


def _check_models(forecasts: Any) -> dict[str, Any]:
    if not isinstance(forecasts, Mapping) or len(forecasts) < 2:
        given = (
            f"{len(forecasts)} model{'s' * (len(forecasts) != 1)}"
            if isinstance(forecasts, Mapping)
            else type(forecasts).__name__
        )
        raise InputError(
            f"forecasts must be a mapping of names to the forecasts of at least two models; got {given}.",
            hint='Pass {"name": forecast, ...}.',
            argument="forecasts",
        )
    names = [str(name) for name in forecasts]
    if len(set(names)) < len(names):
        raise InputError(f"forecasts must have distinct names; got {names}.", argument="forecasts", value=names)
    return dict(zip(names, forecasts.values(), strict=True))


def _first(baseline: Any, forecasts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the forecasts with the baseline first."""
    name = str(baseline)
    if name not in forecasts:
        raise InputError(
            Argument("baseline") + f" must name a model; got {name!r}, and the models are "
            f"{', '.join(map(repr, forecasts))}.",
            argument="baseline",
            value=baseline,
        )
    return {name: forecasts[name]} | dict(forecasts)


def _check_margins(given: Any, baseline: str | None, kind: Kind) -> dict[str, float]:
    """Return the margins of non-inferiority by metric; a number is that of the metric that decides."""
    if given is None:
        return {}
    if baseline is None:
        raise InputError(
            Argument("baseline") + " must be given with " + Argument("non_inferiority") + "; got none.",
            hint="Name the model that the others are compared with.",
            argument="baseline",
        )
    margins = given if isinstance(given, Mapping) else {kind.differences.TERMS.decides: given}
    for name, margin in margins.items():
        is_number = isinstance(margin, Real) and not isinstance(margin, bool)
        if not (is_number and isinstance(name, str) and 0 < margin < math.inf):
            raise InputError(
                Argument("non_inferiority")
                + f" must be a positive number, or map names of metrics to positive numbers; got {given!r}.",
                argument="non_inferiority",
                value=given,
            )
    if not margins:
        raise InputError(
            Argument("non_inferiority") + " must have the margin of a metric; got none.", argument="non_inferiority"
        )
    return {name: float(margin) for name, margin in margins.items()}


def _common_kind(y_true: Any, forecasts: Mapping[str, Any]) -> Kind:
    """Return the kind of all forecasts."""
    kinds = {name: forecast_kind(y_true, forecast) for name, forecast in forecasts.items()}
    if len(set(kinds.values())) > 1:
        found = ", ".join(f"{name!r} of kind {kind!r}" for name, kind in kinds.items())
        raise InputError(
            f"forecasts must be of one kind; got {found}.",
            hint="Compare models of the same kind, or evaluate each one.",
            argument="forecasts",
            value=kinds,
        )
    return kind_of(next(iter(kinds.values())))
