"""`Design`: how rows depend on each other (independent, weighted, clustered), and covariances of residual sums."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from calibrant._support.arrays import Floats, Ints, in_pieces
from calibrant._support.lazy import cached_property
from calibrant._support.logistic import EPS
from calibrant.inference.paired_rows import PairedRows, check_clusters
from calibrant.metrics import log_odds
from calibrant.metrics.bins import EqualInformation, information_bins
from calibrant.metrics.log_odds import Logits, LogOddsBins, ScoreLogits
from calibrant.tables.score_table import ScoreTable, bernoulli_variance, event_squares, row_squares, squared_residuals

_CLUSTERS_PER_BIN = 5
# Least information per fine bin, and largest number of fine bins.
_MIN_FINE_INFORMATION = 8
_MAX_FINE_BINS = 512
MIN_WEIGHTED_EVENTS = 8  # effective events, and other rows, per bin of weighted rows


@dataclass(frozen=True, eq=False)
class Design:
    """A table and, where rows are in clusters, the rows.

    Residuals are w (y - c) with c a function of the score. Rows of a table are independent: their variance is
    Bernoulli, times mean weights. Rows in clusters may depend on each other inside a cluster: the covariance is that of
    the sums of the clusters.
    """

    table: ScoreTable
    rows: PairedRows | None = None

    def __post_init__(self) -> None:
        if self.rows is not None:
            check_clusters(self.rows.n_draws)

    def forget(self) -> None:
        """Drop the arrays that were computed; they are computed again on demand."""
        for name in vars(self).keys() - {"table", "rows"}:
            del vars(self)[name]

    @property
    def is_independent(self) -> bool:
        """Whether rows are independent and have equal weights."""
        return self.rows is None and not self.table.importance

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None where rows are independent."""
        return None if self.rows is None else self.rows.n_draws

    @cached_property
    def logits(self) -> ScoreLogits:
        """Logits of the scores, which all bins share."""
        return ScoreLogits(self.table)

    @cached_property
    def cox_logits(self) -> Logits:
        """Logits of the clipped scores, for Cox's calibration."""
        return Logits.from_table(self.table, EPS)

    @cached_property
    def cox_line(self) -> tuple[float, float] | None:
        """Slope and intercept of Cox's calibration; None where they do not exist."""
        return self.cox_logits.fit(self.table)

    @cached_property
    def coarse_bins(self) -> LogOddsBins:
        """Bins of equal information, as many as `metrics.bins.information_bins` gives and the design allows."""
        return _equal_information_bins(self.logits, self._limit(information_bins(self.information)))

    @cached_property
    def fine_bins(self) -> LogOddsBins | None:
        """Fine bins of equal information; None where they would be at most twice as many as coarse ones."""
        coarse = self._limit(information_bins(self.information))
        count = self._limit(fine_bin_count(self.information))
        if count <= 2 * coarse:
            return None
        fine = _equal_information_bins(self.logits, count)
        return fine if len(fine) > 2 * coarse else None

    def _limit(self, count: int) -> int:
        """Return at most `count` bins, and at most one per five clusters."""
        return count if self.n_clusters is None else min(count, self.n_clusters // _CLUSTERS_PER_BIN)

    @cached_property
    def degrees(self) -> float:
        """Degrees of freedom of a variance: effective clusters, or effective rows of the rarer outcome, less 1.

        Infinite for counts.
        """
        if self.rows is not None:
            return max(self.effective_clusters - 1, 1.0)
        return max(self.effective_rarer - 1, 1.0) if self.table.importance else float("inf")

    @cached_property
    def effective_clusters(self) -> float:
        """Number of clusters of equal information with the same variance; infinite where rows are independent."""
        if self.rows is None:
            return float("inf")
        p = self.table.score[self.rows.places[0]]
        share = p * (1 - p) if self.rows.weight is None else self.rows.weight * p * (1 - p)
        sums = np.bincount(self._code, weights=share, minlength=self.rows.n_draws)
        return float(sums.sum() ** 2 / np.sum(sums**2)) if sums.any() else 1.0

    @cached_property
    def effective_rarer(self) -> float:
        """Effective number of independent observations of the rarer outcome: rows, or clusters that contain it.

        Weighted rows count by their share of the variance, (sum of r^2)^2 / (sum of r^4) with r = w (y - p): few large
        weights are few observations. Rows with the same score and outcome are assumed to have equal weights.
        """
        if self.rows is not None:
            each = (np.unique(self._code[self.rows.event == outcome]).size for outcome in (0, 1))
            return float(min(each))
        table, p = self.table, self.table.score
        squares = event_squares(table)
        rest = row_squares(table) - squares
        found = []
        for weight, square, distance in ((table.k, squares, 1 - p), (table.n - table.k, rest, p)):
            mean = np.divide(square, weight, out=np.zeros(p.size), where=weight > 0)
            second, fourth = np.sum(square * distance**2), np.sum(square * mean**2 * distance**4)
            found.append(float(second**2 / fourth) if fourth > 0 else 0.0)
        return min(found)

    @property
    def effective_size(self) -> float:
        """Number of independent observations: rows, effective rows by their weights, or clusters."""
        if self.rows is not None:
            return float(self.rows.n_draws)
        return float(self.table.n.sum()) ** 2 / float(row_squares(self.table).sum())

    @cached_property
    def effective_count(self) -> float:
        """Observations of the rarer outcome: rows, effective rows by their weights, or clusters that contain it."""
        if self.rows is not None:
            return self.effective_rarer
        table = self.table
        k, n = float(table.k.sum()), float(table.n.sum())
        squares, every = float(event_squares(table).sum()), float(row_squares(table).sum())
        pairs = ((k, squares), (n - k, every - squares))
        return min(total**2 / square if square > 0 else 0.0 for total, square in pairs)

    def influence_variance(self, of_others: Floats, of_events: Floats) -> float:
        """Return the variance of the sum of weight * influence; see `influence_moments`."""
        return self.influence_moments(of_others, of_events)[0]

    def influence_moments(self, of_others: Floats, of_events: Floats) -> tuple[float, float]:
        """Return variance and skewness of the sum of weight * influence, given that of rows without and with the event.

        Influences are one value per score, and add up to 0. Rows are independent, or their clusters are. A table knows
        no cubes of weights: those of one score and outcome count as equal.
        """
        table = self.table
        if self.rows is not None:
            place = self.rows.places[0]
            values = np.where(self.rows.event == 1, of_events[place], of_others[place])
            values = values if self.rows.weight is None else values * self.rows.weight
            sums = np.bincount(self._code, weights=values, minlength=self.rows.n_draws)
            sums = sums - sums.mean()
            return _moments(float(np.sum(sums**2)), float(np.sum(sums**3)), float(sums.size))
        events, every = event_squares(table), row_squares(table)
        pairs = ((table.k, events, of_events), (table.n - table.k, every - events, of_others))
        square = sum(float(np.sum(in_pieces(lambda w2, x: w2 * x**2, w2, x))) for _, w2, x in pairs)
        cube = sum(float(np.sum(in_pieces(_cubes, *columns))) for columns in pairs)
        return _moments(square, cube, self.effective_size)

    @cached_property
    def information(self) -> float:
        """Effective information: that of independent rows of equal weight with the same variance.

        With clusters it is divided by the design effect of the sum of all residuals, if that is above 1.
        """
        found = log_odds.effective_information(self.logits)
        if self.rows is None or found == 0:
            return found
        sums = self.cluster_sums(self.table.score)
        whole = float(self.logits.information.sum())
        spread = float(np.sum((sums - sums.mean()) ** 2)) * sums.size / (sums.size - 1)
        return min(found, whole**2 / spread) if spread > 0 else found

    def cluster_sums(self, fitted: Floats, contrast: Floats | None = None) -> Floats:
        """Return for each cluster the sum of contrast * weight * (event - fitted)."""
        residual = self._residuals(fitted, contrast)
        assert self.rows is not None
        return np.bincount(self._code, weights=residual, minlength=self.rows.n_draws).astype(np.float64)

    def cluster_means(self, values: Floats) -> Floats:
        """Return the weighted mean of one value per row in each cluster."""
        assert self.rows is not None
        weight = np.ones(values.size) if self.rows.weight is None else self.rows.weight.astype(np.float64)
        sums = [np.bincount(self._code, weights=w, minlength=self.rows.n_draws) for w in (weight * values, weight)]
        return np.asarray(sums[0] / sums[1], dtype=np.float64)

    def cluster_bin_sums(self, bins: LogOddsBins, fitted: Floats) -> Floats:
        """Return for each cluster and bin the sum of weight * (event - fitted)."""
        assert self.rows is not None
        label = self._code * len(bins) + bins.labels[self.rows.places[0]]
        size = self.rows.n_draws * len(bins)
        sums = np.asarray(np.bincount(label, weights=self._residuals(fitted, None), minlength=size), dtype=np.float64)
        return sums.reshape(self.rows.n_draws, len(bins))

    def covariance(self, bins: LogOddsBins, d: float | None = 0.0) -> Floats:
        """Return the covariance of the residual sums of bins around the scores shifted by `d` in log-odds.

        None shifts each bin by its log-odds error. With clusters the larger of theirs and that of independent rows.
        """
        independent = np.diag(bins.fitted_variance if d is None else bins.variance(d))
        if self.rows is None:
            return independent
        sums = self.cluster_bin_sums(bins, bins.fitted if d is None else bins.shifted(d))
        sums -= sums.mean(axis=0)
        found: Floats = sums.T @ sums * (sums.shape[0] / (sums.shape[0] - 1))
        return found if np.trace(found) >= np.trace(independent) else independent

    def score_information(self, columns: Floats, fitted: Floats) -> Floats:
        """Return the information of a logistic regression: sums of n q (1 - q) times products of two columns."""
        found: Floats = (columns * bernoulli_variance(self.table.n, fitted)) @ columns.T
        return found

    def score_covariance(self, columns: Floats, fitted: Floats, information: Floats | None = None) -> Floats:
        """Return the covariance of the sums of column * weight * (event - fitted), one sum per column of scores.

        Robust, by clusters where there are any; for counts at least that of independent Bernoulli outcomes, which is
        the `score_information`, if it is known.
        """
        if self.rows is not None:
            return self.cluster_score_covariance(columns, fitted)
        robust: Floats = (columns * squared_residuals(self.table, fitted)) @ columns.T
        if self.table.importance:
            return robust
        # Squared residuals of fitted rows are too small; counts have at least the Bernoulli variance.
        bernoulli = self.score_information(columns, fitted) if information is None else information
        return robust if np.trace(robust) > np.trace(bernoulli) else bernoulli

    def cluster_score_covariance(self, columns: Iterable[Floats], fitted: Floats) -> Floats:
        """Return the same covariance by the sums of clusters; columns may be computed one by one."""
        sums = np.stack([self.cluster_sums(fitted, column) for column in columns])
        centred = sums - sums.mean(axis=1, keepdims=True)
        found: Floats = centred @ centred.T * (sums.shape[1] / (sums.shape[1] - 1))
        return found

    @property
    def _code(self) -> Ints:
        assert self.rows is not None
        assert self.rows.cluster is not None
        return self.rows.cluster

    def _residuals(self, fitted: Floats, contrast: Floats | None) -> Floats:
        rows = self.rows
        assert rows is not None
        place = rows.places[0]
        residual: Floats = rows.event - fitted[place]
        if contrast is not None:
            residual = residual * contrast[place]
        return residual if rows.weight is None else residual * rows.weight


def _cubes(w: Floats, w2: Floats, x: Floats) -> Floats:
    """Return the sum of cubes of weights * influence, with the mean weight of each score."""
    return np.divide(w2**2, w, out=np.zeros(x.size), where=w > 0) * x**3


def _moments(square: float, cube: float, m: float) -> tuple[float, float]:
    """Return variance and skewness of a sum of m independent terms from the sums of their squares and cubes."""
    skewness = cube / square**1.5 if square > 0 else 0.0
    return (square * m / (m - 1) if m > 1 else square), skewness


def fine_bin_count(information: float) -> int:
    """Return the number of fine bins for so much information."""
    return min(_MAX_FINE_BINS, int(information / _MIN_FINE_INFORMATION))


def _equal_information_bins(scores: ScoreLogits, count: int) -> LogOddsBins:
    """Return at most `count` bins; weighted ones have at least 8 effective events and 8 other effective rows."""
    table = scores.table
    bins = scores.bins(EqualInformation(max(count, 1))(table).start)
    if table.w2 is None or len(bins) == 1:
        return bins
    squares = event_squares(table)
    columns = (table.k, squares, table.n - table.k, table.w2 - squares)
    sums = np.stack([bins.total(column) for column in columns], axis=1)
    start, inside = [0], np.zeros(len(columns))
    for begin, own in zip([*bins.start[1:].tolist(), None], sums, strict=True):
        inside = inside + own
        if begin is not None and _are_enough(*inside):
            start.append(begin)
            inside = np.zeros(len(columns))
    if len(start) > 1 and not _are_enough(*inside):  # merge the last bin with the one below
        start.pop()
    return scores.bins(np.array(start, dtype=np.int64))


def _are_enough(events: float, event_squares: float, others: float, other_squares: float) -> bool:
    return min(events**2 - MIN_WEIGHTED_EVENTS * event_squares, others**2 - MIN_WEIGHTED_EVENTS * other_squares) >= 0
