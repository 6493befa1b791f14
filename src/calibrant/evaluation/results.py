"""`Evaluation`: the result of evaluating one forecast, of any kind."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any

from calibrant._support.errors import Note
from calibrant._support.frame_output import frame_from_rows
from calibrant._support.json_values import label as json_label
from calibrant._support.json_values import number
from calibrant.evaluation import sentences
from calibrant.evaluation.binary_details import BinaryDetails
from calibrant.evaluation.metric_result import MetricResult
from calibrant.evaluation.regression_details import RegressionDetails
from calibrant.evaluation.settings import Settings
from calibrant.evaluation.sizes import mean_score, n_used, row_counts
from calibrant.evaluation.text import GroupTable, ResultText
from calibrant.inference.coefficients import Coefficient
from calibrant.inference.decision import AbsoluteMargin
from calibrant.inference.hypothesis_tests import TestResult
from calibrant.inference.intervals import Interval
from calibrant.inference.multiplicity import benjamini_hochberg, holm

__all__ = ["SCHEMA_VERSION", "Evaluation", "to_json_text"]

SCHEMA_VERSION = 3


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Calibration of one forecast; see `evaluate` and `calibrant.regression.evaluate`.

    Attributes
    ----------
    kind : str
        binary, point or distribution.
    table : ScoreTable or MeanTable
        The rows that were evaluated.
    metrics : mapping of name to MetricResult
        Each metric with its confidence interval, its null distribution and an adjusted p-value.
    breakdowns : mapping of name to Breakdown, BiasByBin or Coverage
        Of probabilities the `Breakdown` of each metric over bins, always with ECE, ACE and a test-based one; of points
        "bias by bin"; of distributions also "coverage", where central intervals exist.
    details : BinaryDetails or RegressionDetails
        Results that only this kind has.
    settings : Settings
    groups : mapping
        The evaluation of each group, by the values of `by`.
    adjusted_pvalue : float or None
        Of a group: the p-value of its omnibus test, adjusted by Holm for the number of groups. It decides the verdict.
    """

    kind: str
    table: Any
    metrics: Mapping[str, MetricResult]
    breakdowns: Mapping[str, Any]
    details: BinaryDetails | RegressionDetails
    settings: Settings
    groups: "Mapping[Any, Evaluation]" = field(default_factory=dict)
    by: str | None = None
    adjusted_pvalue: float | None = None
    group_factor: float = 1.0
    own_notes: tuple[Note, ...] = ()

    def __getitem__(self, name: str) -> MetricResult:
        try:
            return self.metrics[name]
        except KeyError:
            raise KeyError(f"{name!r}; there are {', '.join(self.metrics)}") from None

    @property
    def n_rows(self) -> int:
        """Number of rows that were used."""
        return n_used(self.table)

    @property
    def decision(self) -> Any:
        """The tests behind the verdict: a `Decision`, or the `JointTest` of points and distributions."""
        return self.details.decision

    @property
    def equivalence(self) -> Any:
        """The deviation against the margin: an `Equivalence`, or the `Deviation` of points and distributions."""
        return self.details.equivalence

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """Calibration slope and intercepts with confidence intervals, where they exist."""
        return self.details.coefficients

    @property
    def pvalue(self) -> float:
        """p-value of the omnibus test; in a group, adjusted for the number of groups. NaN where nothing is tested."""
        return self.details.pvalue if self.adjusted_pvalue is None else self.adjusted_pvalue

    @cached_property
    def tests(self) -> dict[str, TestResult]:
        """All tests by name. Those behind the verdict come first and have an `adjusted_pvalue`; the others do not."""
        found = [*self.details.deciding_tests(self.group_factor), *self.details.other_tests]
        return {test.name: test for test in found}

    @property
    def omnibus(self) -> TestResult:
        """The omnibus test: the smallest of the p-values of its components, adjusted by Holm."""
        pairs = [(test.adjusted_pvalue, test.statistic) for test in self.details.deciding_tests(1.0)]
        known = [(p, statistic) for p, statistic in pairs if p is not None and not math.isnan(p)]
        first = min(known, key=lambda pair: pair[0], default=(math.nan, math.nan))
        return TestResult(first[1], self.details.pvalue, "omnibus test")

    @property
    def is_significant(self) -> bool:
        """Whether the omnibus test rejects calibration."""
        return self.pvalue <= self.settings.alpha

    @property
    def is_within_margin(self) -> bool:
        """Whether the deviation is shown to lie within the margin."""
        return bool(self.equivalence.within)

    @property
    def direction(self) -> str:
        """Significant directions, comma-joined; '' if none is shown.

        overestimates or underestimates (calibration in the large, mean error), overconfident or underconfident (slope,
        or width of predictive distributions), or local: a significant deviation of another kind.
        """
        return self.details.direction(self.settings.alpha, self.group_factor)

    @property
    def verdict(self) -> str:
        """calibrated, negligible, miscalibrated or inconclusive; `evaluate` has the rule."""
        if self.is_within_margin:
            return "negligible" if self.is_significant else "calibrated"
        return "miscalibrated" if self.is_significant else "inconclusive"

    @property
    def margin(self) -> float:
        """The margin: in log-odds or for ACE; of points and distributions see `calibrant.regression.evaluate`."""
        margin = self.settings.margin
        return margin.value if isinstance(margin, AbsoluteMargin) else margin

    @property
    def rows_to_decide(self) -> int | None:
        """Number of further rows that would probably decide an inconclusive verdict; None for other verdicts."""
        return self.details.rows_to_decide(self) if self.verdict == "inconclusive" else None

    @property
    def log_odds_error(self) -> Interval:
        """The log-odds error with its confidence interval; of probabilities only."""
        if not isinstance(self.details, BinaryDetails):
            raise AttributeError(f"log_odds_error is undefined for kind {self.kind!r}; see .equivalence.")
        return self.details.decision.log_odds_error

    @property
    def mean_score(self) -> float:
        """Mean score of all rows; of probabilities only."""
        return mean_score(self.table)

    @property
    def event_rate(self) -> float:
        """Event rate of all rows; of probabilities only."""
        return float(self.table.prevalence)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the input and the results."""
        found: dict[tuple[str, str], Note] = {}
        metrics = (notes for m in self.metrics.values() for notes in (m.interval.notes, m.null.notes))
        for notes in (self.own_notes, *metrics, *(test.notes for test in self.details.other_tests)):
            for note in notes:
                if note.code != "few_events":  # the tests keep it; here their p-values by resampling are shown
                    found.setdefault((note.code, note.template), note)
        return tuple(found.values())

    @cached_property
    def adjusted(self) -> dict[Any, dict[str, float]]:
        """For each group the p-value of its omnibus test, and those adjusted for the number of groups."""
        known = {name: g.details.pvalue for name, g in self.groups.items() if not math.isnan(g.details.pvalue)}
        raw = list(known.values())
        columns = zip(known, raw, holm(raw).tolist(), benjamini_hochberg(raw).tolist(), strict=True)
        found = {name: {"pvalue": p, "holm": h, "benjamini_hochberg": b} for name, p, h, b in columns}
        untested = dict.fromkeys(("pvalue", "holm", "benjamini_hochberg"), math.nan)
        return {name: found.get(name, untested) for name in self.groups}

    @cached_property
    def worst_first(self) -> "dict[Any, Evaluation]":
        """The groups, miscalibrated ones first, by adjusted p-value and size of the deviation."""

        def key(item: tuple[Any, Evaluation]) -> tuple[float, ...]:
            group = item[1]
            pvalue = 1.0 if math.isnan(group.pvalue) else group.pvalue
            return sentences.severity(group.verdict), pvalue, -group.details.deviation

        return dict(sorted(self.groups.items(), key=key))

    def to_dict(self) -> dict[str, Any]:
        """All results as plain data for JSON, with the settings; the same keys for every kind."""
        result: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "result": "evaluation",
            "kind": self.kind,
            "verdict": self.verdict,
            "direction": self.direction,
            "headline": self.headline(),
            **number("pvalue", self.pvalue),
            "n_rows": self.n_rows,
            **row_counts(self.table),
            **self.details.sizes(self.table),
            "metrics": [metric.to_dict() for metric in self.metrics.values()],
            "equivalence": self.equivalence.to_dict(),
            "coefficients": [coefficient.to_dict() for coefficient in self.coefficients],
            "tests": [test.to_dict() for test in self.tests.values()],
            "breakdowns": {name: _finite(breakdown.to_dict()) for name, breakdown in self.breakdowns.items()},
            "details": self.details.to_dict(),
            "settings": self.settings.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
            "by": self.by,
        }
        result["groups"] = [
            {"group": json_label(name), "adjusted": _numbers(self.adjusted[name]), **group.to_dict()}
            for name, group in self.groups.items()
        ]
        return result

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return to_json_text(self.to_dict())

    def to_frame(self, backend: str = "pandas") -> Any:
        """One row per metric and group: value, interval, null range, p-value. `backend`: any that Narwhals can make."""
        rows = self.rows(group="all")
        rows += [row for name, group in self.groups.items() for row in group.rows(group=str(name))]
        return frame_from_rows(rows, backend)

    def rows(self, **columns: Any) -> list[dict[str, Any]]:
        """One row per metric, with further columns before it."""
        about = {
            **self.details.frame_columns(self.table),
            "verdict": self.verdict,
            "direction": self.direction,
        }
        return [{**columns, **metric.to_row(), **about} for metric in self.metrics.values()]

    def plot(self, *, fig: Any = None) -> Any:
        """Draw the verdict and its evidence in `fig` or a new figure: a `calibrant.plots.EvaluationDisplay`."""
        from calibrant import plots

        return plots.EvaluationDisplay(self).plot(fig=fig)

    def to_html(self, path: str | PathLike[str] | None = None, *, title: str = "Calibration report") -> str:
        """Return the report as one self-contained HTML page; write it to `path` if one is given.

        The same results give the same page.
        """
        from calibrant import report

        return report.write_evaluation(self, path, title=title)

    def __repr__(self) -> str:
        return self._text().to_text()

    def _repr_html_(self) -> str:
        return self._text().to_html()

    def _text(self) -> ResultText:
        return ResultText(
            self.headline(),
            [*self.sentences(), self.sizes_in_words()],
            self.cells(),
            list(self.reasons()),
            self.notes,
            groups=self.group_table(),
        )

    def headline(self) -> str:
        """The verdict in a line."""
        return f"Verdict: {self.details.headline(self)}"

    def sentences(self) -> list[str]:
        """Explanation of the verdict."""
        return self.details.sentences(self)

    def sizes_in_words(self) -> str:
        """Number of rows, and means of predictions and outcomes."""
        return self.details.sizes_in_words(self.table)

    def cells(self) -> list[list[str]]:
        """The table of metrics as text; its first row is the header."""
        level = f"{100 * self.settings.confidence_level:g} % CI"
        header = ["", "value", level, "expected if calibrated", "adjusted p"]
        return [header, *([name, *metric.cells()] for name, metric in self.metrics.items())]

    def reasons(self) -> Iterable[str]:
        """The tests behind the verdict, the coefficients and other tests."""
        return self.details.reasons(self)

    def group_table(self) -> GroupTable | None:
        """The groups, worst first; None without groups. `to_frame` has all their metrics."""
        if not self.groups:
            return None
        level = f"{100 * self.settings.confidence_level:g} %"
        by = str(self.by or "group")
        cells = [[str(name), *group.details.group_cells(group)] for name, group in self.worst_first.items()]
        return GroupTable.build(by, [[by, *self.details.group_header(level)], *cells])


def _numbers(values: Mapping[str, float]) -> dict[str, Any]:
    return {key: each for name, value in values.items() for key, each in number(name, value).items()}


def _finite(value: Any) -> Any:
    """Return plain data with null in the place of NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_json_text(result: dict[str, Any]) -> str:
    """Return plain data as JSON text; NaN and infinity are not allowed in it."""
    return json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False)
