"""`RECDisplay`: the share of rows within each error tolerance, of one or several models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError
from calibrant.metrics.point import RECCurve, rec_curve
from calibrant.metrics.point_costs import quantile
from calibrant.plots import canvas
from calibrant.plots.display import AxesDisplay, display_names, predict_numbers, stacked
from calibrant.tables.mean_table import MeanTable, read_mean_table
from calibrant.tables.rows import WeightOptions

_MOST_POINTS = 400  # of a curve, four times that many at most
_MOST_INSIDE = 6  # entries of a legend that leave room for the curves
_SHARE = 0.9  # of the rows, for titles
_LONGEST = 3.0  # the axis ends at this multiple of the tolerance of 95 % of rows, or at the largest error


@dataclass(eq=False, repr=False)
class RECDisplay(AxesDisplay):
    """Regression error characteristic: for each tolerance the share of rows whose error is at most that.

    The counterpart of the ROC curve (Bi and Bennett, 2003). Curves further up and left are better. The area over a
    curve is the mean error, MAE (or MSE for squared errors), and is stated in the legend. The dashed grey curve is that
    of the best constant prediction: the median outcome (the mean outcome for squared errors).

    `from_predictions`, `from_estimator` or `from_curve` creates and draws it.

    Attributes
    ----------
    curves : dict of name to RECCurve
    reference : RECCurve or None
        Of the best constant prediction.
    figure_, ax_ : Figure, Axes
    lines_ : dict of name to line
        `data` has one row per model and error that occurs.
    reference_ : Line2D or None

    See Also
    --------
    rec_curve, BiasDisplay

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> display = RECDisplay.from_predictions(y, {"good": 0.9 * y, "poor": 0.5 * y}, fig=Figure())
    >>> display.curves["good"].area_over < display.curves["poor"].area_over < display.reference.area_over
    True
    """

    curves: Mapping[str, RECCurve]
    reference: RECCurve | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any = None,
        *,
        loss: Literal["absolute", "squared"] = "absolute",
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[WeightOptions],
    ) -> "RECDisplay":
        """Compute the curves and draw them.

        Parameters
        ----------
        y_true, y_pred : columns
            Outcomes, and predictions or a mapping of name to predictions; or one `MeanTable` of rows.
        loss : {"absolute", "squared"}
            Kind of error.
        ax, fig
            See `plot`.
        sample_weight, frequency, missing
            How rows are read; see `MeanTable.from_arrays`.

        Returns
        -------
        RECDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        several = y_pred if isinstance(y_pred, Mapping) else {"model": y_pred}
        if not several:
            raise InputError("y_pred must have predictions of at least one model; got an empty mapping.")
        tables = [read_mean_table(y_true, each, rows) for each in several.values()]
        curves = [rec_curve(table, loss=loss) for table in tables]
        reference = rec_curve(_constant(tables[0], loss), loss=loss)
        return cls(dict(zip(display_names(several), curves, strict=True)), reference).plot(ax=ax, fig=fig)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> "RECDisplay":
        """Predict with a fitted regressor, or with a mapping of them, and draw; options as for `from_predictions`.

        Parameters
        ----------
        estimator : fitted regressor, or mapping of name to regressor
            One regressor has the name of its class.
        X : array or frame of n rows
            Features, as the estimator takes them.
        y : column of n outcomes
        **options
            Those of `from_predictions`.

        Returns
        -------
        RECDisplay
            The display, drawn.
        """
        several = estimator if isinstance(estimator, Mapping) else {type(estimator).__name__: estimator}
        predictions = {name: predict_numbers(each, X) for name, each in several.items()}
        return cls.from_predictions(y, predictions, **options)

    @classmethod
    def from_curve(cls, curve: Any, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "RECDisplay":
        """Draw one result of `calibrant.regression.rec_curve`, or a mapping of them.

        Parameters
        ----------
        curve : RECCurve or mapping of name to RECCurve
            Curves to draw.
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        RECDisplay
            The display, drawn.
        """
        several = curve if isinstance(curve, Mapping) else {"model": curve}
        if not several or not all(isinstance(each, RECCurve) for each in several.values()):
            raise InputError(f"curve must be a RECCurve or a mapping of them; got {curve!r}.")
        if len({each.loss for each in several.values()}) > 1:
            raise InputError("curve must hold curves of one kind of error; got absolute and squared.")
        return cls(dict(zip(display_names(several), several.values(), strict=True))).plot(ax=ax, fig=fig)

    @property
    def _loss(self) -> str:
        return next(iter(self.curves.values())).loss

    def _all(self) -> list[RECCurve]:
        return [*self.curves.values(), *([] if self.reference is None else [self.reference])]

    def _end(self) -> float:
        """Return where the axis of tolerances ends: at the largest error, unless few rows have much larger ones."""
        largest = max(float(curve.tolerance[-1]) for curve in self._all())
        usual = max(curve.needed(0.95) for curve in self._all())
        return (min(largest, _LONGEST * usual) if usual > 0 else largest) or 1.0

    def _draw(self) -> None:
        ax, ids, colours = self.ax_, canvas.ids_by_name(self.curves), canvas.model_colours(len(self.curves))
        self.reference_: Line2D | None = None
        if self.reference is not None:
            self.reference_ = self._line(self.reference, gid="rec-reference", **canvas.dashes(0.6, zorder=1.5))
        self.lines_: dict[str, Line2D] = {}
        for i, (name, curve) in enumerate(self.curves.items()):
            dash = canvas.dash(i // 6)
            self.lines_[name] = self._line(curve, gid=f"rec-{ids[name]}", lw=1.8, color=colours[i], ls=dash)
        canvas.dress(ax, xlim=(0, 1.02 * self._end()), ylim=(0, 1.01), xlabel=f"tolerance ({self._loss} error)")
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        ax.set_ylabel("share of rows within it")
        lines, labels = self._entries()
        needed = [curve.needed(_SHARE) for curve in self.curves.values()]
        span = f"{needed[0]:.3g}" if len(needed) == 1 else f"{min(needed):.3g} to {max(needed):.3g}"
        title = f"{100 * _SHARE:g} % of rows have an error of at most {span}"
        small = f"legend: area over the curve (mean {self._loss} error)"
        if len(labels) > _MOST_INSIDE:
            canvas.legend_above(ax, f"{title}; {small}", lines, labels)
        else:
            canvas.legend(ax, lines, labels, loc="lower right")
            canvas.draw_title(ax, title, small)

    def _line(self, curve: RECCurve, **style: Any) -> Line2D:
        x, y = _corners(curve, 1.02 * self._end())
        (line,) = self.ax_.plot(x, y, drawstyle="steps-post", **style)
        return line

    def _entries(self) -> tuple[list[Line2D], list[str]]:
        """Return the lines and the labels of the legend, with the area over each curve."""
        lines, names = list(self.lines_.values()), canvas.shorten_distinct(list(self.curves), 24)
        labels = [f"{name}: {curve.area_over:.4g}" for name, curve in zip(names, self.curves.values(), strict=True)]
        if self.reference is not None and self.reference_ is not None:
            middle = "median" if self._loss == "absolute" else "mean"
            lines.append(self.reference_)
            labels.append(f"{middle} outcome: {self.reference.area_over:.4g}")
        return lines, labels

    def _columns(self) -> dict[str, Any]:
        parts = {name: {"tolerance": c.tolerance, "accuracy": c.accuracy} for name, c in self.curves.items()}
        return stacked("model", parts)

    def __repr__(self) -> str:
        areas = [f"{name}: area over the curve {curve.area_over:.4g}" for name, curve in self.curves.items()]
        return f"RECDisplay({canvas.join_short(areas, 2)})"

    def alt_text(self) -> str:
        areas = "; ".join(f"{name} {curve.area_over:.4g}" for name, curve in self.curves.items())
        return f"Share of rows within each tolerance of the {self._loss} error; area over the curve: {areas}."


def _constant(table: MeanTable, loss: str) -> MeanTable:
    """Return the table of the best constant prediction: the median outcome, or the mean for squared errors."""
    order = np.argsort(table.mean, kind="stable")
    median = quantile(table.mean[order], table.n[order], 0.5)
    value = median if loss == "absolute" else table.mean_outcome
    return table.map(lambda p: np.full(p.shape, value))


def _corners(curve: RECCurve, end: float) -> tuple[Floats, Floats]:
    """Return the points of the steps, from 0 to the end of the axis; of long curves some."""
    shown = canvas.curve_indices(curve.accuracy, _MOST_POINTS)
    x, y = curve.tolerance[shown], curve.accuracy[shown]
    inside = x <= end
    x, y = x[inside], y[inside]
    last = y[-1] if y.size else 0.0
    return np.concatenate([[0.0], x, [end]]), np.concatenate([[0.0], y, [last]])
