"""Components of the omnibus test for probabilities: calibration in the large, slope, bins and regions of the scores."""

from functools import partial

import numpy as np

from calibrant._support.arrays import in_pieces
from calibrant._support.workers import run_together
from calibrant.inference.design import MIN_WEIGHTED_EVENTS, Design
from calibrant.inference.region_tests import RegionTests
from calibrant.inference.residual_tests import (
    MIN_CLUSTERS_FOR_BINS,
    cluster_t_test,
    residual_test,
    row_variance,
    skewed_degrees,
)
from calibrant.inference.tails import binomial_two_sided, saddlepoint_two_sided, student_two_sided
from calibrant.metrics import log_odds
from calibrant.results.verdict import TestResult
from calibrant.tables.score_table import bernoulli_variance, event_squares, row_squares

IMPOSSIBLE, FINE_BINS = "impossible outcomes", "deviation over fine bins"
IN_THE_LARGE = "calibration in the large"

# With fewer expected or observed events, or non-events, counts are tested by their binomial distribution.
MIN_EVENTS = 30
# With at most this number of clusters with an event, or with a row without it, clusters are single observations.
_FEW_CLUSTERS = 9
# Effective rows of the rarer outcome, and imbalance of the variances of outcomes, for a robust t test of weighted rows.
_FEWEST_BALANCED, _LARGEST_IMBALANCE = 30, 0.6
_LARGE_SHARE = 0.7  # of the level, for calibration in the large with weights or clusters


def binary_components(design: Design, regions: RegionTests | None = None) -> list[TestResult]:
    """Return the tests that exist for these rows, each with its own p-value; `regions` are those of the design.

    Scores of 0 and 1 alone have only the test of calibration in the large. If an event has score 0, or a row without it
    score 1, calibration is impossible, and the test "impossible outcomes" has the p-value 0.
    """
    found = [*_impossible(design), in_the_large_test(design)]
    if design.information > 0:
        in_regions = (lambda: None) if regions is None else regions.test
        parts = partial(_slope, design), partial(_over_bins, design)
        slope, over_bins, region = run_together(*parts, in_regions, rows=len(design.table))
        found += [*slope, *over_bins, *([] if region is None else [region])]
    return found


def _impossible(design: Design) -> list[TestResult]:
    table = design.table
    count = float(table.k[table.score == 0].sum() + (table.n - table.k)[table.score == 1].sum())
    return [TestResult(count, 0.0, IMPOSSIBLE)] if count > 0 else []


def in_the_large_test(design: Design) -> TestResult:
    """Test calibration in the large: mean score against event rate. Valid also if the model is miscalibrated otherwise.

    The variance of the sum of residuals is the larger of p (1 - p) and (y - p)^2, summed. Few events are tested by the
    binomial distribution with the mean score, whose tails are no lighter than those of unequal scores (Hoeffding 1956).
    """
    table = design.table
    p = table.score
    n, k, expected = float(table.n.sum()), float(table.k.sum()), float(np.sum(table.n * p))
    residual = k - expected
    rows = row_variance(design, p)
    if _is_balanced(design):
        statistic = residual / rows**0.5
        pvalue = student_two_sided(statistic, design.effective_count - 1)
        direction = _signed(residual, "underestimates", "overestimates")
        return TestResult(statistic, pvalue, "calibration in the large", direction=direction)
    variance = max(float(design.logits.whole.variance()[0]), rows)
    scale = expected * (n - expected) / n / variance if variance > 0 else 1.0
    each = log_odds.mean_weight(table)
    share = min(scale, 1 / each) if table.importance else 1.0  # effective rows per unit of weight
    if min(k, n - k, expected, n - expected) * share < MIN_EVENTS:
        pvalue = binomial_two_sided(k * share, n * share, expected / n)
    else:
        pvalue = student_two_sided(residual / variance**0.5, design.degrees if design.rows is None else np.inf)
    statistic = residual / variance**0.5 if variance > 0 else 0.0
    if design.rows is not None:
        statistic, clustered = cluster_t_test(design.cluster_sums(p))
        pvalue = max(pvalue, clustered, _cluster_log_odds_pvalue(design))
    if _has_too_few_events(design):
        pvalue = 1.0 if design.rows is None else max(pvalue, _whole_cluster_pvalue(design))
    direction = _signed(residual, "underestimates", "overestimates")
    return TestResult(statistic, pvalue, IN_THE_LARGE, direction=direction)


def component_shares(design: Design) -> dict[str, float]:
    """Return the share of the level that a component has by name; the others share the rest equally.

    With weights or clusters, calibration in the large has most of it: it keeps the power of a robust t test of the mean
    residual, where slope and bins have little.
    """
    return {} if design.is_independent else {"calibration in the large": _LARGE_SHARE}


