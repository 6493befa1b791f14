"""`DecisionCurveDisplay`: net benefit against the threshold, beside treating all and treating none."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._support.errors import InputError
from calibrant.plots import canvas
from calibrant.plots.display import ScoreDisplay
from calibrant.plots.probability_axes import Axis
from calibrant.tables.rows import RowOptions

if TYPE_CHECKING:
    from calibrant.evaluation.decision_curves import DecisionCurve

_USUAL = 0.01 - 1e-12, 0.99 + 1e-12  # ends of thresholds that a linear axis shows well


@dataclass(eq=False, repr=False)
class DecisionCurveDisplay(ScoreDisplay):
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
        After drawing; `lines_` and `bands_` map names to artists with the id (gid) ``decision-<name>``. `data` has one
        row per strategy and threshold.

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

    _size = (6.8, 4.8)
    _takes_several = True

    curve: "DecisionCurve"

    def __post_init__(self) -> None:
        from calibrant.evaluation.decision_curves import DecisionCurve

        if not isinstance(self.curve, DecisionCurve):
            raise InputError(
                f"curve must be a DecisionCurve; got {type(self.curve).__name__}.",
                hint="Pass the result of calibrant.decision_curve(y_true, y_prob).",
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
        from calibrant.evaluation.decision_curves import decision_curve

        options = {"thresholds": thresholds, "costs": costs, "calibrator": calibrator, "cluster": cluster}
        curve = decision_curve(y_true, y_prob, confidence_level=confidence_level, **options, **rows)
        return cls(curve).plot(ax=ax, fig=fig)

    def _draw(self) -> None:
        ax, x, curve = self.ax_, self.curve.thresholds, self.curve
        grey: dict[str, Any] = {"color": canvas.blend(0.5), "lw": 1.2, "zorder": 1.5}
        (self.treat_all_,) = ax.plot(x, curve.treat_all.value, ls=(0, (5, 2)), gid="decision-all", **grey)
        self.treat_none_: Line2D = ax.axhline(0, gid="decision-none", **grey)
        self.lines_: dict[str, Line2D] = {}
        self.bands_: dict[str, Artist] = {}
        names = [model.name for model in curve.models]
        colours, ids = canvas.model_colours(len(names)), canvas.ids_by_name(names)
        for i, (model, colour) in enumerate(zip(curve.models, colours, strict=True)):
            gid = f"decision-{ids[model.name]}"
            style: dict[str, Any] = {"alpha": 0.2 if len(names) == 1 else 0.12, "lw": 0, "zorder": 0.8}
            band = ax.fill_between(x, model.low, model.high, color=colour, gid=f"{gid}-band", **style)
            style = {"lw": 1.7, "ls": canvas.dash(i), "marker": "o" if x.size < 12 else "", "ms": 4}
            (line,) = ax.plot(x, model.value, color=colour, gid=gid, **style)
            self.bands_[model.name], self.lines_[model.name] = band, line
        self._dress(colours)

    def _dress(self, colours: list[str]) -> None:
        ax, curve = self.ax_, self.curve
        top = max([curve.event_rate, *(float(model.value.max()) for model in curve.models)])
        canvas.dress(ax, ylim=(-0.12 * top, 1.15 * top), ylabel="net benefit per row")
        lowest, highest = float(curve.thresholds[0]), float(curve.thresholds[-1])
        if lowest < _USUAL[0] or highest > _USUAL[1]:
            Axis("logit", lowest, highest, complete=True).apply(ax.xaxis)
        else:
            ax.set_xlim(0, min(1.0, highest + 0.01))
        ax.set_xlabel("threshold: lowest score of a decision for the event")
        handles: list[Any] = [Line2D([], [], color=c, lw=1.7, ls=canvas.dash(i)) for i, c in enumerate(colours)]
        handles += [Line2D([], [], color=canvas.blend(0.5), lw=1.2, ls=dash) for dash in ((0, (5, 2)), "-")]
        handles.append(Patch(color=colours[0] if len(colours) == 1 else canvas.blend(0.5), alpha=0.2, lw=0))
        labels = [canvas.shorten(model.name) for model in curve.models]
        labels += ["treat all", "treat none", f"{100 * curve.level:g} % CI"]
        canvas.legend_above(ax, "Decision curve", handles, labels)

    def data(self, backend: str = "pandas") -> Any:
        return self.curve.to_frame(backend)

    def __repr__(self) -> str:
        names = canvas.join_short([model.name for model in self.curve.models])
        return f"DecisionCurveDisplay({names}; {self.curve.thresholds.size} thresholds)"

    def alt_text(self) -> str:
        parts = [
            f"{model.name} has a higher net benefit than {model.reference} at {self.curve.better_at(model)}"
            for model in self.curve.models
        ]
        return f"Decision curve, event rate {100 * self.curve.event_rate:.3g} %: {'; '.join(parts)}."
