"""Comparison of predictive distributions, of the same or of different types."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._support import columns as _columns
from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError
from calibrant.forecasts.distributions import pinball_losses
from calibrant.forecasts.forecast_table import as_forecast
from calibrant.inference.regression.distribution_components import merged_levels
from calibrant.inference.squared_deviations import SampledRows, share_deviation
from calibrant.inference.time_blocks import Errors
from calibrant.kinds.differences import Deviations, ModelForecasts, RowLosses, column_name
from calibrant.kinds.distribution.sample import errors
from calibrant.results.comparison import ComparisonTerms
from calibrant.tables.mean_table import ONE_COLUMN
from calibrant.tables.rows import Rows

TERMS = ComparisonTerms(
    decides="coverage error",
    quantity="coverage error (mean over levels)",
    meaning=(
        "Better calibrated means a smaller coverage error: the shares of outcomes at or below the predicted "
        "quantiles are nearer to their levels."
    ),
    unit="coverage",
    scores=("CRPS", "pinball loss"),
    best="lower",
    ability="discriminates better",
)

_LEVELS = np.arange(1, 20) / 20
_SAME_LEVEL = 1e-6  # levels may be float32


@dataclass(frozen=True, eq=False)
class DistributionModels(ModelForecasts[Any]):
    """Predictive distributions of several models, of the same or of different types."""

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

    def errors(self, rows: Rows) -> list[Errors]:
        """Return the errors of each model."""
        return errors(rows)

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


MODELS = DistributionModels


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


def common_levels(forecasts: Sequence[Any]) -> Floats:
    """Return the levels at which coverage is compared.

    Those that all `Quantiles` have; the ranks of `Samples` of equal size; else 0.05, 0.1, ..., 0.95.
    """
    given: list[Floats] = [
        each.known_levels for each in forecasts if each.known_levels is not None and each.ensemble is None
    ]
    if given:
        found = given[0]
        for other in given[1:]:
            found = found[(np.abs(found[:, None] - other) <= _SAME_LEVEL).any(axis=1)]
        if not found.size:
            raise InputError(
                "forecasts must have at least one common level; got Quantiles with the levels "
                + " and ".join(", ".join(f"{v:g}" for v in levels) for levels in given)
                + ".",
                argument="forecasts",
            )
        return found
    members = {0 if each.ensemble is None else each.ensemble.shape[1] for each in forecasts}
    if 0 in members or len(members) > 1:
        return _LEVELS
    return merged_levels(forecasts[0].known_levels, 10**9)


def coverage_hits(y: Floats, forecast: Any, levels: Floats) -> Floats:
    """Return for each row and level the probability that a randomised PIT value is at most the level.

    It is 0 or 1 where F(y) is known, or where the level is one of the forecast's. Its mean is the level if calibrated.
    """
    low, high = (bound[:, None] for bound in forecast.cells(y))
    width = high - low
    inside = np.clip(np.divide(levels - low, width, out=np.zeros((y.size, levels.size)), where=width > 0), 0.0, 1.0)
    found: Floats = np.where(width > 0, inside, (high <= levels + 1e-12).astype(np.float64))
    return found


def coverage_deviations(y: Floats, forecast: Any, levels: Floats, rows: SampledRows) -> Deviations:
    """Return the mean squared coverage error over levels."""
    return Deviations(share_deviation(coverage_hits(y, forecast, levels), levels, rows))
