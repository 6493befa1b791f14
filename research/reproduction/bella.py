"""The worked examples of Bella et al.: printed and correct values.

``python -m research.reproduction.bella`` writes the page; ``--check`` compares only.
"""

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy import stats

import calibrant as cb
from calibrant import regression as rg
from calibrant.metrics.labels import Proportions
from research.reproduction import rst
from research.reproduction.sources import ROOT
from research.reproduction.tables import Cell

OUT = ROOT / "docs" / "reproduction"

# The tables of the chapter have predictions as rows; its text states columns, but its counts agree with the tables.
THREE_CLASSES = {"a": (20, 2, 3), "b": (0, 30, 3), "c": (0, 2, 40)}
TWO_CLASSES = {"a": (60, 2), "b": (40, 23)}
BINS = (  # the table of scores of the chapter, by bin
    (0.95, 0.94, 0.91, 0.90),
    (0.87, 0.85, 0.80, 0.76),
    (0.70, 0.66, 0.62),
    (0.62, 0.51, 0.49, 0.48),
    (0.48, 0.45, 0.44, 0.44, 0.42),
)
SCORES = tuple(score for own in BINS for score in own)
# The 20 scores of the chapter have no outcomes; these outcomes are invented.
OUTCOMES = (1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0)
PAV = (0.76, 0.77, 0.70, 0.71, 0.66, 0.71, 0.69, 0.68, 0.48, 0.49)
PAV_PRINTED = (
    ("0.765", "0.765", "0.705", "0.705", "0.685", "0.685", "0.69", "0.68", "0.485", "0.485"),
    ("0.765", "0.765", "0.705", "0.705", "0.686", "0.686", "0.686", "0.68", "0.485", "0.485"),
)


def confusion(predicted_rows: dict[str, tuple[int, ...]]) -> Proportions:
    """Return the proportions of a matrix with predictions as rows."""
    names = list(predicted_rows)
    counted = ((a, p, n) for p, row in predicted_rows.items() for a, n in zip(names, row, strict=True))
    pairs = [(a, p) for a, p, n in counted for _ in range(n)]
    actual, predicted = zip(*pairs, strict=True)
    return cb.metrics.proportions(actual, predicted)


def matrices() -> Iterator[Cell]:
    """Return how often each class occurs and how often it is predicted."""
    printed = {
        "three classes": (THREE_CLASSES, ("20", "34", "46"), ("25", "33", "42")),
        "two classes": (TWO_CLASSES, ("100", "25"), ("62", "63")),
    }
    for row, (matrix, actual, predicted) in printed.items():
        found = confusion(matrix)
        for words, shares, kind in ((actual, found.actual, "actual"), (predicted, found.predicted, "predicted")):
            for name, text, share in zip(found.labels, words, shares, strict=True):
                yield Cell("matrices", row, f"{name}, {kind}", text, share * found.size, share * found.size)


def errors() -> Iterator[Cell]:
    """Return the possible error rates of a model that predicts 99 % a and 1 % b, where 95 % are a and 5 % are b."""
    rows, b, predicted = 100, 5, 1
    wrong = [(predicted - right) + (b - right) for right in range(predicted + 1)]
    low, high = 100 * min(wrong) / rows, 100 * max(wrong) / rows
    yield Cell("errors", "error in %", "least", "4", low, low)
    reason = "If its one prediction b in a hundred is incorrect too, five b and one a are misclassified."
    yield Cell("errors", "error in %", "most", "5", high, high, reason)


def binning() -> Iterator[Cell]:
    """Return the calibrated probability of a score of 0.68."""
    third = np.mean(SCORES[8:12])
    reason = "The mean of scores; it should be the share of positives in the bin, and there are no outcomes."
    yield Cell("binning", "score 0.68", "corrected", "0.65", third, math.nan, reason)


