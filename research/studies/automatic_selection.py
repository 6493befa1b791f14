"""How often `AutoCalibrator` chooses each calibrator, and the loss of its choice.

The log-odds of the events are normal with standard deviation 1. Scores are calibrated, or they have an error: log-odds
0.7 too low ("shift"), twice as far from their mean ("slope"), both, or the event rate is one of four steps of the score
("step"). Each choice is compared with no calibration and with the candidate that is best for the data set, all fitted
to the same rows, on 10,000 new rows whose probabilities are known: the expected log loss less that of the true
probabilities, and the mean squared difference from them. Writes docs/studies/automatic_selection.csv. ``--missing N``
runs at most N cells that the file lacks.
"""

import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtri

import calibrant as cb
from calibrant.calibrators.auto import UNCALIBRATED
from research.studies.designs import run_cells

DATA_SETS, NEW_ROWS = {2_000: 50, 20_000: 25}, 10_000  # by number of rows
RATES = {"50 %": 0.5, "10 %": 0.1, "1 %": 0.01, "0.2 %": 0.002}
ERRORS = ("calibrated", "shift", "slope", "both", "step")
NAMES = (UNCALIBRATED, "platt", "beta", "temperature", "isotonic", "venn_abers", "binning_average")


def mean_log_odds(rate: float) -> float:
    """Return the mean of normal log-odds that gives this event rate."""
    grid = ndtri((np.arange(4096) + 0.5) / 4096)
    return float(brentq(lambda mean: expit(mean + grid).mean() - rate, -20, 20))


@dataclass(frozen=True)
class Cell:
    """Data sets of one event rate, one error of the scores and one number of rows."""

    rate: str
    error: str
    rows: int

    def draw(self, rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and the probabilities of the event."""
        centre = mean_log_odds(RATES[self.rate])
        z = rng.normal(size=size)
        if self.error == "step":
            step = np.digitize(z, ndtri([0.25, 0.5, 0.75]))
            return expit(centre + z), expit(centre + np.array([-1.2, -0.3, 0.3, 1.2])[step])
        slope = 2.0 if self.error in ("slope", "both") else 1.0
        shift = -0.7 if self.error in ("shift", "both") else 0.0
        return expit(centre + shift + slope * z), expit(centre + z)

    def choose(self, seed: int) -> tuple[str, dict[str, tuple[float, float]]]:
        """Return the choice, and the expected log loss and squared error of all candidates on new rows."""
        rng = np.random.default_rng([seed, self.rows, ERRORS.index(self.error), list(RATES).index(self.rate)])
        y = np.zeros(self.rows, dtype=bool)
        while y.sum() < 2:
            p, truth = self.draw(rng, self.rows)
            y = rng.random(self.rows) < truth
        new, known = self.draw(rng, NEW_ROWS)
        found = {}
        for name in NAMES:
            q = new if name == UNCALIBRATED else cb.calibrators.CALIBRATORS[name]().fit(p, y)(new)
            found[name] = (_excess(known, q), float(np.mean((q - known) ** 2)))
        return cb.AutoCalibrator(progress=False, n_resamples=199).fit(p, y).chosen_, found

    def run(self) -> dict[str, Any]:
        """Return the row of the table."""
        warnings.simplefilter("ignore")
        chosen, found = zip(*(self.choose(seed) for seed in range(DATA_SETS[self.rows])), strict=True)
        counts = Counter(chosen)
        row = {"event rate": self.rate, "error": self.error, "rows": f"{self.rows}"}
        row |= {"none" if name == UNCALIBRATED else name: f"{counts[name]}" for name in NAMES}
        for place, what in enumerate(("log loss", "squared error")):
            none = [each[UNCALIBRATED][place] for each in found]
            own = [each[name][place] for name, each in zip(chosen, found, strict=True)]
            best = [min(both[place] for both in each.values()) for each in found]
            row |= {
                f"{what}, {name}": f"{np.mean(v):.3g}" for name, v in (("none", none), ("chosen", own), ("best", best))
            }
        return row | {"data sets": f"{DATA_SETS[self.rows]}"}


def _excess(truth: np.ndarray, p: np.ndarray) -> float:
    """Return the expected log loss less that of the true probabilities: the mean Kullback-Leibler divergence."""
    with np.errstate(divide="ignore"):
        return float(np.mean(truth * np.log(truth / p) + (1 - truth) * np.log((1 - truth) / (1 - p))))


CELLS = [Cell(rate, error, rows) for rate in RATES for error in ERRORS for rows in DATA_SETS]

if __name__ == "__main__":
    run_cells("automatic_selection", {(cell.rate, cell.error, f"{cell.rows}"): cell for cell in CELLS})
