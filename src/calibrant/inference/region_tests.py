"""Regions of the scores: a test that looks at both ends, by rows and by information, and a factor for each region.

Bins of equal information merge tiny scores, and the highest scores of rare events, with calibrated neighbours. Regions
are the top and the bottom 1/2, 1/4, 1/8, ... of the rows and of the information; of few distinct scores each score, and
each cut between scores. Scores of exactly 0 and 1 have no information and belong to no region.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtri, ndtr, ndtri, owens_t, stdtr, stdtrit

from calibrant._support.arrays import Bools, Floats, Ints, gram
from calibrant._support.lazy import cached_property
from calibrant._support.logistic import expit
from calibrant.inference.design import MIN_WEIGHTED_EVENTS, Design
from calibrant.inference.paired_rows import MIN_CLUSTERS
from calibrant.metrics import log_odds
from calibrant.metrics.significance import clopper_pearson
from calibrant.results.regions import Region, Regions
from calibrant.results.verdict import TestResult
from calibrant.tables.score_table import ScoreTable, event_squares, row_squares, squared_residuals

NAME = "deviation in regions"

# Each judged region must have its odds shown right up to this factor, one with less information up to the wide factor.
_FACTOR, _WIDE_FACTOR = 2.0, 3.0
# Least effective information for the factor; for the wide factor; the same in the smallest regions with half of the
# rows of one forecast, which matter most; and the least information of the observed rate for the wide factor. A
# calibrated region of rare events passes with a probability of 97 % at 40, and for the wide factor of 98 % at 20 and
# 78 % at 10.
_JUDGED, _JUDGED_WIDELY, _FEWEST_JUDGED, _JUDGED_OBSERVED = 40.0, 20.0, 8.0, 15.0
_FEW_SCORES = 30  # up to which each distinct score is a region
_FEWEST = 0.5  # expected events, and other rows, of the smallest region; rows are always cut at 1/2, 1/4 and 1/8
_ALWAYS_CUT = 3
_MOST_CUTS = 50
_PIECES = 8  # of table rows between two cuts, whose scores are averaged
_ROUNDING = 1e-9
_NEWTON_STEPS = 60
_HARMLESS = 1.5  # standard deviations; smaller deviations of a region are far from significant
_BLOCK = 2**21  # numbers in a block of cluster sums
_NOTHING = 1e-300
# Shares of the rows whose observed over expected events are printed, if they have so many rows.
_TOP_SHARES, _BOTTOM_SHARE = (0.001, 0.01, 0.05), 0.5
_FEWEST_ROWS = 30
_FEWEST_DEGREES = 3.0  # with fewer the interval of a rate has no limits
_FEW_FORECASTS = 10  # of more classes the regions that are not judged are not listed


@dataclass(frozen=True)
class Limit:
    """The factors within which the odds of each judged region must be shown to be right.

    2, and for large margins twice the margin in log-odds: a region may be off by more than the mean of all scores; 3
    where there is less information.

    Attributes
    ----------
    margin : float
        Margin of the log-odds error.
    forecasts : int
        Number of forecasts that are judged together: classes, thresholds.
    """

    margin: float
    forecasts: int = 1

    @property
    def factor(self) -> float:
        """The factor."""
        return max(_FACTOR, math.exp(2 * self.margin))

    @property
    def wide_factor(self) -> float:
        """The factor of regions with less information."""
        return float(self.factor ** (math.log(_WIDE_FACTOR) / math.log(_FACTOR)))

    def information(self, least: float) -> float:
        """Return the least information of a region, given that for one forecast and a factor of 2.

        A calibrated region with this information fails with a probability of 0.02, divided by the number of forecasts,
        so that all of them pass about as often as one. Fewer than 8 events are not judged by any factor.
        """
        one, several = (ndtri(0.95) - ndtri(0.02 / each) for each in (1, self.forecasts))
        share = float((several / one * math.log(_FACTOR) / math.log(self.factor)) ** 2)
        return max(least * share, _FEWEST_JUDGED)


@dataclass(frozen=True, eq=False)
class RegionSums:
    """Sums over ranges of table rows, and the variance of their residual sums.

    Attributes
    ----------
    design : Design
    start, stop : ndarray of int
        First table row of each range, and the one after its last.
    rows, events, expected, information : ndarray of float
        Sums over each range; those of weighted rows are sums of weights.
    variance : ndarray of float
        Variance of the residual sum.
    degrees : ndarray of float
        Degrees of freedom of the estimate of that variance; infinite for counts.
    rarer : ndarray of float
        Effective number of rows, or of clusters, with the rarer outcome; infinite for counts, whose variance is known.
    covariance : ndarray
        Of the residual sums, with the smaller of the correlations that the data and independent rows have.
    """

    design: Design
    start: Ints
    stop: Ints
    rows: Floats
    events: Floats
    expected: Floats
    information: Floats
    variance: Floats
    degrees: Floats
    rarer: Floats
    covariance: Floats

    @cached_property
    def tested(self) -> Bools:
        """Which ranges have enough effective rows, or clusters, with both outcomes for their variance to be known."""
        fewest = MIN_CLUSTERS if self.design.rows is not None else MIN_WEIGHTED_EVENTS
        return np.asarray(np.minimum(self.degrees + 1, self.rarer) >= fewest - _ROUNDING)

    @classmethod
    def measure(cls, design: Design, start: Ints, stop: Ints, sums: Floats) -> "RegionSums":
        """Return the sums of some ranges, given the `cumulated` columns of the table."""
        rows, events, expected, information = sums[:, stop] - sums[:, start]
        if design.table.importance:  # differences of cumulated weights are rounded
            tiny = 1e-12 * sums[0, -1]
            events = np.where(events <= tiny, 0.0, np.where(rows - events <= tiny, rows, events))
        shape, common = (rows, events, expected, information), _common(sums[3], start, stop)
        if design.is_independent:
            many = np.full(start.size, np.inf)
            return cls(design, start, stop, *shape, information, many, many, common)
        dependence = _clustered if design.rows is not None else _weighted
        variance, degrees, rarer, covariance = dependence(design, start, stop)
        model = _model_variance(design, start, stop)
        scale = np.sqrt(np.maximum(np.outer(information, information), _NOTHING))
        spread = np.sqrt(np.maximum(np.diag(covariance), _NOTHING))
        least = np.minimum(common / scale, np.clip(covariance / np.outer(spread, spread), 0.0, 1.0))
        np.fill_diagonal(least, 1.0)
        return cls(design, start, stop, *shape, np.maximum(variance, model), degrees, rarer, least * scale)

    def region(self, i: int, level: float) -> Region:
        """Return one range as a result."""
        table = self.design.table
        n, k, expected = float(self.rows[i]), float(self.events[i]), float(self.expected[i])
        ratio, limits = math.nan, (0.0, math.inf)
        if expected > 0:
            low, high = self._rate_interval(i, level)
            ratio, limits = k / expected, (low * n / expected, high * n / expected)
        scores = float(table.score[self.start[i]]), float(table.score[self.stop[i] - 1])
        place = "top" if self.stop[i] == len(table) else "bottom" if self.start[i] == 0 else "range"
        place = "score" if scores[0] == scores[1] else place
        share = n / float(table.n.sum())
        return Region(place, *scores, n, share, k, expected, ratio, *limits, level)

    def _rate_interval(self, i: int, level: float) -> tuple[float, float]:
        """Return the interval of the event rate of a range: exact, of as many rows as have the same variance.

        Unequal rates of the rows only decrease the variance (Hoeffding 1956), so it holds for any model.
        """
        n, k = float(self.rows[i]), float(self.events[i])
        if self.design.is_independent:
            low, high = clopper_pearson(k, n, confidence_level=level)
            return float(low), float(high)
        rate, mean = k / n, float(self.expected[i]) / n
        spread = rate * (1 - rate) or mean * (1 - mean)
        most = n / log_odds.mean_weight(self.design.table)
        size = min(n**2 * spread / max(float(self.variance[i]), _NOTHING), most) if spread > 0 else most
        if self.degrees[i] < _FEWEST_DEGREES:
            return 0.0, 1.0
        normal_level = float(1 - 2 * ndtr(-stdtrit(float(self.degrees[i]), (1 + level) / 2)))
        low, high = clopper_pearson(rate * size, size, confidence_level=min(normal_level, 1 - 1e-12))
        return float(low), float(high)


@dataclass(frozen=True)
class NamedRegions:
    """The regions of one of several forecasts that are judged together.

    Attributes
    ----------
    name : str
        The class, or the threshold.
    test : TestResult or None
        The test of its regions; None if there is none.
    within : float
        p-value of the hypothesis that one of them is wrong by its factor.
    regions : Regions or None
    """

    name: str
    test: TestResult | None
    within: float
    regions: Regions | None

    @classmethod
    def measure(
        cls, name: str, tests: "RegionTests | None", whole: TestResult, limit: Limit, alpha: float, level: float
    ) -> "NamedRegions":
        """Return the regions of one forecast, given its test of calibration in the large."""
        if tests is None:
            return cls(name, None, 0.0, None)
        regions = tests.summary(alpha, level, limit, is_small=limit.forecasts <= _FEW_FORECASTS, whole=whole)
        return cls(name, tests.test(), tests.equivalence_pvalue(alpha, limit), regions)


def joint_test(parts: Sequence[NamedRegions]) -> list[TestResult]:
    """Return the test of the regions of several forecasts: the smallest p-value, times the number of forecasts."""
    tests = [part.test for part in parts if part.test is not None]
    if not tests:
        return []
    smallest = min(tests, key=lambda test: test.pvalue)
    return [replace(smallest, pvalue=min(1.0, len(parts) * smallest.pvalue))]


def join_regions(parts: Sequence[NamedRegions], alpha: float, *, is_small: bool) -> Regions | None:
    """Return the regions of several forecasts as one result; `is_small` as in `RegionTests.summary`."""
    known = [(part, part.regions) for part in parts if part.regions is not None]
    if not known:
        return None
    deviating = [replace(region, of=part.name) for part, own in known for region in own.deviating]
    deviating.sort(key=lambda region: -abs(region.events - region.expected))
    tested, judged, widely = (
        np.array([(o.n_tested, o.n_judged, o.n_judged_widely) for _, o in known]).sum(axis=0).tolist()
    )
    first = known[0][1]
    found = Regions(first.factor, first.wide_factor, tested, judged, widely, tuple(deviating))
    if not is_small:
        return found
    part, own = max(known, key=lambda each: each[0].within)
    not_shown = own.not_shown if part.within > alpha else None
    unjudged = tuple(replace(region, of=part.name) for part, own in known for region in own.not_judged)
    not_shown = None if not_shown is None else replace(not_shown, of=part.name)
    return replace(found, not_shown=not_shown, not_judged=unjudged)


def cumulated(table: ScoreTable) -> Floats:
    """Return rows, events, expected events and information of the table, cumulated from 0."""
    n, p = table.n.astype(np.float64), table.score
    sums = np.zeros((4, p.size + 1))
    for total, column in zip(sums, (n, table.k.astype(np.float64), n * p, n * p * (1 - p)), strict=True):
        np.cumsum(column, out=total[1:])
    return sums


def usual_shares(design: Design, level: float) -> tuple[Region, ...]:
    """Return the top 0.1, 1 and 5 % of the rows and their bottom half, ties kept together, those with enough rows."""
    sums = cumulated(design.table)
    size = design.table.score.size
    ranges = [(_from_top(sums[0], share), size) for share in _TOP_SHARES] + [(0, _from_bottom(sums[0], _BOTTOM_SHARE))]
    least = _FEWEST_ROWS * log_odds.mean_weight(design.table)
    used = [(a, b) for a, b in dict.fromkeys(ranges) if b - a < size and sums[0, b] - sums[0, a] >= least]
    if not used:
        return ()
    start, stop = np.array(used, dtype=np.int64).T
    found = RegionSums.measure(design, start, stop, sums)
    return tuple(found.region(i, level) for i in range(len(used)))


def _from_bottom(total: Floats, share: Any) -> Any:
    """Return the first place at which a cumulated column reaches a share of its total."""
    return np.searchsorted(total, share * total[-1] * (1 - _ROUNDING))


def _from_top(total: Floats, share: Any) -> Any:
    """Return the last place after which a column still has a share of its total."""
    place = np.searchsorted(total, total[-1] * (1 + _ROUNDING / 2) - share * total[-1], side="right") - 1
    return np.minimum(place, total.size - 2)


@dataclass(frozen=True, eq=False)
class RegionTests:
    """Tests of the regions of the scores strictly between 0 and 1.

    The events of a region are a sum of independent Bernoulli outcomes; weights and clusters divide rows and events by
    the design effect of the region. Odds times exp(d) tilt the distribution of the sum, so that one root serves all d.

    Attributes
    ----------
    sums : RegionSums
    """

    sums: RegionSums

    @classmethod
    def from_design(cls, design: Design) -> "RegionTests | None":
        """Return the tests of the regions of a design; None if it has fewer than two scores between 0 and 1."""
        table = design.table
        inside = np.flatnonzero((table.score > 0) & (table.score < 1))
        if inside.size < 2 or not design.information > 0:
            return None
        first, last = int(inside[0]), int(inside[-1]) + 1
        sums = cumulated(table)
        own = sums[:, first : last + 1] - sums[:, first : first + 1]
        start, stop = _cut(own, log_odds.mean_weight(table))
        found = RegionSums.measure(design, start + first, stop + first, sums)
        return cls(found) if start.size else None

    @cached_property
    def effect(self) -> Floats:
        """Design effect of each region: the variance, divided by that of independent rows of weight 1."""
        effect: Floats = self.sums.variance / self.sums.information
        return effect

    @property
    def _is_independent(self) -> bool:
        return self.sums.design.is_independent

    # Counts in effective rows

    @cached_property
    def _effective(self) -> tuple[Floats, Floats, Floats]:
        """Effective rows, events and information of each region."""
        sums, effect = self.sums, self.effect
        return sums.rows / effect, sums.events / effect, sums.information / effect

    @cached_property
    def _pieces(self) -> tuple[Floats, Floats, Bools]:
        """Logits and rows of pieces, and whether each piece lies in each region.

        A piece is a few table rows, whose scores are averaged.
        """
        table, start, stop = self.sums.design.table, self.sums.start, self.sums.stop
        low, high, edges = int(start.min()), int(stop.max()), np.unique(np.concatenate((start, stop)))
        if high - low > _PIECES * (edges.size - 1):
            # Counted from both ends of an interval, so that the complement of the scores has the same pieces.
            size = np.diff(edges)[:, None]
            inner = np.arange(_PIECES // 2 + 1) * size // _PIECES
            cuts = np.unique(np.concatenate(((edges[:-1, None] + inner).ravel(), (edges[1:, None] - inner).ravel())))
        else:
            cuts = np.arange(low, high + 1)
        n = table.n[low:high].astype(np.float64)
        p = table.score[low:high]
        places = cuts[:-1] - low
        rows = np.add.reduceat(n, places)
        if rows.size < n.size:
            mean = np.add.reduceat(n * p, places) / rows
            rest = np.add.reduceat(n * (1 - p), places) / rows
            x = np.log(mean) - np.log(rest)
        else:
            x = log_odds.logits(p)
        inside = (cuts[:-1] >= start[:, None]) & (cuts[1:] <= stop[:, None])
        return x, rows, inside

    @cached_property
    def _weights(self) -> Floats:
        """Effective rows of each piece in each region, of shape (regions, pieces)."""
        _, rows, inside = self._pieces
        weights: Floats = inside * rows / self.effect[:, None]
        return weights

    @cached_property
    def z(self) -> Floats:
        """Standardized deviation of each region."""
        deviation: Floats = (self.sums.events - self.sums.expected) / np.sqrt(self.sums.variance)
        return deviation

    @cached_property
    def pvalues(self) -> Floats:
        """Two-sided p-value of each region, not adjusted."""
        found: Floats = 2 * ndtr(-np.abs(self.z))
        far = np.flatnonzero(np.abs(self.z) > _HARMLESS)
        if far.size:
            tails = _Tails(self, far)
            low, high = tails(0.0, exact=False)
            found[far] = np.minimum(1.0, 2 * np.minimum(low, high))
        if not self._is_independent:
            found = np.maximum(found, 2 * stdtr(np.maximum(self.sums.degrees, 1.0), -np.abs(self.z)))
        return np.where(self.sums.tested, found, 1.0)

    @cached_property
    def worst(self) -> int:
        """The region with the smallest p-value."""
        return int(np.argmax(self._strength))

    @cached_property
    def _strength(self) -> Floats:
        """Root of a chi-squared variable with the p-value of each region, which orders p-values of 0 too."""
        with np.errstate(divide="ignore"):
            root = np.sqrt(chdtri(1.0, self.pvalues))
        return np.where(np.isfinite(root), root, np.maximum(np.abs(self.z), 37.0))

    @cached_property
    def _tree(self) -> Floats:
        """Correlations along a spanning tree of the regions with the largest correlations."""
        covariance = self.sums.covariance[np.ix_(self.sums.tested, self.sums.tested)]
        spread = np.sqrt(np.maximum(np.diag(covariance), _NOTHING))
        correlation = np.clip(covariance / np.outer(spread, spread), 0.0, 1 - 1e-9)
        best, waiting, found = correlation[0].copy(), np.ones(len(spread), dtype=bool), []
        waiting[0] = False
        for _ in range(len(spread) - 1):
            nearest = int(np.argmax(np.where(waiting, best, -1.0)))
            found.append(best[nearest])
            waiting[nearest] = False
            np.maximum(best, correlation[nearest], out=best)
        return np.array(found)

    def adjusted(self, pvalues: Floats) -> Floats:
        """Return p-values adjusted for the number of regions by Hunter's and Worsley's bound.

        The probability that any of m regions has a p-value of at most p is at most m p less the sum of P(both of two
        regions have one) over the pairs of a spanning tree (Hunter 1976; Worsley 1982), here for normal deviations.
        """
        c, r = -ndtri(np.clip(pvalues, _NOTHING, 1) / 2)[:, None], self._tree
        both = sum(2 * (ndtr(-c) - 2 * owens_t(c, np.sqrt((1 - x) / (1 + x)))) for x in (r, -r))
        most = int(self.sums.tested.sum()) * pvalues
        return np.asarray(np.clip(most - np.sum(both, axis=1), pvalues, np.minimum(most, 1.0)))

    def test(self) -> TestResult | None:
        """Return the component of the omnibus test: the smallest p-value, adjusted for the number of regions.

        None if no region has enough effective rows.
        """
        if not self.sums.tested.any():
            return None
        w = self.worst
        return TestResult(float(self.z[w]), float(self.adjusted(self.pvalues[w : w + 1])[0]), NAME)

    # Equivalence

    def factors(self, limit: "Limit") -> Floats:
        """Return the factor up to which the odds of each region must be shown to be right; infinite if not judged.

        The wide factor counts where the predicted information, or that of the observed rate, is too small for the other
        one: so many events where fewer are expected are judged too.
        """
        rows, events, information = self._effective
        widely, halves = limit.information(_JUDGED_WIDELY), self._halves & (limit.forecasts == 1)
        least = np.where(halves, _FEWEST_JUDGED, widely)
        few = (information < least) & (events * (1 - events / rows) < limit.information(_JUDGED_OBSERVED))
        wide = np.where(few, np.inf, limit.wide_factor)
        found = np.where(information >= limit.information(_JUDGED), limit.factor, wide)
        return np.where(self.sums.tested, found, np.inf)

    @property
    def _halves(self) -> Bools:
        """Which regions have at least half of the rows, and contain no smaller one that has."""
        large = np.flatnonzero(self.sums.rows >= 0.5 * float(self.sums.design.table.n.sum()) * (1 - _ROUNDING))
        start, stop = self.sums.start[large], self.sums.stop[large]
        contains = (start[:, None] <= start) & (stop[:, None] >= stop)
        np.fill_diagonal(contains, False)
        found = np.zeros(self.sums.rows.size, dtype=bool)
        found[large[~contains.any(axis=1)]] = True
        return found

    def factor_pvalues(self, factor: Floats, chosen: Ints) -> Floats:
        """Return the p-values of the hypotheses that the odds of some regions are wrong by their factors.

        The larger of two one-sided tests with exact tails, so that the level holds for few events.
        """
        if not chosen.size:
            return np.zeros(0)
        tails, edge = _Tails(self, chosen), np.log(factor)
        found: Floats = np.maximum(tails(edge, exact=True)[0], tails(-edge, exact=True)[1])
        if not self._is_independent:
            found = np.maximum(found, tails.student(edge, self.sums.degrees[chosen]))
        return found

    def equivalence_pvalue(self, alpha: float, limit: "Limit") -> float:
        """Return the p-value of the hypothesis that a judged region is wrong by the factor, or one with a deviation.

        All must be shown to lie within the factor, so the largest p-value counts (Berger 1982).
        """
        return float(self.factor_pvalues(*self._claimed(alpha, limit)).max(initial=0.0))

    def _claimed(self, alpha: float, limit: "Limit") -> tuple[Floats, Ints]:
        """Return the factors and the regions that must lie within them: judged ones and those with a deviation.

        A region with a significant deviation must lie within the smaller factor.
        """
        factors = self.factors(limit)
        few = np.flatnonzero((factors > limit.factor) & (self.pvalues <= alpha))
        if few.size:
            factors[few[self.adjusted(self.pvalues[few]) <= alpha / limit.forecasts]] = limit.factor
        chosen = np.flatnonzero(np.isfinite(factors))
        return factors[chosen], chosen

    # Results

    def summary(self, alpha: float, level: float, limit: "Limit", *, is_small: bool, whole: TestResult) -> Regions:
        """Return which regions deviate, which one is not shown to lie within its factor, and which are not judged.

        The latter two matter only if `is_small`: the deviation of all rows is within the margin. `whole` is the test of
        calibration in the large.
        """
        factors = self.factors(limit)
        judged, widely = np.isfinite(factors), np.isfinite(factors) & (factors > limit.factor)
        deviating = tuple(self.sums.region(i, level) for i in self._deviating(alpha / limit.forecasts, whole))
        counts = int(self.sums.tested.sum()), int(judged.sum()), int(widely.sum())
        found = Regions(limit.factor, limit.wide_factor, *counts, deviating)
        if not is_small:
            return found
        at_fault = self._at_fault(alpha, limit)
        not_shown = None if at_fault is None else self.sums.region(at_fault, level)
        unjudged = tuple(self.sums.region(i, level) for i in self._largest(np.flatnonzero(~judged)))
        return replace(found, not_shown=not_shown, not_judged=unjudged)

    def _deviating(self, alpha: float, whole: TestResult) -> list[int]:
        """Return disjoint significant regions, unless all rows, or most of them, deviate more significantly."""
        chosen = np.flatnonzero(self.pvalues <= alpha)
        chosen = chosen[self.adjusted(self.pvalues[chosen]) <= alpha] if chosen.size else chosen
        strength = chdtri(1.0, whole.pvalue) ** 0.5 if whole.pvalue > 0 else abs(whole.statistic)
        if not chosen.size or strength >= self._strength[chosen].max():
            return []
        most = self.sums.rows > 0.5 * float(self.sums.design.table.n.sum())
        most &= ~self._halves & (self.sums.stop - self.sums.start > 1)
        if most[chosen[np.argmax(self._strength[chosen])]]:
            return []
        chosen = chosen[~most[chosen]]
        kept: list[int] = []
        for i in chosen[np.argsort(-self._strength[chosen], kind="stable")].tolist():
            if all(self.sums.stop[i] <= self.sums.start[j] or self.sums.start[i] >= self.sums.stop[j] for j in kept):
                kept.append(i)
        return sorted(kept, key=lambda i: -abs(self.sums.events[i] - self.sums.expected[i]))

    def _at_fault(self, alpha: float, limit: "Limit") -> int | None:
        """Return the region that is least shown to lie within the factor; None if all are."""
        factors, chosen = self._claimed(alpha, limit)
        pvalues = self.factor_pvalues(factors, chosen)
        return None if not (pvalues > alpha).any() else int(chosen[np.argmax(pvalues)])

    def _largest(self, chosen: Ints) -> list[int]:
        """Return the regions that lie in no other one of these, in the order of scores."""
        start, stop = self.sums.start[chosen], self.sums.stop[chosen]
        inside = (start[:, None] >= start) & (stop[:, None] <= stop)
        np.fill_diagonal(inside, False)
        return [int(i) for i in chosen[~inside.any(axis=1)]]


class _Tails:
    """Tail probabilities of the events of some regions, by saddlepoint approximation.

    Signed root r of the deviance with Barndorff-Nielsen's correction r + log(u / r) / r, u = f(t) sqrt(K''(t)) with t
    the tilt. For whole numbers f is 1 - exp(-t) for P(X >= k) and exp(t) - 1 for P(X <= k) (Daniels 1987); the mean of
    1 / f is that of 2 tanh(t / 2), which gives mid-p tails. They are exact where no row, or every row, has the event.
    """

    def __init__(self, regions: RegionTests, chosen: Ints) -> None:
        rows, events, self.information = (column[chosen] for column in regions._effective)
        x, _, inside = regions._pieces
        used = inside[chosen].any(axis=0)
        self._x, self._n = x[used], regions._weights[np.ix_(chosen, used)]
        self.rows, self.events = rows, events
        self._none, self._all = events <= 0, events >= rows
        least = np.minimum(0.5, rows / 2)
        self.error, self.curvature = self._solve(np.clip(events, least, rows - least))
        self._at_error = self._cumulant(self.error)

    def _solve(self, target: Floats) -> tuple[Floats, Floats]:
        """Return the log-odds error of each region, and the variance of its events if the odds are so."""
        p = expit(self._x)
        expected, rest = np.einsum("ij,j->i", self._n, p), np.einsum("ij,j->i", self._n, expit(-self._x))
        d = np.log(target) - np.log(self.rows - target) - np.log(expected) + np.log(rest)
        for _ in range(_NEWTON_STEPS):
            q = expit(self._x + d[:, None])
            gap = target - np.einsum("ij,ij->i", self._n, q)
            slope = np.maximum(np.einsum("ij,ij->i", self._n, q * (1 - q)), 1e-300)
            step = np.clip(gap / slope, -2.0, 2.0)
            d = d + step
            if np.abs(step).max() < 1e-9 * (1 + np.abs(d).max()):
                break
        return d, slope

    def _cumulant(self, d: Floats) -> Floats:
        """Return log E exp(d X) if the scores are right."""
        shifted = np.logaddexp(0.0, self._x + d[:, None])
        shifted -= np.logaddexp(0.0, self._x)
        return np.asarray(np.einsum("ij,ij->i", self._n, shifted))

    def __call__(self, d: Floats | float, *, exact: bool) -> tuple[Floats, Floats]:
        """Return P(X <= count) and P(X >= count) if all log-odds are wrong by d; mid-p unless `exact`."""
        gap, level = self.error - d, self._cumulant(np.broadcast_to(d, self.error.shape))
        deviance = 2 * np.maximum(gap * np.clip(self.events, 0.0, self.rows) - self._at_error + level, 0.0)
        r = np.sign(gap) * np.sqrt(deviance)
        if exact:
            low, high = ndtr(self._corrected(r, np.expm1(gap))), ndtr(-self._corrected(r, -np.expm1(-gap)))
        else:
            middle = self._corrected(r, 2 * np.tanh(gap / 2))
            low, high = ndtr(middle), ndtr(-middle)
        part, shift = 1.0 if exact else 0.5, np.broadcast_to(d, self.error.shape)[:, None]
        if self._none.any():
            nothing = np.exp(-np.einsum("ij,ij->i", self._n, np.logaddexp(0.0, self._x + shift)))
            low, high = np.where(self._none, part * nothing, low), np.where(self._none, 1.0, high)
        if self._all.any():
            full = np.exp(-np.einsum("ij,ij->i", self._n, np.logaddexp(0.0, -self._x - shift)))
            low, high = np.where(self._all, 1.0, low), np.where(self._all, part * full, high)
        return low, high

    def _corrected(self, r: Floats, t: Floats) -> Floats:
        """Return r + log(u / r) / r, with u the root of the variance times a function of the tilt of whole numbers."""
        u = t * np.sqrt(self.curvature)
        far = (np.abs(r) > 1e-3) & (u * r > 0)
        found = r.copy()
        found[far] += np.log(u[far] / r[far]) / r[far]
        return found

    def student(self, edge: Floats, degrees: Floats) -> Floats:
        """Return the larger p-value of two t tests of the log-odds error against both edges."""
        away = (edge - np.abs(self.error)) * np.sqrt(self.curvature)
        return np.asarray(stdtr(np.maximum(degrees, 1.0), -away))


def _cut(sums: Floats, weight: float) -> tuple[Ints, Ints]:
    """Return first and last rows of the regions, given the cumulated rows, events, expected events and information."""
    n, _, e, v = sums
    size = n.size - 1
    if size <= _FEW_SCORES:
        every = np.arange(size)
        start = np.concatenate((every, np.zeros(size - 1, dtype=np.int64), every[1:]))
        stop = np.concatenate((every + 1, every[1:], np.full(size - 1, size)))
        return _distinct(start, stop, size)
    least = _FEWEST * weight
    share = 0.5 ** np.arange(1, _MOST_CUTS)
    starts, stops = [], []
    for total, always in ((n, _ALWAYS_CUT), (v, 0)):
        bottom, top = _from_bottom(total, share), _from_top(total, share)
        for first, last in ((np.zeros_like(bottom), bottom), (top, np.full_like(top, size))):
            expected, rows = e[last] - e[first], n[last] - n[first]
            enough = np.minimum(expected, rows - expected) >= least * (1 - _ROUNDING)
            enough[:always] = True
            count = int(np.argmin(np.append(enough, False)))
            starts.append(first[:count])
            stops.append(last[:count])
    return _distinct(np.concatenate(starts), np.concatenate(stops), size)


def _distinct(start: Ints, stop: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct regions but the whole."""
    code = np.unique(start * (size + 1) + stop)
    start, stop = code // (size + 1), code % (size + 1)
    kept = (stop - start < size) & (stop > start)
    return start[kept], stop[kept]


