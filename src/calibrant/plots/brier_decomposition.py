"""`DecompositionDisplay`: miscalibration against discrimination, of several models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from calibrant._support.errors import check_share
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.inference.intervals import interval_limits
from calibrant.inference.resampling import Replicates, draw_replicates, one_by_one
from calibrant.inference.table_replicates import bootstrap_sampler, null_sampler
from calibrant.inference.table_sample import TableSample
from calibrant.metrics.proper_scores import MCB, CorpDecomposition, corp_decomposition
from calibrant.plots._canvas import (
    draw_title,
    drawn_frame,
    ids_by_name,
    join_short,
    legend,
    shapes,
    shorten,
    single_axes,
    strokes,
)
from calibrant.plots._inputs import named_results, predict_scores, read_tables, result_table
from calibrant.plots._palette import MARKERS, blend, model_colours
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable

__all__ = ["DecompositionDisplay"]


@dataclass(frozen=True, eq=False)
class ModelDecomposition:
    """Decomposition of one model, with the confidence intervals of mcb and dsc if requested."""

    parts: CorpDecomposition
    mcb: tuple[float, float] | None = None
    dsc: tuple[float, float] | None = None


@dataclass(eq=False, repr=False)
class DecompositionDisplay:
    """Miscalibration (MCB) against discrimination (DSC) of one or several models.

    The Brier score is MCB - DSC + UNC (`corp_decomposition`), so models on one line have equal scores; the best lie at
    the upper left. Recalibration can lower MCB (move a model to the left). It cannot raise DSC, which is a property of
    the ranking. Dimitriadis, Gneiting and Jordan (2021).

    `from_predictions`, `from_estimator` or `from_breakdown` creates and draws it.

    Attributes
    ----------
    models : mapping of name to ModelDecomposition
    confidence_level : float
    figure_, ax_, points_, crosses_, isolines_
        After drawing; a model's artists have the id (gid) ``decomposition-<model>-<part>``.

    See Also
    --------
    corp_decomposition, ComparisonDisplay

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> display = DecompositionDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9], n_resamples=0, fig=Figure())
    >>> display.points_["model"].get_xydata()
    array([[0.0625, 0.125 ]])
    """

    models: Mapping[str, ModelDecomposition]
    confidence_level: float = 0.95

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        n_resamples: int = 199,
        confidence_level: float = 0.95,
        random_state: RandomState = 0,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[RowOptions],
    ) -> "DecompositionDisplay":
        """Decompose the Brier scores and draw them.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities, or a mapping of name to predictions for several models; or one
            `ScoreTable`, or a mapping of them.
        n_resamples : int, default=199
            Replicates of the confidence intervals; 0 skips them.
        confidence_level, random_state
            Of the confidence intervals: for MCB that of `calibrant.interval`, for DSC the percentile interval.
        ax, fig
            See `plot`.
        sample_weight, frequency, pos_label, missing
            How rows are read; see `ScoreTable.from_arrays`.

        Returns
        -------
        DecompositionDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        level = check_share("confidence_level", confidence_level)
        found = {
            name: _decompose(table, n_resamples, level, random_state)
            for name, table in read_tables(y_true, y_prob, rows).items()
        }
        return cls(found, level).plot(ax=ax, fig=fig)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> "DecompositionDisplay":
        """Predict with a fitted classifier, or a mapping of them, and draw; options as for `from_predictions`.

        Parameters
        ----------
        estimator : fitted classifier, or mapping of name to classifier
        X : array or frame of n rows
            Features, as the estimator takes them.
        y : column of n outcomes
        **options
            Those of `from_predictions`.

        Returns
        -------
        DecompositionDisplay
            The display, drawn.
        """
        return cls.from_predictions(y, predict_scores(estimator, X, options, several=True), **options)

    @classmethod
    def from_breakdown(cls, breakdown: Any, **options: Any) -> "DecompositionDisplay":
        """Decompose the Brier score of the table of a result, or of a mapping of results.

        Parameters
        ----------
        breakdown : MetricValue or Breakdown
            Result of a metric, with its table.
        **options
            Those of `from_predictions`.

        Returns
        -------
        DecompositionDisplay
            The display, drawn.
        """
        return cls.from_predictions(
            {name: result_table(each) for name, each in named_results(breakdown).items()}, **options
        )

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "DecompositionDisplay":
        """Draw in `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        DecompositionDisplay
            This display; artists are attributes that end in ``_``.
        """
        self.ax_ = single_axes(ax, fig, (6.4, 4.8))
        self.figure_ = self.ax_.figure
        self.points_: dict[str, Line2D] = {}
        self.crosses_: dict[str, list[Artist]] = {}
        colours = model_colours(len(self.models))
        for i, (name, each) in enumerate(self.models.items()):
            x, y = each.parts.mcb, each.parts.dsc
            if each.mcb is not None and each.dsc is not None:
                cross = strokes([(each.mcb[0], y), (each.mcb[1], y)], [(x, each.dsc[0]), (x, each.dsc[1])])
                self.crosses_[name] = shapes(
                    self.ax_,
                    [cross],
                    f"decomposition-{self._ids[name]}-interval",
                    facecolor="none",
                    edgecolor=colours[i],
                    linewidth=1.2,
                    alpha=0.8,
                )
            (self.points_[name],) = self.ax_.plot(
                x,
                y,
                ls="",
                marker=MARKERS[i % len(MARKERS)],
                ms=8,
                color=colours[i],
                zorder=4,
                gid=f"decomposition-{self._ids[name]}-point",
            )
        self._limits()
        self._draw_isolines()
        self._dress()
        return self

    def _limits(self) -> None:
        x, y = self._reach("mcb"), self._reach("dsc")
        width, height = max(x[1] - x[0], 1e-4), max(y[1] - y[0], 1e-4)
        self.ax_.set_xlim(max(0.0, x[0] - 0.15 * width), x[1] + 0.15 * width)
        self.ax_.set_ylim(max(-0.02 * height, y[0] - 0.15 * height), y[1] + 0.15 * height)

    def _reach(self, part: str) -> tuple[float, float]:
        """Return the range of the drawn values, from 0 if the lowest is close to 0."""
        values = [getattr(each.parts, part) for each in self.models.values()]
        for each in self.models.values():
            values += list(getattr(each, part) or ())
        low, high = min(values), max(values)
        return (0.0 if low < 0.5 * high or len(self.models) == 1 else low), high

    def _draw_isolines(self) -> None:
        """Draw lines of equal score, DSC = MCB + UNC - score, with labels at the edge of the axes."""
        (x0, x1), (y0, y1) = self.ax_.get_xlim(), self.ax_.get_ylim()
        unc = self._shared_uncertainty()
        base = 0.0 if unc is None else unc
        low, high = base + x0 - y1, base + x1 - y0
        step = _nice((high - low) / 7)
        self.isolines_: list[Line2D] = []
        for score in np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step:
            ends = np.array([x0, x1])
            self.isolines_ += self.ax_.plot(ends, ends + base - score, color=blend(0.3), lw=0.8, zorder=0.5)
            x = min(x1, y1 - base + score)  # where it leaves at the top or at the right
            if x0 + 0.04 * (x1 - x0) < x:
                at_top = x < x1
                self.ax_.annotate(
                    f"{score + 0.0:.{max(0, int(np.ceil(-np.log10(step))))}f}",
                    (x, x + base - score),
                    (0, 2) if at_top else (3, 0),
                    textcoords="offset points",
                    ha="center" if at_top else "left",
                    va="bottom" if at_top else "center",
                    fontsize="x-small",
                    color=blend(0.55),
                    annotation_clip=False,
                )
        self.ax_.set_xlim(x0, x1)
        self.ax_.set_ylim(y0, y1)

    def _shared_uncertainty(self) -> float | None:
        """Return the uncertainty of all models if it is the same: if they share their outcomes."""
        every = [each.parts.unc for each in self.models.values()]
        return every[0] if max(every) - min(every) <= 1e-12 else None

    def _dress(self) -> None:
        ax, unc = self.ax_, self._shared_uncertainty()
        ax.set_xlabel("miscalibration, MCB (lower is better)")
        ax.set_ylabel("discrimination, DSC (higher is better)")
        ax.spines[["top", "right"]].set_visible(False)
        if len(self.models) > 1:
            legend(ax, list(self.points_.values()), [shorten(name) for name in self.points_])
        lines = "lines: equal Brier scores" if unc is not None else "lines: equal Brier scores minus uncertainty"
        if self.crosses_:
            lines += f"; crosses: {100 * self.confidence_level:g} % CI"
        known = "" if unc is None else f" ({unc:.4f})"
        draw_title(ax, f"Brier = MCB - DSC + UNC{known}", lines, room=1.0)  # isolines have labels at the top
        ax.locator_params(axis="x", nbins=5)

    @property
    def _ids(self) -> dict[str, str]:
        return ids_by_name(self.models)

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values, one row per model.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        parts = [each.parts for each in self.models.values()]
        columns: dict[str, Any] = {"model": np.array(list(self.models), dtype=object)}
        columns |= {part: np.array([getattr(p, part) for p in parts]) for part in ("mcb", "dsc", "unc", "brier")}
        for part in ("mcb", "dsc"):
            limits = [getattr(each, part) for each in self.models.values()]
            if None not in limits:
                columns |= {
                    f"{part}_low": np.array([a for a, _ in limits]),
                    f"{part}_high": np.array([z for _, z in limits]),
                }
        return drawn_frame(columns, backend)

    def __repr__(self) -> str:
        described = [f"{name}: MCB {m.parts.mcb:.4f}, DSC {m.parts.dsc:.4f}" for name, m in self.models.items()]
        return f"DecompositionDisplay({join_short(described)})"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        each = "; ".join(
            f"{'' if name == 'model' else name + ', '}miscalibration {m.parts.mcb:.4f}, "
            f"discrimination {m.parts.dsc:.4f}, Brier score {m.parts.brier:.4f}"
            for name, m in self.models.items()
        )
        return f"Miscalibration against discrimination: {each}."


def _decompose(table: ScoreTable, n_resamples: int, level: float, random_state: RandomState) -> ModelDecomposition:
    parts = corp_decomposition(table)
    if not n_resamples:
        return ModelDecomposition(parts)
    resample, simulate = bootstrap_sampler(table), null_sampler(table)

    def both(replicate: ScoreTable) -> list[float]:
        found = corp_decomposition(replicate)
        return [found.mcb, found.dsc]

    common: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed_sequence(random_state), "rows": table.size}
    bootstrap = draw_replicates(one_by_one(lambda stream: both(resample(stream))), purpose="bootstrap", **common)
    null = draw_replicates(one_by_one(lambda stream: both(simulate(stream))), purpose="null", **common)
    low, high = np.quantile(bootstrap[:, 1], ((1 - level) / 2, (1 + level) / 2))
    mcb = interval_limits(Replicates(MCB(), parts.mcb, bootstrap[:, 0], null[:, 0], TableSample(table)), level)
    return ModelDecomposition(parts, mcb, (float(low), float(high)))


def _nice(step: float) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten that is at least `step`."""
    decade = 10.0 ** np.floor(np.log10(step))
    return float(next(m * decade for m in (1, 2, 5, 10) if m * decade >= step * (1 - 1e-9)))
