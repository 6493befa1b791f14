"""Cost-aware scaling: temperature and Platt scaling chosen by what errors cost."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant._support import logistic
from calibrant._support.errors import InputError
from calibrant._support.logits import EPS, check_eps, expit, logit
from calibrant._support.typing import Floats
from calibrant.calibrators import maps
from calibrant.calibrators.score_map import ScoreMap
from calibrant.metrics.bins import Bins
from calibrant.metrics.calibration_errors import ECC
from calibrant.metrics.costs import Cost, LinearCost, normalised
from calibrant.metrics.proper_scores import Brier
from calibrant.metrics.slope_intercept import clipped
from calibrant.tables.score_table import ScoreTable

__all__ = ["CAPS", "CATS"]

_FEW = 8192  # distinct scores on which many candidates are tried; of more, neighbours stand for each other
_STARTS = 4  # the best candidates, from which the search goes on with all scores
_FINEST = 1e-4
_MOST_STEPS = 100
_WORSE = 0.01  # a rise of the Brier score, as a share of it, that is told
_STEEPEST, _FARTHEST = 100.0, 50.0  # where classes are separated ECC falls for ever, by less and less
_PAPER_GRID = np.arange(1, 201) / 100  # 0.01, 0.02, ..., 2.00

Line = tuple[float, float]  # slope and intercept of a logistic map


class _CostAware(ScoreMap):
    """What CATS and CAPS have in common: lines on the logit scale, compared by their ECC."""

    learns: ClassVar[tuple[str, ...]] = ("logistic",)
    keeps: ClassVar[tuple[str, ...]] = ("n_clipped_", "ecc_before_", "ecc_")

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
            raise InputError(f"grid must be None or 'paper'; it is {self.grid!r}.", argument="grid", value=self.grid)
        self.n_clipped_, notes = clipped(table, self.eps)
        self.notes_ += notes
        cost = LinearCost() if self.cost is None else normalised(self.cost)
        metric = ECC(cost=cost, n_bins=self.n_bins, bins=self.bins)

        def ecc_of(rows: ScoreTable) -> Callable[[Line], float]:
            x = logit(rows.score, self.eps)
            most = np.inf
            if self.keep_brier and self.grid is None:
                most = Brier().value(_moved(rows, expit(x))) * (1 + _WORSE)

            def value(line: Line) -> float:
                moved = _moved(rows, expit(line[0] * x + line[1]))
                return metric.value(moved) if most == np.inf or Brier().value(moved) <= most else np.inf

            return value

        full = ecc_of(table)
        if self.grid == "paper":
            slope, intercept = min(self._paper_grid(), key=full)
        else:
            slope, intercept = self._searched(full, ecc_of(_thinned(table)), table)
        found = maps.Logistic(float(slope), float(intercept), "logit", self.eps)
        # Not the values behind `full`: with the map as it will be applied, and the cost as it was given.
        asked = ECC(cost=LinearCost() if self.cost is None else self.cost, n_bins=self.n_bins, bins=self.bins)
        self.ecc_before_, self.ecc_ = asked.value(table), asked.value(table.map(found))
        identity = maps.Logistic(1.0, 0.0, "logit", self.eps)
        if self.grid is None and asked.value(table.map(identity)) < self.ecc_:  # rounding at an edge
            found, self.ecc_ = identity, asked.value(table.map(identity))
        self._warn_of_a_worse_brier_score(table, found)
        return found

    def _warn_of_a_worse_brier_score(self, table: ScoreTable, found: maps.Map) -> None:
        before, after = Brier().value(table), Brier().value(table.map(found))
        if after > before * (1 + 2 * _WORSE):  # twice, for what eps moves
            self._note(
                "worse_brier",
                f"ECC went from {self.ecc_before_:.4g} to {self.ecc_:.4g}, and the Brier score from {before:.4g} up to "
                f"{after:.4g}. ECC is no proper score: look at `calibrant.decisions` before using this.",
                warn=True,
            )

    def could_have_learned(self, map_: Any) -> bool:
        return bool(map_.on == "logit" and map_.slope > 0 and map_.eps == self.eps)

    def _paper_grid(self) -> Iterable[Line]:
        raise NotImplementedError

    def _candidates(self, table: ScoreTable) -> Iterable[Line]:
        raise NotImplementedError

    def _steps(self, size: float) -> list[Line]:
        """Steps (factor of the slope, change of the intercept) that the search tries from a line."""
        raise NotImplementedError

    def _searched(self, full: Callable[[Line], float], rough: Callable[[Line], float], table: ScoreTable) -> Line:
        """The best line found by values alone.

        ECC jumps wherever a score crosses the edge of a bin, so its slope says nothing beyond the next jump. Lines all
        over the plane are compared, and from the best few, and from the identity, the search steps to better lines
        with ever smaller steps.
        """
        tried = sorted(self._candidates(table), key=rough)[:_STARTS]
        found = [self._descended(full, line) for line in [(1.0, 0.0), *tried]]
        return min(found, key=lambda each: each[0])[1]

    def _descended(self, full: Callable[[Line], float], line: Line) -> tuple[float, Line]:
        best, size = full(line), 0.25
        for _ in range(_MOST_STEPS):
            steps = [(line[0] * factor, line[1] + change) for factor, change in self._steps(size)]
            value, step = min((full(each), each) for each in steps if _within(each))
            if value < best:
                best, line = value, step
            else:
                size /= 2
            if size < _FINEST:
                break
        return best, line

    @property
    def slope_(self) -> float:
        return float(self.map_.slope)

    @property
    def intercept_(self) -> float:
        return float(self.map_.intercept)


class CATS(_CostAware):
    r"""Cost-aware temperature scaling: of all :math:`\sigma(\lambda \operatorname{logit} p)` the one of least ECC.

    Parameters
    ----------
    cost : cost, default=LinearCost(over=1, under=1)
        What it costs to say p where the rate is a. Only the ratio of `over` and `under` matters.
    n_bins : int, default=10
        Number of bins of equal width behind the ECC.
    bins : callable, optional
        A kind of bins to use instead; the paper's are ``EqualWidth(10, closed="right")``.
    grid : {"paper"}, optional
        The paper's search: the best of 0.01, 0.02, ..., 2.00. By default a continuous search that holds the identity.
    keep_brier : bool, default=True
        Only maps that do not raise the Brier score of the rows fitted on, by more than 1 %. ECC is no proper score: a
        prediction that is the same for all has an ECC of about 0, and a free search (False) often ends near one.
    eps : float, default=2**-24
        How near to 0 and 1 scores may lie, as for `Platt`.
    random_state : int, Generator or None
        For CAPS with the paper's grid.

    Attributes
    ----------
    slope_, intercept_ : float
        :math:`\lambda` (or A), and 0 (or B).
    ecc_before_, ecc_ : float
        The ECC of the rows fitted on, before and after. Never higher after, up to what `eps` moves, but with the
        paper's grid of CAPS, which does not hold the identity.
    n_clipped_ : float
        Rows whose score `eps` moved.

    Notes
    -----
    Fit it on rows that the model did not learn from (the paper tunes on a fifth of the data), for example inside
    `CalibratedModel`. ECC jumps where a score crosses the edge of a bin, so no derivative is trusted: values are
    compared, all over the range and then in ever smaller steps about the best. With equal costs and the paper's grid
    this is the paper's TS.

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

    def _paper_grid(self) -> Iterable[Line]:
        return [(float(slope), 0.0) for slope in _PAPER_GRID]

    def _candidates(self, table: ScoreTable) -> Iterable[Line]:
        return [(float(slope), 0.0) for slope in np.geomspace(0.02, 50, 101)]

    def _steps(self, size: float) -> list[Line]:
        return [(1 / (1 + size), 0.0), (1 + size, 0.0)]


