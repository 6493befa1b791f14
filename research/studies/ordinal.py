"""Error rates of the verdict on ordered classes: size and power over classes, rows and skewed classes.

``python -m research ordinal`` runs the cells that docs/studies/ordinal.csv does not have yet: 1,000 data sets each, 400
of more than 1,000 rows where the model is wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.kinds.ordinal.verdict import decide
from calibrant.tables.class_table import ClassTable
from research.studies.designs import run_missing

PATH = Path(__file__).parent.parent.parent / "docs" / "studies" / "ordinal.csv"
DATA_SETS = 1000


@dataclass(frozen=True)
class Cell:
    """One design: what the model does wrong, number of classes and rows, and how common classes are."""

    error: str
    classes: int
    rows: int
    shares: str


def cells() -> Iterator[Cell]:
    """Yield all designs, those of calibrated models first."""
    for error in ("none", "shift 0.2", "overconfident 1.2"):
        for classes in (3, 5, 7):
            for rows in (200, 1_000, 5_000, 20_000):
                for shares in ("even", "skewed"):
                    yield Cell(error, classes, rows, shares)


def draw(cell: Cell, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted probabilities, and the classes drawn from the true ones."""
    share = np.full(cell.classes, 1 / cell.classes) if cell.shares == "even" else 0.5 ** np.arange(1, cell.classes + 1)
    below = np.cumsum(share / share.sum())[:-1]
    cuts = 1.6 * np.log(below / (1 - below))
    logits = cuts - 1.3 * rng.normal(size=(cell.rows, 1))
    name, _, size = cell.error.partition(" ")
    predicted = {"none": logits, "shift": logits + float(size or 0), "overconfident": float(size or 1) * logits}[name]
    truth, forecast = (1 / (1 + np.exp(-each)) for each in (logits, predicted))
    code = (truth < rng.random((cell.rows, 1))).sum(axis=1)
    edges = np.hstack([np.zeros((cell.rows, 1)), forecast, np.ones((cell.rows, 1))])
    return np.diff(edges, axis=1), code


def measure(cell: Cell) -> dict[str, float]:
    """Return the number of data sets, and the shares of verdicts and of directions in percent."""
    data_sets = DATA_SETS if cell.rows <= 1_000 or cell.error == "none" else 400
    counts = dict.fromkeys(("rejected", "within", "direction"), 0)
    wanted = {"shift": "underestimates", "overconfident": "overconfident"}.get(cell.error.partition(" ")[0], "")
    for i in range(data_sets):
        proba, code = draw(cell, np.random.default_rng([7, i]))
        table = ClassTable(tuple(range(cell.classes)), proba, code)
        verdict = decide(table, None, margin=0.1, alpha=0.05, confidence_level=0.95).verdict
        counts["rejected"] += verdict.is_significant
        counts["within"] += verdict.deviation.within
        counts["direction"] += wanted in verdict.direction.split(", ") if wanted else verdict.direction == ""
    shares = {name: round(100 * count / data_sets, 1) for name, count in counts.items()}
    return {"data_sets": data_sets, **shares}


def main() -> None:
    """Run the designs that are missing, and write each result at once."""
    run_missing(PATH, cells(), measure)


if __name__ == "__main__":
    main()
