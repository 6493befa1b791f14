"""The tests behind a verdict: calibration in the large, slope, and deviations over coarse and fine bins."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support.json_values import plain
from calibrant._support.typing import Floats
from calibrant.inference.design import Design
from calibrant.inference.tails import (
    binomial_two_sided,
    quadratic_tail,
    saddlepoint_two_sided,
    student_two_sided,
)
from calibrant.metrics import log_odds
from calibrant.metrics.bins import EqualInformation, information_bins
from calibrant.metrics.log_odds import LogOddsBins

__all__ = ["Component", "components"]

# Below so many expected or observed events, or other rows, counts are tested by their binomial distribution.
FEW = 30
# Fine bins hold at least so much information each, and are at most so many.
_FINE = 8
_MOST_FINE = 512
# Bins are tested from so many clusters on (fewer have a third of the degrees of freedom), and weighted rows from so
# many effective events.
_FEWEST_FOR_BINS = 20
_FEWEST_WEIGHTED = 8
# With so few clusters that have an event, or a row without it, clusters count as single observations.
_FEWEST_CLUSTERS = 9
_CLUSTERS_PER_BIN = 5


@dataclass(frozen=True)
class Component:
    """One of the tests behind the verdict.

    Attributes
    ----------
    name : str
    statistic, pvalue : float
        The p-value of this test alone.
    side : int
        1 where events are more frequent than predicted, or the slope is above 1; -1 where less, or below 1; else 0.
    df : float or None
        Degrees of freedom of a test over bins.
    """

    name: str
    statistic: float
    pvalue: float
    side: int = 0
    df: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain data for JSON."""
        return plain(self)


def components(design: Design) -> list[Component]:
    """The tests that exist for these rows, each with its own p-value.

    Scores of 0 and 1 alone leave only the first; where an event has score 0, or a row without it score 1, calibration
    is impossible and the p-value of the test "impossible outcomes" is 0.
    """
    found = [*_impossible(design), in_the_large(design)]
    if design.information > 0:
        found += [*_slope(design), *_bins(design)]
    return found


def _impossible(design: Design) -> list[Component]:
    table = design.table
    count = float(table.k[table.score == 0].sum() + (table.n - table.k)[table.score == 1].sum())
    return [Component("impossible outcomes", count, 0.0)] if count > 0 else []


def in_the_large(design: Design) -> Component:
    """Calibration in the large: is the mean score the event rate? Valid for models that are miscalibrated otherwise.

    The variance of the sum of residuals is the larger of p (1 - p) and (y - p)^2, summed. Few events are tested by the
    binomial distribution with the mean score, whose tails are no lighter than those of unequal scores (Hoeffding 1956).
    """
    table = design.table
    p = table.score
    n, k, expected = float(table.n.sum()), float(table.k.sum()), float(np.sum(table.n * p))
    residual = k - expected
    model = float(LogOddsBins(table, np.zeros(1, dtype=np.int64)).variance()[0])
    variance = max(model, _row_variance(design, p, None))
    scale = expected * (n - expected) / n / variance if variance > 0 else 1.0
    each = log_odds.mean_weight(table)
    share = min(scale, 1 / each) if table.importance else 1.0  # effective rows per unit of weight
    if min(k, n - k, expected, n - expected) * share < FEW:
        pvalue = binomial_two_sided(k * share, n * share, expected / n)
    else:
        pvalue = student_two_sided(residual / variance**0.5, design.degrees if design.rows is None else np.inf)
    statistic = residual / variance**0.5 if variance > 0 else 0.0
    if design.rows is not None:
        statistic, by_clusters = _by_clusters(design.cluster_sums(p))
        pvalue = max(pvalue, by_clusters, _by_clusters_in_log_odds(design))
    if _too_few_events(design):
        pvalue = 1.0 if design.rows is None else max(pvalue, _by_whole_clusters(design))
    return Component("calibration in the large", statistic, pvalue, side=int(np.sign(residual)))


def _slope(design: Design) -> list[Component]:
    """Slope of the log-odds, with any intercept: score test of slope 1.

    Scores are first moved by the log-odds error of all rows, so that a shift is no slope.
    """
    table = design.table
    whole = LogOddsBins(table, np.zeros(1, dtype=np.int64))
    x, q = whole.logits, whole.shifted(whole.error)
    information = table.n * q * (1 - q)
    contrast = x - np.sum(information * x) / np.sum(information)
    model = float(np.sum(information * contrast**2))
    if len(table) < 2 or not model > 1e-12 * np.sum(information):
        return []
    score = float(np.sum(contrast * (table.k - table.n * q)))
    deff = float(whole.variance(whole.error)[0] / np.sum(information))
    variance = max(model * deff, _row_variance(design, q, contrast))
    statistic = score / variance**0.5
    pvalue = student_two_sided(statistic, design.degrees if design.rows is None else np.inf)
    if min(table.k.sum(), (table.n - table.k).sum()) / deff < FEW:
        pvalue = max(pvalue, saddlepoint_two_sided(score / deff, contrast, table.n / deff, q))
    if design.rows is not None:
        statistic, by_clusters = _by_clusters(design.cluster_sums(q, contrast))
        own = log_odds.information(table)
        _, at_scores = _by_clusters(design.cluster_sums(table.score, x - np.sum(own * x) / np.sum(own)))
        pvalue = max(pvalue, by_clusters, at_scores)
    if _too_few_events(design):
        pvalue = 1.0
    return [Component("slope", statistic, pvalue, side=int(np.sign(score)))]