def pav() -> Iterator[Cell]:
    """Return the values after one pass over pairs, and after the last pass; values should decrease."""
    for column, printed, ours in zip(("step 1", "step 2"), PAV_PRINTED, (_first_pass(PAV), _pool(PAV)), strict=True):
        for i, (text, value) in enumerate(zip(printed, ours, strict=True), 1):
            reason = "0.68667 is cut, not rounded." if text == "0.686" else ""
            yield Cell("pav", f"e{i}", column, text, value, value, reason)


def _first_pass(values: tuple[float, ...]) -> list[float]:
    """Replace each increasing pair by its mean, from left to right; each value is used once."""
    found, i = list(values), 0
    while i + 1 < len(found):
        if found[i] < found[i + 1]:
            found[i] = found[i + 1] = (found[i] + found[i + 1]) / 2
            i += 1
        i += 1
    return found


def _pool(values: tuple[float, ...]) -> list[float]:
    """Return decreasing isotonic regression: increasing blocks are replaced by their means."""
    falling = -np.arange(len(values), dtype=float)
    return rg.IsotonicRecalibrator().fit(falling, values).predict(falling).tolist()


def models() -> Iterator[Cell]:
    """R1 predicts the true value plus 1."""
    truth, first, _ = two_regressions()
    error, mean = rg.mae(truth, first), rg.mean_error(truth, first)
    yield Cell("models", "R1", "MAE", "1", error, error)
    yield Cell("models", "R1", "mean error", "1", mean, mean)


def two_regressions(n: int = 50) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    truth = np.random.default_rng(0).normal(20, 5, n)
    second = truth.copy()
    second[7] += n
    return truth, truth + 1, second


EXAMPLES: dict[str, tuple[str, Callable[[], Iterator[Cell]]]] = {
    "matrices": ("Confusion matrices", matrices),
    "errors": ("Error of a model with incorrect proportions", errors),
    "binning": ("Binning averaging", binning),
    "pav": ("Isotonic regression (PAV)", pav),
    "models": ("R1 and R2", models),
}


def formulas() -> Iterator[list[str]]:
    """Return metrics by the formulas of the chapter and by the corrected ones, for its 20 scores with our outcomes."""
    p, y = np.array(SCORES), np.array(OUTCOMES)
    order = np.argsort(p, kind="stable")
    p, y, n = p[order], y[order], y.size
    table = cb.ScoreTable.from_arrays(y, p)
    s = n // 10
    windows = [np.sum(np.abs(p[b : b + s] - y[b : b + s].mean())) for b in range(n - s)]
    yield ["CalBin", _short(np.sum(windows) / (n - s)), _short(cb.metrics.calbin(table)), "1/s; one window is missing"]
    segments = sum(np.sum(p[p == v] - y[p == v].mean()) for v in np.unique(p))
    yield ["CalLoss", _short(segments), _short(cb.metrics.calloss(table)), "the square, and 1/n"]
    log_loss = float(np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))
    yield ["LogLoss", _short(log_loss), _short(cb.log_loss(table)), "the minus sign"]
    mse = float(np.sum((y - p) ** 2 + ((1 - y) - (1 - p)) ** 2) / (2 * n))
    yield [
        "MSE",
        _short(mse),
        _short(cb.brier(table)),
        "none; the original Brier score divides by n, and is twice that",
    ]
    yield [
        "MSE, decomposed",
        _short(_decomposed(p, y, np.cumsum([len(own) for own in BINS[:0:-1]]))),
        _short(cb.brier(table)),
        "the first term has an extra factor n_l, the last lacks a factor n, and scores must be equal within a bin",
    ]


def _decomposed(p: np.ndarray, y: np.ndarray, cuts: np.ndarray) -> float:
    """Return the formula of the chapter; bins start at the given rows."""
    total = 0.0
    for predicted, outcome in ((p, y), (1 - p, 1 - y)):
        parts = [(own.size, predicted[own], outcome[own].mean()) for own in np.split(np.arange(y.size), cuts)]
        total += sum(size * np.sum((own - rate) ** 2) for size, own, rate in parts)
        total -= sum(size * (rate - outcome.mean()) ** 2 for size, _, rate in parts)
        total += outcome.mean() * (1 - outcome.mean())
    return float(total / (2 * y.size))


