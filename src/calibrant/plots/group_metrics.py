"""`GroupDisplay`: a metric per group or day, with confidence intervals and null ranges."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from numbers import Real
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._support.errors import InputError, wrong_value
from calibrant._support.formatting import NumberFormat, p_text
from calibrant.plots import canvas
from calibrant.plots.display import ScoreDisplay, display_names, named_results, result_table, shared_metric
from calibrant.results.evaluation import Evaluation
from calibrant.results.text import rows_text
from calibrant.results.uncertainty import MetricResult

Along: TypeAlias = Literal["x", "y"]

_MOST_NAMES = 30  # groups whose names fit below each other
_MOST_LABELS = 12  # along a horizontal axis


@dataclass(eq=False, repr=False)
class GroupDisplay(ScoreDisplay):
    """One metric per group: its value with a confidence interval, and its null range.

    Groups are listed from top to bottom, days from left to right. The grey bar of a group is the null range; it is wide
    if the group has few rows. A filled point is a group with a significant deviation: the omnibus test of `evaluate`
    rejects, adjusted for the number of groups (Holm). The test does not depend on the drawn metric. Dates and numbers
    are drawn in order, at proportional distances.

    `from_predictions` with ``by=``, `from_estimator`, `from_breakdown` or `from_evaluation` creates and draws it.

    Attributes
    ----------
    evaluation : Evaluation
        With groups.
    metric : str
        Name of one of its metrics; by default the first one.
    most : int or None
        Draw at most this number of groups, the worst ones; None for all.
    figure_, ax_ : Figure, Axes
    points_, intervals_, bands_ : lists of artists
        One per group, with the id (gid) ``group-<name>-<part>``; none where an interval or a null range is undefined.
        `data` has one row per group.

    See Also
    --------
    evaluate, EvaluationDisplay

    Examples
    --------
    >>> from calibrant import ScoreTable
    >>> from matplotlib.figure import Figure
    >>> tables = {
    ...     "north": ScoreTable.from_counts([0.2, 0.7], [200, 100], [42, 69]),
    ...     "south": ScoreTable.from_counts([0.2, 0.7], [200, 100], [80, 50]),
    ... }
    >>> display = GroupDisplay.from_predictions(tables, n_resamples=99, fig=Figure())
    >>> display.data()["significant"].tolist()
    [False, True]
    """

    evaluation: Evaluation
    metric: str = ""
    most: int | None = None

    def __post_init__(self) -> None:
        if not self.evaluation.groups:
            raise InputError(
                "evaluation must have groups; got none.",
                hint="Pass by=, the group of each row, or a mapping of tables.",
                argument="by",
            )
        names = list(self.evaluation.metrics)
        self.metric = self.metric or names[0]
        if self.metric not in names:
            raise wrong_value("metric", f"must be one of {', '.join(names)}", self.metric)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        by: Any = None,
        metric: str = "",
        along: Along | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **options: Any,
    ) -> "GroupDisplay":
        """Evaluate each group and draw its metric.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities; or a mapping of group to `ScoreTable`.
        by : column
            Group, or day, of each row.
        metric : str, optional
            Name of the metric to draw; by default the first one.
        along, ax, fig
            See `plot`.
        **options
            Those of `calibrant.evaluate`.

        Returns
        -------
        GroupDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        from calibrant.evaluation.evaluate import evaluate

        return cls.from_evaluation(
            evaluate(y_true, y_prob, by=by, **options), metric=metric, along=along, ax=ax, fig=fig
        )

    @classmethod
    def from_breakdown(cls, breakdown: Mapping[Any, Any], **options: Any) -> "GroupDisplay":
        """Draw a mapping of group to Breakdown of one metric, with intervals and null ranges.

        Parameters
        ----------
        breakdown : mapping of group to Breakdown
            Results of the same metric.
        **options
            Those of `from_predictions`.

        Returns
        -------
        GroupDisplay
            The display, drawn.
        """
        if not isinstance(breakdown, Mapping):
            raise wrong_value(
                "breakdown", "must be a mapping of group to Breakdown", breakdown, got=type(breakdown).__name__
            )
        metric = shared_metric(named_results(breakdown).values())
        options = {"metrics": {metric.name: metric}, "metric": metric.name, **options}
        return cls.from_predictions({name: result_table(each) for name, each in breakdown.items()}, **options)

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        *,
        metric: str = "",
        along: Along | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
    ) -> "GroupDisplay":
        """Draw the groups of an evaluation.

        Parameters
        ----------
        evaluation : Evaluation
            Evaluation with groups.
        metric : str, optional
            Name of the metric to draw; by default the first one.
        along, ax, fig
            See `plot`.

        Returns
        -------
        GroupDisplay
            The display, drawn.
        """
        return cls(evaluation, metric).plot(along=along, ax=ax, fig=fig)

    @property
    def lines(self) -> dict[Any, MetricResult]:
        """Metric of each group that has it; dates and numbers in order."""
        groups = self.evaluation.groups
        names = [name for name in groups if self.metric in groups[name].metrics]
        if self.most is not None and len(names) > self.most:
            worst = [name for name in self.evaluation.worst_first if self.metric in groups[name].metrics]
            return {name: groups[name][self.metric] for name in worst[: self.most]}
        return {name: groups[name][self.metric] for name in (sorted(names) if self._is_ordered else names)}

    def plot(self, *, along: Along | None = None, ax: Axes | None = None, fig: FigureBase | None = None) -> Self:
        """Draw in `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        along : {"x", "y"}, optional
            Axis of the groups: "y" lists them from top to bottom, "x" from left to right. The default is "x" for dates,
            numbers and more than 30 groups.
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        GroupDisplay
            This display; artists are attributes that end in ``_``.
        """
        if along not in (None, "x", "y"):
            raise InputError(f"along must be 'x' or 'y'; got {along!r}.", value=along)
        many = len(self.lines) > _MOST_NAMES
        upright = along == "y" or (along is None and not (self._is_ordered or many))
        lines = self.lines
        self.ax_ = ax = canvas.single_axes(ax, fig, (7.2, 1.4 + 0.3 * len(lines)) if upright else (8.0, 4.0))
        self.figure_: FigureBase = ax.figure
        self._limits = _span(list(lines.values()))
        ids, places = canvas.unique_ids(lines), self._places(upright)
        drawn = list(zip(ids, places, lines.items(), strict=True))
        self.bands_: list[Artist] = []
        self.intervals_: list[Artist] = []
        self.points_: list[Line2D] = []
        for id_, at, (_, line) in drawn:
            style = {"facecolor": canvas.blend(0.16), "linewidth": 0}
            self.bands_ += canvas.shapes(ax, [self._box(at, line, upright)], f"group-{id_}-band", **style)
        for id_, at, (_, line) in drawn:
            bar = self._bar(at, line, upright)
            self.intervals_ += canvas.lines(ax, [bar], f"group-{id_}-interval", canvas.blend(0.75), 1.4)
        for id_, at, (name, line) in drawn:
            self.points_ += self._point(name, at, line, upright, f"group-{id_}-point")
        self._dress(upright, places, lines)
        return self

    def _places(self, upright: bool) -> list[float]:
        """Return the positions of the groups; dates and numbers have proportional distances if they fit."""
        count = len(self.lines)
        if upright or not self._is_ordered:
            return [float(i) for i in range(count)]
        values = np.array(list(self.lines), dtype="datetime64[s]" if self._has_dates else float).astype(np.float64)
        gaps = np.diff(values)
        if count < 2 or not np.isfinite(values).all() or (values[-1] - values[0]) / gaps.min() > 4 * count + 10:
            return [float(i) for i in range(count)]
        return [float(at) for at in (values - values[0]) / gaps.min()]

    def _point(self, name: Any, at: float, line: MetricResult, upright: bool, gid: str) -> list[Line2D]:
        """Draw a point at the value; an infinite value is a triangle at the end of the axis."""
        value = float(np.clip(line.value, *self._limits))
        away = {1: ">" if upright else "^", -1: "<" if upright else "v"}
        style = canvas.point(self.ax_, significant=self.evaluation.groups[name].is_significant)
        if not np.isfinite(line.value):
            style |= {"marker": away[int(np.sign(line.value))], "clip_on": False}
        return self.ax_.plot(*((value, at) if upright else (at, value)), gid=gid, **style)

    @property
    def _has_dates(self) -> bool:
        return all(isinstance(name, (date, np.datetime64)) for name in self.evaluation.groups)

    @property
    def _is_ordered(self) -> bool:
        """Whether groups are dates or numbers."""
        numbers = all(isinstance(n, Real) and not isinstance(n, bool) for n in self.evaluation.groups)
        return self._has_dates or numbers

    @staticmethod
    def _box(place: float, line: MetricResult, upright: bool) -> Any:
        low, high, half = line.null.low, line.null.high, 0.36
        if np.isnan([low, high]).any():
            return None
        if upright:
            return canvas.rectangle(low, high, place - half, place + half)
        return canvas.rectangle(place - half, place + half, low, high)

    def _bar(self, place: float, line: MetricResult, upright: bool) -> Any:
        limits = [line.interval.low, line.interval.high]
        if np.isnan(limits).any():
            return None
        low, high = np.clip(limits, *self._limits)
        ends = [(float(low), place), (float(high), place)]
        return canvas.strokes(ends if upright else [(p, v) for v, p in ends])

    def _dress(self, upright: bool, places: list[float], lines: dict[Any, MetricResult]) -> None:
        ax, names, limits = self.ax_, display_names(lines), self._limits
        label = f"{self.metric}{' (%)' if next(iter(lines.values())).unit == '%' else ''}"
        if upright:
            ax.set_yticks(places, [canvas.shorten(n) for n in names], parse_math=False)
            ax.set(xlim=limits, ylim=(places[-1] + 0.6, -0.6))
            ax.set_xlabel(label, parse_math=False)
            self._sizes_at_right(lines)
        else:
            shown = list(range(0, len(names), -(-len(names) // _MOST_LABELS)))
            turned: dict[str, Any] = {"rotation": 30, "ha": "right"} if max(len(names[i]) for i in shown) > 5 else {}
            labels = [canvas.shorten(names[i], 16) for i in shown]
            ax.set_xticks([places[i] for i in shown], labels, parse_math=False, **turned)
            ax.set(xlim=(-0.7, places[-1] + 0.7), ylim=limits)
            ax.set_ylabel(label, parse_math=False)
            ax.set_xlabel(self.evaluation.by or "", parse_math=False)
        target = _target(list(lines.values()))
        if target is not None or limits[0] < 0 < limits[1]:
            (ax.axvline if upright else ax.axhline)(target or 0.0, **canvas.dashes(zorder=0.5))
        canvas.dress(ax)
        has_intervals = bool(self.intervals_)
        level = f"{100 * self.evaluation.settings.confidence_level:g} %"
        line: dict[str, Any] = {"color": canvas.blend(0.75), "lw": 1.4 if has_intervals else 0}
        points = [canvas.point(ax, significant=significant) | {"ls": "-"} for significant in (False, True)]
        handles: list[Any] = [Line2D([], [], **style, **line) for style in points]
        labels = [f"value, {level} CI" if has_intervals else "value", "significant (omnibus test)"]
        if self.bands_:
            handles.append(Patch(facecolor=canvas.blend(0.16)))
            labels.append("null range")
        if target is not None:
            handles.append(Line2D([], [], **canvas.dashes()))
            labels.append("expected if calibrated")
        canvas.legend_above(ax, self._title(), handles, labels)

    def _title(self) -> str:
        by, drawn, count = self.evaluation.by or "group", len(self.lines), len(self.evaluation.groups)
        if drawn < count and self.most is not None:
            return f"{self.metric}, the {drawn} worst of {count:,} groups"
        significant = sum(self.evaluation.groups[name].is_significant for name in self.lines)
        return f"{self.metric} by {by}: {significant} of {drawn} significant"

    def _sizes_at_right(self, lines: dict[Any, MetricResult]) -> None:
        """Write the rows and the adjusted p-value of each group at its right."""
        style: dict[str, Any] = {"va": "center", "fontsize": "small", "color": canvas.blend(0.65)}
        for i, name in enumerate(lines):
            group = self.evaluation.groups[name]
            place = (1, i), (6, 0), ("axes fraction", "data"), "offset points"
            self.ax_.annotate(
                f"{rows_text(group.table)}, {p_text(group.pvalue)}", *place, annotation_clip=False, **style
            )

    def _columns(self) -> dict[str, Any]:
        lines, groups = self.lines.values(), [self.evaluation.groups[name] for name in self.lines]
        return {
            "group": [str(name) for name in self.lines],
            "rows": [group.n_rows for group in groups],
            "value": [line.value for line in lines],
            "low": [line.interval.low for line in lines],
            "high": [line.interval.high for line in lines],
            "null_low": [line.null.low for line in lines],
            "null_high": [line.null.high for line in lines],
            "omnibus_pvalue": [group.pvalue for group in groups],
            "significant": [group.is_significant for group in groups],
        }

    def __repr__(self) -> str:
        significant = sum(group.is_significant for group in self.evaluation.groups.values())
        return f"GroupDisplay({self.metric}, {len(self.evaluation.groups)} groups, {significant} significant)"

    def alt_text(self) -> str:
        lines = self.lines
        significant = [str(name) for name in lines if self.evaluation.groups[name].is_significant]
        form = NumberFormat.for_spread(next(iter(lines.values())).unit, 0, signed=False)
        values = {str(name): line.value for name, line in lines.items()}
        top = max(values, key=lambda name: values[name])
        named = f"{', '.join(significant[:6])}{' and others' if len(significant) > 6 else ''}"
        name, deviate = f"{self.metric[0].upper()}{self.metric[1:]}", "deviates" if len(significant) == 1 else "deviate"
        return (
            f"{name} of {len(lines)} groups, from {form.value(min(values.values()))} to {form.value(values[top])} "
            f"({top}); {len(significant)} of them {deviate} significantly by the omnibus test, adjusted for the "
            f"number of groups{f': {named}' if significant else ''}."
        )


def _target(lines: list[MetricResult]) -> float | None:
    """Return the value that all groups should have, where only it is known and no null range, as for coverage."""
    expected = {each.null.expected for each in lines if np.isnan(each.null.low)}
    value = expected.pop() if len(expected) == 1 else np.nan
    return float(value) if np.isfinite(value) else None


def _span(lines: list[MetricResult]) -> tuple[float, float]:
    """Return axis limits that contain all finite values, intervals, null ranges and their target."""
    target = _target(lines)
    values: list[float] = [] if target is None else [target]
    for line in lines:
        values += [line.value, line.interval.low, line.interval.high, line.null.low, line.null.high]
    finite = [v for v in values if np.isfinite(v)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    room = 0.06 * max(high - low, 1e-9)
    return (0.0 if 0 <= low < 0.4 * high or high == low else low - room), high + room
