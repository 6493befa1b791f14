"""Reproductions of the papers, and the studies behind the tables of the documentation.

``python -m research`` lists them with the files that they write; `tools.programs` has the other forms.
"""

import os
import sys

from tools.programs import ONE_THREAD, Program, main

__all__ = ["PROGRAMS"]

# NumPy 1.24 and OpenBLAS without AVX-512, which changes a few printed digits.
AVX2 = {
    **ONE_THREAD,
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL",
}


def _study(
    group: str, name: str, time: str, *files: str, options: tuple[str, ...] = (), libraries: str = ""
) -> Program:
    """Return a program of research/studies, which writes tables of docs/studies."""
    writes = tuple(f"docs/studies/{file}" for file in files or (f"{name}.csv",))
    return Program(group, f"research.studies.{name}", writes, time, options, libraries=libraries)


_MISSING = ("--missing", "1000")  # keep the cells that exist
PROGRAMS: dict[str, Program] = {
    "tce": Program(
        "reproduction",
        "research.reproduction",
        (
            "docs/reproduction/table*.csv",
            "docs/reproduction/figure*.png",
            "docs/reproduction/index.rst",
            "docs/reproduction/nulls.csv",
            "docs/reproduction/ties.csv",
            "docs/reproduction/appendix_b.csv",
        ),
        "20 minutes",
        check=("--check",),
        log="docs/reproduction/log.txt",
    ),
    "bella": Program(
        "reproduction", "research.reproduction.bella", ("docs/reproduction/bella.rst",), "seconds", check=("--check",)
    ),
    "taxonomy": Program(
        "reproduction", "research.reproduction.taxonomy", ("docs/reproduction/taxonomy/*",), "a minute"
    ),
    "costs": Program(
        "reproduction",
        "research.reproduction.costs",
        (
            "docs/reproduction/costs.rst",
            "docs/reproduction/costs/*.csv",
            "docs/reproduction/costs/*.png",
            "docs/reproduction/costs/summary.txt",
        ),
        "seconds",
        check=("--quick",),
    ),
    "costs_splits": Program(
        "fits",
        "research.reproduction.costs",
        ("docs/reproduction/costs/log.txt", "research/reproduction/results/costs.csv"),
        "a day",
        options=("--run",),
        libraries="reproduction",
        log="docs/reproduction/costs/log.txt",
        appends=True,
    ),
    "forests": Program(
        "fits", "research.reproduction.costs.forests", ("research/reproduction/results/forests.csv",), "15 minutes"
    ),
    "embeddings": Program(
        "fits",
        "research.reproduction.costs.embed",
        ("build/reproduce/fine_foods.npz",),
        "5 minutes",
        libraries="embeddings",
        environment=True,
    ),
    "uci_fit": Program(
        "fits",
        "research.reproduction.uci_fit",
        ("research/reproduction/predictions/*.npz",),
        "20 minutes",
        options=(os.environ.get("CALIBRANT_DATA", "build/data"), "research/reproduction/predictions"),
        libraries="fits-of-2023",
        environment=True,
        variables=AVX2,
    ),
    "verdicts": _study("verdicts", "verdicts", "hours", "verdicts*.csv"),
    "failures": _study("verdicts", "failures", "10 minutes"),
    "regions": _study("verdicts", "regions", "an hour", options=_MISSING),
    "comparisons": _study("verdicts", "comparisons", "an hour"),
    "comparisons_of_kinds": _study("verdicts", "comparisons_of_kinds", "an hour"),
    "model_selection": _study("verdicts", "model_selection", "an hour", "best_sets.csv", "non_inferiority.csv"),
    "diebold_mariano": _study("verdicts", "diebold_mariano", "5 minutes"),
    "multiclass": _study("verdicts", "multiclass", "an hour", "multiclass*.csv"),
    "ordinal": _study("verdicts", "ordinal", "10 minutes"),
    "serial_dependence": _study("verdicts", "serial_dependence", "20 minutes"),
    "counts": _study("verdicts", "counts", "15 minutes", "counts.csv", "counts_coverage.csv"),
    "heterogeneity": _study("verdicts", "heterogeneity", "40 minutes", "heterogeneity*.csv"),
    "coverage": _study("verdicts", "coverage", "an hour"),
    "intervals": _study("verdicts", "intervals", "half an hour"),
    "planning": _study("verdicts", "planning", "minutes"),
    "sizes": _study("verdicts", "sizes", "an hour", "sizes.csv", "power.csv"),
    "tce_sample_size": _study(
        "verdicts", "tce_sample_size", "minutes", "tce_sample_size.csv", "tce_power.csv", "prior_shift.csv"
    ),
    "few_events": _study("verdicts", "few_events", "minutes"),
    "monitoring": _study("monitoring", "monitoring", "6 hours", "monitoring_false_alarms.csv", options=_MISSING),
    "monitoring_events": _study("monitoring", "monitoring_events", "10 minutes", options=_MISSING),
    "monitoring_delays": _study(
        "monitoring",
        "monitoring_delays",
        "an hour",
        "monitoring_delays.csv",
        "monitoring_delays_summary.csv",
        options=_MISSING,
    ),
    "monitor_stream": _study("monitor-stream", "monitor_stream", "a minute", "monitor_stream.txt"),
    "curves": _study("curves", "curves", "an hour", "curves.csv", "belts.csv"),
    "net_benefit": _study("curves", "net_benefit", "10 minutes"),
    "event_rates": _study("curves", "event_rates", "10 minutes"),
    "audit": _study(
        "audit", "audit", "hours", "audit_false_findings.csv", "audit_power.csv", libraries="multicalibration"
    ),
    "audit_pvalues": _study("audit", "audit_pvalues", "2 minutes", options=_MISSING),
    "audit_example": _study("audit", "audit_example", "seconds", "audit_credit.txt"),
    "calibrators": _study(
        "calibrators", "calibrators", "5 minutes", "calibrators.csv", "calibrators_summary.csv", "calibrators.rst"
    ),
    "automatic_selection": _study("calibrators", "automatic_selection", "10 minutes", options=_MISSING),
    "credit": _study("costs", "credit", "a minute", "costs_comparison.txt", "costs_decisions.txt"),
    "multicalibration": _study(
        "multicalibration",
        "multicalibration",
        "20 minutes",
        "multicalibration.csv",
        "multicalibration.rst",
        libraries="multicalibration",
    ),
    "multicalibrator_on_calibrated_scores": _study(
        "multicalibration", "multicalibrator_on_calibrated_scores", "a minute", options=_MISSING
    ),
    "regression_recalibrators": _study(
        "regression",
        "regression_recalibrators",
        "10 minutes",
        "regression_point.csv",
        "regression_distribution.csv",
        "regression.rst",
    ),
    "regression_error_rates": _study("regression", "regression_error_rates", "20 minutes"),
    "scikit_learn": _study("scikit-learn", "scikit_learn", "10 minutes", "scikit_learn*.csv", "scikit_learn.rst"),
}

if __name__ == "__main__":
    sys.exit(main("research", PROGRAMS))
