"""Metrics of calibration, for each kind of forecast, and what they are built of: bins, losses, norms, costs."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "metrics.gce": "Breakdown GCE",
        "metrics.named": "ACE Bias CalBin DebiasedSCE ECC ECE Emax ICI LogOddsError MCE METRICS RMSCE TCE "
        "ace bias debiased_sce ecc ece emax ici mce rmsce tce from_spec Metric",
        "metrics.scores": "Reading Score auc brier calbin calloss corp_decomposition ecce ecce_mad ecce_r "
        "isotonic_errors log_loss log_odds_error mcb murphy_decomposition oe_ratio smooth_ece stratified_brier",
        "metrics.slope_intercept": "slope_intercept",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
