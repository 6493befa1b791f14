"""`EvaluationDisplay` and `ComparisonDisplay`: the figures of `Evaluation.plot` and `Comparison.plot`."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import FigureBase
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D

from calibrant.kinds.binary.evaluation import LOG_ODDS_ERROR, rejection_breakdown
from calibrant.plots import canvas
from calibrant.plots.bias_scatter import BiasDisplay
from calibrant.plots.brier_decomposition import DecompositionDisplay, ModelDecomposition
from calibrant.plots.class_proportions import ProportionDisplay, proportions_height
from calibrant.plots.classwise_reliability import ClasswiseDisplay
from calibrant.plots.coverage_curve import CoverageDisplay
from calibrant.plots.cumulative_differences import CumulativeDisplay
from calibrant.plots.display import display_names
from calibrant.plots.group_metrics import GroupDisplay
from calibrant.plots.null_distribution import NullDisplay
from calibrant.plots.pit_histogram import PITDisplay, default_bars
from calibrant.plots.reliability import ReliabilityDisplay
from calibrant.plots.tce_reliability import TestBasedReliabilityDisplay
from calibrant.results import sentences
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation
from calibrant.results.text import rows_text
from calibrant.results.uncertainty import MetricResult

__all__ = ["ComparisonDisplay", "EvaluationDisplay"]


@dataclass(eq=False, repr=False)
class EvaluationDisplay:
    """Overview of an evaluation: its verdict, diagrams of its kind, and its groups.

    Each panel is a display. Probabilities have ``reliability`` (test-based), ``null`` and ``cumulative``; point
    predictions have ``bias``; predictive distributions have ``bias``, ``pit`` and ``coverage``; class probabilities
    have ``classes`` and ``proportions``; predicted classes have ``proportions``. With groups there is ``groups`` below
    them. Panels that are not drawn are None.

    Attributes
    ----------
    evaluation : Evaluation
        The evaluation.

    See Also
    --------
    evaluate, ComparisonDisplay

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
        """Draw in `fig`, or in a new figure.

        Parameters
        ----------
        fig : Figure or SubFigure, optional
            Figure to draw in; by default a new one.

        Returns
        -------
        EvaluationDisplay
            This display; artists are attributes that end in ``_``.
        """
        e = self.evaluation
        draw = {
            "binary": self._draw_binary,
            "point": self._draw_point,
            "distribution": self._draw_distribution,
            "multiclass": self._draw_classes,
            "labels": self._draw_proportions,
        }[e.kind]
        above = _height(e)
        heights = [above, 3.2] if e.groups else [above]
        figure = canvas.new_figure((11.5, sum(heights))) if fig is None else canvas.with_layout(fig)
        self.figure_ = figure
        self.reliability: TestBasedReliabilityDisplay | None = None
        self.null: NullDisplay | None = None
        self.cumulative: CumulativeDisplay | None = None
        self.bias: BiasDisplay | None = None
        self.pit: PITDisplay | None = None
        self.coverage: CoverageDisplay | None = None
        self.classes: ClasswiseDisplay | None = None
        self.proportions: ProportionDisplay | None = None
        self.groups: GroupDisplay | None = None
        if above == _USUAL_HEIGHT:
            heights = [1.0, 0.55][: len(heights)]
        outer = figure.add_gridspec(len(heights), 2, width_ratios=[1.25, 1], height_ratios=heights)
        metric = draw(outer)
        if e.groups:
            ax = figure.add_subplot(outer[1, :])
            self.groups = GroupDisplay.from_evaluation(e, metric=metric, along="x", ax=ax)
        verdict = sentences.headline(e).capitalize()
        figure.suptitle(f"{verdict}: {rows_text(e.table)}", x=0.01, ha="left", weight="bold")
        return self

    def _draw_binary(self, outer: GridSpec) -> str:
        """Draw the panels of probabilities, and return the metric of the groups."""
        e, figure = self.evaluation, self.figure_
        right = outer[0, 1].subgridspec(2, 1)
        self.reliability = tce_display(e).plot_panels(figure.add_subplot(outer[0, 0]))
        shown = metric_with_null(e)
        if shown is not None:
            self.null = NullDisplay.from_null(shown.null, ax=figure.add_subplot(right[0, 0]))
        self.cumulative = cumulative_display(e).plot(ax=figure.add_subplot(right[1, 0]))
        return LOG_ODDS_ERROR if shown is None else shown.name

    def _draw_point(self, outer: GridSpec) -> str:
        """Draw the panel of point predictions, and return the metric of the groups."""
        self.bias = bias_display(self.evaluation).plot(ax=self.figure_.add_subplot(outer[0, :]))
        return "mean error"

    def _draw_distribution(self, outer: GridSpec) -> str:
        """Draw the panels of distributions, and return the metric of the groups."""
        right = outer[0, 1].subgridspec(2, 1, height_ratios=[1, 1.4])
        self.bias = bias_display(self.evaluation).plot(ax=self.figure_.add_subplot(outer[0, 0]))
        self.pit = pit_display(self.evaluation).plot(ax=self.figure_.add_subplot(right[0, 0]))
        self.coverage = coverage_display(self.evaluation).plot(ax=self.figure_.add_subplot(right[1, 0]))
        return "mean error"

    def _draw_classes(self, outer: GridSpec) -> str:
        """Draw the panels of class probabilities, and return the metric of the groups."""
        e = self.evaluation
        heights = [classwise_height(e), shares_height(e)]
        parts = outer[0, :].subgridspec(2, 1, height_ratios=heights)
        self.classes = ClasswiseDisplay.from_evaluation(e, ax=self.figure_.add_subplot(parts[0, 0]))
        self.proportions = ProportionDisplay.from_evaluation(e, ax=self.figure_.add_subplot(parts[1, 0]))
        return next(iter(e.metrics))

    def _draw_proportions(self, outer: GridSpec) -> str:
        """Draw the panel of predicted classes, and return the metric of the groups."""
        ax = self.figure_.add_subplot(outer[0, :])
        self.proportions = ProportionDisplay.from_evaluation(self.evaluation, ax=ax)
        return next(iter(self.evaluation.metrics))

    def data(self, backend: str = "pandas") -> Any:
        """Return ``evaluation.to_frame()``; each panel has its own ``data()``.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        return self.evaluation.to_frame(backend)

    def __repr__(self) -> str:
        return f"EvaluationDisplay({self.evaluation.verdict}, {rows_text(self.evaluation.table)})"

    def alt_text(self) -> str:
        """Return a description, one sentence per panel.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        panels: list[Any] = [self.reliability, self.null, self.cumulative, self.bias, self.pit, self.coverage]
        panels += [self.classes, self.proportions, self.groups]
        shown = [panel.alt_text() for panel in panels if panel is not None]
        return " ".join([f"Verdict: {self.evaluation.verdict}.", *shown])


