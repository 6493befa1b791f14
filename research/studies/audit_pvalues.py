"""Size of the p-value of the multicalibration error where errors are skewed: counts, and weights by outcome.

Forecasts are calibrated. Writes docs/studies/audit_pvalues.csv. ``--missing N`` runs at most N cells that the file does
not have.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import calibrant as cb
from research.studies.designs import run_cells

DATA_SETS = 200


@dataclass(frozen=True)
class Cell:
    """Rows with three features that have no effect.

    Poisson counts have means around `mean`. Rows with the event have `ratio` times the weight of the others; with these
    weights the scores are calibrated.
    """

    rows: int
    mean: float = 0.0
    ratio: float = 1.0

    @property
    def forecast(self) -> str:
        """The name of the design."""
        if self.mean:
            return f"counts, mean {self.mean:g}"
        return f"scores, weight of events x {self.ratio:g}"

    def pvalue(self, seed: int) -> float:
        """Return the p-value of one data set."""
        rng = np.random.default_rng([seed, self.rows])
        features = {"a": rng.normal(size=self.rows), "b": rng.choice(list("xyz"), self.rows)}
        features["c"] = rng.normal(size=self.rows)
        drawn = self._counts(rng) if self.mean else self._weighted(rng)
        found = cb.audit(*drawn[:2], features, progress=False, **drawn[2])
        assert found.multicalibration_error is not None
        return found.multicalibration_error.pvalue

    def _counts(self, rng: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
        mean = self.mean * np.exp(0.5 * rng.normal(size=self.rows))
        return rng.poisson(mean).astype(float), cb.Point(mean), {}

    def _weighted(self, rng: np.random.Generator) -> tuple[Any, Any, dict[str, Any]]:
        p = rng.beta(2, 4, self.rows)
        drawn = p / (p + self.ratio * (1 - p))  # share of events among the rows, before weighting
        y = (rng.random(self.rows) < drawn).astype(int)
        return y, p, {"sample_weight": np.where(y == 1, self.ratio, 1.0)}

    def run(self) -> dict[str, Any]:
        """Return the row of the table."""
        found = np.array([self.pvalue(1_000 + seed) for seed in range(DATA_SETS)])
        shares = {f"p <= {alpha:g}": f"{np.mean(found <= alpha):.3f}" for alpha in (0.05, 0.1)}
        return {"forecast": self.forecast, "rows": f"{self.rows}", **shares, "data sets": DATA_SETS}


CELLS = [
    *(Cell(2_000, mean=mean) for mean in (0.05, 0.2, 1.0)),
    Cell(10_000, mean=0.2),
    *(Cell(rows, ratio=ratio) for ratio in (5.0, 20.0, 0.05) for rows in (3_000, 10_000)),
]

if __name__ == "__main__":
    run_cells("audit_pvalues", {(cell.forecast, f"{cell.rows}"): cell for cell in CELLS})