def _row_variance(design: Design, fitted: Floats, contrast: Floats | None) -> float:
    """Sum of squared residuals of independent rows: the variance of their sum, also of a miscalibrated model."""
    table = design.table
    squares = table.n if table.w2 is None else table.w2
    events = log_odds.squares_of_events(table)
    terms = events * (1 - fitted) ** 2 + (squares - events) * fitted**2
    return float(np.sum(terms if contrast is None else contrast**2 * terms))


def contrast_test(design: Design, contrast: Floats) -> tuple[float, float]:
    """Statistic and two-sided p-value of the sum of contrast * (y - p) for weights or clusters."""
    if design.rows is not None:
        return _by_clusters(design.cluster_sums(design.table.score, contrast))
    total = float(np.sum(contrast * (design.table.k - design.table.n * design.table.score)))
    variance = _row_variance(design, design.table.score, contrast)
    statistic = total / variance**0.5 if variance > 0 else 0.0
    return statistic, student_two_sided(statistic, design.degrees)


def contrasts_test(design: Design, contrasts: list[Floats]) -> tuple[float, float]:
    """Joint test of several such sums: Hotelling's with clusters, chi-squared with weights."""
    from scipy.special import chdtrc, fdtrc

    table, count = design.table, len(contrasts)
    totals = np.array([np.sum(c * (table.k - table.n * table.score)) for c in contrasts])
    if design.rows is None:
        squares, events = table.w2 if table.w2 is not None else table.n, log_odds.squares_of_events(table)
        terms = events * (1 - table.score) ** 2 + (squares - events) * table.score**2
        covariance = np.array([[np.sum(a * b * terms) for b in contrasts] for a in contrasts])
        statistic = _quadratic(totals, covariance)
        return statistic, float(chdtrc(count, statistic))
    sums = np.stack([design.cluster_sums(table.score, c) for c in contrasts])
    clusters = sums.shape[1]
    centred = sums - sums.mean(axis=1, keepdims=True)
    statistic = _quadratic(totals, centred @ centred.T * (clusters / (clusters - 1)))
    return statistic, float(fdtrc(count, clusters - count, statistic * (clusters - count) / (count * (clusters - 1))))


def _quadratic(totals: Floats, covariance: Floats) -> float:
    return float(totals @ np.linalg.lstsq(covariance, totals, rcond=None)[0])


def _by_clusters(sums: Floats) -> tuple[float, float]:
    """One-sample t test of the sums of clusters; conservative where clusters have unequal variances (Bakirov 1989)."""
    spread = float(np.std(sums, ddof=1))
    if spread == 0:
        return 0.0, 1.0
    t = float(np.sqrt(sums.size) * sums.mean() / spread)
    return t, student_two_sided(t, _cluster_degrees(sums.size))


def _cluster_degrees(count: int) -> float:
    """Degrees of freedom of a t test of cluster sums: a third of them for few clusters, whose sums are skewed."""
    return count - 1 if count >= _FEWEST_FOR_BINS else (count - 1) / 3


def _by_clusters_in_log_odds(design: Design) -> float:
    """The same test of the log-odds error of all rows: rates of clusters are skewed, their log-odds less so."""
    whole = LogOddsBins(design.table, np.zeros(1, dtype=np.int64))
    sums = design.cluster_sums(whole.shifted(whole.error))
    spread = float(np.std(sums, ddof=1))
    if spread == 0:
        return 1.0
    t = whole.error[0] * whole.curvature(whole.error)[0] / (np.sqrt(sums.size) * spread)
    return student_two_sided(float(t), _cluster_degrees(sums.size))


def _too_few_events(design: Design) -> bool:
    """Whether weights or clusters rest on so few events, or other rows, that their variance is unknown."""
    fewest = _FEWEST_WEIGHTED if design.rows is None else _FEWEST_CLUSTERS
    return not design.is_independent and design.effective_rarer <= fewest


def _by_whole_clusters(design: Design) -> float:
    """Binomial test of clusters as single observations: the strongest dependence that is possible."""
    assert design.rows is not None
    events = design.cluster_means(design.rows.event.astype(np.float64))
    expected = design.cluster_means(design.table.score[design.rows.places[0]])
    return binomial_two_sided(float(events.sum()), float(events.size), float(expected.mean()))


