"""Calibrators fitted with few and with many events: their error against the true probabilities.

The logits of the true probabilities are normal with standard deviation 1. Scores are calibrated, or overconfident above
their median only, so that no straight line in log-odds corrects them. Calibrators are fitted on 1,000 rows, or on ten
rows per expected event, and applied to 10,000 others. A data set with one class only is drawn again. Writes
docs/studies/few_events.csv: root mean square errors divided by the true rate.
"""

import csv
from pathlib import Path

import numpy as np

import calibrant as cb

NEW = 10_000
# Expected events: rows, mean of the logits, data sets.
DESIGNS = {
    8: (1_000, -5.27, 300),
    30: (1_000, -3.90, 300),
    100: (1_000, -2.57, 300),
    300: (3_000, -2.57, 200),
    1_000: (10_000, -2.57, 100),
    3_000: (30_000, -2.57, 50),
}
CALIBRATORS = {
    "Platt": cb.Platt(),
    "Beta": cb.Beta(),
    "Isotonic(strict=True)": cb.Isotonic(strict=True),
    "Isotonic": cb.Isotonic(),
    "VennAbers": cb.calibrators.VennAbers(),
}
SLOPE_ABOVE = 2.5  # of overconfident scores, above their median


def main() -> None:
    rows = [measured(events, kind) for kind in ("calibrated", "curved") for events in DESIGNS]
    path = Path(__file__).parents[2] / "docs" / "studies" / "few_events.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def measured(events: int, kind: str) -> dict[str, str]:
    size, centre, data_sets = DESIGNS[events]
    rng = np.random.default_rng([0, events])
    errors: dict[str, list[float]] = {name: [] for name in ("unchanged", *CALIBRATORS)}
    ratios = []
    for _ in range(data_sets):
        y = np.zeros(size, dtype=bool)
        while y.all() or not y.any():
            z, new = (rng.normal(centre, 1, n) for n in (size, NEW))
            y = rng.random(size) < expit(z)
        scores, new_scores, true = expit(shown(z, centre, kind)), expit(shown(new, centre, kind)), expit(new)
        found = {name: calibrator.fit(scores, y)(new_scores) for name, calibrator in CALIBRATORS.items()}
        for name, predicted in {"unchanged": new_scores, **found}.items():
            errors[name].append(float(np.mean((predicted - true) ** 2) ** 0.5 / true.mean()))
        ratios.append(float(found["VennAbers"].mean() / true.mean()))
    means = {name: f"{np.mean(each):.3f}" for name, each in errors.items()}
    row = {"scores": kind, "expected events": f"{events}", "rows": f"{size}", **means}
    return row | {"mean of VennAbers / true rate": f"{np.mean(ratios):.2f}", "data sets": f"{data_sets}"}


def shown(z: np.ndarray, centre: float, kind: str) -> np.ndarray:
    """Return the logits of the scores that the calibrators see."""
    away = z - centre
    return z if kind == "calibrated" else centre + np.where(away > 0, SLOPE_ABOVE * away, away)


def expit(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


if __name__ == "__main__":
    main()
