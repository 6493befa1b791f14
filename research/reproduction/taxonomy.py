"""Tables 1 and 2 of Bella et al. as an experiment: each kind of calibration, distorted and recalibrated on real data.

``python -m research.reproduction.taxonomy`` writes the tables of docs/kinds.rst to docs/reproduction/taxonomy (three
minutes). Each kind has a model that is distorted in three ways. A measure of calibration improves when each of the
distorted models is recalibrated; an insensitive measure never changes; any other measure is partially sensitive. A
pure measure has the same value for two models that are calibrated exactly, of which one knows nothing but the
distribution of the outcomes.
"""

import csv
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from research.reproduction.sources import ROOT, NoDataError
from research.reproduction.taxonomy_cases import Case, Change, Measure, Value, cases, take

OUT = ROOT / "docs" / "reproduction" / "taxonomy"
N_RESAMPLES = 100
EQUAL = 1e-9  # rounding
PURE = 0.02  # share of the largest effect of recalibration that the information of a pure measure may have
# The columns of Table 2: calibration measures, partially sensitive and insensitive measures.
CALIBRATION, PARTIAL, INSENSITIVE = "calibration", "partial", "insensitive"


@dataclass(frozen=True)
class Effect:
    """The value of a measure before and after recalibration, and the improvement with its 95 % interval."""

    before: float
    after: float
    improvement: float
    low: float
    high: float

    @property
    def unchanged(self) -> bool:
        return abs(self.after - self.before) <= EQUAL * max(1.0, abs(self.before))

    @property
    def improved(self) -> bool:
        return self.low > 0


@dataclass(frozen=True)
class Finding:
    """What the experiment shows of one measure of one kind."""

    measure: Measure
    base: float
    effects: tuple[Effect, ...]
    informative: float
    uninformative: float

    @property
    def sensitivity(self) -> str:
        """The column of Table 2 to which the measure belongs by its effects."""
        if all(effect.unchanged for effect in self.effects):
            return INSENSITIVE
        return CALIBRATION if all(effect.improved for effect in self.effects) else PARTIAL

    @property
    def purity(self) -> str:
        """Whether the measure is pure; an insensitive one is neither."""
        if self.sensitivity == INSENSITIVE:
            return ""
        largest = max(abs(effect.after - effect.before) for effect in self.effects)
        return "pure" if abs(self.informative - self.uninformative) <= PURE * largest else "impure"


def findings(case: Case, n_resamples: int = N_RESAMPLES) -> list[Finding]:
    """Return the findings of all measures of a kind."""
    errors = standard_errors(case, n_resamples)
    found = []
    for i, measure in enumerate(case.measures):
        effects = []
        for j, change in enumerate(case.changes):
            before, after = (measure.value(case.y, each) for each in (change.distorted, change.recalibrated))
            gain, reach = measure.improvement(before, after), 1.96 * errors[i, j]
            effects.append(Effect(before, after, gain, gain - reach, gain + reach))
        values = [measure.value(case.y, each) for each in (case.base, case.informative, case.uninformative)]
        found.append(Finding(measure, values[0], tuple(effects), *values[1:]))
    return found


def standard_errors(case: Case, n_resamples: int) -> np.ndarray:
    """Return the standard error of the improvement of each measure and distortion: a paired bootstrap of rows."""
    drawn = np.zeros((n_resamples, len(case.measures), len(case.changes)))
    rng = np.random.default_rng(0)
    for r in range(n_resamples):
        rows = rng.integers(0, case.y.size, case.y.size)
        for j, change in enumerate(case.changes):
            pair = [take(forecast, rows) for forecast in (change.distorted, change.recalibrated)]
            for i, measure in enumerate(case.measures):
                drawn[r, i, j] = measure.improvement(*(measure.value(case.y[rows], each) for each in pair))
    return drawn.std(axis=0, ddof=1) if n_resamples > 1 else np.full(drawn.shape[1:], np.nan)