class CAPS(_CostAware):
    r"""Cost-aware Platt scaling: the A > 0 and B of :math:`\sigma(A \operatorname{logit} p + B)` of least ECC.

    `CATS` describes parameters, attributes and search. ``grid="paper"`` tries the paper's 200 pairs, A and B drawn from
    0.01, 0.02, ..., 2.00: B is then never negative and the identity is not among them, so the result can be worse than
    doing nothing, and its B favours predicting too high.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> cal = CAPS(LinearCost(over=1, under=5)).fit(p, y)
    >>> cal.ecc_ < 0.25 * cal.ecc_before_
    True
    """

    def _paper_grid(self) -> Iterable[Line]:
        rng = np.random.default_rng(self.random_state)
        return [(float(a), float(b)) for a, b in rng.choice(_PAPER_GRID, (200, 2))]

    def _candidates(self, table: ScoreTable) -> Iterable[Line]:
        plane = [(float(a), float(b)) for a in np.geomspace(0.05, 20, 15) for b in np.linspace(-4, 4, 17)]
        return plane + _likeliest(table, self.eps)

    def _steps(self, size: float) -> list[Line]:
        factors, changes = (1 / (1 + size), 1.0, 1 + size), (-size, 0.0, size)
        return [(f, c) for f in factors for c in changes if (f, c) != (1.0, 0.0)]


def _within(line: Line) -> bool:
    return 1 / _STEEPEST <= line[0] <= _STEEPEST and abs(line[1]) <= _FARTHEST


def _likeliest(table: ScoreTable, eps: float) -> list[Line]:
    """Platt's line without smoothing, where it exists and rises."""
    if not table.has_both_classes or any(logistic.find_separation(table.n, table.k)):
        return []
    slope, intercept = logistic.fit([logit(table.score, eps)], table.n, table.k, (1.0, 0.0)).tolist()
    return [(slope, intercept)] if _within((slope, intercept)) else []


def _moved(table: ScoreTable, score: Floats) -> ScoreTable:
    """The table with other scores in the same order, of which equal ones are merged."""
    if (np.diff(score) > 0).all():
        return ScoreTable(score, table.n, table.k, table.w2, table.k2)
    return table.map(lambda _: score)


def _thinned(table: ScoreTable) -> ScoreTable:
    """At most so many groups of neighbours, each with its mean score."""
    if len(table) <= _FEW:
        return table
    start = np.arange(_FEW) * len(table) // _FEW
    n = np.add.reduceat(table.n, start)
    score = np.add.reduceat(table.n * table.score, start) / n
    w2, k2 = (None if column is None else np.add.reduceat(column, start) for column in (table.w2, table.k2))
    return ScoreTable(score, n, np.add.reduceat(table.k, start), w2, k2)
