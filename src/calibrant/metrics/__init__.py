"""Metrics of calibration, for each kind of forecast, and their parts: bins, losses, norms, costs."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "_support.errors": "Note",
        "metrics.breakdown": "Breakdown",
        "metrics.calbin_calloss": "CalBin CalLoss calbin calloss",
        "metrics.calibration_counter": "CalibrationCounter",
        "metrics.calibration_errors": "ACE DebiasedSCE ECC ECE MCE RMSCE TCE ace debiased_sce ecc ece mce rmsce tce",
        "metrics.calibration_in_the_large": "Bias OERatio bias oe_ratio",
        "metrics.classwise": "Classwise ClasswiseMetric",
        "metrics.cumulative": "Ecce EcceMad EcceR ecce ecce_mad ecce_r",
        "metrics.decision_cost": "DecisionCost bayes_threshold",
        "metrics.decompositions": "CorpDecomposition MCB MurphyDecomposition corp_decomposition mcb "
        "murphy_decomposition",
        "metrics.discrimination": "AUC auc",
        "metrics.distribution": "CRPS CoverageError DistributionMetric IntervalScore NLL coverage_error crps "
        "interval_score nll",
        "metrics.gce": "GCE",
        "metrics.isotonic_gaps": "Emax ICI IsotonicErrors emax ici isotonic_errors",
        "metrics.labels": "Proportions proportions",
        "metrics.local_regression": "LocalRegression",
        "metrics.log_odds": "LogOddsError log_odds_error",
        "metrics.metric": "Metric MetricValue UnbinnedMetric metric_function",
        "metrics.multiclass": "MulticlassBrier MulticlassLogLoss",
        "metrics.optimal_bins": "OptimalBins mean_within_error total_error",
        "metrics.point": "MAE MSE MeanError MeanQuotient Pinball PointMetric RMSE Ratio RelativeMSE mae mean_error "
        "mean_quotient mse pinball ratio relative_mse rmse",
        "metrics.proper_scores": "Brier LogLoss StratifiedBrier brier log_loss stratified_brier",
        "metrics.rec_curve": "ErrorTolerance error_tolerance",
        "metrics.registry": "METRICS as_metric as_metrics from_spec metric_names",
        "metrics.smooth_calibration": "SmoothECE smooth_ece",
        "metrics.smooth_gaps": "SmoothErrors loess_errors",
        "metrics.top_label": "TopLabelMetric",
        "tables.class_table": "ClassTable",
        "tables.collection": "Tables",
        "tables.confusion_table": "ConfusionTable",
        "tables.partition": "Partition",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
