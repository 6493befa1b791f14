"""Failures of the verdict of version 0.1, and the current results.

"Before" is the result of an independent review of 0.1. "After" is simulated here with the current library; rows whose
evidence is another study or a test name it. The table is written to docs/studies/failures.csv.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import expit, ndtri

import calibrant as cb
from calibrant.inference.binary_tests import BinaryTests
from calibrant.inference.design import Design
from calibrant.inference.paired import calibration_difference
from calibrant.inference.paired_rows import PairedRows
from calibrant.kinds.binary.verdict import decide
from calibrant.results.verdict import Verdict
from research.studies.designs import write

Row = tuple[str, str, str, str]
WITHIN = "shown within the margin"


def decided(y: np.ndarray, p: np.ndarray, **options: Any) -> Verdict:
    """Return the decision of `evaluate` with its default margin."""
    cluster = options.pop("cluster", None)
    if cluster is None:
        design = Design(cb.ScoreTable.from_arrays(y, p, **options))
    else:
        rows, (table,) = PairedRows.read(y, [p], cluster=cluster, **options)
        design = Design(table, rows)
    return decide(BinaryTests.from_design(design), margin=0.1, alpha=0.05, confidence_level=0.95)[0]


def verdict(d: Verdict) -> str:
    """Return the verdict of a decision."""
    return d.verdict


def share(count: int, of: Callable[[np.random.Generator], bool]) -> str:
    """Return the share of data sets for which a predicate holds."""
    found = [of(np.random.default_rng([7, i])) for i in range(count)]
    return f"{100 * np.mean(found):.1f} % of {count}"


def counts(count: int, of: Callable[[np.random.Generator], str]) -> str:
    """Return the frequency of each answer."""
    found = [of(np.random.default_rng([7, i])) for i in range(count)]
    return ", ".join(f"{name} {found.count(name)} of {count}" for name in sorted(set(found)))


def rare_events() -> Iterator[Row]:
    def one(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.random.Generator], str]:
        def draw(rng: np.random.Generator) -> str:
            t = rng.beta(0.5, 60, 50_000)
            return verdict(decided(rng.random(t.size) < t, change(t)))

        return draw

    changes = {"1e-6": lambda t: np.full(t.size, 1e-6), "t/10": lambda t: t / 10, "t/2": lambda t: t / 2}
    changes["2t"] = lambda t: np.minimum(2 * t, 1)
    after = "; ".join(f"{name}: {counts(20, one(change))}" for name, change in changes.items())
    yield "1", "50,000 rows, 0.8 % events; scores 1e-6, t/10, t/2, 2t", "within the margin; check passes", after

    def rarer(change: Callable[..., np.ndarray]) -> Callable[[np.random.Generator], str]:
        def draw(rng: np.random.Generator) -> str:
            t = rng.beta(0.3, 68, 20_000)
            return verdict(decided(rng.random(t.size) < t, change(t, rng)))

        return draw

    rest = {
        "3 times too high": lambda t, rng: np.minimum(3 * t, 1),
        "5 times too low": lambda t, rng: t / 5,
        "all 0": lambda t, rng: np.zeros(t.size),
        "shuffled": lambda t, rng: rng.permutation(t),
    }
    after = "; ".join(f"{name}: {counts(20, rarer(change))}" for name, change in rest.items())
    yield "2", "20,000 rows, 0.44 % events", "within the margin", after


def calibrated_enough() -> Iterator[Row]:
    def draw(size: int) -> Callable[[np.random.Generator], str]:
        def one(rng: np.random.Generator) -> str:
            p = expit(rng.normal(0, 1.3, size))
            return verdict(decided(rng.random(size) < p, p))

        return one

    after = "; ".join(f"{n:,} rows: {counts(100, draw(n))}" for n in (10_000, 30_000))
    yield "3", "calibrated, 50 % events", "too few data 10 of 10 (10,000 rows), 5 of 10 (30,000)", after


def cancelling() -> Iterator[Row]:
    def one(rng: np.random.Generator) -> str:
        p = rng.random(100_000)
        sign = np.where((p * 20).astype(int) % 2 == 0, 1.0, -1.0)
        q = np.clip(p + 0.078 * sign, 0, 1)
        return verdict(decided(rng.random(p.size) < q, p))

    yield "4", "gaps of 0.078 that cancel inside deciles, 100,000 rows", "within 10 of 10", counts(20, one)


def weights() -> Iterator[Row]:
    def whole(rng: np.random.Generator, values: np.ndarray) -> bool:
        p = expit(rng.normal(0, 1.3, 1_000))
        return decided(rng.random(p.size) < p, p, sample_weight=values).pvalue <= 0.05

    small = share(1_000, lambda rng: whole(rng, rng.integers(1, 6, 1_000)))
    euros = share(1_000, lambda rng: whole(rng, np.round(np.exp(rng.normal(9, 0.8, 1_000)))))
    before = "miscalibrated in 28 and 30 of 30"
    yield "5", "whole-number weights (1 to 5; loan amounts), 1,000 rows, calibrated", before, f"{small}; {euros}"

    def thinned(rng: np.random.Generator) -> bool:
        p = expit(rng.normal(-1, 1.3, 4_000))
        y = rng.random(p.size) < p
        kept = ~y | (rng.random(p.size) < 0.25)
        return decided(y[kept], p[kept], sample_weight=np.where(y[kept], 4.0, 1.0)).pvalue <= 0.05

    yield "6", "events thinned to 1/4, weight 4, calibrated", "significant in 48 to 61 %", share(1_000, thinned)


def clustered(rng: np.random.Generator, clusters: int, rows: int, mean: float = 0.0) -> tuple[np.ndarray, ...]:
    """Return outcomes, calibrated scores and clusters with a common latent variable."""
    cluster = np.repeat(np.arange(clusters), rows)
    p = expit(rng.normal(mean, 1.3, cluster.size))
    latent = np.sqrt(0.3) * rng.normal(size=clusters)[cluster] + np.sqrt(0.7) * rng.normal(size=cluster.size)
    return latent < ndtri(p), p, cluster


def clusters() -> Iterator[Row]:
    def overall(rng: np.random.Generator, count: int, rows: int) -> bool:
        y, p, cluster = clustered(rng, count, rows)
        return decided(y, p, cluster=cluster).pvalue <= 0.05

    def excludes(rng: np.random.Generator) -> bool:
        y, p, cluster = clustered(rng, 200, 10)
        return cb.interval(cb.metrics.ACE(), y, p, cluster=cluster, n_resamples=199, random_state=0).low > 0

    def groups(rng: np.random.Generator) -> bool:
        y, p, cluster = clustered(rng, 200, 10)
        found = cb.evaluate(y, p, cluster=cluster, by=cluster % 5, n_resamples=19, metrics={"ECE": cb.ECE()})
        return any(group.verdict == "miscalibrated" for group in found.groups.values())

    after = f"CI of ACE excludes 0: {share(200, excludes)}; omnibus test {share(1_000, lambda r: overall(r, 200, 10))}"
    after += f"; some of 5 groups: {share(100, groups)}"
    before = "CI of ACE excludes 0 in 65 %; some group in 30 of 30"
    yield "7", "200 clusters of 10 with a shared latent variable, calibrated", before, after
    few = "; ".join(f"{n} clusters: {share(1_000, lambda r, n=n: overall(r, n, 50))}" for n in (10, 20))
    yield "8", "few clusters, calibrated", "rejects 16 % (5 clusters), 10 % (10), 7 % (20)", f"5: refused; {few}"


def comparisons() -> Iterator[Row]:
    def one(rng: np.random.Generator, mean: float, slope: float) -> bool:
        x = rng.normal(mean, 1.2, 2_000)
        y = rng.random(x.size) < expit(x)
        rows, tables = PairedRows.read(y, [expit(x + 0.4103), expit(mean + slope * (x - mean))])
        return calibration_difference(rows, tables, 0, 1).pvalue <= 0.05

    rare = share(1_000, lambda rng: one(rng, -3.6, 1.3275))
    common = share(1_000, lambda rng: one(rng, 0.0, 1.688))
    yield (
        "9",
        "compare two models of equal ACE (shift and slope), 2,000 rows",
        "a winner in 21 to 23 % (4.6 % events), 12 % (50 %)",
        f"{rare}; {common}; more pairs: comparisons.csv",
    )


def directions() -> Iterator[Row]:
    def wrong(rng: np.random.Generator, slope: float, size: int) -> bool:
        x = rng.normal(0, 1.3, size)
        d = decided(rng.random(size) < expit(x), expit(slope * x))
        return "estimates" in d.direction

    parts = [
        f"slope {s}, {n:,} rows: {share(500, lambda r, s=s, n=n: wrong(r, s, n))}"
        for s in (1.4, 0.6)
        for n in (300, 2_000)
    ]
    before = "one-sided label in 53 to 100 % of detections"
    yield "11", "symmetric over- and underconfidence: false over- or underestimates", before, "; ".join(parts)


def contradictions() -> Iterator[Row]:
    def one(rng: np.random.Generator) -> bool:
        x = rng.normal(rng.normal(-1, 1), 1.3, 500)
        found = cb.evaluate(rng.random(500) < expit(x), expit(x + rng.normal(0, 0.1)), n_resamples=99)
        shown = [m.pvalue for m in found.metrics.values()] + [max(t.pvalue, found.pvalue) for t in found.tests.values()]
        return min(shown) <= 0.05 < found.pvalue

    before = "TCE or HL p = 0.002 above no deviation is shown"
    yield "18", "p-values printed beside a verdict contradict it", before, share(200, one)


OTHERS: tuple[Row, ...] = (
    (
        "10",
        "95 % intervals of all metrics",
        "0 to 90 % for seven metrics",
        "coverage.csv: covered, conservative or refused",
    ),
    (
        "12",
        "ensembles of 5 or 10 members, calibrated",
        "biased in 80 % and 43 %",
        "regression_error_rates.csv: 2.5 to 5.7 %",
    ),
    (
        "13",
        "skewed and zero-inflated outcomes, calibrated means",
        "biased in 9 to 28 %",
        "regression_error_rates.csv: at most 5.7 % in its designs; "
        "more skewed outcomes of few rows reject up to 28 %, with a note",
    ),
    (
        "14",
        "quantile forecasts with outer quantiles 10 % too narrow",
        "not shown to be miscalibrated",
        "miscalibrated in 100 % (regression_error_rates.csv)",
    ),
    (
        "15",
        "weekly re-evaluation of a calibrated stream",
        "an alarm within a year in 20 to 30 %",
        "unchanged: `evaluate` is for one look; for many looks `Monitor`: at most 0.6 % with an alarm "
        "(monitoring_false_alarms.csv)",
    ),
    (
        "16",
        "VennAbers with 8 events in 1,000 rows",
        "recommended, although 1.95 times too high",
        "no longer recommended; the pair (p0, p1) is exposed",
    ),
    (
        "17",
        "a user's loss equal to absolute_gap",
        "another interval and verdict",
        "identical (tests/inference/test_intervals.py)",
    ),
)


def main() -> None:
    warnings.simplefilter("ignore")
    rows = list(OTHERS)
    for study in (
        rare_events,
        calibrated_enough,
        cancelling,
        weights,
        clusters,
        comparisons,
        directions,
        contradictions,
    ):
        for row in study():
            print(row, flush=True)
            rows.append(row)
    names = ("failure", "condition", "before", "after")
    write("failures", [dict(zip(names, row, strict=True)) for row in sorted(rows, key=lambda row: int(row[0]))])


if __name__ == "__main__":
    main()