def deviations(case: Case) -> Iterable[dict[str, Any]]:
    """Yield the rows of Table 1: deviations over all rows and by parts, and the share of changed predictions."""
    for change in case.changes:
        yield {
            "kind": case.kind,
            "distortion": change.distortion,
            "recalibrator": change.calibrator,
            "all rows": both(case.overall, case, change),
            "by parts": both(case.local, case, change),
            "changed predictions, %": changed(case, change),
        }


def methods(case: Case) -> Iterable[dict[str, Any]]:
    """Yield what each recalibrator changes of a pure and of an impure measure."""
    for change in case.methods:
        yield {
            "kind": case.kind,
            "recalibrator": change.calibrator,
            "pure measure": both(case.measure(case.pure).value, case, change),
            "impure measure": both(case.measure(case.impure).value, case, change),
            "changed predictions, %": changed(case, change),
        }


def both(value: Value, case: Case, change: Change) -> str:
    """Return the values before and after recalibration."""
    return arrow(value(case.y, change.distorted), value(case.y, change.recalibrated))


def changed(case: Case, change: Change) -> str:
    """Return the percentage of predictions that recalibration changes."""
    before, after = (case.predictions(each) for each in (change.distorted, change.recalibrated))
    return f"{100 * np.mean(np.abs(after - before) > EQUAL):.1f}"


def table(case: Case, found: list[Finding]) -> Iterable[dict[str, Any]]:
    """Yield the rows of Table 2 for one kind."""
    for each in found:
        by_change = zip(case.changes, each.effects, strict=True)
        yield {
            "measure": each.measure.name,
            "Table 2": each.measure.listed,
            "found": each.sensitivity,
            "purity": each.purity,
            **{change.distortion: arrow(effect.before, effect.after) for change, effect in by_change},
            "calibrated forecasts": f"{number(each.informative)}, {number(each.uninformative)}",
        }


def all_values(case: Case, found: list[Finding]) -> Iterable[dict[str, Any]]:
    """Yield each effect with its interval."""
    for each in found:
        for change, effect in zip(case.changes, each.effects, strict=True):
            yield {
                "kind": case.kind,
                "data": case.data,
                "rows": case.y.size,
                "measure": each.measure.name,
                "distortion": change.distortion,
                "recalibrator": change.calibrator,
                "model as fitted": exact(each.base),
                "before": exact(effect.before),
                "after": exact(effect.after),
                "improvement": exact(effect.improvement),
                "low": exact(effect.low),
                "high": exact(effect.high),
                "calibrated, informative": exact(each.informative),
                "calibrated, uninformative": exact(each.uninformative),
                "Table 2": each.measure.listed,
                "found": each.sensitivity,
                "purity": each.purity,
            }


def number(value: float) -> str:
    """Return a number for a table: four decimals, or one from 10 on."""
    shown = f"{value:.1f}" if abs(value) >= 10 else f"{value:.4f}"
    return shown.removeprefix("-") if not float(shown) else shown


def exact(value: float) -> str:
    return f"{value:.6g}" if abs(value) > EQUAL else "0"


def arrow(before: float, after: float) -> str:
    return f"{number(before)} → {number(after)}"


def write(name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    rows = list(rows)
    with (OUT / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> int:
    values, kinds, recalibrators = [], [], []
    try:
        for case in cases():
            found = findings(case)
            write(case.kind.partition(": ")[2].replace(" ", "_"), table(case, found))
            values += all_values(case, found)
            kinds += deviations(case)
            recalibrators += methods(case)
            print(f"{case.kind}, {case.data}, {case.y.size:,} rows")
            for each in found:
                listed = each.measure.listed or "not listed"
                print(f"    {each.measure.name}: {each.sensitivity} (Table 2: {listed}), {each.purity or '-'}")
    except NoDataError as error:
        print(error)
        return 1
    write("all", values)
    write("kinds", kinds)
    write("methods", recalibrators)
    return 0


if __name__ == "__main__":
    sys.exit(main())
