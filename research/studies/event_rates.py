"""Bias and coverage of `estimate_event_rate`, and error rates of the check of its assumption.

Logits of scores are normal with standard deviation 1, and the means of events and other rows differ by 2. The scores
are not calibrated. Reference and new rows: 4,000 each. The new event rate is 0.2 to 5 times that of the
reference. Moved class-conditionals: the logits of new events are lower by 1, or those of new non-events have standard
deviation 1.5. Writes docs/studies/event_rates.csv.
"""

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy.special import expit

from calibrant._support.progress import progress_bar
from calibrant.inference import estimate_event_rate
from research.studies.designs import workers, write

REPLICATIONS = 500
ROWS = 4000
RATES = (0.1, 0.02)
RATIOS = (0.2, 0.5, 1.0, 2.0, 5.0)
CHANGES = ("unchanged", "events lower by 1", "non-events wider")


def draw(rng: np.random.Generator, rate: float, change: str) -> tuple[np.ndarray, np.ndarray]:
    """Return outcomes and scores."""
    y = rng.random(ROWS) < rate
    spread = np.where(~y & (change == "non-events wider"), 1.5, 1.0)
    x = rng.normal(-2.0 + 2.0 * y - y * (change == "events lower by 1"), spread)
    return y, expit(x)


def estimates(task: tuple[float, float, str, int]) -> list[tuple[float, bool, bool]]:
    """Return the value, whether the interval covers, and whether the check rejects, of each method."""
    rate, ratio, change, seed = task
    rng = np.random.default_rng([seed, int(1e4 * rate), int(10 * ratio), CHANGES.index(change)])
    y, p = draw(rng, rate, "unchanged")
    _, new = draw(rng, rate * ratio, change)
    found = [estimate_event_rate(y, p, new_scores=new, method=method) for method in ("em", "bbse")]
    return [(each.value, each.low <= rate * ratio <= each.high, each.check.pvalue <= 0.05) for each in found]


def main() -> None:
    """Write the table."""
    rows: list[dict[str, Any]] = []
    for rate in RATES:
        for change in CHANGES:
            for ratio in RATIOS if change == "unchanged" else (1.0, 3.0):
                tasks = [(rate, ratio, change, seed) for seed in range(REPLICATIONS)]
                with ProcessPoolExecutor(workers()) as pool:
                    what = f"{rate:g} x {ratio:g}, {change}"
                    done = np.array(list(progress_bar(pool.map(estimates, tasks, chunksize=20), len(tasks), what)))
                value, cover, rejects = np.mean(done, axis=0).T
                row: dict[str, Any] = {"reference": f"{100 * rate:g} %", "ratio": f"{ratio:g}", "scores": change}
                for i, method in enumerate(("EM", "BBSE")):
                    row[f"{method}: mean / truth"] = f"{value[i] / (rate * ratio):.3f}"
                    row[f"{method}: coverage"] = f"{cover[i]:.3f}"
                rows.append(row | {"check rejects": f"{rejects[0]:.3f}", "data sets": REPLICATIONS})
    write("event_rates", rows)


if __name__ == "__main__":
    main()
