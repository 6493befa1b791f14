"""Coverage of 95 % confidence intervals.

docs/studies/coverage.csv has one row per metric and design. The target of coverage is, for metrics over bins, the value
of the population over the non-empty bins of the sample; for TCE, its mean over samples of this size, estimated by the
mean over the data sets; for all others, the value of the population.

Run ``python -m research.studies.coverage``. Designs whose rows are already in the file are skipped; delete rows to
repeat them.
"""

import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.random import SeedSequence
from scipy.special import expit, logit, ndtri

import calibrant as cb
from calibrant.inference.intervals import interval_limits, interval_method, interval_refusal
from calibrant.inference.paired_rows import PairedRows
from calibrant.inference.resampling import Replicates, metric_values, resample_metrics
from calibrant.inference.table_sample import TableSample
from calibrant.metrics.log_odds import ScoreLogits, offsets
from research.studies.designs import CALIBRATED, DEVIATION, RESULTS, SHIFTED, STEEP, Truth, mean_logit

LEVEL = 0.95
FILE = RESULTS / "coverage.csv"
GRID = 20_000  # scores of equal weight that represent the population
TIES = 4  # tied scores: logits rounded to multiples of 1/4

SLOW = {"smooth_ece": cb.METRICS["smooth_ece"]()}
INVERTED = {"log_odds_error": cb.metrics.LogOddsError()}  # needs no replicates
METRICS = {name: cb.METRICS[name]() for name in cb.metrics.metric_names("binary") if name not in {**SLOW, **INVERTED}}
METRICS |= {
    "mce, quantile bins": cb.metrics.MCE(bins=cb.bins.EqualSize(10)),
    "ece, 100 bins": cb.ECE(n_bins=100),
    "tce, consistent bins": cb.TCE(bins=cb.bins.PAVABC.consistent()),
}
DEPENDENT = {name: METRICS[name] for name in ("ece", "ace", "rmsce", "ecce_r", "ici", "mcb", "bias", "brier", "auc")}

Rows = tuple[cb.ScoreTable, PairedRows | None]


@dataclass(frozen=True)
class Design:
    """Design of data sets; `population` is a table of scores with weights and event rates."""

    name: str
    size: int
    prevalence: float
    truth: Truth
    tied: bool = False
    sample: Callable[["Design", np.random.Generator], Rows] | None = None

    def scores(self, standard: np.ndarray) -> np.ndarray:
        x = mean_logit(self.prevalence) + DEVIATION * standard
        return expit(np.round(TIES * x) / TIES if self.tied else x)

    def draw(self, seed: int) -> Rows:
        rng = np.random.default_rng([seed, self.size, round(1000 * self.prevalence)])
        if self.sample is not None:
            return self.sample(self, rng)
        p = self.scores(rng.normal(size=self.size))
        return cb.ScoreTable.from_arrays(rng.random(self.size) < self.truth.rate(p, self.prevalence), p), None

    @property
    def population(self) -> cb.ScoreTable:
        score, count = np.unique(self.scores(ndtri((np.arange(GRID) + 0.5) / GRID)), return_counts=True)
        weight = count / GRID
        return cb.ScoreTable(score, weight, weight * self.truth.rate(score, self.prevalence), weight**2)


