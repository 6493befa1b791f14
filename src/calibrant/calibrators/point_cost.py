"""Cost-aware recalibration of point predictions."""

from typing import Any, ClassVar

import numpy as np

from calibrant._support.arrays import Floats
from calibrant._support.errors import check_count
from calibrant.calibrators import maps
from calibrant.calibrators.point_map import PointMap
from calibrant.calibrators.trade_off import TradeOff
from calibrant.metrics.bins import Quantile
from calibrant.metrics.costs import Cost, LinearCost, check_cost
from calibrant.metrics.point_costs import best_shifts, cost_by_bin, paid_by_row
from calibrant.tables.mean_table import MeanTable

__all__ = ["CostRecalibrator"]


class CostRecalibrator(PointMap):
    """Shifts predictions to the values of least cost, where over- and underestimates cost differently.

    Cost-aware recalibration (Yang and Bi, 2025) of point predictions: one shift per bin of the prediction. For linear
    costs the shift is a quantile of the errors, so the predictions become quantiles of the outcome. In sample the cost
    never rises. The result is biased on purpose: see `trade_off_` and `cost_`.

    Parameters
    ----------
    cost : cost object, default=LinearCost(over=1, under=1)
        See `calibrant.regression.cost_by_bin`.
    n_bins : int, optional
        Number of bins of equal size; by default one per 200 rows, at most 10.
    cv, random_state
        See `LinearRecalibrator`.

    Attributes
    ----------
    cost_ : dict or None
        Mean cost per row ``before`` and ``after``, by cross-validation; None where `trade_off_` is None.

    See Also
    --------
    cost_by_bin, LinearCost

    Notes
    -----
    The shifts of the first and the last bin hold for all predictions below and above.

    Examples
    --------
    >>> from calibrant import LinearCost
    >>> cal = CostRecalibrator(LinearCost(over=1, under=3), cv=None)
    >>> cal.fit([5.0, 5.0, 5.0, 5.0], [4.0, 5.0, 6.0, 7.0]).predict([5.0])
    array([6.])
    """

    map_kinds: ClassVar[tuple[str, ...]] = ("shifts",)
    needs_rows: ClassVar[bool] = True
    cross_validated: ClassVar[tuple[str, ...]] = ("trade_off_", "cost_")

    def __init__(
        self,
        cost: Cost = LinearCost(over=1, under=1),  # noqa: B008  (frozen)
        *,
        n_bins: int | None = None,
        cv: int | None = 5,
        random_state: int = 0,
    ) -> None:
        self.cost = cost
        self.n_bins = n_bins
        self.cv = cv
        self.random_state = random_state

    def accepts_map(self, map_: Any) -> bool:
        return bool(map_.shifts.size <= (10 if self.n_bins is None else self.n_bins))

    def _fit_table(self, table: MeanTable) -> maps.Shifts:
        check_cost(self.cost)
        if self.n_bins is None:
            n_bins = int(np.clip(table.effective_size // 200, 1, 10))
        else:
            n_bins = check_count("n_bins", self.n_bins)
        partition = Quantile(n_bins)(table)
        shift = best_shifts(partition, self.cost)
        paid, then = (
            paid_by_row(self.cost, p, table.mean)
            for p in (table.prediction, table.prediction + shift[partition.labels])
        )
        saves = partition.weighted(lambda run: then[run] - paid[run]) < 0
        # A bin includes its last prediction; the next bin begins with the next double.
        return maps.Shifts(np.nextafter(partition.upper[:-1], np.inf), np.where(saves, shift, 0.0))

    def _cross_validate(self, table: MeanTable) -> TradeOff | None:
        self.cost_: dict[str, float] | None = None
        return super()._cross_validate(table)

    def _report(self, table: MeanTable, recalibrated: Floats, folds: int) -> TradeOff:
        tables = {"before": table, "after": table.map(lambda _: recalibrated)}
        self.cost_ = {name: cost_by_bin.of_table(each, cost=self.cost, n_bins=1).value for name, each in tables.items()}
        return super()._report(table, recalibrated, folds)