def _bins(design: Design) -> list[Component]:
    """Residuals over bins of equal information, coarse and fine."""
    if _too_few_events(design) or (design.n_clusters or _FEWEST_FOR_BINS) < _FEWEST_FOR_BINS:
        return []
    coarse = information_cut(design, information_bins(design.information))
    if len(coarse) < 2:  # one bin is calibration in the large
        return []
    found = [over_bins(design, coarse, "deviation over bins")]
    fine = fine_bins(design)
    if fine is not None:
        found.append(over_bins(design, fine, "deviation over fine bins"))
    return found


def fine_bins(design: Design) -> LogOddsBins | None:
    """Fine bins of equal information; None where they would be hardly finer than coarse ones."""
    coarse = bins_allowed(design, information_bins(design.information))
    count = bins_allowed(design, fine_information_bins(design.information))
    if count <= 2 * coarse:
        return None
    fine = information_cut(design, count)
    return fine if len(fine) > 2 * coarse else None


def fine_information_bins(information: float) -> int:
    """Number of fine bins for so much information."""
    return min(_MOST_FINE, int(information / _FINE))


def bins_allowed(design: Design, count: int) -> int:
    """At most so many bins, and at most one per five clusters."""
    return count if design.n_clusters is None else min(count, design.n_clusters // _CLUSTERS_PER_BIN)


def information_cut(design: Design, count: int) -> LogOddsBins:
    """At most so many bins of equal information; weighted ones have at least 8 effective events and 8 other rows."""
    bins = LogOddsBins(design.table, EqualInformation(max(bins_allowed(design, count), 1))(design.table).start)
    table = design.table
    if table.w2 is None or len(bins) == 1:
        return bins
    squares = log_odds.squares_of_events(table)
    columns = (table.k, squares, table.n - table.k, table.w2 - squares)
    sums = np.stack([bins.total(column) for column in columns], axis=1)
    start, inside = [0], np.zeros(len(columns))
    for begin, own in zip([*bins.start[1:].tolist(), None], sums, strict=True):
        inside = inside + own
        if begin is not None and _are_enough(*inside):
            start.append(begin)
            inside = np.zeros(len(columns))
    if len(start) > 1 and not _are_enough(*inside):  # the last bin joins the one below
        start.pop()
    return LogOddsBins(table, np.array(start, dtype=np.int64))


def _are_enough(events: float, squares: float, others: float, rest: float) -> bool:
    return min(events**2 - _FEWEST_WEIGHTED * squares, others**2 - _FEWEST_WEIGHTED * rest) >= 0


def over_bins(design: Design, bins: LogOddsBins, name: str) -> Component:
    """Test of calibration by residual sums of bins, as in Hosmer and Lemeshow's.

    Independent rows: the sum of r^2 / V over B bins, chi-squared with B degrees of freedom, scaled so that its variance
    is that of Bernoulli outcomes. Clusters: T = sum of r^2 / V, T / tr(M) ~ F(nu, nu (G - 1)), where M is the
    covariance of the residuals divided by V and nu = tr(M)^2 / tr(M^2) (Box 1954).
    """
    variance = bins.variance()
    statistic = float(np.sum(bins.residual**2 / variance))
    p = design.table.score
    kurtosis = bins.total(design.table.n * p * (1 - p) * (1 - 6 * p * (1 - p))) / bins.information
    moments = float(np.sum(kurtosis * variance / bins.information**2))  # of r^4, beyond the normal's
    degrees = np.inf if design.rows is not None else design.degrees
    alone = quadratic_tail(statistic, float(len(bins)), 2.0 * len(bins) + moments, degrees)
    if design.rows is None:
        return Component(name, statistic, alone, df=float(len(bins)))
    root = np.sqrt(variance)
    matrix = design.covariance(bins) / np.outer(root, root)
    trace, squared = traces(matrix, design.degrees)
    pvalue = quadratic_tail(statistic, trace, 2 * squared, design.degrees)
    return Component(name, statistic, max(pvalue, alone, _in_log_odds(design, bins)), df=trace**2 / squared)


def _in_log_odds(design: Design, bins: LogOddsBins) -> float:
    """The same test of the bins' log-odds errors, whose distribution is less skewed."""
    root = np.sqrt(bins.information) / np.maximum(bins.curvature(bins.error), 1e-300)
    matrix = design.covariance(bins, bins.error) * np.outer(root, root)
    trace, squared = traces(matrix, design.degrees)
    statistic = float(np.sum(bins.information * bins.error**2))
    return quadratic_tail(statistic, trace, 2 * squared, design.degrees) if squared > 0 else 1.0


def traces(matrix: Floats, degrees: float) -> tuple[float, float]:
    """Trace of a covariance and of its square; the latter without the bias of an estimate with so many degrees."""
    trace, squared = float(np.trace(matrix)), float(np.sum(matrix**2))
    if np.isfinite(degrees):
        g = max(degrees, 2.0)
        squared = g**2 / ((g - 1) * (g + 2)) * (squared - trace**2 / g)
        squared = max(squared, trace**2 / matrix.shape[0])
    return trace, squared
