"""TCE of calibrated models by sample size, the power of its consistency test, and TCE under prior shift.

Writes three tables. `tce_sample_size`: 50 data sets per design, the paper's and consistent bins. `tce_power`: how often
the consistency test of TCE detects a shift of 0.4 and a slope of 1.4. `prior_shift` (section 1 of the TCE paper):
a model is recalibrated for each prevalence; its TCE should stay in the null range, while the scale of ECE depends on
the prevalence.
"""

import numpy as np
from scipy.special import expit, logit

import calibrant as cb
from research.studies.designs import CALIBRATED, PREVALENCES, SHIFTED, STEEP, Truth, scores, spread_over_cores, write

DATA_SETS = 50
SIZES = (2_000, 6_000, 20_000, 60_000, 200_000)
RULES = {"paper": cb.TCE(), "consistent": cb.TCE(bins=cb.bins.PAVABC.consistent())}


def simulated_tce(task: tuple[int, float, int]) -> list[float]:
    size, prevalence, seed = task
    rng = np.random.default_rng([seed, size, round(1000 * prevalence)])
    p = rng.random(size) if prevalence == 0 else scores(rng, size, prevalence)
    table = cb.ScoreTable.from_arrays(rng.random(size) < p, p)
    return [metric.value(table) for metric in RULES.values()]


def by_sample_size() -> None:
    rows = []
    for prevalence in (0, *PREVALENCES):
        for size in SIZES:
            tasks = [(size, prevalence, seed) for seed in range(DATA_SETS)]
            found = np.array(list(spread_over_cores(simulated_tce, tasks, f"TCE of N = {size:,}")))
            row = {"scores": "uniform" if prevalence == 0 else f"{prevalence:.0%} events", "N": f"{size:,}"}
            for name, values in zip(RULES, found.T, strict=True):
                row[f"{name}: mean"] = f"{values.mean():.1f}"
                row[f"{name}: 5th"] = f"{np.quantile(values, 0.05):.1f}"
                row[f"{name}: 95th"] = f"{np.quantile(values, 0.95):.1f}"
            rows.append(row)
    write("tce_sample_size", rows)


def rejected(task: tuple[int, float, Truth, int]) -> tuple[float, bool, float, bool]:
    size, prevalence, truth, seed = task
    rng = np.random.default_rng([seed, size, round(1000 * prevalence), 7])
    p = scores(rng, size, prevalence)
    table = cb.ScoreTable.from_arrays(rng.random(size) < truth.rate(p, prevalence), p)
    found = []
    for metric in RULES.values():
        test = cb.consistency(metric, table, n_resamples=99, random_state=seed, progress=False)
        found += [test.statistic, test.pvalue <= 0.05]
    return tuple(found)


def power() -> None:
    rows = []
    for truth in (CALIBRATED, SHIFTED, STEEP):
        for prevalence in PREVALENCES:
            for size in (2_000, 20_000):
                tasks = [(size, prevalence, truth, seed) for seed in range(200)]
                what = f"power, N = {size:,}, {truth.name}"
                values, rejects, values_c, rejects_c = np.array(list(spread_over_cores(rejected, tasks, what))).T
                rows.append(
                    {
                        "truth": truth.name,
                        "events": f"{prevalence:.0%}",
                        "N": f"{size:,}",
                        "paper: mean": f"{values.mean():.1f}",
                        "paper: rejected": f"{rejects.mean():.2f}",
                        "consistent: mean": f"{values_c.mean():.1f}",
                        "consistent: rejected": f"{rejects_c.mean():.2f}",
                    }
                )
    write("tce_power", rows)


def shifted(task: tuple[float, int]) -> list[tuple[float, float, float]]:
    """Return TCE and ECE with null ranges of a model of two normal classes, recalibrated by Bayes' rule."""
    prevalence, seed = task
    rng = np.random.default_rng([seed, round(10_000 * prevalence)])
    size = 20_000
    y = rng.random(size) < prevalence
    p = expit(2 * rng.normal(np.where(y, 1.0, -1.0)) + logit(prevalence))  # the posterior of N(1, 1) against N(-1, 1)
    table = cb.ScoreTable.from_arrays(y, p)
    found = []
    for metric in (*RULES.values(), cb.ECE()):
        null = cb.null(metric, table, n_resamples=199, random_state=seed, progress=False)
        found.append((null.value, null.low, null.high))
    return found


def prior_shift() -> None:
    rows = []
    for prevalence in (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005):
        tasks = [(prevalence, seed) for seed in range(100)]
        found = np.array(list(spread_over_cores(shifted, tasks, f"prior shift, {prevalence:.1%}")))
        row = {"events": f"{100 * prevalence:g} %"}
        for j, name in enumerate(("TCE paper", "TCE consistent", "ECE")):
            value, low, high = found[:, j].T
            digits = ".1f" if j < 2 else ".5f"
            row[f"{name}: mean"] = f"{value.mean():{digits}}"
            row[f"{name}: null range"] = f"{low.mean():{digits}} to {high.mean():{digits}}"
            row[f"{name}: inside"] = f"{((low <= value) & (value <= high)).mean():.2f}"
        rows.append(row)
    write("prior_shift", rows)


if __name__ == "__main__":
    by_sample_size()
    prior_shift()
    power()