def _common(sums: Floats, start: Ints, stop: Ints) -> Floats:
    """Return for each pair of regions the sum over the table rows that both contain, from cumulated sums."""
    low, high = np.maximum.outer(start, start), np.minimum.outer(stop, stop)
    return np.asarray(np.maximum(sums[high] - sums[np.minimum(low, high)], 0.0))


def _model_variance(design: Design, start: Ints, stop: Ints) -> Floats:
    """Return the variance of each residual sum if the model is calibrated and rows are independent."""
    table, p = design.table, design.table.score
    terms = table.n * p * (1 - p)
    if table.importance:
        squares = event_squares(table)
        pairs = ((table.k, squares), (table.n - table.k, row_squares(table) - squares))
        default = log_odds.mean_weight(table)
        events, others = (float(b.sum() / a.sum()) if a.sum() > 0 else default for a, b in pairs)
        terms = terms * (events * (1 - p) + others * p)
    sums = np.concatenate(([0.0], np.cumsum(terms)))
    return np.asarray(sums[stop] - sums[start])


def _weighted(design: Design, start: Ints, stop: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Return variance, degrees of freedom, effective rarer rows and covariance of residual sums of weighted rows."""
    table, p = design.table, design.table.score
    squares = event_squares(table)
    others, rest = table.n - table.k, np.maximum(row_squares(table) - squares, 0.0)
    fourth = np.zeros(p.size)
    for weight, square, distance in ((table.k, squares, 1 - p), (others, rest, p)):
        mean = np.divide(square, weight, out=np.zeros(p.size), where=weight > 0)
        fourth += square * mean**2 * distance**4
    sums = np.zeros((6, p.size + 1))
    columns = (squared_residuals(table, p), fourth, table.k, squares, others, rest)
    for total, column in zip(sums, columns, strict=True):
        np.cumsum(column, out=total[1:])
    variance, fourths, *counts = sums[:, stop] - sums[:, start]
    degrees = np.divide(variance**2, fourths, out=np.ones(start.size), where=fourths > 0) - 1
    effective = [np.divide(a**2, b, out=np.zeros(start.size), where=b > 0) for a, b in (counts[:2], counts[2:])]
    return variance, degrees, np.minimum(*effective), _common(sums[0], start, stop)


def _clustered(design: Design, start: Ints, stop: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the same of rows in clusters: the variance is that of the sums of clusters about their mean."""
    rows, table = design.rows, design.table
    assert rows is not None
    assert rows.cluster is not None
    edges = np.unique(np.concatenate((start, stop)))
    place = rows.places[0]
    own = np.flatnonzero((place >= edges[0]) & (place < edges[-1]))
    own = own[np.argsort(rows.cluster[own], kind="stable")]
    cluster, event, p = rows.cluster[own], rows.event[own], table.score[place[own]]
    piece = np.searchsorted(edges, place[own], side="right") - 1
    weight = np.ones(p.size) if rows.weight is None else rows.weight[own].astype(np.float64)
    columns = (weight * (event - p), weight * p * (1 - p), event, 1 - event)
    count, pieces = rows.n_draws, edges.size - 1
    first, last = np.searchsorted(edges, start), np.searchsorted(edges, stop)
    squares, (total, whole, spread, events, others) = np.zeros((start.size,) * 2), np.zeros((5, start.size))
    step = max(1, _BLOCK // pieces)
    for low in range(0, count, step):
        chosen = slice(*np.searchsorted(cluster, (low, low + step)).tolist())
        label, size = (cluster[chosen] - low) * pieces + piece[chosen], min(step, count - low) * pieces
        residual, information, *outcomes = (
            _between(np.bincount(label, weights=column[chosen], minlength=size).reshape(-1, pieces), first, last)
            for column in columns
        )
        squares += gram(residual, residual)
        total += residual.sum(axis=0)
        whole += information.sum(axis=0)
        spread += np.sum(information**2, axis=0)
        events += np.count_nonzero(outcomes[0] > 0, axis=0)
        others += np.count_nonzero(outcomes[1] > 0, axis=0)
    covariance = (squares - np.outer(total, total) / count) * (count / (count - 1))
    degrees = np.divide(whole**2, spread, out=np.ones(start.size), where=spread > 0) - 1
    return np.diag(covariance).copy(), degrees, np.minimum(events, others), covariance


def _between(pieces: Any, first: Ints, last: Ints) -> Floats:
    """Return for each row the sums of its columns from `first` to before `last`."""
    total = np.cumsum(np.pad(pieces, ((0, 0), (1, 0))), axis=1)
    return np.asarray(total[:, last] - total[:, first], dtype=np.float64)
