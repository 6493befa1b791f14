"""Power planned by `sample_size`, compared with simulated power.

Log-odds of scores are normal with standard deviation 1 (1.5 at 50 % events), at 2,000 equally likely quantiles, and
each data set has independent rows: multinomial counts of scores, binomial counts of events. Each row of the table has
2,000 data sets. Deviations are simulated in the direction that needs more rows and in the other one. Existing rows of
the table are kept, so an interrupted study can be resumed.
"""

import csv
import sys
from pathlib import Path
from zlib import crc32

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri

import calibrant as cb
from calibrant.inference.binary_components import binary_components
from calibrant.inference.design import Design
from calibrant.kinds.binary.verdict import decide

RESULT = Path(__file__).parents[2] / "docs" / "studies" / "planning.csv"
HEADER = ["event rate", "goal", "true value", "rows", "events", "planned", "simulated"]
DATA_SETS = 2_000
ALPHA = 0.05
POWER = 0.8
SPREAD = {0.5: 1.5, 0.05: 1.0, 0.01: 1.0}
DEVIATIONS = (0.1, 0.2, 0.5)
MARGINS = (0.1, 0.2)
POINTS = 2_000


def expected_scores(event_rate: float) -> np.ndarray:
    """Return scores whose mean is the event rate."""
    x = SPREAD[event_rate] * ndtri((np.arange(POINTS) + 0.5) / POINTS)
    return expit(x + brentq(lambda move: expit(x + move).mean() - event_rate, -12, 12))


def truth(p: np.ndarray, deviation: float, kind: str) -> np.ndarray:
    """Return event probabilities; a slope does not change the event rate."""
    if kind == "shift":
        return expit(logit(p) + deviation)
    steep = (1 + deviation) * logit(p)
    return expit(steep + brentq(lambda move: expit(steep + move).mean() - p.mean(), -30, 30))


def data_set(p: np.ndarray, true: np.ndarray, rows: int, rng: np.random.Generator) -> Design:
    n = rng.multinomial(rows, np.full(p.size, 1 / p.size))
    kept = n > 0
    return Design(cb.ScoreTable.from_counts(p[kept], n[kept], rng.binomial(n[kept], true[kept])))


def is_detected(design: Design) -> bool:
    """Return whether the omnibus test rejects."""
    tests = binary_components(design)
    return len(tests) * min(test.pvalue for test in tests) <= ALPHA


def is_within(design: Design, margin: float) -> bool:
    return decide(design, margin=margin, alpha=ALPHA, confidence_level=1 - ALPHA).equivalence.pvalue <= ALPHA


def cells() -> dict[tuple[str, str, str], tuple[float, str, float, float]]:
    """Return the settings of each row of the table by the texts that identify it."""
    found = {}
    for rate in SPREAD:
        for kind in ("shift", "slope"):
            for size in DEVIATIONS:
                for deviation in (-size, size):
                    goal = f"detect a {kind}"
                    shown = f"{deviation:+g}" if kind == "shift" else f"{1 + deviation:g}"
                    found[f"{100 * rate:g} %", goal, shown] = (rate, kind, deviation, 0.0)
        for margin in MARGINS:
            found[f"{100 * rate:g} %", f"within {margin:g}", "calibrated"] = (rate, "within", 0.0, margin)
    return found


def simulate(rate: float, kind: str, deviation: float, margin: float) -> list[object]:
    p = expected_scores(rate)
    rng = np.random.default_rng(crc32(repr((rate, kind, deviation, margin)).encode()))
    if kind == "within":
        plan = cb.sample_size(p, margin=margin, alpha=ALPHA, power=POWER)
        rows, events, true = plan.equivalence, plan.equivalence_events, p
    else:
        plan = cb.sample_size(p, deviation=abs(deviation), kind=kind, alpha=ALPHA, power=POWER)
        rows, events, true = plan.detect, plan.detect_events, truth(p, deviation, kind)
    count = 0
    for _ in range(DATA_SETS):
        design = data_set(p, true, rows, rng)
        count += is_within(design, margin) if kind == "within" else is_detected(design)
    return [f"{rows:,}", f"{events:,}", f"{100 * POWER:g} %", f"{100 * count / DATA_SETS:.1f} %"]


def main() -> None:
    done = {}
    if RESULT.exists():
        with RESULT.open(newline="") as file:
            done = {tuple(row[:3]): row for row in list(csv.reader(file))[1:]}
    with RESULT.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(HEADER)
        for name, settings in cells().items():
            out.writerow(done.get(name) or [*name, *simulate(*settings)])
            file.flush()
            print(*name, file=sys.stderr)


if __name__ == "__main__":
    main()
