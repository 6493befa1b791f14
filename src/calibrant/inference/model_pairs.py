"""Pairs of several models on the same rows: differences, ranking with the set of the best, and non-inferiority.

A model belongs to the set of the best unless it is shown to be worse than another one, with p-values of all pairs
adjusted by Holm. So the set never contradicts the differences beside it, and it contains all of the best models with a
probability of at least 1 - alpha, under any dependence between the pairs. This is a model confidence set as that of
Hansen, Lunde and Nason (2011), "The model confidence set", by pairwise tests and without a bootstrap. Multiple
comparisons with the best (Hsu 1984) adjust for one comparison per model only, but could exclude a model although no
pair is shown to differ.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibrant._support.errors import Argument, InputError, Note
from calibrant._support.formatting import metric_key
from calibrant.inference.multiplicity import adjust_differences, holm
from calibrant.inference.paired import PairedDifference
from calibrant.results.comparison import (
    DECIDING_TEST,
    ComparisonTerms,
    Difference,
    NonInferiority,
    RankedModel,
    difference_unit,
)
from calibrant.results.settings import Settings

Pair = tuple[int, int]
PairTests = Mapping[Pair, PairedDifference]

_INFINITE = (
    "Models whose mean {metric} is infinite: {{count}} ({names}). An outcome occurred that such a model had excluded. "
    "It differs infinitely from a model with a finite {metric}; the difference of two such models is undefined."
)


def all_pairs(count: int) -> list[Pair]:
    """Return all pairs of models, the later one first: those with the first model, then those with the second one."""
    return [(i, j) for j in range(count) for i in range(j + 1, count)]


@dataclass(frozen=True)
class ComparisonPlan:
    """What to compare.

    Attributes
    ----------
    names : sequence of str
        The models; the baseline is the first one.
    is_all_pairs : bool
        Whether differences of all pairs are reported, or those from the first model.
    margins : mapping of metric to margin
        Margins of non-inferiority.
    """

    names: Sequence[str]
    is_all_pairs: bool
    margins: Mapping[str, float]

    @property
    def reported(self) -> list[Pair]:
        """The pairs whose differences are reported."""
        pairs = all_pairs(len(self.names))
        return pairs if self.is_all_pairs else [pair for pair in pairs if pair[1] == 0]

    def differences(
        self, metric: str, tests: PairTests, level: float, *, test: str, unit: str = "1"
    ) -> list[Difference]:
        """Return the reported differences of one metric; those that are undefined do not exist."""
        return [
            Difference.from_test(self.names[i], self.names[j], metric, tests[i, j], level, test=test, unit=unit)
            for i, j in self.reported
            if test == DECIDING_TEST or not math.isnan(tests[i, j].value)
        ]

    def untested(self, metric: str, values: Sequence[float], level: float, unit: str) -> list[Difference]:
        """Return the reported differences of a metric without a test."""
        found = []
        for i, j in self.reported:
            both_infinite = math.isinf(values[i]) and math.isinf(values[j])
            value = math.nan if both_infinite else values[i] - values[j]
            if not math.isnan(value):
                found.append(Difference.without_test(self.names[i], self.names[j], metric, value, level, unit))
        return found

    def infinite_note(self, metric: str, tests: PairTests) -> Note | None:
        """Return the note on models whose mean loss is infinite; None without one."""
        infinite = {
            model
            for (i, j), found in tests.items()
            for model, value in ((i, found.value), (j, -found.value))
            if value == math.inf or math.isnan(found.value)
        }
        if not infinite:
            return None
        names = ", ".join(self.names[i] for i in sorted(infinite))
        return Note("infinite_loss", len(infinite), _INFINITE.format(metric=metric, names=names))

    def finish(
        self,
        differences: Sequence[Difference],
        tests: Mapping[str, PairTests],
        terms: ComparisonTerms,
        settings: Settings,
        units: Mapping[str, str],
    ) -> dict[str, Any]:
        """Return the fields of a `Comparison` that follow from the tests of all pairs, by metric."""
        adjusted = adjust_differences(differences)
        return {
            "differences": adjusted,
            "ranked": self._rank(tests[terms.decides], adjusted, terms, settings),
            "non_inferiority": self._non_inferiority(tests, terms, settings, units),
            "is_all_pairs": self.is_all_pairs,
        }

    def _rank(
        self, tests: PairTests, adjusted: Sequence[Difference], terms: ComparisonTerms, settings: Settings
    ) -> tuple[RankedModel, ...]:
        count = len(self.names)
        squares = [_square(i, tests) for i in range(count)]
        order = sorted(range(count), key=lambda i: (math.isnan(squares[i]), squares[i]))
        pvalues = dict(zip(tests, holm([found.pvalue for found in tests.values()]), strict=True))
        for d in adjusted:  # those from a given baseline are adjusted for fewer pairs
            if d.test == DECIDING_TEST:
                pair = self.names.index(d.model), self.names.index(d.baseline)
                pvalues[pair] = min(float(pvalues[pair]), d.adjusted_pvalue)
        level = 1 - (1 - settings.confidence_level) / len(tests)
        best, found = order[0], []
        for place, i in enumerate(order):
            value, low, high = (0.0, math.nan, math.nan) if i == best else _oriented(i, best, tests, level)
            worse = [float(p) for pair, p in pvalues.items() if _worse(pair, tests[pair]) == i]
            pvalue = min([1.0, *worse])
            rank = 1 + sum(squares[j] < squares[i] for j in order) if not math.isnan(squares[i]) else place + 1
            found.append(
                RankedModel(
                    rank=rank,
                    model=self.names[i],
                    estimate=math.sqrt(max(squares[i], 0.0)) if not math.isnan(squares[i]) else math.nan,
                    unit=terms.unit,
                    difference=value,
                    low=low,
                    high=high,
                    level=settings.confidence_level,
                    difference_unit=terms.squared_unit,
                    pvalue=pvalue,
                    is_best_set=not pvalue <= settings.alpha,
                )
            )
        return tuple(found)

    def _non_inferiority(
        self, tests: Mapping[str, PairTests], terms: ComparisonTerms, settings: Settings, units: Mapping[str, str]
    ) -> tuple[NonInferiority, ...]:
        """Return the tests of "not worse than the first model by more than the margin", adjusted by Holm by metric."""
        found: list[NonInferiority] = []
        level, others = 1 - settings.alpha, range(1, len(self.names))
        for name, margin in self.margins.items():
            metric = _find(name, tests)
            square = metric == terms.decides
            sign = -1 if terms.is_better_if_higher(metric) else 1
            limit = margin**2 if square else margin
            pairs = [tests[metric][i, 0] for i in others]
            bounds = [replace(pair, value=sign * pair.value).below(limit, level) for pair in pairs]
            adjusted = holm([pvalue for _, pvalue in bounds])
            for i, pair, (bound, pvalue), p in zip(others, pairs, bounds, adjusted, strict=True):
                found.append(
                    NonInferiority(
                        model=self.names[i],
                        baseline=self.names[0],
                        metric=metric,
                        margin=margin,
                        value=pair.value,
                        bound=sign * bound,
                        limit=sign * limit,
                        unit=terms.squared_unit if square else difference_unit(units.get(metric, "1"), metric),
                        level=level,
                        pvalue=pvalue,
                        adjusted_pvalue=float(p),
                        is_shown=bool(p <= settings.alpha),
                    )
                )
        return tuple(found)


def _square(model: int, tests: PairTests) -> float:
    """Return the debiased squared deviation of a model, which is the same in all of its pairs; NaN without one."""
    for pair, found in tests.items():
        if model in pair and found.squares is not None:
            return found.squares.values[pair.index(model)]
    return math.nan


def _oriented(model: int, other: int, tests: PairTests, level: float) -> tuple[float, float, float]:
    """Return the difference of a model from another one, with its interval."""
    if (model, other) in tests:
        found = tests[model, other]
        return (found.value, *found.interval(level))
    found = tests[other, model]
    low, high = found.interval(level)
    return -found.value, -high, -low


def _worse(pair: Pair, found: PairedDifference) -> int | None:
    """Return the model of a pair with the larger estimate; None if there is none."""
    return pair[0] if found.value > 0 else pair[1] if found.value < 0 else None


def _find(name: str, tests: Mapping[str, PairTests]) -> str:
    """Return the metric of this name, in any case and with underscores."""
    found = [metric for metric in tests if metric_key(metric) == metric_key(name)]
    if found:
        return found[0]
    raise InputError(
        Argument("non_inferiority")
        + f" must name metrics with a paired test: {', '.join(map(repr, tests))}; got {name!r}.",
        argument="non_inferiority",
        value=name,
    )
