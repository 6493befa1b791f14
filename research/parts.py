"""The parts of the research program: what each reproduces or measures, and the files that it writes."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["DOCS", "PARTS", "Part", "chosen"]

DOCS = Path(__file__).parents[1] / "docs"


@dataclass(frozen=True)
class Part:
    """A program that writes tables or pages of the documentation.

    Attributes
    ----------
    group : str
        "reproduction", or the kind of study; the make target ``study-<group>`` runs its parts.
    module : str
    writes : tuple of str
        Patterns of files below docs/.
    time : str
        On two cores.
    options : tuple of str
        Arguments with which the part runs by default.
    """

    group: str
    module: str
    writes: tuple[str, ...]
    time: str
    options: tuple[str, ...] = ()

    @property
    def files(self) -> list[Path]:
        """The files that exist."""
        return sorted(path for pattern in self.writes for path in DOCS.glob(pattern))

    @property
    def about(self) -> str:
        """The first line of the module's docstring."""
        path = Path(__file__).parents[1] / (self.module.replace(".", "/") + ".py")
        path = path if path.exists() else path.with_suffix("") / "__main__.py"
        return path.read_text(encoding="utf-8").split('"""')[1].splitlines()[0]


def _study(group: str, name: str, time: str, *writes: str, options: tuple[str, ...] = ()) -> Part:
    files = writes or (f"{name}.csv",)
    return Part(group, f"research.studies.{name}", tuple(f"studies/{file}" for file in files), time, options)


_MISSING = ("--missing", "1000")  # keep the cells that exist
PARTS: dict[str, Part] = {
    "tce": Part(
        "reproduction",
        "research.reproduction",
        (
            "reproduction/table*.csv",
            "reproduction/figure*.png",
            "reproduction/index.rst",
            "reproduction/nulls.csv",
            "reproduction/ties.csv",
            "reproduction/appendix_b.csv",
        ),
        "20 minutes",
    ),
    "bella": Part("reproduction", "research.reproduction.bella", ("reproduction/bella.rst",), "seconds"),
    "taxonomy": Part("reproduction", "research.reproduction.taxonomy", ("reproduction/taxonomy/*",), "a minute"),
    "costs": Part(
        "reproduction",
        "research.reproduction.costs",
        (
            "reproduction/costs.rst",
            "reproduction/costs/*.csv",
            "reproduction/costs/*.png",
            "reproduction/costs/summary.txt",
        ),
        "seconds; a day with --run",
    ),
    "verdicts": _study("verdicts", "verdicts", "hours", "verdicts*.csv"),
    "failures": _study("verdicts", "failures", "10 minutes"),
    "comparisons": _study("verdicts", "comparisons", "an hour"),
    "comparisons_of_kinds": _study("verdicts", "comparisons_of_kinds", "an hour"),
    "multiclass": _study("verdicts", "multiclass", "an hour", "multiclass*.csv"),
    "coverage": _study("verdicts", "coverage", "an hour"),
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
    "audit": _study("audit", "audit", "hours", "audit_false_findings.csv", "audit_power.csv"),
    "audit_pvalues": _study("audit", "audit_pvalues", "2 minutes", options=_MISSING),
    "audit_example": _study("audit", "audit_example", "seconds", "audit_credit.txt"),
    "calibrators": _study(
        "calibrators", "calibrators", "5 minutes", "calibrators.csv", "calibrators_summary.csv", "calibrators.rst"
    ),
    "automatic_selection": _study("calibrators", "automatic_selection", "10 minutes", options=_MISSING),
    "credit": _study("costs", "credit", "a minute", "costs_comparison.txt", "costs_decisions.txt"),
    "multicalibration": _study(
        "multicalibration", "multicalibration", "20 minutes", "multicalibration.csv", "multicalibration.rst"
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


def chosen(names: list[str]) -> list[Part]:
    """Return the parts with the given names, and those of the given groups; an unknown name is an error."""
    found: dict[str, Part] = {}
    for name in names:
        own = {key: part for key, part in PARTS.items() if name in (key, part.group)}
        if not own:
            groups = dict.fromkeys(part.group for part in PARTS.values())
            raise ValueError(
                f"no part or group is named {name!r}; parts: {', '.join(PARTS)}; groups: {', '.join(groups)}."
            )
        found |= own
    return list(found.values())
