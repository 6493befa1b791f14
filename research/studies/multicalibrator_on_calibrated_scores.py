"""How often Multicalibrator changes scores that are calibrated in every subgroup, and what the change costs.

Writes docs/studies/multicalibrator_on_calibrated_scores.csv. ``--missing N`` runs at most N cells that the file lacks.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import calibrant as cb
from calibrant._support.logistic import expit
from research.studies.designs import run_cells

DATA_SETS, NEW_ROWS = 100, 20_000


@dataclass(frozen=True)
class Cell:
    """Rows with four features that have no effect; `log_odds` is the mean of the scores' log-odds."""

    backend: str
    rows: int
    log_odds: float

    def fit(self, seed: int) -> tuple[bool, float, float]:
        """Return whether scores were changed, the increase of the expected log loss on new rows, and the gain."""
        rng = np.random.default_rng([seed, self.rows])
        X, log_odds = rng.normal(size=(self.rows, 4)), rng.normal(self.log_odds, 1, self.rows)
        y = (rng.random(self.rows) < expit(log_odds)).astype(int)
        fitted = cb.Multicalibrator(backend=self.backend, progress=False).fit(X, y, scores=expit(log_odds))
        p = expit(rng.normal(self.log_odds, 1, NEW_ROWS))
        changed = fitted(rng.normal(size=(NEW_ROWS, 4)), p)
        return fitted.improved_, _expected_loss(p, changed) - _expected_loss(p, p), fitted.gain_

    def run(self) -> dict[str, Any]:
        """Return the row of the table."""
        found = [self.fit(seed) for seed in range(DATA_SETS)]
        changed = np.array([(loss, gain) for improved, loss, gain in found if improved]).reshape(-1, 2)
        means = [f"{value:.5f}" for value in changed.mean(axis=0)] if len(changed) else ["", ""]
        return {
            "backend": self.backend,
            "rows": f"{self.rows}",
            "event rate": f"{float(expit(np.random.default_rng(0).normal(self.log_odds, 1, 10**6)).mean()):.3f}",
            "changed": f"{len(changed)}",
            "data sets": DATA_SETS,
            "increase of log loss, where changed": means[0],
            "``gain_``, where changed": means[1],
        }


def _expected_loss(truth: Any, p: Any) -> float:
    return float(-np.mean(truth * np.log(p) + (1 - truth) * np.log1p(-p)))


CELLS = [Cell(backend, *design) for backend in ("sklearn", "lightgbm") for design in ((500, -1.0), (3_000, -4.0))]

if __name__ == "__main__":
    name = "multicalibrator_on_calibrated_scores"
    run_cells(name, {(cell.backend, f"{cell.rows}"): cell for cell in CELLS})
