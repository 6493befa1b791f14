"""Regression: calibration of point predictions and of predictive distributions."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "calibrators.distribution": "DistributionMap PITRecalibrator QuantileRecalibrator VarianceScaling",
        "calibrators.maps": "SinhArcsinh",
        "calibrators.pareto": "Front FrontPoint ParetoRecalibrator not_dominated",
        "calibrators.point": "CostRecalibrator IsotonicRecalibrator LinearRecalibrator LocalRecalibrator PointMap "
        "TradeOff",
        "calibrators.calibrated_model": "RecalibratedModel",
        "evaluation.evaluate": "evaluate",
        "forecasts.distributions": "Frozen Gaussian Quantiles Samples",
        "forecasts.protocol": "Forecast",
        "forecasts.transformed": "Stretched Warped",
        "inference.regression.bias_by_bin": "BiasByBin bias_by_bin tce",
        "results.uncertainty": "Estimate",
        "inference.regression.point_line": "LinearFit slope_intercept",
        "inference.regression.uniformity": "anderson_darling chi_square kolmogorov_smirnov",
        "metrics.distribution": "CRPS Coverage CoverageError IntervalScore NLL coverage coverage_error crps "
        "interval_score miscalibration nll pit sharpness",
        "forecasts.forecast_table": "ForecastTable",
        "metrics.point": "ErrorTolerance MAE MSE MSEDecomposition MeanError MeanQuotient Pinball RECCurve RMSE Ratio "
        "RelativeMSE corp_decomposition error_tolerance mae mean_error mean_quotient mse mse_decomposition pinball "
        "ratio rec_curve relative_mse rmse",
        "metrics.point_costs": "CostByBin cost_by_bin",
        "tables.mean_table": "MeanTable",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