_USUAL_HEIGHT = 6.4
_MOST_MODELS = 4  # that have a panel of their own in a comparison


def _height(e: Evaluation) -> float:
    """Return the height in inches of the panels above the groups."""
    if e.kind == "multiclass":
        return classwise_height(e) + shares_height(e)
    return max(3.6, 0.4 + shares_height(e)) if e.kind == "labels" else _USUAL_HEIGHT


def classwise_height(e: Evaluation) -> float:
    """Return the height in inches of the reliability diagrams of classes."""
    drawn = sum(name.startswith("class ") for name in e.breakdowns)
    return 3.5 if drawn <= 3 else 5.0 if drawn <= 6 else 6.2


def shares_height(e: Evaluation) -> float:
    """Return the height in inches of the class proportions."""
    details: Any = e.details
    return proportions_height(len(details.decision.classes))


def metric_with_null(evaluation: Evaluation) -> MetricResult | None:
    """Return the metric whose null is drawn: ACE, or the first with replicates; the log-odds error has none."""
    drawable = {name: m for name, m in evaluation.metrics.items() if np.isfinite(m.null.replicates).any()}
    return drawable.get("ACE", next(iter(drawable.values()), None))


def tce_display(evaluation: Evaluation) -> TestBasedReliabilityDisplay:
    """Return the test-based diagram of an evaluation of probabilities, not yet drawn."""
    details: Any = evaluation.details
    breakdown, null = rejection_breakdown(evaluation)
    level = evaluation.settings.confidence_level
    return TestBasedReliabilityDisplay(breakdown, null, level, profile=details.rejection_profile)


