"""Cost-aware temperature scaling and Platt scaling: the least expected calibration cost."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant._support import logistic
from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError
from calibrant._support.logistic import EPS, check_eps, expit, logit
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.metrics.bins import Bins
from calibrant.metrics.calibration_errors import ECC
from calibrant.metrics.costs import Cost, LinearCost, normalise_units
from calibrant.metrics.log_odds import count_clipped
from calibrant.metrics.proper_scores import Brier
from calibrant.tables.score_table import ScoreTable

__all__ = ["CAPS", "CATS"]

_FEW = 8192  # distinct scores for comparing many candidates; more are merged with their neighbours
_STARTS = 4  # number of candidates from which the search continues with all scores
_SMALLEST_STEP = 1e-4
_MAX_STEPS = 100
_WORSE = 0.01  # relative increase of the Brier score that is allowed
_STEEPEST, _FARTHEST = 100.0, 50.0  # bounds of slope and intercept: with separated classes ECC has no minimum
_PAPER_GRID = np.arange(1, 201) / 100  # 0.01, 0.02, ..., 2.00

LogitLine = tuple[float, float]  # slope and intercept on the logit scale


class _CostAware(ScoreMap):
    """Base of CATS and CAPS: a line on the logit scale with the least ECC."""

    map_kinds: ClassVar[tuple[str, ...]] = ("logistic",)
    saved_attributes: ClassVar[tuple[str, ...]] = ("n_clipped_", "ecc_before_", "ecc_")

    def __init__(
        self,
        cost: Cost | None = None,
        *,
        n_bins: int | None = None,
        bins: Bins | None = None,
        grid: Literal["paper"] | None = None,
        keep_brier: bool = True,
        eps: float = EPS,
        random_state: Any = 0,
    ) -> None:
        self.cost = cost
        self.n_bins = n_bins
        self.bins = bins
        self.grid = grid
        self.keep_brier = keep_brier
        self.eps = eps
        self.random_state = random_state

    def _fit_table(self, table: ScoreTable) -> maps.Map:
        check_eps(self.eps)
        if self.grid not in (None, "paper"):
            raise InputError(f"grid must be None or 'paper'; got {self.grid!r}.", argument="grid", value=self.grid)
        self.n_clipped_, notes = count_clipped(table, self.eps)
        self.notes_ += notes
        cost = LinearCost() if self.cost is None else normalise_units(self.cost)
        metric = ECC(cost=cost, n_bins=self.n_bins, bins=self.bins)

        def make_objective(rows: ScoreTable) -> Callable[[LogitLine], float]:
            x = logit(rows.score, self.eps)
            most = np.inf
            if self.keep_brier and self.grid is None:
                most = Brier().value(_with_scores(rows, expit(x))) * (1 + _WORSE)

            def value(line: LogitLine) -> float:
                mapped = _with_scores(rows, expit(line[0] * x + line[1]))
                return metric.value(mapped) if most == np.inf or Brier().value(mapped) <= most else np.inf

            return value

        full = make_objective(table)
        if self.grid == "paper":
            slope, intercept = min(self._paper_grid(), key=full)
        else:
            slope, intercept = self._search(full, make_objective(_merge_neighbours(table)), table)
        found = maps.Logistic(float(slope), float(intercept), "logit", self.eps)
        # ECC of the map as it will be applied and with the cost as given; `full` uses a normalised cost.
        asked = ECC(cost=LinearCost() if self.cost is None else self.cost, n_bins=self.n_bins, bins=self.bins)
        self.ecc_before_, self.ecc_ = asked.value(table), asked.value(table.map(found))
        identity = maps.Logistic(1.0, 0.0, "logit", self.eps)
        if self.grid is None and asked.value(table.map(identity)) < self.ecc_:  # rounding error at the edge of a bin
            found, self.ecc_ = identity, asked.value(table.map(identity))
        self._warn_if_brier_increased(table, found)
        return found

    def _warn_if_brier_increased(self, table: ScoreTable, found: maps.Map) -> None:
        before, after = Brier().value(table), Brier().value(table.map(found))
        if after > before * (1 + 2 * _WORSE):  # twice, because clipping by eps changes scores too
            self._note(
                "worse_brier",
                f"ECC changed from {self.ecc_before_:.4g} to {self.ecc_:.4g}, but the Brier score increased from "
                f"{before:.4g} to {after:.4g}. ECC is not a proper score: check the result with `calibrant.decisions`.",
                warn=True,
            )

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.on == "logit" and map_.slope > 0 and map_.eps == self.eps)

    def _paper_grid(self) -> Iterable[LogitLine]:
        raise NotImplementedError

    def _candidates(self, table: ScoreTable) -> Iterable[LogitLine]:
        raise NotImplementedError

    def _steps(self, size: float) -> list[LogitLine]:
        """Return the steps of the search: factors of the slope and changes of the intercept."""
        raise NotImplementedError

    def _search(
        self, full: Callable[[LogitLine], float], rough: Callable[[LogitLine], float], table: ScoreTable
    ) -> LogitLine:
        """Return the best line of a search without derivatives.

        ECC is discontinuous where a score crosses the edge of a bin, so derivatives are not useful. Lines on a grid are
        compared; from the best few and from the identity the search continues with decreasing steps.
        """
        tried = sorted(self._candidates(table), key=rough)[:_STARTS]
        found = [self._descend(full, line) for line in [(1.0, 0.0), *tried]]
        return min(found, key=lambda each: each[0])[1]

    def _descend(self, full: Callable[[LogitLine], float], line: LogitLine) -> tuple[float, LogitLine]:
        best, size = full(line), 0.25
        for _ in range(_MAX_STEPS):
            steps = [(line[0] * factor, line[1] + change) for factor, change in self._steps(size)]
            value, step = min((full(each), each) for each in steps if _within(each))
            if value < best:
                best, line = value, step
            else:
                size /= 2
            if size < _SMALLEST_STEP:
                break
        return best, line

    @property
    def slope_(self) -> float:
        """Slope A of the map."""
        return float(self.map_.slope)

    @property
    def intercept_(self) -> float:
        """Intercept B of the map."""
        return float(self.map_.intercept)


class CATS(_CostAware):
    r"""Cost-aware temperature scaling: the map :math:`\sigma(\lambda \operatorname{logit} p)` with the least ECC.

    Parameters
    ----------
    cost : cost, default=LinearCost(over=1, under=1)
        Cost of predicting p if the event rate is a. Only the ratio of `over` and `under` matters.
    n_bins : int, default=10
        Number of bins of equal width of the ECC.
    bins : callable, optional
        Other bins; the paper uses ``EqualWidth(10, closed="right")``.
    grid : {"paper"}, optional
        The search of the paper: the best of 0.01, 0.02, ..., 2.00. The default is a continuous search that includes the
        identity.
    keep_brier : bool, default=True
        Allow only maps that increase the Brier score of the fitted rows by at most 1 %. ECC is not a proper score: a
        constant prediction has an ECC of about 0, and without the restriction (False) the result is often nearly
        constant.
    eps : float, default=2**-24
        Scores are clipped to [eps, 1 - eps], as for `Platt`.
    random_state : int, Generator or None
        For CAPS with the grid of the paper.

    Attributes
    ----------
    slope_, intercept_ : float
        :math:`\lambda` (or A), and 0 (or B).
    ecc_before_, ecc_ : float
        ECC of the fitted rows before and after. It does not increase, except by clipping with `eps`, and with the grid
        of the paper for CAPS, which does not include the identity.
    n_clipped_ : float
        Number (or weight) of rows whose score was clipped.

    See Also
    --------
    CAPS, MetaCal, ecc

    Notes
    -----
    Fit it on rows that the model was not fitted on (the paper uses a fifth of the data), for example inside
    `CalibratedModel`. ECC is discontinuous where a score crosses the edge of a bin, so the search uses no derivatives:
    it compares values on a grid, then with decreasing steps around the best ones. With equal costs and the grid of the
    paper this is the method TS of the paper.

    References
    ----------
    .. [1] Yang & Bi (2025), "Cost-aware calibration of classifiers", section 3.1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2 / (p**2 + (1 - p) ** 2)
    >>> cal = CATS(LinearCost(over=1, under=5)).fit(p, y)
    >>> cal.ecc_ < cal.ecc_before_
    True
    """

    def _paper_grid(self) -> Iterable[LogitLine]:
        return [(float(slope), 0.0) for slope in _PAPER_GRID]

    def _candidates(self, table: ScoreTable) -> Iterable[LogitLine]:
        return [(float(slope), 0.0) for slope in np.geomspace(0.02, 50, 101)]

    def _steps(self, size: float) -> list[LogitLine]:
        return [(1 / (1 + size), 0.0), (1 + size, 0.0)]


class CAPS(_CostAware):
    r"""Cost-aware Platt scaling: the map :math:`\sigma(A \operatorname{logit} p + B)`, A > 0, with the least ECC.

    `CATS` documents parameters, attributes and search. ``grid="paper"`` compares the 200 pairs of the paper, A and B
    drawn from 0.01, 0.02, ..., 2.00. B is then positive and the identity is not included, so the result can be worse
    than the uncalibrated scores and tends to overestimate.

    Parameters
    ----------
    cost, n_bins, bins, grid, keep_brier, eps, random_state
        See `CATS`.

    See Also
    --------
    CATS, MetaCal, ecc

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> cal = CAPS(LinearCost(over=1, under=5)).fit(p, y)
    >>> cal.ecc_ < 0.25 * cal.ecc_before_
    True
    """

    def _paper_grid(self) -> Iterable[LogitLine]:
        rng = np.random.default_rng(self.random_state)
        return [(float(a), float(b)) for a, b in rng.choice(_PAPER_GRID, (200, 2))]

    def _candidates(self, table: ScoreTable) -> Iterable[LogitLine]:
        plane = [(float(a), float(b)) for a in np.geomspace(0.05, 20, 15) for b in np.linspace(-4, 4, 17)]
        return plane + _platt_line(table, self.eps)

    def _steps(self, size: float) -> list[LogitLine]:
        factors, changes = (1 / (1 + size), 1.0, 1 + size), (-size, 0.0, size)
        return [(f, c) for f in factors for c in changes if (f, c) != (1.0, 0.0)]


def _within(line: LogitLine) -> bool:
    return 1 / _STEEPEST <= line[0] <= _STEEPEST and abs(line[1]) <= _FARTHEST


def _platt_line(table: ScoreTable, eps: float) -> list[LogitLine]:
    """Return the line of Platt scaling without smoothing if it exists and is increasing."""
    if not table.has_both_classes or any(logistic.find_separation(table.n, table.k)):
        return []
    slope, intercept = logistic.fit([logit(table.score, eps)], table.n, table.k, (1.0, 0.0)).tolist()
    return [(slope, intercept)] if _within((slope, intercept)) else []


def _with_scores(table: ScoreTable, score: Floats) -> ScoreTable:
    """Return the table with new scores in the same order; equal scores are merged."""
    if (np.diff(score) > 0).all():
        return ScoreTable(score, table.n, table.k, table.w2, table.k2)
    return table.map(lambda _: score)


def _merge_neighbours(table: ScoreTable) -> ScoreTable:
    """Merge neighbouring scores, each group with its mean score, into at most 8,192 groups."""
    if len(table) <= _FEW:
        return table
    start = np.arange(_FEW) * len(table) // _FEW
    n = np.add.reduceat(table.n, start)
    score = np.add.reduceat(table.n * table.score, start) / n
    w2, k2 = (None if column is None else np.add.reduceat(column, start) for column in (table.w2, table.k2))
    return ScoreTable(score, n, np.add.reduceat(table.k, start), w2, k2)
