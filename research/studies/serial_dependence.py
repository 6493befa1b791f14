"""Error rates where errors of neighbouring times depend on each other: tests with ``time=`` and without it.

``python -m research serial_dependence`` runs the cells that docs/studies/serial_dependence.csv does not have yet.
Errors are an autoregressive process of first order: those of point predictions, the normal scores of the outcomes of a
predictive distribution, and of the uniform number below the score of an event. Two point predictions of equal quality
are compared by their squared errors.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, ndtr

import calibrant as cb
from research.studies.designs import run_missing

PATH = Path(__file__).parent.parent.parent / "docs" / "studies" / "serial_dependence.csv"
DATA_SETS = 400
# The default metrics are not resampled: the verdict needs no replicates.
FEW = {"n_resamples": 19}


@dataclass(frozen=True)
class Cell:
    """One design: what is tested, number of rows, and autocorrelation."""

    tested: str
    rows: int
    rho: float


def cells() -> Iterator[Cell]:
    """Yield all designs, small ones first."""
    for rows in (100, 500, 2_000, 5_000):
        for tested in ("point", "binary", "distribution", "comparison"):
            for rho in (0.0, 0.3, 0.6):
                yield Cell(tested, rows, rho)


def autoregressive(rng: np.random.Generator, rows: int, rho: float) -> np.ndarray:
    """Return a stationary autoregressive process with variance 1."""
    shocks = rng.normal(size=rows) * np.sqrt(1 - rho**2)
    shocks[0] /= np.sqrt(1 - rho**2)
    return lfilter([1.0], [1.0, -rho], shocks)


def is_rejected(cell: Cell, rng: np.random.Generator) -> tuple[bool, bool]:
    """Return whether a correct model, or equal quality, is rejected at 5 % with times and without them."""
    x, error = rng.normal(size=cell.rows), autoregressive(rng, cell.rows, cell.rho)
    time = np.arange(cell.rows)
    if cell.tested == "comparison":
        pair = x + 0.5 * autoregressive(rng, cell.rows, cell.rho), x + 0.5 * autoregressive(rng, cell.rows, cell.rho)
        models = {name: cb.Point(each) for name, each in zip("ab", pair, strict=True)}
        found = [cb.compare(x + error, models, time=each).differences for each in (time, None)]
        tested, untested = (next(d for d in each if d.metric == "MSE").pvalue <= 0.05 for each in found)
        return tested, untested
    y, forecast = {
        "point": (x + error, cb.Point(x)),
        "distribution": (x + error, cb.Gaussian(x, 1.0)),
        "binary": ((ndtr(error) < expit(x)).astype(int), expit(x)),
    }[cell.tested]
    tested, untested = (cb.evaluate(y, forecast, time=each, **FEW).decision.is_significant for each in (time, None))
    return tested, untested


def measure(cell: Cell) -> dict[str, float]:
    """Return the shares of rejections in percent, and the share of series that are too short to be tested."""
    with_time, without, short = 0, 0, 0
    for i in range(DATA_SETS):
        try:
            tested, untested = is_rejected(cell, np.random.default_rng([11, i]))
        except cb.InputError:  # fewer than ten blocks of dependent times
            short += 1
            continue
        with_time, without = with_time + tested, without + untested
    counts = {"with_time": with_time, "without_time": without, "not_tested": short}
    shares = {name: round(100 * count / DATA_SETS, 2) for name, count in counts.items()}
    return {"data_sets": DATA_SETS, **shares}


def main() -> None:
    """Run the designs that are missing, and write each result at once."""
    run_missing(PATH, cells(), measure)


if __name__ == "__main__":
    main()