def cumulative_display(evaluation: Evaluation) -> CumulativeDisplay:
    """Return the cumulative differences of an evaluation of probabilities, not yet drawn."""
    details: Any = evaluation.details
    c = details.cumulative
    return CumulativeDisplay(evaluation.table, c.band, c.test, c.ecce)


def bias_display(evaluation: Evaluation) -> BiasDisplay:
    """Return the bias by bin of an evaluation of points or distributions, not yet drawn."""
    details: Any = evaluation.details
    return BiasDisplay(evaluation.table, evaluation.breakdowns["bias by bin"], details.line)


def pit_display(evaluation: Evaluation) -> PITDisplay:
    """Return the histogram of the PIT values of an evaluation of distributions, not yet drawn."""
    details: Any = evaluation.details
    test = evaluation.tests["Anderson-Darling"]
    return PITDisplay(details.pit, default_bars(details.pit.size), test, evaluation.settings.confidence_level)


def coverage_display(evaluation: Evaluation) -> CoverageDisplay:
    """Return the coverage curve of an evaluation of distributions, not yet drawn."""
    details: Any = evaluation.details
    found: Any = evaluation.breakdowns.get("coverage")
    stated = any(note.code == "levels" for note in evaluation.notes) and found is not None
    levels = tuple(float(level) for level in found.per_level["level"]) if stated else ()
    return CoverageDisplay({"forecast": details.pit}, evaluation.settings.confidence_level, levels)


