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
from calibrant.plots import canvas
from calibrant.plots.display import TableDisplay, read_tables
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable


@dataclass(frozen=True, eq=False)
class ModelDecomposition:
    """Decomposition of one model, with the confidence intervals of mcb and dsc if requested."""

    parts: CorpDecomposition
    mcb: tuple[float, float] | None = None
    dsc: tuple[float, float] | None = None


@dataclass(eq=False, repr=False)
class DecompositionDisplay(TableDisplay):
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
        After drawing; a model's artists have the id (gid) ``decomposition-<model>-<part>``. `data` has one row per
        model.

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

    _takes_several = True

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

    def _draw(self) -> None:
        ax, ids, colours = self.ax_, canvas.ids_by_name(self.models), canvas.model_colours(len(self.models))
        self.points_: dict[str, Line2D] = {}
        self.crosses_: dict[str, list[Artist]] = {}
        for i, (name, model) in enumerate(self.models.items()):
            x, y, gid = model.parts.mcb, model.parts.dsc, f"decomposition-{ids[name]}"
            if model.mcb is not None and model.dsc is not None:
                cross = canvas.strokes([(model.mcb[0], y), (model.mcb[1], y)], [(x, model.dsc[0]), (x, model.dsc[1])])
                self.crosses_[name] = canvas.lines(ax, [cross], f"{gid}-interval", colours[i], 1.2, alpha=0.8)
            marker: dict[str, Any] = {"ls": "", "marker": canvas.marker(i), "ms": 8}
            (self.points_[name],) = ax.plot(x, y, color=colours[i], zorder=4, gid=f"{gid}-point", **marker)
        self._limits()
        self._draw_isolines()
        self._dress()

    def _limits(self) -> None:
        x, y = self._reach("mcb"), self._reach("dsc")
        width, height = max(x[1] - x[0], 1e-4), max(y[1] - y[0], 1e-4)
        self.ax_.set_xlim(max(0.0, x[0] - 0.15 * width), x[1] + 0.15 * width)
        self.ax_.set_ylim(max(-0.02 * height, y[0] - 0.15 * height), y[1] + 0.15 * height)

    def _reach(self, part: str) -> tuple[float, float]:
        """Return the range of the drawn values, from 0 if the lowest is close to 0."""
        values = [v for m in self.models.values() for v in (getattr(m.parts, part), *(getattr(m, part) or ()))]
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
            self.isolines_ += self.ax_.plot(ends, ends + base - score, color=canvas.blend(0.3), lw=0.8, zorder=0.5)
            x = min(x1, y1 - base + score)  # where it leaves at the top or at the right
            if x0 + 0.04 * (x1 - x0) < x:
                at_top = x < x1
                place: dict[str, Any] = {"ha": "center" if at_top else "left", "va": "bottom" if at_top else "center"}
                style: dict[str, Any] = {"fontsize": "x-small", "color": canvas.blend(0.55), "annotation_clip": False}
                text = f"{score + 0.0:.{max(0, int(np.ceil(-np.log10(step))))}f}"
                shift = (0, 2) if at_top else (3, 0)
                self.ax_.annotate(text, (x, x + base - score), shift, textcoords="offset points", **place, **style)
        self.ax_.set_xlim(x0, x1)
        self.ax_.set_ylim(y0, y1)

    def _shared_uncertainty(self) -> float | None:
        """Return the uncertainty of all models if it is the same: if they share their outcomes."""
        every = [each.parts.unc for each in self.models.values()]
        return every[0] if max(every) - min(every) <= 1e-12 else None

    def _dress(self) -> None:
        ax, unc = self.ax_, self._shared_uncertainty()
        canvas.dress(
            ax, xlabel="miscalibration, MCB (lower is better)", ylabel="discrimination, DSC (higher is better)"
        )
        if len(self.models) > 1:
            canvas.legend(ax, list(self.points_.values()), [canvas.shorten(name) for name in self.points_])
        small = "lines: equal Brier scores" if unc is not None else "lines: equal Brier scores minus uncertainty"
        small += f"; crosses: {100 * self.confidence_level:g} % CI" if self.crosses_ else ""
        of_unc = "" if unc is None else f" ({unc:.4f})"
        canvas.draw_title(ax, f"Brier = MCB - DSC + UNC{of_unc}", small, room=1.0)  # isolines have labels at the top
        ax.locator_params(axis="x", nbins=5)

    def _columns(self) -> dict[str, Any]:
        models = self.models.values()
        columns: dict[str, Any] = {"model": np.array(list(self.models), dtype=object)}
        columns |= {name: [getattr(model.parts, name) for model in models] for name in ("mcb", "dsc", "unc", "brier")}
        for name in ("mcb", "dsc"):
            limits = [getattr(model, name) for model in models]
            if None not in limits:
                columns[f"{name}_low"], columns[f"{name}_high"] = zip(*limits, strict=True)
        return columns

    def __repr__(self) -> str:
        described = [f"{name}: MCB {m.parts.mcb:.4f}, DSC {m.parts.dsc:.4f}" for name, m in self.models.items()]
        return f"DecompositionDisplay({canvas.join_short(described)})"

    def alt_text(self) -> str:
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
