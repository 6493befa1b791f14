"""Multicalibration error: the largest cumulative calibration error of a set of segments, with its null distribution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.progress import progress_bar
from calibrant.evaluation.audit.features import COARSE_CODES
from calibrant.evaluation.audit.residual_blocks import AuditRows
from calibrant.inference.intervals import quantiles, resampling_pvalue
from calibrant.results.audit import MulticalibrationError

MOST_SEGMENTS = 5_000
MOST_ROWS = 1_000_000  # more rows are sampled
LEAST_ROWS, LEAST_SKEWED_ROWS = 10, 50  # of a segment
ROWS_PER_SQUARED_SKEWNESS = 50  # rows of a segment with skewed errors in the p-value
SCORE_RANKS = 2**16  # cumulative differences are evaluated between so many groups of neighbouring scores at most
GROUPS = 256  # of neighbouring scores, between which null replicates are evaluated
NULL_WORK = 200_000_000  # rows x sets of features x replicates
LEAST_NULL_ROWS = 2_000
_AT_ONCE = 100  # replicates
_SIGNS = (-1.0, 1.0, 0.5)  # two values with mean 0 and variance 1, and the probability of the first
_MAMMEN = ((1 - 5**0.5) / 2, (1 + 5**0.5) / 2, (5 + 5**0.5) / 10)  # the same with a third moment of 1


def multicalibration_error(
    sample: AuditRows, *, depth: int, n_resamples: int, level: float, seed: SeedSequence, progress: bool | None
) -> MulticalibrationError:
    """Return the multicalibration error of rows, with its null distribution.

    Null replicates of a calibrated forecast: outcomes are drawn with the scores as probabilities; residuals in clusters
    have random signs, one per cluster. Residuals of numbers and those with weights are multiplied by the numbers of
    Mammen (1993), one per row or cluster, which keep variance and skewness. Replicates use so many rows, drawn at
    random, that the work is bounded: in standard deviations the distribution hardly depends on the number of rows. The
    p-value compares errors between 256 groups of neighbouring scores. Of numbers and with weights it takes all rows and
    segments of at least fifty rows and fifty times the squared skewness of the errors, and as variance the mean squared
    error of all rows with neighbouring predictions: errors of counts are skewed, and so are those with weights that
    depend on the outcome, so a sum of few of them depends on its own sum of squares.
    """
    if len(sample) > MOST_ROWS:
        # One row of each of so many runs of neighbouring rows.
        places = (np.arange(MOST_ROWS) + default_rng(seed).random(MOST_ROWS)) * (len(sample) / MOST_ROWS)
        sample = sample.part(np.minimum(places.astype(np.int64), len(sample) - 1))
    sets, scores = _feature_sets(sample, depth), _Scores.rank(sample)
    found = [_largest_errors(sample, each, scores) for each in sets]
    segments = [name for names, *_ in found for name in names]
    sigmas, grouped = (np.concatenate([each[i] for each in found]) for i in (1, 2))
    if not sigmas.size or not grouped.size:
        return MulticalibrationError(*(math.nan,) * 6, "", len(sample), 0, 0)
    best = int(np.argmax(sigmas))
    scale, sigma = _scale(sample), float(sigmas[best])
    tested = [each[3] for each in found]
    null = _null(sample, list(zip(sets, tested, strict=True)), scores, n_resamples, seed, progress)
    low, high = quantiles(scale * null, ((1 - level) / 2, (1 + level) / 2))
    pvalue = resampling_pvalue(null, float(grouped.max()))
    known = (scale * sigma, sigma, scale * float(null.mean()), low, high, pvalue)
    return MulticalibrationError(*known, segments[best], len(sample), len(segments), null.size, scale * null)


def _feature_sets(sample: AuditRows, depth: int) -> list[tuple[int, ...]]:
    """Return sets of given features up to the largest depth at which there are at most 5,000 segments."""
    sizes = [len(feature.coarse) for feature in sample.features[: sample.n_features]]
    found: list[tuple[int, ...]] = [()]
    count = 1
    for length in range(1, depth + 1):
        more = list(combinations(range(sample.n_features), length))
        count += sum(math.prod(sizes[i] for i in each) for each in more)
        if count > MOST_SEGMENTS:
            break
        found += more
    return found


@dataclass(frozen=True, eq=False)
class _Scores:
    """For each row the rank of its score, and the rank at which each group of neighbouring scores ends."""

    ranks: Any  # of int32
    width: int
    ends: Ints
    spread: Floats | None = None  # of skewed errors: mean squared residual in each group

    @classmethod
    def rank(cls, sample: AuditRows) -> "_Scores":
        score = np.asarray(sample.rows.forecasts[0].values)
        distinct = np.unique(score)
        if distinct.size > SCORE_RANKS:
            distinct = distinct[np.linspace(0, distinct.size - 1, SCORE_RANKS).astype(np.int64)]
        ranks = np.searchsorted(distinct, score).astype(np.int32)
        reached = np.cumsum(np.bincount(ranks, minlength=distinct.size))
        cuts = np.searchsorted(reached, np.arange(1, GROUPS + 1) / GROUPS * reached[-1] - 1e-9)
        found = cls(ranks, distinct.size, np.unique(cuts))
        return replace(found, spread=found._mean_squares(sample)) if sample.has_skewed_errors else found

    def _mean_squares(self, sample: AuditRows) -> Floats:
        totals = np.zeros((2, self.ends.size))
        for place in sample.places(None):
            number, value, _, _ = sample.residuals(place)
            group = self.groups(place)
            for i, weights in enumerate((value**2, number)):
                totals[i] += np.bincount(group, weights=weights, minlength=self.ends.size)
        return np.asarray(totals[0] / np.maximum(totals[1], 1e-300))

    def groups(self, place: Ints) -> Ints:
        """Return the group of the score of each row."""
        return np.asarray(np.searchsorted(self.ends, self.ranks[place]), dtype=np.int64)


def _residuals(sample: AuditRows, place: Ints, scores: _Scores | None = None) -> tuple[Floats, Floats, Floats]:
    """Return number of rows, residuals and variances; impossible outcomes have no variance, as the definition says.

    With scores the variance of skewed errors is that of all rows with neighbouring predictions.
    """
    number, value, variance, _ = sample.residuals(place)
    if scores is not None and scores.spread is not None:
        return number, value, number * scores.spread[scores.groups(place)]
    if sample.terms.is_share:
        score = np.asarray(sample.rows.forecasts[0].values)[place]
        variance = np.where((score > 0) & (score < 1), variance, 0.0)
    return number, value, variance


def _cells(codes: Any, each: Sequence[int], place: Any) -> Ints:
    """Return for each row the number of its combination of coarse codes."""
    found = np.zeros(len(place), dtype=np.int64)
    for feature in each:
        found = found * COARSE_CODES + codes[feature][place]
    return found


def _largest_errors(
    sample: AuditRows, each: tuple[int, ...], scores: _Scores
) -> tuple[list[str], Floats, Floats, Ints]:
    """Return the segments of a set of features and their errors in standard deviations, exact and by groups.

    The errors by groups are those of the segments that enter the p-value, whose numbers come last.
    """
    size, width = COARSE_CODES ** len(each), scores.width
    total, rows, variance = np.zeros(size * width), np.zeros(size), np.zeros(size)
    for place in sample.places(None):
        number, value, own = _residuals(sample, place, scores)
        cell = _cells(sample.coarse, each, place)
        total += np.bincount(cell * width + scores.ranks[place], weights=value, minlength=size * width)
        rows += np.bincount(cell, weights=number, minlength=size)
        variance += np.bincount(cell, weights=own, minlength=size)
    path = np.cumsum(total.reshape(size, width), axis=1)
    tested = np.flatnonzero(_is_tested(sample, each, rows, variance))
    grouped = _reach(path[tested][:, scores.ends]) / np.sqrt(variance[tested])
    if sample.has_skewed_errors:
        variance = _defined_variance(sample, each, size)
    used = np.flatnonzero((rows >= LEAST_ROWS) & (variance > 0))
    exact = _reach(path[used]) / np.sqrt(variance[used])
    return [_segment_text(sample, each, int(cell)) for cell in used], exact, grouped, tested


def _is_tested(sample: AuditRows, each: tuple[int, ...], rows: Floats, variance: Floats) -> Bools:
    """Return which segments enter the p-value; replicates do not describe few skewed errors. All rows always enter."""
    least = LEAST_ROWS
    if each and sample.has_skewed_errors:
        least = max(LEAST_SKEWED_ROWS, int(ROWS_PER_SQUARED_SKEWNESS * sample.skewness**2))
    return np.asarray((rows >= least) & (variance > 0))


def _reach(path: Floats) -> Floats:
    """Return the range of cumulative sums, which begin at 0."""
    return np.asarray(np.maximum(path.max(axis=1), 0) - np.minimum(path.min(axis=1), 0))


def _defined_variance(sample: AuditRows, each: tuple[int, ...], size: int) -> Floats:
    """Return the variance of the sum of residuals of each segment, by the definition of the error."""
    if not sample.terms.is_share:
        return _neighbour_variance(sample, each, size)
    variance = np.zeros(size)
    for place in sample.places(None):
        cell = _cells(sample.coarse, each, place)
        variance += np.bincount(cell, weights=_residuals(sample, place)[2], minlength=size)
    return variance


def _neighbour_variance(sample: AuditRows, each: tuple[int, ...], size: int) -> Floats:
    """Return the variance of the sum of residuals of each segment, from differences of neighbours."""
    cell = _cells(sample.coarse, each, np.arange(len(sample)))
    order = np.lexsort((sample.rows.forecasts[0].values, cell))
    value, cell = sample.residuals(order)[1], cell[order]
    same = cell[1:] == cell[:-1]
    squares = np.bincount(cell[1:][same], weights=np.diff(value)[same] ** 2, minlength=size) / 2
    count = np.bincount(cell, minlength=size)
    return np.asarray(squares * count / np.maximum(count - 1, 1))


def _scale(sample: AuditRows) -> float:
    """Return the standard deviation of the mean residual of all rows."""
    variance = total = 0.0
    for place in sample.places(None):
        weight = sample.rows.weight
        variance += float(_residuals(sample, place)[2].sum())
        total += place.size if weight is None else float(weight.values[place].sum())
    if not sample.terms.is_share:
        variance = float(_neighbour_variance(sample, (), 1)[0])
    return math.sqrt(variance) / total


def _segment_text(sample: AuditRows, each: tuple[int, ...], cell: int) -> str:
    texts = []
    for feature in reversed(each):
        cell, code = divmod(cell, COARSE_CODES)
        texts.append(next(c.text for c in sample.features[feature].coarse if c.codes == (code,)))
    return " and ".join(reversed(texts)) or "all rows"


def _null(
    sample: AuditRows,
    sets: Sequence[tuple[tuple[int, ...], Ints]],
    scores: _Scores,
    n_resamples: int,
    seed: SeedSequence,
    progress: bool | None,
) -> Floats:
    """Return null replicates of the largest error between groups of scores, in standard deviations."""
    rng = default_rng(seed)
    count = min(len(sample), max(LEAST_NULL_ROWS, NULL_WORK // (len(sets) * n_resamples)))
    place = np.arange(len(sample)) if count == len(sample) else np.sort(rng.choice(len(sample), count, replace=False))
    draw, best = _Drawing(sample, place), np.zeros(n_resamples)
    counted = [_CellSums.of_rows(sample, *each, place, scores) for each in sets if each[1].size]
    blocks = [slice(i, min(i + _AT_ONCE, n_resamples)) for i in range(0, n_resamples, _AT_ONCE)]
    for block in progress_bar(blocks, len(blocks), "resampling (null)", show=progress):
        residuals = draw.replicates(rng, block.stop - block.start)
        for each in counted:
            best[block] = np.maximum(best[block], each.largest(residuals))
    return best


@dataclass(frozen=True, eq=False)
class _CellSums:
    """Sums of rows by segment and group of scores, and the standard deviation of each segment."""

    matrix: Any  # sparse: (groups x segments) x rows
    deviation: Floats

    @classmethod
    def of_rows(
        cls, sample: AuditRows, each: tuple[int, ...], tested: Ints, place: Ints, scores: _Scores
    ) -> "_CellSums":
        """Return the sums of the segments that are tested."""
        from scipy.sparse import csr_array

        cell, size = _cells(sample.coarse, each, place), COARSE_CODES ** len(each)
        groups, width = scores.groups(place), scores.ends.size
        variance = _residuals(sample, place, scores)[2]
        spread = np.asarray(np.bincount(cell, weights=variance, minlength=size), dtype=np.float64)
        usable = np.isin(np.arange(size), tested) & (spread > 0)
        one = (np.ones(place.size), (groups * size + cell, np.arange(place.size)))
        matrix = csr_array(one, shape=(size * width, place.size))
        return cls(matrix, np.where(usable, np.sqrt(np.maximum(spread, 1e-300)), np.inf))

    def largest(self, residuals: Floats) -> Floats:
        """Return for each replicate the largest error of the segments; `residuals` are rows x replicates."""
        sums = (self.matrix @ residuals).reshape(-1, self.deviation.size, residuals.shape[1])
        path = np.zeros(sums.shape[1:])
        high, low = path.copy(), path.copy()
        for group in sums:  # whole rows of replicates at once, which cumsum over an axis does not do
            path += group
            np.maximum(high, path, out=high)
            np.minimum(low, path, out=low)
        return np.asarray(((high - low) / self.deviation[:, None]).max(axis=0))


class _Drawing:
    """Null replicates of the residuals of rows."""

    def __init__(self, sample: AuditRows, place: Ints) -> None:
        self.sample, self.place = sample, place
        self.score = np.asarray(sample.rows.forecasts[0].values)[place].astype(np.float64)
        self.residual = sample.residuals(place)[1]
        self.cluster = sample.rows.part(place).cluster_codes

    def replicates(self, rng: np.random.Generator, count: int) -> Floats:
        """Return residuals of a calibrated forecast, rows x replicates."""
        rows, score = self.sample.rows, self.score[:, None]
        if self.cluster is None and not rows.importance and self.sample.terms.is_share:
            if rows.weight is None:
                return np.asarray((rng.random((self.score.size, count)) < score) - score)
            number = rows.weight.values[self.place].astype(np.int64)[:, None]
            return np.asarray(rng.binomial(number, score, (self.score.size, count)) - number * score)
        units = self.place.size if self.cluster is None else int(self.cluster.max()) + 1
        low, high, share = _MAMMEN if self.sample.has_skewed_errors else _SIGNS
        times = np.where(rng.random((units, count)) < share, low, high)
        return np.asarray(self.residual[:, None] * (times if self.cluster is None else times[self.cluster]))
