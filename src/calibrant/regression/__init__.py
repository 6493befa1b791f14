"""Regression: calibration of point predictions and of predictive distributions."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "calibrators.distribution": "PITRecalibrator QuantileRecalibrator VarianceScaling",
        "calibrators.distribution_map": "DistributionMap",
        "calibrators.maps": "SinhArcsinh",
        "calibrators.pareto": "Front FrontPoint ParetoRecalibrator not_dominated",
        "calibrators.point": "IsotonicRecalibrator LinearRecalibrator LocalRecalibrator",
        "calibrators.point_cost": "CostRecalibrator",
        "calibrators.point_map": "PointMap",
        "calibrators.point_model": "RecalibratedModel",
        "calibrators.trade_off": "TradeOff",
        "evaluation.evaluate": "evaluate",
        "forecasts.distributions": "Gaussian Quantiles Samples",
        "forecasts.frozen": "Frozen",
        "forecasts.protocol": "Forecast",
        "forecasts.transformed": "Stretched Warped",
        "inference.regression.bias_by_bin": "BiasByBin bias_by_bin tce",
        "results.uncertainty": "Estimate",
        "inference.regression.point_line": "LinearFit slope_intercept",
        "inference.regression.uniformity": "anderson_darling chi_square kolmogorov_smirnov",
        "metrics.coverage": "Coverage coverage sharpness",
        "forecasts.forecast_table": "ForecastTable",
        "metrics.distribution": "CRPS CoverageError IntervalScore NLL coverage_error crps interval_score nll",
        "metrics.pit": "miscalibration pit",
        "metrics.point": "MAE MSE MeanError MeanQuotient Pinball RMSE Ratio RelativeMSE mae mean_error mean_quotient "
        "mse pinball ratio relative_mse rmse",
        "metrics.point_costs": "CostByBin cost_by_bin",
        "metrics.point_decomposition": "MSEDecomposition corp_decomposition mse_decomposition",
        "metrics.rec_curve": "ErrorTolerance RECCurve error_tolerance rec_curve",
        "tables.mean_table": "MeanTable",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