def clustered(design: Design, rng: np.random.Generator) -> Rows:
    """Clusters of 10 rows with a common normal effect (standard deviation 1) on the logit; scores are calibrated.

    The logit given the effect is chosen so that the mean probability over effects is the score.
    """
    p = design.scores(rng.normal(size=design.size))
    cluster = np.repeat(np.arange(design.size // 10), 10)
    effect = rng.normal(size=design.size // 10)[cluster]
    rate = expit(np.interp(logit(p), *_marginal()) + effect)
    (rows, (table,)) = PairedRows.read((rng.random(design.size) < rate).astype(int), [p], cluster=cluster)
    return table, rows


def _marginal() -> tuple[np.ndarray, np.ndarray]:
    """Return the logits of marginal probabilities, and the corresponding logits at effect 0."""
    nodes, weights = hermegauss(40)
    inner = np.linspace(-15, 15, 3001)
    return logit((expit(inner[:, None] + nodes) * weights).sum(axis=1) / weights.sum()), inner


def thinned(design: Design, rng: np.random.Generator) -> Rows:
    """One event in four is kept, with weight four."""
    p = design.scores(rng.normal(size=design.size))
    y = rng.random(design.size) < design.truth.rate(p, design.prevalence)
    kept = ~y | (rng.random(design.size) < 0.25)
    weight = np.where(y, 1.0, 0.25)[kept]  # not whole, so that they are read as importance weights
    return cb.ScoreTable.from_arrays(y[kept], p[kept], sample_weight=weight), None


DESIGNS = (
    Design("500 rows, 50 % events, calibrated", 500, 0.5, CALIBRATED),
    Design("500 rows, 5 % events, slope of 1.4", 500, 0.05, STEEP),
    Design("500 rows, 1 % events, shift of 0.4, tied", 500, 0.01, SHIFTED, tied=True),
    Design("5,000 rows, 50 % events, slope of 1.4", 5_000, 0.5, STEEP),
    Design("5,000 rows, 5 % events, shift of 0.4, tied", 5_000, 0.05, SHIFTED, tied=True),
    Design("5,000 rows, 1 % events, calibrated", 5_000, 0.01, CALIBRATED),
    Design("200 clusters of 10 rows, 25 % events, calibrated", 2_000, 0.25, CALIBRATED, sample=clustered),
    Design("2,000 rows, 25 % events thinned to 1/4 and weighted, calibrated", 2_000, 0.25, CALIBRATED, sample=thinned),
)


def parts() -> Iterator[tuple[Design, dict[str, cb.GCE], int, int]]:
    """Return designs with metrics, number of data sets and number of replicates; one core needs about 40 minutes."""
    yield from ((design, INVERTED, 1_000, 0) for design in DESIGNS)
    for design in DESIGNS:
        if design.sample is not None:
            yield design, DEPENDENT, 150, 199
        else:
            yield design, METRICS, 300 if design.size == 500 else 200, 199
    for design in DESIGNS[:6]:
        yield design, SLOW, 60, 99


def target(metric: cb.GCE, population: cb.ScoreTable, table: cb.ScoreTable) -> float:
    """Return the value that the interval of this data set must cover; NaN for TCE."""
    if metric.unit == "%":
        return float("nan")
    if metric.name == "log-odds error":
        return _log_odds_error(population, table)
    if metric.name == "calbin":
        return _windows(metric, population)
    if not isinstance(metric, cb.GCE) or isinstance(metric.bins, cb.bins.PAVA):
        return float(metric.value(population))
    bins = metric.bins(table)
    # Equal scores share a bin, so the lower edges of the bins assign the scores of the population; scores in empty
    # bins (far in the tails) are not used.
    label = np.searchsorted(bins.lower, population.score, side="right") - 1
    inside = (label >= 0) & (population.score <= bins.upper[label])
    sums = [
        np.bincount(label[inside], weights=column[inside], minlength=len(bins))
        for column in (population.n, population.k, population.n * population.score)
    ]
    # The population needs no correction for sampling noise.
    loss = cb.losses.squared_gap if metric.name == "debiased_sce" else metric.loss
    over = bins.with_sums(*sums)
    return float(metric.norm(loss(over), over.n))


def _log_odds_error(population: cb.ScoreTable, table: cb.ScoreTable) -> float:
    """Return the log-odds error of the population over the bins of the sample."""
    edges = cb.bins.EqualInformation()(table).lower[1:]
    start = np.unique(np.concatenate([[0], np.searchsorted(population.score, edges)]))
    bins = ScoreLogits(population).bins(start[start < len(population)])
    d = offsets(bins.scores.x, bins.scores.n, bins.k, bins.start)
    return float(np.sqrt(bins.information @ d**2 / bins.information.sum()))


def _windows(metric: cb.GCE, population: cb.ScoreTable) -> float:
    """Return CalBin of 20,000 rows at quantiles of the population, with their rates as outcomes."""
    at = np.searchsorted(np.cumsum(population.n), (np.arange(20_000) + 0.5) / 20_000)
    at = np.minimum(at, len(population) - 1)
    kept, count = np.unique(at, return_counts=True)
    rate = population.k[kept] / population.n[kept]
    return float(metric.value(cb.ScoreTable(population.score[kept], count, count * rate)))


def replicates(
    design: Design, metrics: dict[str, cb.GCE], seed: int, n_resamples: int
) -> tuple[dict[str, Replicates], cb.ScoreTable]:
    """Return bootstrap and null replicates of the metrics that are defined for one data set."""
    table, rows = design.draw(seed)
    sample = TableSample(table, rows)
    if n_resamples == 0:
        empty = np.empty(0)
        return {name: Replicates(m, m.value(table), empty, empty, sample) for name, m in metrics.items()}, table
    values = dict(zip(metrics, metric_values(list(metrics.values()), table), strict=True))
    existing = {name: metric for name, metric in metrics.items() if not np.isnan(values[name])}
    found = resample_metrics(
        list(existing.values()),
        sample,
        seed=SeedSequence(seed),
        n_resamples=n_resamples,
        skip_missing=True,
        show=False,
    )
    return dict(zip(existing, found, strict=True)), table


def study(design: Design, metrics: dict[str, cb.GCE], data_sets: int, n_resamples: int) -> list[dict[str, object]]:
    population = design.population
    fixed: dict[str, float] = {}
    found = np.full((data_sets, len(metrics), 4), np.nan)
    methods: dict[str, str] = {}
    for seed in range(data_sets):
        results, table = replicates(design, metrics, seed, n_resamples)
        for j, (name, metric) in enumerate(metrics.items()):
            over_bins = name in INVERTED or (isinstance(metric, cb.GCE) and not isinstance(metric.bins, cb.bins.PAVA))
            if over_bins or name not in fixed:
                fixed[name] = target(metric, population, table)
            found[seed, j, 3] = fixed[name]
            if name not in results:
                continue
            result = results[name]
            low, high = interval_limits(result, LEVEL) if result.exists else (np.nan, np.nan)
            found[seed, j, :3] = result.value, low, high
            if result.exists and not interval_refusal(result):
                methods[name] = interval_method(metric)
    return [_row(design, name, methods.get(name, "none"), found[:, j], n_resamples) for j, name in enumerate(metrics)]


def _row(design: Design, name: str, method: str, found: np.ndarray, n_resamples: int) -> dict[str, object]:
    value, low, high, true = found.T
    if np.isnan(true).all():
        true = np.full(true.size, np.nanmean(value))
    exists = ~np.isnan(low)
    # 1e-12: a population value of 0 has rounding error
    above, below = (low - 1e-12 > true)[exists], (high + 1e-12 < true)[exists]

    def share(of: np.ndarray) -> str:
        return f"{of.mean():.3f}" if of.size else ""

    return {
        "design": design.name,
        "metric": name,
        "method": method,
        "target": f"{mean:.4g}" if abs(mean := float(np.mean(true))) > 1e-12 else "0",
        "mean estimate": f"{np.nanmean(value):.4g}",
        "coverage": share(~(above | below)),
        "interval above target": share(above),
        "interval below target": share(below),
        "mean width": f"{np.mean((high - low)[exists]):.3g}" if exists.any() else "",
        "share with interval": f"{exists.mean():.3f}",
        "data sets": value.size,
        "replicates": n_resamples,
    }


def main() -> None:
    rows: list[dict[str, object]] = []
    if FILE.exists():
        with FILE.open(newline="") as file:
            rows = list(csv.DictReader(file))
    for design, metrics, data_sets, n_resamples in parts():
        done = {row["metric"] for row in rows if row["design"] == design.name}
        if done >= set(metrics):
            continue
        rows += study(design, metrics, data_sets, n_resamples)
        with FILE.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(
            design.name, {row["metric"]: row["coverage"] for row in rows[-len(metrics) :]}, file=sys.stderr, flush=True
        )


if __name__ == "__main__":
    main()
