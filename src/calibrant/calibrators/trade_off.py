"""`Trade`: what a recalibrator of numbers changes, squared error against bias."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant._support.json_values import number
from calibrant._support.text_tables import html_table, text_table
from calibrant._support.typing import Floats
from calibrant.inference.bias_by_bin import bias_by_bin
from calibrant.inference.estimates import Estimate, from_influence
from calibrant.metrics import point as means
from calibrant.metrics.rec_curve import error_tolerance
from calibrant.tables.mean_table import MeanTable

__all__ = ["Trade", "trade_of"]


@dataclass(frozen=True)
class Trade:
    """What a recalibrator changes on rows that it did not learn from: squared error against bias.

    Attributes
    ----------
    before, after : dict of float
        mse, relative_mse, mae, error_tolerance (90 % of absolute errors are at most that), mean_error,
        bias_by_prediction and bias_by_outcome: mean absolute bias over ten bins of the prediction, and of the outcome.
    mse_change : Estimate
        Of the squared error, after less before, row by row: with interval and p-value.
    rows : int
    folds : int
        Each part of the rows was repaired by a map learned from the others.
    """

    before: Mapping[str, float]
    after: Mapping[str, float]
    mse_change: Estimate
    rows: int
    folds: int

    def _cells(self) -> list[list[str]]:
        names = {"bias_by_prediction": "bias by prediction", "bias_by_outcome": "bias by outcome"}
        rows = [["", "before", "after"]]
        for name, value in self.before.items():
            shown = names.get(name, name.replace("_", " "))
            rows.append([shown, f"{value:.5g}", f"{self.after[name]:.5g}"])
        return rows

    def _summary(self) -> str:
        c = self.mse_change
        return (
            f"{self.rows:,} rows, each repaired by a map that did not learn from it ({self.folds} folds); the squared "
            f"error changes by {c.value:.4g} ({c.low:.4g} to {c.high:.4g})"
        )

    def __repr__(self) -> str:
        return "\n".join([self._summary(), *text_table(self._cells(), left=(0,))])

    def _repr_html_(self) -> str:
        return f"<p>{self._summary()}</p>{html_table(self._cells(), left=(0,))}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return {
            "schema_version": 1,
            "before": {k: v for name, value in self.before.items() for k, v in number(name, value).items()},
            "after": {k: v for name, value in self.after.items() for k, v in number(name, value).items()},
            "mse_change": self.mse_change.to_dict(),
            "rows": self.rows,
            "folds": self.folds,
        }


def _readings(table: MeanTable) -> dict[str, float]:
    turned = MeanTable(table.mean, table.n, table.prediction, table.m2, table.w2, single=table.single)
    spread = means.variance(table)
    return {
        "mse": means.mse.of_table(table),
        "relative_mse": means.mse.of_table(table) / spread if spread > 0 else math.nan,
        "mae": means.mae.of_table(table),
        "error_tolerance": error_tolerance.of_table(table),
        "mean_error": means.mean_error.of_table(table),
        "bias_by_prediction": bias_by_bin.of_table(table).mean_absolute,
        "bias_by_outcome": bias_by_bin.of_table(turned).mean_absolute,
    }


def trade_of(table: MeanTable, repaired: Floats, folds: int) -> Trade:
    """The trade, given the repaired prediction of every row of a table of rows."""
    after = table.map(lambda _: repaired)
    change = (repaired - table.mean) ** 2 - (table.prediction - table.mean) ** 2
    mean = table.average(change)
    estimate = from_influence("change of mse", mean, change - mean, table, null=0.0)
    return Trade(_readings(table), _readings(after), estimate, round(table.effective_size), folds)
