"""Calibrant measures, tests and improves the calibration of predictions, and reports it.

The names here are the ones that most programs use: `evaluate`, `compare` and `audit`, types of forecasts, tables, and
the best-known metrics and calibrators. Everything else is in a namespace such as ``calibrant.metrics`` or
``calibrant.calibrators``.
"""

from calibrant._support.lazy import LazyNames as _LazyNames

_lazy = _LazyNames(
    __name__,
    {
        "_support.errors": "CalibrantWarning InputError",
        "calibrators.auto": "AutoCalibrator",
        "calibrators.logit_scaling": "Beta Platt",
        "calibrators.isotonic": "Isotonic",
        "calibrators.logit_spline": "LogitSpline",
        "calibrators.structured_scaling": "StructuredScaling",
        "calibrators.calibrated_model": "CalibratedModel",
        "calibrators.multicalibrator": "Multicalibrator",
        "calibrators.scorers": "scorers",
        "evaluation.audit.segment_audit": "audit",
        "evaluation.compare": "compare",
        "evaluation.decision_curves": "decision_curve",
        "evaluation.decisions": "decisions",
        "evaluation.evaluate": "evaluate",
        "evaluation.metric_inference": "consistency equivalence interval null",
        "export.calibrator_files": "load save",
        "export.onnx_graph": "to_onnx",
        "export.sql": "to_sql",
        "forecasts.counts": "NegativeBinomial Poisson",
        "forecasts.distributions": "Gaussian Quantiles Samples",
        "forecasts.predictions": "Labels Ordinal Point",
        "inference.sample_size": "sample_size",
        "ingest.files": "scan",
        "ingest.frames": "from_frame",
        "ingest.queries": "from_query",
        "metrics.calibration_errors": "ECE TCE ece tce",
        "metrics.gce": "GCE",
        "metrics.log_odds": "log_odds_error",
        "metrics.proper_scores": "brier log_loss",
        "metrics.registry": "METRICS",
        "monitor.client": "MonitorClient",
        "monitor.model": "Monitor",
        "results.comparison": "Comparison",
        "results.evaluation": "Evaluation",
        "results.settings": "AbsoluteMargin RelativeMargin",
        "tables.score_table": "ScoreTable",
        "versions": "__version__ show_versions",
    },
    namespaces={
        "bins": "metrics.bins",
        "calibrators": "calibrators",
        "costs": "metrics.costs",
        "exceptions": "exceptions",
        "forecasts": "forecasts",
        "inference": "inference",
        "losses": "metrics.losses",
        "metrics": "metrics",
        "norms": "metrics.norms",
        "plots": "plots",
        "regression": "regression",
        "results": "results",
        "significance": "metrics.significance",
    },
    has_old_names=True,
)
__all__ = _lazy.names  # noqa: PLE0605  (built from the map; __init__.pyi spells it out)
__getattr__ = _lazy
__dir__ = _lazy.directory()
