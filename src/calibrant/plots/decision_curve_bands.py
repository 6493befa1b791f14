"""`DecisionCurveDisplay`: net benefit against the threshold, beside treating all and treating none."""

from dataclasses import dataclass
from typing import Any, Unpack

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError
from calibrant.evaluation.decision_curves import DecisionCurve, decision_curve
from calibrant.evaluation.net_benefit import NetBenefit
from calibrant.plots._canvas import Axis, ids_by_name, join_short, legend_above, shorten, single_axes
from calibrant.plots._inputs import predict_scores
from calibrant.plots._palette import DASHES, blend, model_colours
from calibrant.tables.rows import RowOptions

__all__ = ["DecisionCurveDisplay"]

_USUAL = 0.01 - 1e-12, 0.99 + 1e-12  # ends of thresholds that a linear axis shows well


@dataclass(eq=False, repr=False)
class DecisionCurveDisplay:
    """The decision curve: net benefit of each model against the threshold of its decisions.

    Thresholds below 0.01 or above 0.99 are drawn along a logit axis.

    Bands are pointwise confidence intervals. Grey lines are the strategies without a model: treating all rows, and none
    (net benefit 0). A model is useful at the thresholds where its line lies above both.

    `from_predictions` or `from_estimator` creates and draws it; ``DecisionCurveDisplay(curve)`` takes a
    `calibrant.results.DecisionCurve`.

    Attributes
    ----------
    curve : DecisionCurve
    figure_, ax_, lines_, bands_, treat_all_, treat_none_
        After drawing; `lines_` and `bands_` map names to artists with the id (gid) ``decision-<name>``.

    See Also
    --------
    decision_curve, CostDisplay

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = DecisionCurveDisplay.from_predictions(rng.random(500) < p, p, fig=Figure())
    >>> display.lines_["model"].get_xdata().size
    99
    """

    curve: DecisionCurve

    def __post_init__(self) -> None:
        if not isinstance(self.curve, DecisionCurve):
            raise InputError(
                f"curve must be a DecisionCurve; got {type(self.curve).__name__}.",
                hint="Pass the result of calibrant.decision_curve(y_true, y_prob).",
                argument="curve",
            )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        thresholds: Any = None,
        costs: Any = None,
        calibrator: Any = None,
        cluster: Any = None,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[RowOptions],
    ) -> "DecisionCurveDisplay":
        """Compute the net benefit of predictions, or of a mapping of them, and draw it.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities; a mapping of name to predictions draws several models. Or one
            `ScoreTable`, or a mapping of them.
        thresholds, costs, calibrator, cluster, confidence_level
            See `calibrant.decision_curve`.
        ax, fig
            See `plot`.
        sample_weight, frequency, pos_label, missing
            How rows are read; see `ScoreTable.from_arrays`.

        Returns
        -------
        DecisionCurveDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        options = {"thresholds": thresholds, "costs": costs, "calibrator": calibrator, "cluster": cluster}
        curve = decision_curve(y_true, y_prob, confidence_level=confidence_level, **options, **rows)
        return cls(curve).plot(ax=ax, fig=fig)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> "DecisionCurveDisplay":
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
        DecisionCurveDisplay
            The display, drawn.
        """
        return cls.from_predictions(y, predict_scores(estimator, X, options, several=True), **options)

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "DecisionCurveDisplay":
        """Draw in `ax`, which is used as given, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        DecisionCurveDisplay
            This display; artists are attributes that end in ``_``.
        """
        self.ax_ = single_axes(ax, fig, (6.8, 4.8))
        self.figure_ = self.ax_.figure
        x, curve = self.curve.thresholds, self.curve
        grey: dict[str, Any] = {"color": blend(0.5), "lw": 1.2, "zorder": 1.5}
        (self.treat_all_,) = self.ax_.plot(x, curve.treat_all.value, ls=(0, (5, 2)), gid="decision-all", **grey)
        self.treat_none_ = self.ax_.axhline(0, gid="decision-none", **grey)
        self.lines_: dict[str, Line2D] = {}
        self.bands_: dict[str, Artist] = {}
        colours = model_colours(len(curve.models))
        for i, (model, colour) in enumerate(zip(curve.models, colours, strict=True)):
            self._draw(model, colour, i, x)
        self._dress(colours)
        return self

    def _draw(self, model: NetBenefit, colour: str, number: int, x: Floats) -> None:
        gid = f"decision-{self._ids[model.name]}"
        alpha = 0.2 if len(self.curve.models) == 1 else 0.12
        self.bands_[model.name] = self.ax_.fill_between(
            x, model.low, model.high, color=colour, alpha=alpha, lw=0, gid=f"{gid}-band", zorder=0.8
        )
        style: dict[str, Any] = {"color": colour, "lw": 1.7, "ls": DASHES[number % len(DASHES)], "gid": gid}
        (self.lines_[model.name],) = self.ax_.plot(x, model.value, marker="o" if x.size < 12 else "", ms=4, **style)

    def _dress(self, colours: list[str]) -> None:
        ax, curve = self.ax_, self.curve
        top = max([curve.event_rate, *(float(model.value.max()) for model in curve.models)])
        ax.set_ylim(-0.12 * top, 1.15 * top)
        lowest, highest = float(curve.thresholds[0]), float(curve.thresholds[-1])
        if lowest < _USUAL[0] or highest > _USUAL[1]:
            Axis("logit", lowest, highest, complete=True).apply(ax.xaxis)
        else:
            ax.set_xlim(0, min(1.0, highest + 0.01))
        ax.set_xlabel("threshold: lowest score of a decision for the event")
        ax.set_ylabel("net benefit per row")
        ax.spines[["top", "right"]].set_visible(False)
        handles: list[Any] = [Line2D([], [], color=c, lw=1.7, ls=DASHES[i % 5]) for i, c in enumerate(colours)]
        labels = [shorten(model.name) for model in curve.models]
        handles += [Line2D([], [], color=blend(0.5), lw=1.2, ls=(0, (5, 2))), Line2D([], [], color=blend(0.5), lw=1.2)]
        labels += ["treat all", "treat none"]
        handles.append(Patch(color=colours[0] if len(colours) == 1 else blend(0.5), alpha=0.2, lw=0))
        labels.append(f"{100 * curve.level:g} % CI")
        legend_above(ax, "Decision curve", handles, labels)

    @property
    def _ids(self) -> dict[str, str]:
        return ids_by_name([model.name for model in self.curve.models])

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values, one row per strategy and threshold.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        return self.curve.to_frame(backend)

    def __repr__(self) -> str:
        names = join_short([model.name for model in self.curve.models])
        return f"DecisionCurveDisplay({names}; {self.curve.thresholds.size} thresholds)"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        parts = []
        for model in self.curve.models:
            where = self.curve.better_at(model)
            parts.append(f"{model.name} has a higher net benefit than {model.reference} at {where}")
        return f"Decision curve, event rate {100 * self.curve.event_rate:.3g} %: {'; '.join(parts)}."