def confidences(n: int = 1000) -> Iterator[list[str]]:
    """C1 and C2 are correct in 90 % of the cases, and predict 0.91 and 0.99."""
    for name, predicted in (("C1", 0.91), ("C2", 0.99)):
        table = cb.ScoreTable.from_counts([predicted], [n], [round(0.9 * n)])
        pvalue = stats.binomtest(round(0.9 * n), n, predicted).pvalue
        yield [
            name,
            f"{predicted}",
            *(_short(f(table)) for f in (cb.ece, cb.tce, cb.brier, cb.log_loss)),
            f"{pvalue:.2g}",
        ]


def regressions() -> Iterator[list[str]]:
    truth, *models = two_regressions()
    for name, predicted in zip(("R1", "R2"), models, strict=True):
        by_bin = rg.bias_by_bin(truth, predicted, n_bins=5)
        repaired = predicted - rg.mean_error(truth, predicted)
        yield [
            name,
            *(_short(f(truth, predicted)) for f in (rg.mae, rg.mean_error, rg.mse)),
            f"{int(by_bin.significant.sum())} of 5",
            _short(rg.mse(truth, repaired)),
        ]


def proportions() -> Iterator[list[str]]:
    for name, matrix in (("three classes", THREE_CLASSES), ("two classes", TWO_CLASSES)):
        found = confusion(matrix)
        yield [name, f"{found.accuracy:.2f}", f"{found.macro_accuracy:.2f}", found.test, f"{found.pvalue:.2g}"]


def _short(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def cells() -> dict[str, list[Cell]]:
    return {name: list(make()) for name, (_, make) in EXAMPLES.items()}


def page() -> str:
    """Return the page of the documentation."""
    found = cells()
    counts = Counter(cell.verdict for own in found.values() for cell in own)
    text = Path(__file__).with_name("bella.rst").read_text(encoding="utf-8")
    return text.format(
        cells=counts.total(),
        equal=counts["equal"],
        explained=counts["explained"],
        **{name: _shown(own) for name, own in found.items()},
        proportions=rst.list_table(["", "accuracy", "macro-averaged", "test", "p-value"], proportions()),
        formulas=rst.list_table(["metric", "as printed", "corrected", "missing in the formula"], formulas()),
        confidences=rst.list_table(["", "predicted", "ECE", "TCE", "Brier", "log loss", "p-value"], confidences()),
        regressions=rst.list_table(
            ["", "MAE", "mean error", "MSE", "biased bins", "MSE less the mean error"], regressions()
        ),
    )


def _shown(own: list[Cell]) -> str:
    """Return a table of cells, coloured as on the page of the TCE paper."""
    columns = list(dict.fromkeys(cell.column for cell in own))
    rows = {row: {c.column: c for c in own if c.row == row} for row in dict.fromkeys(c.row for c in own)}
    return rst.table_of_cells(
        columns, ((row, [_cell(by_column.get(c)) for c in columns]) for row, by_column in rows.items())
    )


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td></td>"
    if cell.equal:
        return rst.coloured(cell.published, rst.GREEN if not cell.reason else rst.RED)
    return rst.coloured(f"{cell.published} ({cell.ours:.{cell.decimals + 2}f})", rst.RED)


def main(check: bool) -> int:
    found = [cell for own in cells().values() for cell in own]
    counts = Counter(cell.verdict for cell in found)
    print(f"Bella et al.: {len(found)} cells, {', '.join(f'{n} {verdict}' for verdict, n in counts.most_common())}")
    for cell in found:
        if cell.reason:
            print(f"    {cell.row}, {cell.column}: printed {cell.published}, ours {cell.ours:.6g}. {cell.reason}")
    if not check:
        (OUT / "bella.rst").write_text(page(), encoding="utf-8")
    return int(counts["new"] > 0)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