def _is_balanced(design: Design) -> bool:
    """Return whether weighted rows of both outcomes contribute to the variance of the sum of residuals.

    Then the robust t test has its level, however unequal the weights are, because its statistic has short tails if its
    terms are symmetric (Efron 1969). If nearly all variance is of one outcome, the terms are skewed, and few rows with
    large weights reject too often.
    """
    if design.rows is not None or not design.table.importance or design.effective_count < _FEWEST_BALANCED:
        return False
    p, events, every = design.table.score, event_squares(design.table), row_squares(design.table)
    # Observed outcomes, whose weights may differ, and those expected, because events of large weight may be missing.
    return all(
        abs(np.sum(of_events * (1 - p) ** 2) - np.sum((every - of_events) * p**2))
        <= _LARGEST_IMBALANCE * np.sum(of_events * (1 - p) ** 2 + (every - of_events) * p**2)
        for of_events in (events, every * p)
    )


def _slope(design: Design) -> list[TestResult]:
    """Test the slope of the log-odds, with any intercept: score test of slope 1.

    Scores are first shifted by the log-odds error of all rows, so that a shift does not count as a slope.
    """
    table = design.table
    whole = design.logits.whole
    x, q = design.logits.x, whole.fitted
    information = bernoulli_variance(design.logits.n, q)
    contrast = x - np.sum(information * x) / np.sum(information)
    model = float(np.sum(in_pieces(lambda weight, c: weight * c**2, information, contrast)))
    if len(table) < 2 or not model > 1e-12 * np.sum(information):
        return []
    score = float(np.sum(in_pieces(lambda c, k, n, q: c * (k - n * q), contrast, table.k, table.n, q)))
    design_effect = float(whole.fitted_variance[0] / np.sum(information))
    variance = max(model * design_effect, row_variance(design, q, contrast))
    statistic = score / variance**0.5
    pvalue = student_two_sided(statistic, design.degrees if design.rows is None else np.inf)
    if min(table.k.sum(), (table.n - table.k).sum()) / design_effect < MIN_EVENTS:
        n = table.n / design_effect
        pvalue = max(pvalue, saddlepoint_two_sided(score / design_effect, contrast, n, q))
    if design.rows is not None:
        statistic, clustered = cluster_t_test(design.cluster_sums(q, contrast))
        own = design.logits.information
        _, at_scores = cluster_t_test(design.cluster_sums(table.score, x - np.sum(own * x) / np.sum(own)))
        pvalue = max(pvalue, clustered, at_scores)
    if _has_too_few_events(design):
        pvalue = 1.0
    return [TestResult(statistic, pvalue, "slope", direction=_signed(score, "underconfident", "overconfident"))]


def _over_bins(design: Design) -> list[TestResult]:
    """Test the residuals over bins of equal information, coarse and fine."""
    if _has_too_few_events(design) or (design.n_clusters or MIN_CLUSTERS_FOR_BINS) < MIN_CLUSTERS_FOR_BINS:
        return []
    coarse = design.coarse_bins
    if len(coarse) < 2:  # one bin is calibration in the large
        return []
    found = [residual_test(design, coarse, "deviation over bins")]
    fine = design.fine_bins
    if fine is not None:
        found.append(residual_test(design, fine, FINE_BINS))
    return found


def _signed(value: float, positive: str, negative: str) -> str:
    return positive if value > 0 else negative if value < 0 else ""


def _has_too_few_events(design: Design) -> bool:
    """Return whether weights or clusters have so few events, or non-events, that their variance is unknown."""
    fewest = MIN_WEIGHTED_EVENTS if design.rows is None else _FEW_CLUSTERS
    return not design.is_independent and design.effective_rarer <= fewest


def _cluster_log_odds_pvalue(design: Design) -> float:
    """Return the p-value of the log-odds error of all rows: rates of clusters are skewed, their log-odds less so."""
    whole = design.logits.whole
    sums = design.cluster_sums(whole.fitted)
    spread = float(np.std(sums, ddof=1))
    if spread == 0:
        return 1.0
    t = whole.error[0] * whole.fitted_curvature[0] / (np.sqrt(sums.size) * spread)
    return student_two_sided(float(t), skewed_degrees(design.cluster_sums(design.table.score)))


def _whole_cluster_pvalue(design: Design) -> float:
    """Return the binomial p-value of clusters as single observations: the strongest possible dependence."""
    assert design.rows is not None
    events = design.cluster_means(design.rows.event.astype(np.float64))
    expected = design.cluster_means(design.table.score[design.rows.places[0]])
    return binomial_two_sided(float(events.sum()), float(events.size), float(expected.mean()))
