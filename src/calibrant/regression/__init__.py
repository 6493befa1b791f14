"""Regression: calibration of point predictions and of predictive distributions."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "calibrators.distribution": "PITRecalibrator QuantileRecalibrator VarianceScaling",
        "calibrators.pareto": "Front FrontPoint ParetoRecalibrator SinhArcsinh not_dominated",
        "calibrators.point": "CostRecalibrator IsotonicRecalibrator LinearRecalibrator LocalRecalibrator "
        "RecalibratedModel",
        "calibrators.trade_off": "Trade",
        "evaluation.regression": "evaluate",
        "forecasts.distributions": "Gaussian Quantiles Samples",
        "forecasts.frozen": "Frozen",
        "forecasts.transformed": "Stretched Warped",
        "inference.bias_by_bin": "BiasByBin bias_by_bin tce",
        "inference.estimates": "Estimate",
        "metrics.distribution": "Coverage anderson_darling chi_square coverage crps interval_score "
        "kolmogorov_smirnov miscalibration nll pinball pit sharpness",
        "metrics.point": "LinearFit MSEDecomposition RECCurve corp_decomposition error_tolerance mae mean_error "
        "mean_quotient mse mse_decomposition ratio rec_curve relative_mse slope_intercept",
        "metrics.point_costs": "CostByBin cost_by_bin",
        "tables.mean_table": "MeanTable",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
