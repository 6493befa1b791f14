"""Forecasts: the types that `evaluate` and other functions take, for outcomes that are numbers, counts or classes."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "forecasts.counts": "NegativeBinomial Poisson",
        "forecasts.distributions": "Frozen Gaussian Quantiles Samples",
        "forecasts.forecast_table": "ForecastTable",
        "forecasts.predictions": "Labels Ordinal Point",
        "forecasts.protocol": "Forecast",
        "forecasts.transformed": "Stretched Warped",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
