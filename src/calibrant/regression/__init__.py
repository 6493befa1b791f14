"""Numbers in the place of probabilities: calibrated means (RD) and calibrated predictive distributions (RP).

Means: do predicted numbers agree with what happens on average, overall and at every level of the prediction?
Distributions: do outcomes fall where the forecast says, as often as it says?
"""

from importlib import import_module as _import_module

_HOME = {
    name: module
    for module, names in {
        "binned": "BiasByBin bias_by_bin tce",
        "cost_bins": "CostByBin cost_by_bin",
        "distributions": "Coverage anderson_darling chi_square coverage crps interval_score kolmogorov_smirnov "
        "miscalibration nll pinball pit sharpness",
        "estimates": "Estimate",
        "evaluation": "evaluate",
        "forecasts": "Gaussian Quantiles Samples",
        "frozen": "Frozen",
        "means": "LinearFit MSEDecomposition RECCurve corp_decomposition error_tolerance mae mean_error mean_quotient "
        "mse mse_decomposition ratio rec_curve relative_mse slope_intercept",
        "pareto": "Front FrontPoint ParetoRecalibrator SinhArcsinh not_dominated",
        "recalibrated": "PITRecalibrator QuantileRecalibrator VarianceScaling",
        "recalibrators": "CostRecalibrator IsotonicRecalibrator LinearRecalibrator LocalRecalibrator RecalibratedModel",
        "repaired": "Stretched Warped",
        "results": "NumberEvaluation",
        "table": "MeanTable",
        "trades": "Trade",
    }.items()
    for name in names.split()
}

__all__ = [*sorted(_HOME)]  # noqa: PLE0604  (built from the map; __init__.pyi spells it out)


def __getattr__(name: str) -> object:
    if name in _HOME:
        value = getattr(_import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
