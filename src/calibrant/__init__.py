"""Calibrant tells whether the probabilities that a model prints can be believed."""

from importlib import import_module as _import_module

_MODULES = (
    "bins",
    "costs",
    "losses",
    "metrics",
    "norms",
    "optimality",
    "plots",
    "regression",
    "scores",
    "significance",
)

_HOME = {
    name: module
    for module, names in {
        "bins": "Edges EqualInformation EqualWidth PAVA PAVABC Quantile",
        "comparison": "Comparison compare",
        "costs": "ExponentialCost LinearCost LogCost PowerCost StepCost",
        "cox": "slope_intercept",
        "decision_costs": "DecisionCost bayes_threshold decisions",
        "errors": "CalibrantWarning InputError Note",
        "evaluation": "Evaluation evaluate",
        "gce": "Breakdown GCE",
        "inference.hypothesis_tests": "consistency ecce_test hosmer_lemeshow slope_intercept_test spiegelhalter",
        "inference.decision": "AbsoluteMargin",
        "inference.intervals": "equivalence interval null",
        "inference.planning": "sample_size",
        "inference.power": "detectable",
        "metrics": "ACE Bias CalBin DebiasedSCE ECC ECE Emax ICI LogOddsError MCE METRICS RMSCE TCE "
        "ace bias debiased_sce ecc ece emax ici mce rmsce tce",
        "ingest.files": "scan tables_scan",
        "ingest.frames": "from_frame tables_from_frame",
        "ingest.queries": "from_query tables_from_query",
        "ingest.tables": "Tables",
        "multiclass": "classwise top_label",
        "optimal": "optimal_prediction",
        "optimality": "OptimalBins mean_within_error total_error",
        "partition": "Partition",
        "class_proportions": "proportions",
        "calibrators.auto": "AutoCalibrator",
        "calibrators.beta": "Beta",
        "calibrators.binning": "BinningAverage",
        "calibrators.cost_aware": "CAPS CATS",
        "calibrators.isotonic": "Isotonic",
        "calibrators.metacal": "MetaCal",
        "calibrators.models": "CalibratedModel",
        "calibrators.multiclass": "OneVsRest SoftmaxTemperature VectorScaling",
        "calibrators.prior_shift": "PriorShift",
        "calibrators.registry": "CALIBRATORS",
        "calibrators.scorers": "scorers",
        "calibrators.sigmoid": "Platt Temperature",
        "calibrators.thresholds": "ProportionThreshold",
        "calibrators.trees": "TreeSmoothing",
        "calibrators.venn_abers": "VennAbers",
        "scores": "auc brier calbin calloss corp_decomposition ecce ecce_mad ecce_r isotonic_errors log_loss "
        "log_odds_error mcb murphy_decomposition oe_ratio smooth_ece stratified_brier",
        "shipping.files": "load save",
        "shipping.onnx_graph": "to_onnx",
        "shipping.sql": "to_sql",
        "table": "ScoreTable",
        "versions": "__version__ show_versions",
    }.items()
    for name in names.split()
}

__all__ = [*sorted(_HOME), *_MODULES]  # noqa: PLE0604  (built from the map; __init__.pyi spells it out)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    if name in _HOME:
        value = getattr(_import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
