"""Point predictions and predictive distributions in a comparison."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.errors import InputError, Note
from calibrant._support.typing import Floats
from calibrant.evaluation.compared_models import RowLosses, column_name
from calibrant.forecasts.distributions import pinball_losses
from calibrant.forecasts.point import Point
from calibrant.forecasts.reading import as_forecast
from calibrant.inference.paired_deviations import are_too_skewed, bias_deviations, common_levels, coverage_deviations
from calibrant.inference.squared_deviations import SampledRows
from calibrant.metrics import point as means
from calibrant.tables.mean_table import ONE_COLUMN, MeanTable, check_means
from calibrant.tables.rows import Rows

__all__ = ["DistributionModels", "PointModels"]

_SKEWED = "No difference can be shown: the errors of a model are too skewed for the number of rows."


@dataclass(frozen=True, eq=False)
class PointModels:
    """Point predictions of several models."""

    models: Mapping[str, Point]

    def columns(self, y_true: Any) -> dict[str, Any]:
        """Return the predictions of each model."""
        return {
            column_name(name): _columns.read(each.y_pred, column_name(name), hint=ONE_COLUMN)
            for name, each in self.models.items()
        }

    def check(self, rows: Rows) -> Rows:
        """Validate rows of numbers; return those that are used."""
        return check_means(rows)

    def forecasts(self, rows: Rows) -> dict[str, Any]:
        """Return the forecast of each model."""
        return dict(self.models)

    def measure(self, rows: Rows, sampled: SampledRows) -> RowLosses:
        """Return the bias by bin, in standard deviations of the outcome, and squared and absolute errors."""
        tables = [MeanTable.from_rows(replace(rows, forecasts=(each,))) for each in rows.forecasts]
        spread = math.sqrt(max(means.variance(tables[0]), 0.0)) or 1.0
        errors = [table.prediction - table.mean for table in tables]
        losses = {"MSE": [error**2 for error in errors], "MAE": [np.abs(error) for error in errors]}
        skewed = Note("skewed", 1, _SKEWED) if are_too_skewed(tables, sampled) else None
        return RowLosses(bias_deviations(tables, sampled, spread), losses, {"MSE": "y^2", "MAE": "y"}, skewed)


@dataclass(frozen=True, eq=False)
class DistributionModels:
    """Predictive distributions of several models, of the same or of different types."""

    models: Mapping[str, Any]

    def columns(self, y_true: Any) -> dict[str, Any]:
        """Return the distributions of each model."""
        size = len(_columns.read(y_true, "y_true", hint=ONE_COLUMN))
        found = {}
        for name, each in self.models.items():
            found[column_name(name)] = forecast = as_forecast(each, size)
            if len(forecast) != size:
                raise InputError(
                    f"{column_name(name)} must have a distribution for each of {size:,} rows; got {len(forecast):,}.",
                    argument=column_name(name),
                )
        common_levels(list(found.values()))
        return found

    def check(self, rows: Rows) -> Rows:
        """Validate rows of numbers; return those that are used."""
        return check_means(rows)

    def forecasts(self, rows: Rows) -> dict[str, Any]:
        """Return the forecast of each model."""
        return dict(self.models)

    def measure(self, rows: Rows, sampled: SampledRows) -> RowLosses:
        """Return the coverage errors over levels, and CRPS (or pinball loss) and log score where they are defined."""
        y, forecasts = rows.y.values, rows.forecasts
        levels = common_levels(forecasts)
        deviations = [coverage_deviations(y, each, levels, sampled) for each in forecasts]
        losses = _scores(y, forecasts, levels)
        densities = [_negative_log_density(y, each) for each in forecasts]
        if all(each is not None for each in densities):
            losses["NLL"] = [each for each in densities if each is not None]
        units = {"CRPS": "y", "pinball loss": "y", "NLL": "nat"}
        return RowLosses(deviations, losses, units, incomparable=() if "CRPS" in losses else ("CRPS",))


def _scores(y: Floats, forecasts: Sequence[Any], levels: Floats) -> dict[str, list[Floats]]:
    """Return CRPS, or the mean pinball loss at the common levels if some models have quantiles at other levels only."""
    quantiles = [each for each in forecasts if each.known_levels is not None and each.ensemble is None]
    same = all(each.known_levels.size == levels.size for each in quantiles)
    if not quantiles or (len(quantiles) == len(forecasts) and same):
        return {"CRPS": [each.crps(y) for each in forecasts]}
    least = max([each.known_levels[0] for each in forecasts if each.ensemble is not None], default=0.0)
    inner = levels[(levels >= least) & (levels <= 1 - least)]
    if not inner.size:
        return {}
    return {"pinball loss": [pinball_losses(y, each.quantile(inner), inner).mean(axis=1) for each in forecasts]}


def _negative_log_density(y: Floats, forecast: Any) -> Floats | None:
    try:
        density: Floats = forecast.log_density(y)
    except InputError:  # quantiles and samples have no density
        return None
    return -density
