"""Coverage of the intervals of net benefit, of differences between models, and of the gain over treating all or none.

The designs of `research.studies.curves`, and thresholds at the event rate, at half and at twice of it. The second model
is the first with a shift of 0.5 in log-odds. Writes docs/studies/net_benefit.csv.
"""

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from calibrant import decision_curve
from calibrant._support.progress import progress_bar
from research.studies.curves import DESIGNS, Design, describe
from research.studies.designs import DEVIATION, mean_logit, workers, write

REPLICATIONS = 500
FACTORS = (0.5, 1.0, 1.6)
SHIFT = 0.5


def thresholds(design: Design) -> np.ndarray:
    """Return the thresholds of a design."""
    return np.array([factor * design.prevalence for factor in FACTORS])


def truth(design: Design) -> np.ndarray:
    """Return the true net benefit of both models at the thresholds, and of the second less the first."""
    grid = (np.arange(1_000_000) + 0.5) / 1_000_000
    p = expit(mean_logit(design.prevalence) + DEVIATION * ndtri(grid))
    rate = design.rate(p)
    rows = []
    for score in (p, expit(logit(p) + SHIFT)):
        rows.append([np.mean((score >= t) * (rate - (1 - rate) * t / (1 - t))) for t in thresholds(design)])
    return np.array([rows[0], rows[1], np.subtract(rows[1], rows[0])])


def covered(task: tuple[Design, np.ndarray, int]) -> list[bool]:
    """Return for each threshold whether the intervals of value and difference contain the truth."""
    design, true, seed = task
    y, p, options = design.draw(seed)
    models = {"a": p, "b": expit(logit(p) + SHIFT)}
    curve = decision_curve(y, models, thresholds=thresholds(design), **options)
    a, b = curve["a"], curve["b"]
    limits = ((a.low, a.high), (b.low, b.high), (b.gain_low, b.gain_high))
    return [bool(found) for (low, high), t in zip(limits, true, strict=True) for found in (low <= t) & (t <= high)]


def main() -> None:
    """Write the table."""
    rows: list[dict[str, Any]] = []
    for design in DESIGNS:
        true = truth(design)
        tasks = [(design, true, seed) for seed in range(REPLICATIONS)]
        with ProcessPoolExecutor(workers()) as pool:
            done = list(progress_bar(pool.map(covered, tasks, chunksize=20), len(tasks), design.name))
        share = np.mean(np.array(done), axis=0).reshape(3, len(FACTORS))
        for i, t in enumerate(thresholds(design)):
            found = dict(zip(("model", "second model", "difference"), (f"{v:.3f}" for v in share[:, i]), strict=True))
            rows.append(describe(design) | {"threshold": f"{t:g}", **found, "data sets": REPLICATIONS})
    write("net_benefit", rows)


if __name__ == "__main__":
    main()
