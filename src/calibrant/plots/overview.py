"""`EvaluationDisplay` and `ComparisonDisplay`: what `Evaluation.plot` and `Comparison.plot` draw."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from calibrant.evaluation import sentences
from calibrant.evaluation.binary import LOG_ODDS_ERROR, Evaluation
from calibrant.evaluation.comparison import Comparison
from calibrant.evaluation.metric_result import MetricResult
from calibrant.evaluation.sizes import rows_in_words
from calibrant.metrics.calibration_errors import ACE, TCE
from calibrant.metrics.gce import GCE
from calibrant.metrics.losses import RejectionRate
from calibrant.plots._canvas import headline, ids_by_name, laid_out, new_figure, shapes, shorter, strokes
from calibrant.plots._palette import mixed, models
from calibrant.plots.cumulative import CumulativeDisplay
from calibrant.plots.decomposition import DecompositionDisplay
from calibrant.plots.groups import GroupDisplay
from calibrant.plots.null import NullDisplay
from calibrant.plots.rejections import TestBasedReliabilityDisplay
from calibrant.plots.reliability import ReliabilityDisplay

__all__ = ["ComparisonDisplay", "EvaluationDisplay"]


@dataclass(eq=False)
class EvaluationDisplay:
    """An evaluation at a glance: its verdict, the test-based diagram, the null of the metric that decides, and where.

    With groups they have a row of their own. Each panel is a display: ``reliability`` (test-based), ``null``,
    ``cumulative`` and ``groups``.

    Examples
    --------
    >>> from calibrant import ScoreTable, evaluate
    >>> from matplotlib.figure import Figure
    >>> table = ScoreTable.from_counts([0.1, 0.2, 0.5], [50, 50, 50], [15, 12, 26])
    >>> display = evaluate(table, n_resamples=99).plot(fig=Figure(figsize=(12, 7)))
    >>> type(display.reliability).__name__
    'TestBasedReliabilityDisplay'
    """

    evaluation: Evaluation

    def plot(self, *, fig: FigureBase | None = None) -> "EvaluationDisplay":
        """Draw in `fig`, or in a new figure."""
        e = self.evaluation
        size = (11.5, 6.4 if not e.groups else 9.6)
        figure = new_figure(size) if fig is None else laid_out(fig)
        self.figure_ = figure
        rows = [1.0] if not e.groups else [1.0, 0.55]
        outer = figure.add_gridspec(len(rows), 2, width_ratios=[1.25, 1], height_ratios=rows)
        right = outer[0, 1].subgridspec(2, 1)
        self.reliability = self._reliability(figure.add_subplot(outer[0, 0]))
        shown = self._shown()
        self.null = None
        if shown is not None:
            self.null = NullDisplay.from_null(shown.null, ax=figure.add_subplot(right[0, 0]))
        self.cumulative = CumulativeDisplay.from_predictions(e.table, ax=figure.add_subplot(right[1, 0]))
        self.groups = None
        if e.groups:
            metric = LOG_ODDS_ERROR if shown is None else shown.name
            self.groups = GroupDisplay.from_evaluation(e, metric=metric, along="x", ax=figure.add_subplot(outer[1, :]))
        figure.suptitle(
            f"{sentences.headline(e).capitalize()}: {rows_in_words(e.table)}", x=0.01, ha="left", weight="bold"
        )
        return self

    def _shown(self) -> MetricResult | None:
        """The metric whose null is drawn: ACE, or the first with replicates; the log-odds error has none."""
        metrics = self.evaluation.metrics
        drawable = {name: m for name, m in metrics.items() if np.isfinite(m.null.replicates).any()}
        return drawable.get("ACE", next(iter(drawable.values()), None))

    def _reliability(self, ax: Axes) -> TestBasedReliabilityDisplay:
        for name, line in self.evaluation.metrics.items():
            metric = self.evaluation.settings.metrics.get(name)
            if isinstance(metric, GCE) and isinstance(metric.loss, RejectionRate):
                return TestBasedReliabilityDisplay.from_breakdown(metric(self.evaluation.table), null=line.null, ax=ax)
        return TestBasedReliabilityDisplay.from_breakdown(TCE()(self.evaluation.table), ax=ax)

    def data(self, backend: str = "pandas") -> Any:
        """The numbers behind it: those of ``evaluation.to_frame()``; every panel has its own ``data()``."""
        return self.evaluation.to_frame(backend)

    def alt_text(self) -> str:
        """The panels, a sentence each."""
        panels: list[Any] = [self.reliability, self.null, self.cumulative, self.groups]
        return " ".join([f"Verdict: {self.evaluation.verdict}.", *(p.alt_text() for p in panels if p is not None)])


@dataclass(eq=False)
class ComparisonDisplay:
    """A comparison at a glance: its verdict, reliability of all models, differences with intervals, decomposition.

    Panels that are displays: ``reliability`` over ten quantiles, and ``decomposition``; ``ax_differences_`` has the
    differences of squared log-odds errors from the baseline, filled where they are significant (adjusted by Holm).
    """

    comparison: Comparison

    def plot(self, *, fig: FigureBase | None = None) -> "ComparisonDisplay":
        """Draw in `fig`, or in a new figure."""
        c = self.comparison
        figure = new_figure((11.5, 6.6)) if fig is None else laid_out(fig)
        self.figure_ = figure
        outer = figure.add_gridspec(1, 2, width_ratios=[1.15, 1])
        right = outer[0, 1].subgridspec(2, 1, height_ratios=[0.5 + 0.25 * len(c.adjusted), 2])
        tables = {name: evaluation.table for name, evaluation in c.models.items()}
        breakdowns = {name: ACE()(table) for name, table in tables.items()}
        self.reliability = ReliabilityDisplay.from_breakdown(breakdowns, ax=figure.add_subplot(outer[0, 0]))
        self.ax_differences_ = figure.add_subplot(right[0, 0])
        self._draw_differences()
        self.decomposition = DecompositionDisplay.from_predictions(
            tables, n_resamples=0, ax=figure.add_subplot(right[1, 0])
        )
        figure.suptitle(c.verdict, x=0.01, ha="left", weight="bold", parse_math=False, wrap=True)
        return self

    def _draw_differences(self) -> None:
        c, ax = self.comparison, self.ax_differences_
        deciding = c.deciding
        colours = models(len(c.models))[1:]
        ids = ids_by_name([d.model for d in deciding])
        self.differences_: list[Line2D] = []
        for i, (d, colour) in enumerate(zip(deciding, colours, strict=True)):
            if not math.isnan(d.low):
                shapes(
                    ax,
                    [strokes([(d.low, i), (d.high, i)])],
                    f"difference-{ids[d.model]}-interval",
                    facecolor="none",
                    edgecolor=mixed(0.75),
                    linewidth=1.4,
                )
            face = colour if c.is_shown(d) else ax.get_facecolor()
            self.differences_ += ax.plot(
                d.value,
                i,
                ls="",
                marker="o",
                ms=7,
                mfc=face,
                mec=colour,
                mew=1.4,
                gid=f"difference-{ids[d.model]}-point",
            )
        reach = [v for d in deciding for v in (d.low, d.high, 0.0) if not math.isnan(v)]
        room = 0.08 * max(max(reach) - min(reach), 1e-9)
        ax.set_xlim(min(reach) - room, max(reach) + room)
        ax.set_ylim(len(deciding) - 0.4, -0.6)
        ax.axvline(0, color=mixed(0.45), lw=1, ls=(0, (4, 3)), zorder=0.5)
        ax.locator_params(axis="x", nbins=5)
        ax.set_yticks(range(len(deciding)), [shorter(d.model, 18) for d in deciding], parse_math=False)
        ax.spines[["top", "right"]].set_visible(False)
        level = f"{100 * c.settings.confidence_level:g} %"
        headline(
            ax,
            f"Squared {c.decides}, less that of {shorter(c.baseline, 16)}",
            f"below 0 is better; {level} intervals",
        )

    def data(self, backend: str = "pandas") -> Any:
        """The numbers behind it: those of ``comparison.to_frame()``; panels have their own ``data()``."""
        return self.comparison.to_frame(backend)

    def alt_text(self) -> str:
        """The panels, a sentence each."""
        c = self.comparison
        differences = "; ".join(
            f"{d.model} undefined" if math.isnan(d.low) else f"{d.model} {d.value:+.4f} ({d.low:+.4f} to {d.high:+.4f})"
            for d in c.deciding
        )
        less = f"Squared {c.decides}, less that of {c.baseline}: {differences}."
        return f"{c.verdict}. {less} {self.reliability.alt_text()} {self.decomposition.alt_text()}"
