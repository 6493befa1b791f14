"""Rows of point predictions, and of predictive distributions with their means, as they are evaluated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant._support import columns as _columns
from calibrant._support.arrays import Column, Ints
from calibrant._support.errors import Argument, InputError
from calibrant.forecasts.forecast_table import as_forecast
from calibrant.forecasts.kinds import forecast_kind
from calibrant.forecasts.predictions import Point
from calibrant.kinds.grouped_sample import GroupedSample
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable, check_means, need_rows
from calibrant.tables.rows import Missing, Rows

__all__ = ["Sample", "read"]


@dataclass(frozen=True)
class Sample:
    """The table of rows with their forecasts and clusters."""

    table: MeanTable
    forecast: Any | None
    cluster: Ints | None

    @classmethod
    def from_rows(cls, rows: Rows) -> "Sample":
        """Validate rows; their forecasts are predictions and, if they are distributions, these too."""
        used = check_means(rows)
        distribution = used.forecasts[1] if len(used.forecasts) > 1 else None
        return cls(MeanTable.from_rows(used), distribution, used.cluster_codes)

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None where rows are independent."""
        return None if self.cluster is None else int(self.cluster.max()) + 1


def _is_distribution(y_pred: Any) -> bool:
    return forecast_kind(None, y_pred) == "distribution"


def read(
    y_true: Column | MeanTable, y_pred: Any = None, *, missing: Missing = "raise", **options: Any
) -> GroupedSample[Sample]:
    """Read rows, or one table; the forecasts of rows are predictions and, if they are distributions, these too."""
    if isinstance(y_true, MeanTable):
        return _read_table(y_true, {"y_pred": y_pred, **options})
    y_pred = y_pred.y_pred if isinstance(y_pred, Point) else y_pred
    if y_pred is None or isinstance(y_pred, Mapping):
        found = "is missing" if y_pred is None else "must be one column or one forecast; got a mapping"
        raise InputError(Argument("y_pred") + f" {found}.", hint="Pass one column, one forecast, or a MeanTable.")
    forecasts = {"y_pred": y_pred}
    if _is_distribution(y_pred):
        for name in ("sample_weight", "frequency"):
            if options.get(name) is not None:
                raise InputError(
                    Argument(name)
                    + " must be omitted with predictive distributions, which have no weights; got a column."
                )
        forecast = as_forecast(y_pred, len(_columns.read(y_true, "y_true", hint=ONE_COLUMN)))
        forecasts = {"y_pred": forecast.point(), "forecast": forecast}
    return GroupedSample.from_rows(
        Rows.read(y_true, forecasts, missing=missing, **options, hint=ONE_COLUMN), Sample.from_rows
    )


def _read_table(table: MeanTable, others: Mapping[str, Any]) -> GroupedSample[Sample]:
    beside = [name for name, value in others.items() if value is not None]
    if beside:
        raise InputError(f"{', '.join(beside)} must be omitted with a MeanTable; got both.", argument=beside[0])
    need_rows(table, "evaluate")
    return GroupedSample(Sample(table, None, None))
