"""`NumberEvaluation`: the result of evaluating point predictions or predictive distributions."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant._support.errors import Note
from calibrant._support.json_values import label as json_label
from calibrant._support.text_tables import html_table, text_table
from calibrant.inference.bias_by_bin import BiasByBin
from calibrant.inference.estimates import Estimate
from calibrant.inference.hypothesis_tests import TestResult
from calibrant.inference.joint_test import Component, JointTest
from calibrant.inference.point_tce import TestBasedError
from calibrant.inference.regression_verdict import Deviation, direction_of, rows_to_decide, verdict_of
from calibrant.metrics.distribution import Coverage
from calibrant.metrics.point import LinearFit, MSEDecomposition
from calibrant.tables.mean_table import MeanTable

__all__ = ["NumberEvaluation"]


@dataclass(frozen=True, eq=False, repr=False)
class NumberEvaluation:
    """Result of `evaluate`; print it.

    Attributes
    ----------
    verdict : str
        ``calibrated``, ``negligible``, ``miscalibrated`` or ``inconclusive``; see `evaluate` for the rule.
    direction : str
        Directions whose own component is significant after adjustment, joined by commas: ``overestimates``,
        ``underestimates``, ``overconfident``, ``underconfident``; ``local`` if only others are; '' if none is.
    kind : str
        ``point`` or ``distribution``.
    pvalue : float
        p-value of the joint test: the smallest adjusted p-value of its components, in a group adjusted for the number
        of groups. NaN where nothing can be tested.
    tests : dict of name to Component
        Components of the joint test with raw and adjusted p-values.
    deviation : Deviation
        Size of the deviation with bounds, and the margin.
    lines : dict of name to Estimate
        mean error, ratio (where no outcome is negative), MSE, MAE, relative MSE; of distributions also CRPS, NLL (where
        there are densities) and width of 90 % intervals. Their p-values are not adjusted.
    bins : BiasByBin
    line : LinearFit or None
        Outcomes on predictions; None where all predictions are equal.
    decomposition : MSEDecomposition
    tce : TestBasedError or None
        None with ``n_resamples=0``.
    uniformity : tuple of TestResult
        Of the PIT values: Anderson-Darling, Kolmogorov-Smirnov, chi-squared, with raw p-values that take rows as
        independent. Empty for point predictions.
    coverage : Coverage or None
        With raw p-values for each level.
    groups : dict
        An evaluation for each value of `by`.
    """

    table: MeanTable
    lines: Mapping[str, Estimate]
    bins: BiasByBin
    line: LinearFit | None
    decomposition: MSEDecomposition
    alpha: float
    joint: JointTest
    deviation: Deviation
    tce: TestBasedError | None = None
    uniformity: tuple[TestResult, ...] = ()
    coverage: Coverage | None = None
    groups: Mapping[Any, "NumberEvaluation"] = field(default_factory=dict)
    kind: str = "point"
    by: str | None = None
    clusters: int | None = None
    notes: tuple[Note, ...] = ()

    def __getitem__(self, name: str) -> Estimate:
        try:
            return self.lines[name]
        except KeyError:
            raise KeyError(f"There is no {name!r}; there are {', '.join(self.lines)}.") from None

    @property
    def n_rows(self) -> float:
        """Number of rows, or total weight."""
        return self.table.size

    @property
    def tests(self) -> Mapping[str, Component]:
        return self.joint.components

    @property
    def pvalue(self) -> float:
        return self.joint.pvalue

    @property
    def verdict(self) -> str:
        return verdict_of(self.pvalue, self.deviation, self.alpha)

    @property
    def direction(self) -> str:
        return direction_of(self.joint, self.alpha, self.kind)

    def headline(self) -> str:
        """Verdict, direction, estimate with interval and margin in one sentence."""
        return f"{self._overall()}: {self.deviation.text()}; {self._reason()}"

    def _overall(self) -> str:
        shown = f"{self.verdict} ({self.direction})" if self.direction else self.verdict
        if not self.groups:
            return shown
        wrong = sum(part.verdict == "miscalibrated" for part in self.groups.values())
        count = f"{wrong} of {len(self.groups)} groups"
        if self.verdict == "calibrated" and wrong:
            return f"{shown} overall; {count} {'is' if wrong == 1 else 'are'} not"
        return f"{shown} overall; miscalibrated in {count}"

    def _reason(self) -> str:
        if math.isnan(self.pvalue):
            return "the data do not allow a test"
        chance = f"p = {self.pvalue:.2g}"
        if self.verdict == "miscalibrated":
            return f"the deviation is significant ({chance}) and not shown to lie within the margin"
        if self.verdict == "negligible":
            return f"the deviation is significant ({chance}) but shown to lie within the margin"
        if self.verdict == "calibrated":
            return f"no deviation is significant ({chance}), and it is shown to lie within the margin"
        more = rows_to_decide(self.deviation, self.table.size)
        unknown = f"no deviation is significant ({chance}), and it is not shown to lie within the margin"
        return unknown if math.isnan(more) else f"{unknown}: about {_about(more)} more rows would decide"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON."""
        return {
            "schema_version": 1,
            "kind": self.kind,
            "verdict": self.verdict,
            "direction": self.direction,
            "headline": self.headline(),
            "n_in": self.table.n_in,
            "n_dropped": self.table.n_dropped,
            "size": self.table.size,
            "alpha": self.alpha,
            "pvalue": _or_null(self.pvalue),
            "tests": {name: test.to_dict() for name, test in self.tests.items()},
            "deviation": self.deviation.to_dict(),
            "lines": {name: line.to_dict() for name, line in self.lines.items()},
            "bins": self.bins.to_dict(),
            "line": None if self.line is None else self.line.to_dict(),
            "decomposition": self.decomposition.to_dict(),
            "tce": None if self.tce is None else dict(self.tce.__dict__),
            "uniformity": [test.to_dict() for test in self.uniformity],
            "coverage": None if self.coverage is None else self.coverage.to_dict(),
            "groups": [{"group": json_label(name), **part.to_dict()} for name, part in self.groups.items()],
            "notes": [note.to_dict() for note in self.notes],
        }

    def _shown(self, name: str) -> str:
        """The adjusted p-value of a component."""
        test = self.tests.get(name)
        return "" if test is None else "-" if math.isnan(test.adjusted) else f"{test.adjusted:.2g}"

    def _cells(self) -> list[list[str]]:
        level = next(iter(self.lines.values())).level
        rows = [["", "value", f"{100 * level:g} % interval", "expected if calibrated", "adjusted p"]]
        for name, e in self.lines.items():
            rows.append([*_row(name, e), self._shown(name)])
        if self.line is not None:
            rows.append([*_row("slope of outcome on prediction", self.line.slope), self._shown("slope")])
        if self.tce is not None:
            t = self.tce
            chance = max(t.pvalue, self.pvalue) if not math.isnan(self.pvalue) else t.pvalue
            rows.append(["TCE", f"{t.value:.1f} %", "", f"{t.low:.1f} to {t.high:.1f} %", f"{chance:.2g}"])
        for name in ("bias by bins", "median", "PIT", "coverage"):
            if name in self.tests:
                test = self.tests[name]
                value = "-" if math.isnan(test.statistic) else f"{test.statistic:.4g}"
                rows.append([f"{name} ({test.method})", value, "", "", self._shown(name)])
        if self.coverage is not None:
            for nominal, observed, low, high, _, _ in zip(*self.coverage.per_level.values(), strict=True):
                name = f"coverage of {100 * nominal:.3g} % intervals"
                span = f"{100 * low:.1f} to {100 * high:.1f} %"
                rows.append([name, f"{100 * observed:.1f} %", span, f"{100 * nominal:.3g} %", ""])
        return rows

    def _group_cells(self) -> list[list[str]]:
        rows = [[self.by or "group", "rows", "mean error", "interval", "adjusted p", "verdict"]]
        for name, part in self.groups.items():
            e = part.lines["mean error"]
            chance = "-" if math.isnan(part.pvalue) else f"{part.pvalue:.2g}"
            span = f"{e.low:.4g} to {e.high:.4g}" if not math.isnan(e.low) else "unknown"
            verdict = f"{part.verdict} ({part.direction})" if part.direction else part.verdict
            rows.append([str(name), f"{part.table.size:,.6g}", f"{e.value:.4g}", span, chance, verdict])
        return rows

    def _text(self, table: Callable[..., Any]) -> Iterator[Any]:
        yield f"Verdict: {self.headline()} ({self.table.size:,.6g} rows)"
        yield table(self._cells(), left=(0,))
        if self.groups:
            yield f"By {self.by or 'group'}:"
            yield table(self._group_cells(), left=(0, 5))
        yield f"p-values are adjusted for {len(self.tests)} tests (Holm); intervals are not adjusted."
        if self.tce is not None:
            yield "TCE is not part of the joint test; its p-value is printed as at least the joint one."
        for note in self.notes:
            yield f"Note: {note.text}"

    def __repr__(self) -> str:
        return "\n".join(self._text(lambda *a, **k: "\n".join(text_table(*a, **k))))

    def _repr_html_(self) -> str:
        import html

        parts = self._text(html_table)
        return "".join(text if text.startswith("<table") else f"<p>{html.escape(text)}</p>" for text in parts)


def _about(count: float) -> str:
    """A count with two digits."""
    digits = max(0, math.floor(math.log10(max(count, 1.0))) - 1)
    return f"{int(math.ceil(count / 10**digits) * 10**digits):,}"


def _or_null(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _row(name: str, e: Estimate) -> list[str]:
    span = f"{e.low:.4g} to {e.high:.4g}" if not math.isnan(e.low) else "unknown"
    return [name, f"{e.value:.4g}", span, "" if e.null is None else f"{e.null:g}"]
