"""Calibrators fitted with few events: ratio of the mean prediction to the true rate.

Scores are calibrated; their logits are normal with standard deviation 1. Calibrators are fitted on 1,000 rows and
applied to 10,000 others. A data set with one class only is drawn again. Writes docs/studies/few_events.csv.
"""

import csv
import warnings
from pathlib import Path

import numpy as np

import calibrant as cb

ROWS, NEW, DATA_SETS = 1_000, 10_000, 300
CENTRES = {"8": -5.27, "30": -3.90, "100": -2.57}  # expected events: mean of the logits
CALIBRATORS = {
    "VennAbers": cb.VennAbers(),
    "Isotonic": cb.Isotonic(),
    "Isotonic(strict=True)": cb.Isotonic(strict=True),
    "Beta": cb.Beta(),
    "Platt": cb.Platt(),
}


def main() -> None:
    rows = [row for events, centre in CENTRES.items() for row in measured(events, centre)]
    path = Path(__file__).parents[2] / "docs" / "studies" / "few_events.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def measured(events: str, centre: float) -> list[dict[str, str]]:
    rng = np.random.default_rng([0, int(events)])
    ratios: dict[str, list[float]] = {name: [] for name in CALIBRATORS}
    errors: dict[str, list[float]] = {name: [] for name in CALIBRATORS}
    for _ in range(DATA_SETS):
        y = np.zeros(ROWS, dtype=bool)
        while y.all() or not y.any():
            p, new = (1 / (1 + np.exp(-rng.normal(centre, 1, size))) for size in (ROWS, NEW))
            y = rng.random(ROWS) < p
        for name, calibrator in CALIBRATORS.items():
            found = calibrator.fit(p, y)(new)
            ratios[name].append(float(found.mean() / new.mean()))
            errors[name].append(float(np.mean((found - new) ** 2) ** 0.5 / new.mean()))
    return [
        {
            "expected events": events,
            "calibrator": name,
            "mean prediction / true rate": f"{np.mean(ratios[name]):.2f}",
            "RMS error / true rate": f"{np.mean(errors[name]):.2f}",
            "data sets": str(DATA_SETS),
        }
        for name in CALIBRATORS
    ]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
