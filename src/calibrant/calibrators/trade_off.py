"""`TradeOff`: the change of squared error and bias by a recalibrator of point predictions."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant._support.arrays import Floats
from calibrant._support.formatting import html_table, text_table
from calibrant._support.plain_data import number
from calibrant.inference.estimates import from_influence
from calibrant.inference.regression.bias_by_bin import bias_by_bin
from calibrant.metrics import point
from calibrant.metrics.point import ErrorTolerance
from calibrant.results.uncertainty import Estimate
from calibrant.tables.mean_table import MeanTable

__all__ = ["TradeOff", "cross_validated_trade_off"]


@dataclass(frozen=True)
class TradeOff:
    """Squared error against bias, before and after recalibration, by cross-validation.

    Attributes
    ----------
    before, after : dict of float
        mse, relative_mse, mae, error_tolerance (90 % of absolute errors are at most that), mean_error,
        bias_by_prediction and bias_by_outcome: mean absolute bias over ten bins of the prediction, and of the outcome.
    mse_change : Estimate
        Squared error after less before, with interval and p-value; paired on the same rows.
    rows : int
    folds : int
        Each fold is recalibrated by a map that is fitted on the other folds.

    See Also
    --------
    PointMap

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.regression import LinearRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.normal(size=300)
    >>> found = LinearRecalibrator(cv=5).fit(p, 2 * p + rng.normal(size=300)).trade_off_
    >>> found.after["mse"] < found.before["mse"], found.mse_change.pvalue < 0.001
    (True, True)
    """

    before: Mapping[str, float]
    after: Mapping[str, float]
    mse_change: Estimate
    rows: int
    folds: int

    def _cells(self) -> list[list[str]]:
        rows = [["", "before", "after"]]
        for name, value in self.before.items():
            rows.append([name.replace("_", " "), f"{value:.5g}", f"{self.after[name]:.5g}"])
        return rows

    def _summary(self) -> str:
        c = self.mse_change
        return (
            f"{self.rows:,} rows, {self.folds}-fold cross-validation: the squared error changes by {c.value:.4g} "
            f"({100 * c.level:g} % CI {c.low:.4g} to {c.high:.4g})"
        )

    def __repr__(self) -> str:
        return "\n".join([self._summary(), *text_table(self._cells(), left=(0,))])

    def _repr_html_(self) -> str:
        return f"<p>{self._summary()}</p>{html_table(self._cells(), left=(0,))}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "schema_version": 1,
            "before": {k: v for name, value in self.before.items() for k, v in number(name, value).items()},
            "after": {k: v for name, value in self.after.items() for k, v in number(name, value).items()},
            "mse_change": self.mse_change.to_dict(),
            "rows": self.rows,
            "folds": self.folds,
        }


def cross_validated_trade_off(table: MeanTable, recalibrated: Floats, folds: int) -> TradeOff:
    """Return the trade-off of a table of rows, given the cross-validated prediction of each row."""
    after = table.map(lambda _: recalibrated)
    change = (recalibrated - table.mean) ** 2 - (table.prediction - table.mean) ** 2
    mean = table.average(change)
    estimate = from_influence("change of mse", mean, change - mean, table, null=0.0)
    return TradeOff(_measure(table), _measure(after), estimate, round(table.effective_size), folds)


def _measure(table: MeanTable) -> dict[str, float]:
    by_outcome = MeanTable(table.mean, table.n, table.prediction, table.m2, table.w2, single=table.single)
    spread, squared = point.variance(table), point.MSE().value(table)
    return {
        "mse": squared,
        "relative_mse": squared / spread if spread > 0 else math.nan,
        "mae": point.MAE().value(table),
        "error_tolerance": ErrorTolerance().value(table),
        "mean_error": point.MeanError().value(table),
        "bias_by_prediction": bias_by_bin.of_table(table).mean_absolute,
        "bias_by_outcome": bias_by_bin.of_table(by_outcome).mean_absolute,
    }
