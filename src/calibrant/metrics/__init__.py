"""Metrics of calibration, for each kind of forecast, and their parts: bins, losses, norms, costs."""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "_support.errors": "Note",
        "metrics.gce": "Breakdown GCE",
        "metrics.calibration_errors": "ACE Bias CalBin CalLoss DebiasedSCE ECC ECE Ecce EcceMad EcceR Emax ICI "
        "IsotonicErrors MCE OERatio RMSCE TCE ace bias calbin calloss debiased_sce ecc ecce ecce_mad ecce_r ece emax "
        "ici isotonic_errors mce oe_ratio rmsce tce",
        "metrics.calibration_counter": "CalibrationCounter",
        "metrics.multiclass": "Classwise ClasswiseMetric MulticlassBrier MulticlassLogLoss TopLabelMetric "
        "classwise top_label",
        "metrics.frequencies": "CountFrequencies count_frequencies",
        "metrics.decision_costs": "DecisionCost bayes_threshold optimal_prediction",
        "metrics.ordinal": "CumulativeMetric RPS rps",
        "metrics.proper_scores": "AUC Brier CorpDecomposition LogLoss MCB MurphyDecomposition StratifiedBrier auc "
        "brier corp_decomposition log_loss mcb murphy_decomposition stratified_brier",
        "metrics.distribution": "CRPS CoverageError DistributionMetric IntervalScore NLL coverage_error crps "
        "interval_score nll",
        "metrics.labels": "Proportions proportions",
        "metrics.smooth_errors": "LocalRegression SmoothECE SmoothErrors loess_errors smooth_ece",
        "metrics.log_odds": "LogOddsError log_odds_error slope_intercept",
        "metrics.metric": "Metric MetricValue UnbinnedMetric metric_function",
        "metrics.optimal_bins": "OptimalBins mean_within_error total_error",
        "metrics.point": "ErrorTolerance MAE MSE MeanError MeanQuotient Pinball PointMetric RMSE Ratio RelativeMSE "
        "error_tolerance mae mean_error mean_quotient mse pinball ratio relative_mse rmse",
        "metrics.registry": "METRICS as_metric as_metrics from_spec metric_names",
        "tables.class_table": "ClassTable ConfusionTable",
        "tables.collection": "Tables",
        "tables.score_table": "Partition",
    },
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
