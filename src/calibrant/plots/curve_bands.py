"""`CalibrationCurveDisplay`: calibration curves and belts with their bands, of one or several models or methods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, Unpack

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._support.arrays import runs_text
from calibrant._support.errors import InputError
from calibrant.inference.curves.belts import CalibrationBelt, calibration_belt
from calibrant.inference.curves.calibration_curves import CalibrationCurve, calibration_curve
from calibrant.plots import canvas
from calibrant.plots.display import ScoreDisplay, display_names, stacked
from calibrant.plots.probability_axes import Axis, Scale
from calibrant.tables.rows import RowOptions

Curve: TypeAlias = CalibrationCurve | CalibrationBelt
_METHODS = ("spline", "local", "isotonic", "belt")


@dataclass(eq=False, repr=False)
class CalibrationCurveDisplay(ScoreDisplay):
    """Calibration curves with their confidence bands, beside the diagonal of a calibrated model.

    The widest band of each curve is the lightest: the simultaneous band, and inside it the pointwise one, or the belts
    of a `CalibrationBelt`. Several curves on the same axes: several methods of one model, or several models.

    `from_predictions` or `from_estimator` creates and draws it; ``CalibrationCurveDisplay({"name": curve})`` takes
    curves that exist.

    Attributes
    ----------
    curves : mapping of name to CalibrationCurve or CalibrationBelt
    scale : {"linear", "log", "logit"}, optional
        See `plot`.
    figure_, ax_, lines_, bands_
        After drawing; `lines_` and `bands_` map names to artists with the id (gid) ``curve-<name>``. `data` has one row
        per curve and point, with the limits of its widest band.

    See Also
    --------
    calibration_curve, calibration_belt, ReliabilityDisplay

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = CalibrationCurveDisplay.from_predictions(rng.random(500) < p, p, method=["spline", "belt"],
    ...                                                    fig=Figure())
    >>> list(display.curves)
    ['spline', 'belt']
    """

    _takes_several = True

    curves: Mapping[str, Curve]
    scale: Scale | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.curves, Mapping) or not self.curves:
            raise InputError("curves must be a mapping with at least one curve; got none.")
        self.curves = dict(zip(display_names(self.curves), self.curves.values(), strict=True))

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        method: str | Sequence[str] = "spline",
        cluster: Any = None,
        confidence_level: float = 0.95,
        scale: Scale | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[RowOptions],
    ) -> "CalibrationCurveDisplay":
        """Fit the curves of one model by one or several methods, or of several models by one, and draw them.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities; or one `ScoreTable`. A mapping of name to predictions draws several
            models.
        method : {"spline", "local", "isotonic", "belt"}, or several of them
        cluster : column, optional
            Rows of one cluster may depend on each other.
        confidence_level : float, default=0.95
            Of the bands; the belt has bands of 80 % too.
        scale, name, ax, fig
            See `plot`.
        sample_weight, frequency, pos_label, missing
            How rows are read; see `ScoreTable.from_arrays`.

        Returns
        -------
        CalibrationCurveDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        methods = [method] if isinstance(method, str) else list(method)
        models = y_prob if isinstance(y_prob, Mapping) else {name or "model": y_prob}
        if len(methods) > 1 and len(models) > 1:
            raise InputError(
                f"method must be one method with several models; got {methods}.",
                hint="Draw several models by one method, or one model by several.",
            )
        options = {"cluster": cluster, **rows}
        curves = {
            chosen if len(methods) > 1 else model: _fit(chosen, y_true, scores, options, confidence_level)
            for model, scores in models.items()
            for chosen in methods
        }
        return cls(curves, scale).plot(ax=ax, fig=fig)

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None, scale: Scale | None = None) -> Self:
        """Draw in `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Used as given.
        fig : Figure or SubFigure, optional
        scale : {"linear", "log", "logit"}, optional
            Of both axes; by default "logit" where at least 80 % of the predictions of each curve lie within 0.1 of an
            end, and "linear" elsewhere. A log or logit axis leaves out the 2 % of the predictions next to 0 and 1;
            event rates beyond its ends are drawn at the ends.

        Returns
        -------
        CalibrationCurveDisplay
            This display; artists are attributes that end in ``_``.
        """
        self.scale = self.scale if scale is None else scale
        axis = self._axis()
        self.ax_: Axes = canvas.single_axes(ax, fig, (6.0, 6.0))
        self.figure_: FigureBase = self.ax_.figure
        axis.apply(self.ax_.xaxis)
        axis.apply(self.ax_.yaxis)
        ends = [axis.low, axis.high]
        earlier = [line for line in self.ax_.lines if str(line.get_gid()).startswith("curve-")]
        (self.diagonal_,) = self.ax_.plot(ends, ends, **canvas.dashes(zorder=1))
        self.lines_: dict[str, Line2D] = {}
        self.bands_: dict[str, list[Artist]] = {}
        colours = canvas.model_colours(len(earlier) + len(self.curves))[len(earlier) :]
        for i, (name, colour) in enumerate(zip(self.curves, colours, strict=True), start=len(earlier)):
            self._draw_curve(name, colour, i, len(earlier), axis)
        self._dress(colours, earlier)
        return self

    def _axis(self) -> Axis:
        every = self.curves.values()
        crowded = all(curve.crowds_end for curve in every)
        inner = [curve.score[1:-1] if curve.score.size > 2 else curve.score for curve in every]
        return Axis.fitting(self.scale or ("logit" if crowded else "linear"), inner)

    def _draw_curve(self, name: str, colour: str, number: int, first: int, axis: Axis) -> None:
        """Draw a curve and its bands; `number` counts all curves of the axes, `first` those of earlier displays."""
        curve, gid = self.curves[name], f"curve-{canvas.ids_by_name(self.curves)[name]}{f'-{first}' if first else ''}"
        shown = axis.contains(curve.score)
        x, y, step = curve.score[shown], axis.inside(curve.estimate[shown]), curve.method == "isotonic"
        alpha = 0.14 if len(self.curves) > 1 or number > 0 else 0.2
        self.bands_[name] = []
        for i, limits in enumerate(curve.bands.values()):
            place, (low, high) = x, (axis.inside(limit[shown]) for limit in limits)
            if step and x.size > 1:  # between two points a rising curve lies above the lower limit of the first
                place, low, high = np.repeat(x, 2)[1:-1], np.repeat(low[:-1], 2), np.repeat(high[1:], 2)
            style: dict[str, Any] = {"alpha": alpha, "lw": 0, "zorder": 0.8, "gid": f"{gid}-band-{i}"}
            self.bands_[name].append(self.ax_.fill_between(place, low, high, color=colour, **style))
        style = {"lw": 1.8, "ls": canvas.dash(number), "gid": gid, "zorder": 3}
        style |= {"label": _label(curve) if name == "model" else canvas.shorten(name)}
        steps = "steps-post" if step else "default"
        (self.lines_[name],) = self.ax_.plot(x, y, color=colour, drawstyle=steps, **style)

    def _dress(self, colours: list[str], earlier: list[Line2D]) -> None:
        canvas.dress(self.ax_, xlabel="predicted probability", ylabel="event rate", aspect="equal")
        drawn = [*earlier, *self.lines_.values()]
        handles: list[Any] = [
            Line2D([], [], color=line.get_color(), lw=1.8, ls=canvas.dash(i)) for i, line in enumerate(drawn)
        ]
        single = len(drawn) == 1
        labels = [_label(next(iter(self.curves.values())))] if single else [str(line.get_label()) for line in drawn]
        bands = list(dict.fromkeys(label for curve in self.curves.values() for label in curve.bands))
        shade = colours[0] if single else canvas.blend(0.5)
        for i, label in enumerate(bands if single else bands[:1]):
            handles.append(Patch(color=shade, alpha=0.2 + 0.2 * i, lw=0))
            labels.append(label if single or len(bands) == 1 else "confidence bands")
        title = self._title() if single else "Calibration curves"
        canvas.legend_above(self.ax_, title, handles, labels, reach=1.2)

    def _title(self) -> str:
        if len(self.curves) > 1:
            return "Calibration curves"
        ((name, curve),) = self.curves.items()
        who = "Calibration curve" if name == "model" else name
        test = f", p = {curve.pvalue:.2g}" if isinstance(curve, CalibrationBelt) else ""
        return f"{who}, ICI = {curve.errors.ici:.3g}{test}"

    def _columns(self) -> dict[str, Any]:
        parts = {}
        for name, curve in self.curves.items():
            low, high = next(iter(curve.bands.values()))
            parts[name] = {"score": curve.score, "estimate": curve.estimate, "low": low, "high": high}
        return stacked("curve", parts)

    def __repr__(self) -> str:
        described = [f"{name}: {_label(curve)}" for name, curve in self.curves.items()]
        return f"CalibrationCurveDisplay({canvas.join_short(described)})"

    def alt_text(self) -> str:
        parts = []
        for name, curve in self.curves.items():
            band, (low, high) = next(iter(curve.bands.items()))
            outside = (curve.diagonal < low) | (curve.diagonal > high)
            where = "contains the diagonal"
            if outside.any():
                where = f"excludes the diagonal at {runs_text(curve.score, outside)}"
            who = "" if name == "model" else f"{name}, "
            parts.append(f"{who}{_label(curve)} with ICI {curve.errors.ici:.3g}, whose {band} {where}")
        return f"Calibration curves: {'; '.join(parts)}."


def _label(curve: Curve) -> str:
    if isinstance(curve, CalibrationBelt):
        return f"belt of degree {curve.degree}"
    return {"local": "local regression", "isotonic": "isotonic curve"}.get(curve.method, curve.method)


def _fit(method: str, y_true: Any, y_prob: Any, options: Mapping[str, Any], level: float) -> Curve:
    if method not in _METHODS:
        raise InputError(f"method must be one of {', '.join(_METHODS)}; got {method!r}.")
    if method == "belt":
        return calibration_belt(y_true, y_prob, levels=sorted({0.8, level}), **options)
    return calibration_curve(y_true, y_prob, method=method, confidence_level=level, **options)  # type: ignore[arg-type]
