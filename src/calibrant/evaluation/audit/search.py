"""The search for segments: rules of few conditions whose rows have a large sum of residuals."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import combinations

import numpy as np

from calibrant._support.typing import Bools, Floats, Ints
from calibrant.evaluation.audit.features import Codes, Feature

__all__ = ["Residuals", "Rule", "explained", "rule_rows", "rule_text", "search"]

Rule = tuple[tuple[int, int], ...]  # (feature, condition) pairs; none: all rows

BEAM = 25  # rules of two conditions that are extended by a third
ROUNDS = 3
KEPT = 400  # rules that compete for the selection
LEAST_SQUARED = 4.0  # squared standardised residual below which a rule is not worth a test


@dataclass(frozen=True)
class Residuals:
    """Residuals of rows and the variances that they have if the forecast is calibrated."""

    value: Floats
    variance: Floats

    def part(self, rows: Ints | Bools) -> "Residuals":
        """Return those of some rows."""
        return Residuals(self.value[rows], self.variance[rows])

    def sums(self, codes: Codes | Ints, size: int) -> Floats:
        """Return rows, sum of residuals and sum of variances per code: an array of 3 x size."""
        return np.stack(
            [
                np.bincount(codes, minlength=size),
                np.bincount(codes, weights=self.value, minlength=size),
                np.bincount(codes, weights=self.variance, minlength=size),
            ]
        )


@dataclass(frozen=True)
class _Candidate:
    rule: Rule
    squared: float
    cost: float

    @property
    def gain(self) -> float:
        return self.squared - self.cost


def search(
    features: Sequence[Feature],
    residuals: Residuals,
    *,
    depth: int,
    min_rows: int,
    n_rules: int,
    progress: Callable[[Sequence[tuple[int, ...]]], Iterable[tuple[int, ...]]] = lambda steps: steps,
) -> list[Rule]:
    """Return rules whose rows deviate most, each after the ones before it have been explained.

    A rule's gain is its squared standardised residual, less twice the logarithm of the number of rules of its length
    that were tried: so a longer rule must deviate by more. Of each set of features the best rule with positive and the
    best with negative residuals compete. While rules with a positive gain are found, the rows are searched again
    without what these rules explain; at last the list is filled with the best of the others.
    """
    chosen: list[Rule] = []
    for _ in range(ROUNDS):
        found = _candidates(features, residuals, depth, min_rows, progress)
        found = sorted(found, key=lambda candidate: -candidate.gain)[:KEPT]
        new, residuals = _select(features, residuals, found, n_rules - len(chosen), least_gain=0.0)
        chosen += new
        if not new or len(chosen) == n_rules:
            break
    left = [candidate for candidate in found if candidate.rule not in chosen]
    return chosen + _select(features, residuals, left, n_rules - len(chosen), least_gain=-np.inf)[0]


def explained(residuals: Residuals, segments: Sequence[Bools]) -> list[float]:
    """Return the gain in deviance by a shift of each segment, after the segments before it."""
    value, variance = residuals.value.copy(), residuals.variance
    gains = []
    for rows in segments:
        gains.append(_squared_sum(value[rows], variance[rows]))
        value[rows] -= variance[rows] * (value[rows].sum() / variance[rows].sum())
    return gains


def _candidates(
    features: Sequence[Feature],
    residuals: Residuals,
    depth: int,
    min_rows: int,
    progress: Callable[[Sequence[tuple[int, ...]]], Iterable[tuple[int, ...]]],
) -> list[_Candidate]:
    """Return the best rules of each set of features."""
    matrices = [feature.matrix for feature in features]
    single = sum(map(len, matrices))
    pairs = (single**2 - sum(len(matrix) ** 2 for matrix in matrices)) // 2
    cost = [2 * np.log(max(count, 1)) for count in (single, pairs, pairs * single)]
    found = [
        _Candidate((), float(_squared(np.asarray(residuals.value.sum()), np.asarray(residuals.variance.sum()))), 0.0)
    ]
    steps = [step for length in (1, 2) if length <= depth for step in combinations(range(len(features)), length)]
    for step in progress(steps):
        try_step = _single if len(step) == 1 else _pair
        found += try_step(features, matrices, residuals, step, min_rows, cost[len(step) - 1])
    if depth == 3:
        best = sorted((c for c in found if len(c.rule) == 2), key=lambda c: -c.gain)[:BEAM]
        for candidate in best:
            found += _extended(features, matrices, residuals, candidate.rule, min_rows, cost[2])
    return found


def rule_rows(features: Sequence[Feature], rule: Rule, size: int) -> Bools:
    """Return which rows a rule describes."""
    rows = np.ones(size, dtype=bool)
    for feature, condition in rule:
        rows &= features[feature].rows(condition)
    return rows


def rule_text(features: Sequence[Feature], rule: Rule) -> str:
    """Return a rule in words."""
    return " and ".join(features[f].conditions[c].text for f, c in rule) or "all rows"


def _squared(residual: Floats, variance: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(variance > 0, residual**2 / variance, 0.0)


def _squared_sum(value: Floats, variance: Floats) -> float:
    return float(_squared(np.asarray(value.sum()), np.asarray(variance.sum())))


def _best_of_each_sign(sums: Floats, min_rows: int) -> list[tuple[int, float]]:
    """Return position and squared standardised residual of the best entry with positive and with negative residual."""
    rows, residual, variance = sums.reshape(3, -1)
    squared = np.where(rows >= min_rows, _squared(residual, variance), -1.0)
    found = []
    for side in (residual > 0, residual < 0):
        own = np.where(side, squared, -1.0)
        if own.size and own.max() >= 0:
            found.append((int(own.argmax()), float(own.max())))
    return found


def _single(
    features: Sequence[Feature],
    matrices: list[Floats],
    residuals: Residuals,
    step: tuple[int, ...],
    min_rows: int,
    cost: float,
) -> list[_Candidate]:
    (i,) = step
    sums = residuals.sums(features[i].codes, features[i].n_codes) @ matrices[i].T
    return [_Candidate(((i, place),), value, cost) for place, value in _best_of_each_sign(sums, min_rows)]


def _pair(
    features: Sequence[Feature],
    matrices: list[Floats],
    residuals: Residuals,
    pair: tuple[int, ...],
    min_rows: int,
    cost: float,
) -> list[_Candidate]:
    i, j = pair
    shape = features[i].n_codes, features[j].n_codes
    codes = features[i].codes.astype(np.int64) * shape[1] + features[j].codes
    sums = matrices[i] @ residuals.sums(codes, shape[0] * shape[1]).reshape(3, *shape) @ matrices[j].T
    return [
        _Candidate(((i, place // len(matrices[j])), (j, place % len(matrices[j]))), value, cost)
        for place, value in _best_of_each_sign(sums, min_rows)
    ]


def _extended(
    features: Sequence[Feature],
    matrices: list[Floats],
    residuals: Residuals,
    rule: Rule,
    min_rows: int,
    cost: float,
) -> list[_Candidate]:
    rows = np.flatnonzero(rule_rows(features, rule, residuals.value.size))
    inside = residuals.part(rows)
    used = {feature for feature, _ in rule}
    found = []
    for k in range(len(features)):
        if k not in used:
            sums = inside.sums(features[k].codes[rows], features[k].n_codes) @ matrices[k].T
            for place, value in _best_of_each_sign(sums, min_rows):
                found.append(_Candidate(tuple(sorted((*rule, (k, place)))), value, cost))
    return found


def _select(
    features: Sequence[Feature],
    residuals: Residuals,
    candidates: list[_Candidate],
    n_rules: int,
    *,
    least_gain: float,
) -> tuple[list[Rule], Residuals]:
    """Select rules one by one; the residuals that a selected rule explains by a shift do not count for the next.

    Gains are computed again only for rules that could be the next: those at the head of a queue by their last gain.
    Returns the rules and the residuals that are left.
    """
    value, variance = residuals.value.copy(), residuals.variance
    queue = [(-candidate.gain, -1, place) for place, candidate in enumerate(candidates)]
    heapify(queue)
    chosen: list[Rule] = []
    while queue and len(chosen) < n_rules:
        last, known, place = heappop(queue)
        if -last <= least_gain:
            break
        candidate = candidates[place]
        rows = rule_rows(features, candidate.rule, value.size)
        total, spread = float(value[rows].sum()), float(variance[rows].sum())
        squared = float(_squared(np.asarray(total), np.asarray(spread)))
        if known < len(chosen):
            heappush(queue, (candidate.cost - squared, len(chosen), place))
        elif squared >= LEAST_SQUARED:
            chosen.append(candidate.rule)
            value[rows] -= variance[rows] * (total / spread)
    return chosen, Residuals(value, variance)
