"""The search for segments: rules of few conditions whose rows have a large sum of residuals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import Any

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.progress import progress_bar
from calibrant.evaluation.audit.residual_blocks import ResidualBlocks, RowBlock, Rule

BEAM = 25  # rules of two conditions that are extended by a third
ROUNDS = 3
KEPT = 400  # rules that compete for the selection
AT_ONCE = 24  # rules whose gains are computed in one pass over the rows
INTERVAL_COST = 2.0  # of a second limit of a number, as of one more parameter
LEAST_SQUARED = 4.0  # squared standardised residual below which a rule is not worth a test


@dataclass(frozen=True)
class _Candidate:
    rule: Rule
    squared: float
    cost: float

    @property
    def gain(self) -> float:
        return self.squared - self.cost


def search(
    residuals: ResidualBlocks, *, depth: int, min_rows: int, n_rules: int, progress: bool | None = False
) -> list[Rule]:
    """Return rules whose rows deviate most, each after the ones before it have been explained.

    A rule's gain is its squared standardised residual, less twice the logarithm of the number of rules of its length
    that were tried, so that a longer rule must deviate by more; a second limit of a number costs 2. Of each set of
    features the best rule with positive and the best with negative residuals compete. While rules with a positive gain
    are found, the rows are searched again without what these rules explain; at last the list is filled with the best of
    the others.
    """
    chosen: list[Rule] = []
    for _ in range(ROUNDS):
        found = _Counting(residuals, min_rows, progress).candidates(depth)
        found = sorted(found, key=lambda candidate: -candidate.gain)[:KEPT]
        new, residuals = _select(residuals, found, n_rules - len(chosen), least_gain=0.0)
        chosen += new
        if not new or len(chosen) == n_rules:
            break
    left = [candidate for candidate in found if candidate.rule not in chosen]
    return chosen + _select(residuals, left, n_rules - len(chosen), least_gain=-np.inf)[0]


def explained(residuals: ResidualBlocks, rules: Sequence[Rule], *, least: float = 0.0) -> dict[Rule, float]:
    """Return the gain in deviance by a shift of each segment, after the segments before it.

    Segments after the first with a gain below `least` are left out: the segments before them explain their deviation.
    """
    gains: dict[Rule, float] = {}
    for rule in rules:
        sums = residuals.sums([rule])[0]
        gain = float(_squared(sums[0], sums[1]))
        if gains and gain < least:
            continue
        gains[rule] = gain
        residuals = residuals.shifted(rule, sums)
    return gains


class _Counting:
    """Counts the rows by the codes of sets of features: in each cell rows, residuals and variances."""

    def __init__(self, residuals: ResidualBlocks, min_rows: int, progress: bool | None) -> None:
        self.residuals, self.min_rows, self.progress = residuals, min_rows, progress
        self.features = residuals.sample.features
        self.matrices = [feature.matrix() for feature in self.features]
        self.extra = [
            np.array([INTERVAL_COST * condition.has_two_limits for condition in feature.conditions])
            for feature in self.features
        ]
        single = sum(map(len, self.matrices))
        pairs = (single**2 - sum(len(matrix) ** 2 for matrix in self.matrices)) // 2
        self.cost = [2 * np.log(max(count, 1)) for count in (single, pairs, pairs * single)]

    def candidates(self, depth: int) -> list[_Candidate]:
        """Return the best rules of each set of features."""
        all_rows = self.residuals.sums([()])[0]
        found = [_Candidate((), float(_squared(all_rows[0], all_rows[1])), 0.0)]
        used = [i for i, matrix in enumerate(self.matrices) if len(matrix)]
        steps = [step for length in (1, 2) if length <= depth for step in combinations(used, length)]
        for step, sums in zip(steps, self._sums(steps), strict=True):
            found += self._best(step, sums)
        if depth == 3:
            best = sorted((c for c in found if len(c.rule) == 2), key=lambda c: -c.gain)[:BEAM]
            for candidate in best:
                found += self._extended(candidate.rule, used)
        return found

    def _shape(self, step: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.features[i].n_codes for i in step)

    def _sums(self, steps: Sequence[tuple[int, ...]]) -> list[Floats]:
        """Return for each set of features rows, residuals and variances of each cell."""
        total = [np.zeros((3, int(np.prod(self._shape(step))))) for step in steps]
        blocks = progress_bar(self.residuals, self.residuals.n_blocks, "blocks of rows", show=self.progress)
        for block in blocks:
            for place, step in enumerate(steps):
                total[place] += _cell_sums(block, self._codes(block, step), total[place].shape[1])
        return total

    def _codes(self, block: RowBlock, step: Sequence[int]) -> Any:
        first, *others = step
        codes = block.codes(first)
        for other in others:
            codes = codes * np.uint16(self.features[other].n_codes) + block.codes(other)
        return codes

    def _best(self, step: tuple[int, ...], sums: Floats) -> Iterable[_Candidate]:
        """Return the best rules on a set of one or two features."""
        cells = sums.reshape(3, *self._shape(step))
        extra = self.extra[step[0]]
        if len(step) == 1:
            sums = cells @ self.matrices[step[0]].T
        else:
            sums = self.matrices[step[0]] @ cells @ self.matrices[step[1]].T
            extra = extra[:, None] + self.extra[step[1]]
        for place, squared, cost in _best_of_each_sign(sums, self.min_rows, extra):
            conditions = np.unravel_index(place, sums.shape[1:])
            rule = tuple((i, int(c)) for i, c in zip(step, conditions, strict=True))
            yield _Candidate(rule, squared, self.cost[len(step) - 1] + cost)

    def _extended(self, rule: Rule, used: Sequence[int]) -> Iterable[_Candidate]:
        """Return the best rules with a third condition."""
        others = [i for i in used if i not in {feature for feature, _ in rule}]
        total = [np.zeros((3, self.features[i].n_codes)) for i in others]
        for block in self.residuals:
            rows = block.mask(rule)
            for place, i in enumerate(others):
                total[place] += _cell_sums(block, block.codes(i)[rows], self.features[i].n_codes, rows)
        own = float(sum(self.extra[feature][condition] for feature, condition in rule))
        for i, sums in zip(others, total, strict=True):
            for place, squared, cost in _best_of_each_sign(sums @ self.matrices[i].T, self.min_rows, self.extra[i]):
                yield _Candidate(tuple(sorted((*rule, (i, place)))), squared, self.cost[2] + own + cost)


def _cell_sums(block: RowBlock, codes: Any, size: int, rows: Any = slice(None)) -> Floats:
    codes = codes.astype(np.intp)
    columns = (block.number, block.value, block.variance)
    sums = [np.bincount(codes, weights=column[rows], minlength=size) for column in columns]
    return np.asarray(np.stack(sums), dtype=np.float64)


def _squared(residual: Floats, variance: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 0, np.square(residual) / variance, 0.0)


def _best_of_each_sign(sums: Floats, min_rows: int, extra: Floats) -> list[tuple[int, float, float]]:
    """Return the best entry with positive and with negative residual: place, squared standardised residual, and cost.

    The best entry has the largest squared standardised residual less its cost, which is in `extra`.
    """
    rows, residual, variance = sums.reshape(3, -1)
    squared, extra = _squared(residual, variance), extra.reshape(-1)
    found = []
    for side in (residual > 0, residual < 0):
        own = np.where(side & (rows >= min_rows), squared - extra, -np.inf)
        if own.size and own.max() > -np.inf:
            place = int(own.argmax())
            found.append((place, float(squared[place]), float(extra[place])))
    return found


def _select(
    residuals: ResidualBlocks, candidates: list[_Candidate], n_rules: int, *, least_gain: float
) -> tuple[list[Rule], ResidualBlocks]:
    """Select rules one by one; the residuals that a selected rule explains by a shift do not count for the next.

    Gains are computed again only for rules that could be the next: those at the head of a queue by their last gain.
    Returns the rules and the residuals that are left.
    """
    queue = [(-candidate.gain, -1, place) for place, candidate in enumerate(candidates)]
    heapify(queue)
    known = np.zeros((len(candidates), 3))
    chosen: list[Rule] = []
    while queue and len(chosen) < n_rules and -queue[0][0] > least_gain:
        if queue[0][1] < len(chosen):
            head = [heappop(queue)[2] for _ in range(min(AT_ONCE, len(queue)))]
            known[head] = residuals.sums([candidates[place].rule for place in head])
            for place in head:
                squared = float(_squared(*known[place, :2]))
                heappush(queue, (candidates[place].cost - squared, len(chosen), place))
            continue
        _, _, place = heappop(queue)
        if _squared(*known[place, :2]) >= LEAST_SQUARED:
            chosen.append(candidates[place].rule)
            residuals = residuals.shifted(candidates[place].rule, known[place])
    return chosen, residuals