@dataclass(eq=False, repr=False)
class ComparisonDisplay:
    """Overview of a comparison: verdict, diagrams of all models, differences with intervals.

    Each panel is a display. Probabilities have ``reliability`` (over ten quantiles) and ``decomposition``; class
    probabilities have ``reliability`` of the top label; predictive distributions have ``coverage``; point predictions
    and predicted classes have one display per model in ``models``, of the first four. Panels that are not drawn are
    None. ``ax_differences_`` shows the differences of the squares that decide from the baseline, filled if significant
    (adjusted by Holm).

    Attributes
    ----------
    comparison : Comparison
        The comparison.

    See Also
    --------
    compare, EvaluationDisplay

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = cb.compare(rng.random(500) < p, {"plain": p, "squared": p**2}, n_resamples=99).plot()
    >>> display.reliability.data()["model"].unique().tolist()
    ['plain', 'squared']
    """

    comparison: Comparison

    def plot(self, *, fig: FigureBase | None = None) -> "ComparisonDisplay":
        """Draw in `fig`, or in a new figure.

        Parameters
        ----------
        fig : Figure or SubFigure, optional
            Figure to draw in; by default a new one.

        Returns
        -------
        ComparisonDisplay
            This display; artists are attributes that end in ``_``.
        """
        c = self.comparison
        figure = canvas.new_figure((11.5, 6.6)) if fig is None else canvas.with_layout(fig)
        self.figure_ = figure
        self.reliability: ReliabilityDisplay | None = None
        self.decomposition: DecompositionDisplay | None = None
        self.coverage: CoverageDisplay | None = None
        self.models: dict[str, BiasDisplay | ProportionDisplay] = {}
        outer = figure.add_gridspec(1, 2, width_ratios=[1.15, 1])
        own = 0.5 + 0.25 * len(c.adjusted)
        if c.kind == "binary":
            right = outer[0, 1].subgridspec(2, 1, height_ratios=[own, 2])
            self._draw_reliability("ACE", outer[0, 0])
            self.ax_differences_ = figure.add_subplot(right[0, 0])
            self._draw_decomposition(right[1, 0])
        elif c.kind in ("point", "labels"):
            rows = outer[0, :].subgridspec(2, 1, height_ratios=[3, own])
            self._draw_models(rows[0, 0])
            self.ax_differences_ = figure.add_subplot(rows[1, 0])
        else:
            if c.kind == "multiclass":
                self._draw_reliability("top-label ACE", outer[0, 0])
            else:
                self._draw_coverage(outer[0, 0])
            self.ax_differences_ = figure.add_subplot(outer[0, 1].subgridspec(2, 1, height_ratios=[own, 1])[0, 0])
        self._draw_differences()
        figure.suptitle(c.verdict, x=0.01, ha="left", weight="bold", parse_math=False, wrap=True)
        return self

    def _draw_reliability(self, breakdown: str, place: Any) -> None:
        c = self.comparison
        breakdowns = {name: evaluation.breakdowns[breakdown] for name, evaluation in c.models.items()}
        level, part = c.settings.confidence_level, self.figure_.add_subfigure(place)
        self.reliability = ReliabilityDisplay.from_breakdown(breakdowns, confidence_level=level, fig=part)

    def _draw_decomposition(self, place: Any) -> None:
        c = self.comparison
        details: list[Any] = [evaluation.details for evaluation in c.models.values()]
        names = display_names(c.models)
        parts = {name: ModelDecomposition(each.decomposition) for name, each in zip(names, details, strict=True)}
        self.decomposition = DecompositionDisplay(parts).plot(ax=self.figure_.add_subplot(place))

    def _draw_coverage(self, place: Any) -> None:
        c = self.comparison
        details: list[Any] = [evaluation.details for evaluation in c.models.values()]
        u = {name: each.pit for name, each in zip(display_names(c.models), details, strict=True)}
        self.coverage = CoverageDisplay(u, c.settings.confidence_level).plot(fig=self.figure_.add_subfigure(place))

    def _draw_models(self, place: Any) -> None:
        """Draw one display per model side by side."""
        c = self.comparison
        shown = dict(list(c.models.items())[:_MOST_MODELS])
        grid = place.subgridspec(1, len(shown))
        for i, (name, evaluation) in enumerate(shown.items()):
            part = self.figure_.add_subfigure(grid[0, i])
            display: Any = bias_display(evaluation) if c.kind == "point" else ProportionDisplay.of(evaluation)
            self.models[name] = display.plot(fig=part)
            part.suptitle(canvas.shorten(name, 24), x=0.02, ha="left", parse_math=False)

    def _draw_differences(self) -> None:
        c, ax = self.comparison, self.ax_differences_
        deciding = c.deciding
        colours = canvas.model_colours(len(c.models))[1:]
        ids = canvas.ids_by_name([d.model for d in deciding])
        self.differences_: list[Line2D] = []
        for i, (d, colour) in enumerate(zip(deciding, colours, strict=True)):
            if not math.isnan(d.low):
                canvas.shapes(
                    ax,
                    [canvas.strokes([(d.low, i), (d.high, i)])],
                    f"difference-{ids[d.model]}-interval",
                    facecolor="none",
                    edgecolor=canvas.blend(0.75),
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
        ax.axvline(0, color=canvas.blend(0.45), lw=1, ls=(0, (4, 3)), zorder=0.5)
        ax.locator_params(axis="x", nbins=5)
        ax.set_yticks(range(len(deciding)), [canvas.shorten(d.model, 18) for d in deciding], parse_math=False)
        ax.spines[["top", "right"]].set_visible(False)
        level = f"{100 * c.settings.confidence_level:g} %"
        canvas.draw_title(
            ax,
            f"Squared {c.decides} minus that of {canvas.shorten(c.baseline, 16)}",
            f"below 0 is better; {level} CI",
        )

    def data(self, backend: str = "pandas") -> Any:
        """Return ``comparison.to_frame()``; each panel has its own ``data()``.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        return self.comparison.to_frame(backend)

    def __repr__(self) -> str:
        return f"ComparisonDisplay({self.comparison.verdict})"

    def alt_text(self) -> str:
        """Return a description, one sentence per panel.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        c = self.comparison
        differences = "; ".join(
            f"{d.model} undefined" if math.isnan(d.low) else f"{d.model} {d.value:+.4f} ({d.low:+.4f} to {d.high:+.4f})"
            for d in c.deciding
        )
        less = f"Squared {c.decides} minus that of {c.baseline}: {differences}."
        panels = (self.reliability, self.decomposition, self.coverage)
        shown = [panel.alt_text() for panel in panels if panel is not None]
        shown += [f"{name}: {display.alt_text()}" for name, display in self.models.items()]
        return " ".join([f"{c.verdict}.", less, *shown])
