"""`EvaluationDisplay` and `ComparisonDisplay`: the figures of `Evaluation.plot` and `Comparison.plot`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from calibrant.kinds.base import kind_of
from calibrant.kinds.figures import Figures
from calibrant.plots import canvas
from calibrant.plots.display import Display
from calibrant.plots.group_metrics import GroupDisplay
from calibrant.results import sentences
from calibrant.results.comparison import Comparison
from calibrant.results.evaluation import Evaluation
from calibrant.results.text import rows_text

if TYPE_CHECKING:
    from calibrant.plots.bias_scatter import BiasDisplay
    from calibrant.plots.brier_decomposition import DecompositionDisplay
    from calibrant.plots.class_diagrams import ClasswiseDisplay, ProportionDisplay
    from calibrant.plots.cumulative_differences import CumulativeDisplay
    from calibrant.plots.null_distribution import NullDisplay
    from calibrant.plots.pit_diagrams import CoverageDisplay, PITDisplay
    from calibrant.plots.reliability import ReliabilityDisplay
    from calibrant.plots.tce_reliability import TestBasedReliabilityDisplay

_HEIGHT = 6.4  # of the panels of most kinds, in inches; the groups below them take about half of it


@dataclass(eq=False, repr=False)
class EvaluationDisplay(Display):
    """Overview of an evaluation: its verdict, diagrams of its kind, and its groups.

    Each panel is a display. Probabilities have ``reliability`` (test-based), ``null`` and ``cumulative``; point
    predictions have ``bias``; predictive distributions have ``bias``, ``pit`` and ``coverage``; class probabilities
    have ``classes`` and ``proportions``, those of ordered classes ``reliability`` (of the thresholds) and
    ``proportions``; predicted classes have ``proportions``. With groups there is ``groups`` below them. Panels that
    are not drawn are None.

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
    panels: dict[str, Any] = field(default_factory=dict, init=False)
    reliability: "TestBasedReliabilityDisplay | None" = field(default=None, init=False)
    null: "NullDisplay | None" = field(default=None, init=False)
    cumulative: "CumulativeDisplay | None" = field(default=None, init=False)
    bias: "BiasDisplay | None" = field(default=None, init=False)
    pit: "PITDisplay | None" = field(default=None, init=False)
    coverage: "CoverageDisplay | None" = field(default=None, init=False)
    classes: "ClasswiseDisplay | None" = field(default=None, init=False)
    proportions: "ProportionDisplay | None" = field(default=None, init=False)
    groups: GroupDisplay | None = field(default=None, init=False)

    def plot(self, *, fig: FigureBase | None = None) -> Self:
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
        figures: Figures = kind_of(e.kind).figures.FIGURES
        height = figures.height(e)
        heights = [height or _HEIGHT, *([3.2] if e.groups else [])]
        self.figure_ = canvas.new_figure((11.5, sum(heights))) if fig is None else canvas.with_layout(fig)
        if height is None:
            heights = [1.0, 0.55][: len(heights)]
        grid = self.figure_.add_gridspec(len(heights), 2, width_ratios=[1.25, 1], height_ratios=heights)
        self.panels = figures.draw_panels(e, self.figure_, grid)
        if e.groups:
            ax, metric = self.figure_.add_subplot(grid[1, :]), figures.group_metric(e)
            self.panels["groups"] = GroupDisplay.from_evaluation(e, metric=metric, along="x", ax=ax)
        vars(self).update(self.panels)
        verdict = sentences.short_headline(e).capitalize()
        self.figure_.suptitle(f"{verdict}: {rows_text(e.table)}", x=0.01, ha="left", weight="bold")
        return self

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
        texts = [panel.alt_text() for panel in self.panels.values()]
        return " ".join([f"Verdict: {self.evaluation.verdict}.", *texts])


@dataclass(eq=False, repr=False)
class ComparisonDisplay(Display):
    """Overview of a comparison: verdict, diagrams of all models, differences with intervals.

    Each panel is a display. Probabilities have ``reliability`` (over ten quantiles) and ``decomposition``; class
    probabilities have ``reliability`` of the top label; predictive distributions have ``coverage``; probabilities
    of ordered classes, point predictions and predicted classes have one display per model in ``models``, of the
    first four. Panels that are not drawn are None. ``ax_differences_`` shows the differences of the squares that
    decide from the baseline, filled if significant (adjusted by Holm).

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
    panels: Mapping[str, Any] = field(default_factory=dict, init=False)
    reliability: "ReliabilityDisplay | None" = field(default=None, init=False)
    decomposition: "DecompositionDisplay | None" = field(default=None, init=False)
    coverage: "CoverageDisplay | None" = field(default=None, init=False)
    models: Mapping[str, Any] = field(default_factory=dict, init=False)

    def plot(self, *, fig: FigureBase | None = None) -> Self:
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
        self.figure_ = canvas.new_figure((11.5, 6.6)) if fig is None else canvas.with_layout(fig)
        grid = self.figure_.add_gridspec(1, 2, width_ratios=[1.15, 1])
        height = 0.5 + 0.25 * len(c.adjusted)
        figures: Figures = kind_of(c.kind).figures.FIGURES
        self.ax_differences_, self.panels, self.models = figures.draw_models(c, self.figure_, grid, height)
        vars(self).update(self.panels)
        self._draw_differences()
        self.figure_.suptitle(c.verdict, x=0.01, ha="left", weight="bold", parse_math=False, wrap=True)
        return self

    def _draw_differences(self) -> None:
        c, ax = self.comparison, self.ax_differences_
        deciding = c.from_baseline
        colours = canvas.model_colours(len(c.models))[1:]
        ids = canvas.ids_by_name([d.model for d in deciding])
        self.differences_: list[Line2D] = []
        for i, (d, colour) in enumerate(zip(deciding, colours, strict=True)):
            gid = f"difference-{ids[d.model]}"
            if not math.isnan(d.low):
                canvas.lines(
                    ax, [canvas.strokes([(d.low, i), (d.high, i)])], f"{gid}-interval", canvas.blend(0.75), 1.4
                )
            face = colour if c.is_shown(d) else ax.get_facecolor()
            style: dict[str, Any] = {"ls": "", "marker": "o", "ms": 7, "mfc": face, "mec": colour, "mew": 1.4}
            self.differences_ += ax.plot(d.value, i, gid=f"{gid}-point", **style)
        reach = [v for d in deciding for v in (d.low, d.high, 0.0) if not math.isnan(v)]
        room = 0.08 * max(max(reach) - min(reach), 1e-9)
        limits = {"xlim": (min(reach) - room, max(reach) + room), "ylim": (len(deciding) - 0.4, -0.6)}
        canvas.dress(ax, **limits)
        ax.axvline(0, **canvas.dashes(zorder=0.5))
        ax.locator_params(axis="x", nbins=5)
        ax.set_yticks(range(len(deciding)), [canvas.shorten(d.model, 18) for d in deciding], parse_math=False)
        title = f"Squared {c.decides} minus that of {canvas.shorten(c.baseline, 16)}"
        canvas.draw_title(ax, title, f"below 0 is better; {100 * c.settings.confidence_level:g} % CI")

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
            for d in c.from_baseline
        )
        texts = [panel.alt_text() for panel in self.panels.values()]
        texts += [f"{name}: {display.alt_text()}" for name, display in self.models.items()]
        return " ".join([f"{c.verdict}.", f"Squared {c.decides} minus that of {c.baseline}: {differences}.", *texts])
