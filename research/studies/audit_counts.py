"""Size of the p-value of the multicalibration error for counts: calibrated Poisson forecasts, whose errors are skewed.

Writes docs/studies/audit_counts.csv. ``--missing N`` runs at most N cells that the file does not have.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import calibrant as cb
from research.studies.designs import run_cells

DATA_SETS = 200


@dataclass(frozen=True)
class Cell:
    """Rows with means around `mean`, and three features that have no effect."""

    rows: int
    mean: float

    def pvalue(self, seed: int) -> float:
        """Return the p-value of one data set."""
        rng = np.random.default_rng([seed, self.rows])
        mean = self.mean * np.exp(0.5 * rng.normal(size=self.rows))
        features = {"a": rng.normal(size=self.rows), "b": rng.choice(list("xyz"), self.rows)}
        features["c"] = rng.normal(size=self.rows)
        y = rng.poisson(mean).astype(float)
        found = cb.audit(y, cb.Point(mean), features, progress=False)
        assert found.multicalibration_error is not None
        return found.multicalibration_error.pvalue

    def run(self) -> dict[str, Any]:
        """Return the row of the table."""
        found = np.array([self.pvalue(seed) for seed in range(DATA_SETS)])
        shares = {f"p <= {alpha:g}": f"{np.mean(found <= alpha):.3f}" for alpha in (0.05, 0.1)}
        return {"rows": f"{self.rows}", "mean": f"{self.mean:g}", **shares, "data sets": DATA_SETS}


CELLS = [Cell(2_000, 0.05), Cell(2_000, 0.2), Cell(2_000, 1.0), Cell(10_000, 0.2)]

if __name__ == "__main__":
    run_cells("audit_counts", {(f"{cell.rows}", f"{cell.mean:g}"): cell for cell in CELLS})
