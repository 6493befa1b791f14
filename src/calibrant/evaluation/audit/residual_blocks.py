"""`AuditRows`: residuals and codes of rows, read block by block from memory or from files on disk."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from calibrant._support.arrays import Bools, Floats, Ints
from calibrant._support.lazy import cached_property
from calibrant.evaluation.audit.features import Codes, FeatureCodes
from calibrant.kinds.audit import AuditedForecasts
from calibrant.kinds.base import kind_of
from calibrant.results.audit import ResidualTerms
from calibrant.tables.rows import Rows

Rule = tuple[tuple[int, int], ...]  # (feature, condition) pairs; none: all rows
Half = int | None  # 0 and 1 are the halves of the rows, None is all of them

BLOCK = 2**16  # rows
MOST_KEPT = 4_000_000  # rows whose residuals stay in memory


def rule_text(features: Sequence[FeatureCodes], rule: Rule) -> str:
    """Return a rule in words."""
    return " and ".join(features[f].conditions[c].text for f, c in rule) or "all rows"


@dataclass(frozen=True, eq=False)
class RowBlock:
    """Some of the rows.

    Attributes
    ----------
    place : array of int
        Positions of the rows.
    number : array
        Number of equal rows.
    value, variance : array
        Residuals, and their variances if the forecast is calibrated.
    slope : array
        Change of the residual by a shift of the forecast.
    sample : AuditRows
    """

    place: Ints
    number: Floats
    value: Floats
    variance: Floats
    slope: Floats
    sample: "AuditRows"
    _codes: dict[int, Codes] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.place.size

    def codes(self, feature: int) -> Codes:
        """Return the codes of a feature."""
        if feature not in self._codes:
            start = int(self.place[0]) if self.place.size else 0
            near = self.sample.codes[feature, start : start + BLOCK]
            self._codes[feature] = np.asarray(near[self.place - start])
        return self._codes[feature]

    def mask(self, rule: Rule) -> Bools:
        """Return which of the rows a rule describes."""
        rows = np.ones(len(self), dtype=bool)
        for feature, condition in rule:
            rows &= self.sample.lookups[feature][condition][self.codes(feature)]
        return rows

    def shifted(self, rule: Rule, shift: float) -> "RowBlock":
        """Return the rows with residuals less what a shift of the rows of a rule explains."""
        return replace(self, value=self.value - np.where(self.mask(rule), shift * self.slope, 0.0))


@dataclass(frozen=True, eq=False)
class AuditRows:
    """Validated rows, their residuals, and their features; the last feature is the score.

    Attributes
    ----------
    kind : str
        Name of the kind of forecast.
    rows : Rows
        Outcomes (0 and 1, or numbers), and the score or prediction.
    features : tuple of FeatureCodes
    n_features : int
        Number of features that were given; the others describe the forecast.
    codes, coarse : array of uint8, features x rows
    is_first : array of bool
        Whether each row belongs to the first half.
    """

    kind: str
    rows: Rows
    features: tuple[FeatureCodes, ...]
    n_features: int
    codes: Codes
    coarse: Codes
    is_first: Bools

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def audited(self) -> AuditedForecasts:
        """How forecasts of this kind are audited."""
        audited: AuditedForecasts = kind_of(self.kind).optional("audit.AUDIT")
        return audited

    @property
    def terms(self) -> ResidualTerms:
        """How residuals of this kind are described."""
        return self.audited.terms

    @property
    def size(self) -> int:
        """Number of rows, counted by their frequency."""
        weight = self.rows.weight
        return len(self) if weight is None or self.rows.importance else int(weight.values.sum())

    @property
    def has_skewed_errors(self) -> bool:
        """Whether errors may be skewed in an unknown way: numbers, and weights, which may depend on the outcome."""
        return not self.terms.is_share or self.rows.importance

    @cached_property
    def means(self) -> tuple[float, float]:
        """Mean forecast and mean outcome of all rows, weighted."""
        sums, rows = np.zeros(3), self.rows
        for place in self.places(None):
            weight = np.ones(place.size) if rows.weight is None else np.asarray(rows.weight.values[place], np.float64)
            sums += [weight @ rows.forecasts[0].values[place], weight @ rows.y.values[place], weight.sum()]
        return float(sums[0] / sums[2]), float(sums[1] / sums[2])

    @cached_property
    def skewness(self) -> float:
        """Skewness of prediction less outcome, times weight: that of few rows underestimates it."""
        sums, count = np.zeros(4), 0
        for place in self.places(None):
            term = -self.residuals(place)[1]
            sums += [float((term**power).sum()) for power in range(4)]
            count += place.size
        mean = sums[1] / count
        square = sums[2] / count - mean**2
        cube = sums[3] / count - 3 * mean * sums[2] / count + 2 * mean**3
        return float(cube / square**1.5) if square > 0 else 0.0

    def part(self, place: Ints) -> "AuditRows":
        """Return some of the rows."""
        codes, coarse = self.codes[:, place], self.coarse[:, place]
        return replace(self, rows=self.rows.part(place), codes=codes, coarse=coarse, is_first=self.is_first[place])

    @cached_property
    def lookups(self) -> list[Bools]:
        """For each feature, conditions x codes: whether a code meets a condition."""
        return [feature.matrix().astype(bool) for feature in self.features]

    def places(self, half: Half) -> Iterator[Ints]:
        """Yield the positions of the rows of a half, block by block."""
        for start in range(0, len(self), BLOCK):
            chosen = self.is_first[start : start + BLOCK]
            if half is None:
                yield np.arange(start, start + chosen.size)
            else:
                yield start + np.flatnonzero(chosen if half == 0 else ~chosen)

    def residuals(self, place: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """Return number of rows, residuals, their variances, and the change of residuals by a shift of the forecast.

        Variances and changes are those of the kind of forecast.
        """
        rows = self.rows
        score = np.asarray(rows.forecasts[0].values[place], dtype=np.float64)
        residual = np.asarray(rows.y.values[place], dtype=np.float64) - score
        variance, slope = self.audited.residual_terms(score, residual)
        if rows.weight is None:
            return np.ones(score.size), residual, variance, slope
        w = np.asarray(rows.weight.values[place], dtype=np.float64)
        if rows.importance:
            return np.ones(score.size), w * residual, w**2 * variance, w * slope
        return w, w * residual, w * variance, w * slope


class ResidualBlocks:
    """Residuals of a half of the rows, less what shifts of segments explain.

    Blocks of few rows stay in memory; otherwise they are computed again when they are needed.
    """

    def __init__(self, sample: AuditRows, half: Half) -> None:
        self.sample = sample
        self.half = half
        self._shifts: tuple[tuple[Rule, float], ...] = ()
        self._kept = list(self._read()) if len(sample) <= MOST_KEPT else None

    def _read(self) -> Iterator[RowBlock]:
        for place in self.sample.places(self.half):
            if place.size:
                block = RowBlock(place, *self.sample.residuals(place), self.sample)
                for rule, shift in self._shifts:
                    block = block.shifted(rule, shift)
                yield block

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return -(-len(self.sample) // BLOCK)

    def __iter__(self) -> Iterator[RowBlock]:
        return self._read() if self._kept is None else iter(self._kept)

    def sums(self, rules: Sequence[Rule]) -> Floats:
        """Return for each rule the sums over its rows: residuals, variances, slopes."""
        total = np.zeros((len(rules), 3))
        for block in self:
            columns = np.stack([block.value, block.variance, block.slope], axis=1)
            masks = np.stack([block.mask(rule) for rule in rules]).astype(np.float64)
            total += masks @ columns
        return total

    def shifted(self, rule: Rule, sums: Floats) -> "ResidualBlocks":
        """Return the residuals less what a shift of the rows of a rule explains; `sums` are those of the rule."""
        shift = float(sums[0] / sums[2]) if sums[2] > 0 else 0.0
        found = copy(self)
        found._shifts = (*self._shifts, (rule, shift))
        found._kept = None if self._kept is None else [block.shifted(rule, shift) for block in self._kept]
        return found
