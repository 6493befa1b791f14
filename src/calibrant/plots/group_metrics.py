"""`GroupDisplay`: a metric per group or day, with confidence intervals and null ranges."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._support.errors import InputError
from calibrant._support.formatting import NumberFormat, p_text
from calibrant.evaluation.evaluate import evaluate
from calibrant.kinds.log_odds import NAME
from calibrant.plots._canvas import (
    drawn_frame,
    legend_above,
    rectangle,
    shapes,
    shorten,
    single_axes,
    strokes,
    unique_ids,
)
from calibrant.plots._inputs import display_names, named_results, predict_scores, result_table, shared_metric
from calibrant.plots._palette import REJECTED, blend, model_colours
from calibrant.results.evaluation import Evaluation
from calibrant.results.text import n_rows, rows_text
from calibrant.results.uncertainty import MetricResult

__all__ = ["GroupDisplay"]

Along: TypeAlias = Literal["x", "y"]

_MOST_NAMES = 30  # groups whose names fit below each other
_MOST_LABELS = 12  # along a horizontal axis


@dataclass(eq=False, repr=False)
class GroupDisplay:
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
        Name of one of its metrics.
    most : int or None
        Draw at most this number of groups, the worst ones; None for all.
    figure_, ax_ : Figure, Axes
    points_, intervals_, bands_ : lists of artists
        One per group, with the id (gid) ``group-<name>-<part>``; none where an interval or a null range is undefined.

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
    metric: str = NAME
    most: int | None = None

    def __post_init__(self) -> None:
        if not self.evaluation.groups:
            raise InputError(
                "evaluation must have groups; got none.",
                hint="Pass by=, the group of each row, or a mapping of tables.",
                argument="by",
            )
        names = list(self.evaluation.metrics)
        if self.metric not in names:
            raise InputError(
                f"metric must be one of {', '.join(names)}; got {self.metric!r}.",
                argument="metric",
                value=self.metric,
            )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        by: Any = None,
        metric: str = NAME,
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
        metric : str, default="log-odds error"
            Name of the metric to draw.
        along, ax, fig
            See `plot`.
        **options
            Those of `calibrant.evaluate`.

        Returns
        -------
        GroupDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        return cls.from_evaluation(
            evaluate(y_true, y_prob, by=by, **options), metric=metric, along=along, ax=ax, fig=fig
        )

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> "GroupDisplay":
        """Predict with a fitted classifier and draw; options as for `from_predictions`.

        Parameters
        ----------
        estimator : fitted classifier
        X : array or frame of n rows
            Features, as the estimator takes them.
        y : column of n outcomes
        **options
            Those of `from_predictions`.

        Returns
        -------
        GroupDisplay
            The display, drawn.
        """
        return cls.from_predictions(y, predict_scores(estimator, X, options), **options)

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
            raise InputError(
                f"breakdown must be a mapping of group to Breakdown; got {type(breakdown).__name__}.",
                argument="breakdown",
            )
        metric = shared_metric(named_results(breakdown).values())
        options = {"metrics": {metric.name: metric}, "metric": metric.name, **options}
        return cls.from_predictions({name: result_table(each) for name, each in breakdown.items()}, **options)

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        *,
        metric: str = NAME,
        along: Along | None = None,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
    ) -> "GroupDisplay":
        """Draw the groups of an evaluation.

        Parameters
        ----------
        evaluation : Evaluation
            Evaluation with groups.
        metric : str, default="log-odds error"
            Name of the metric to draw.
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

    def plot(
        self, *, along: Along | None = None, ax: Axes | None = None, fig: FigureBase | None = None
    ) -> "GroupDisplay":
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
            raise InputError(f"along must be 'x' or 'y'; got {along!r}.", argument="along", value=along)
        upright = (along or self._usual()) == "y"
        lines = self.lines
        size = (7.2, 1.4 + 0.3 * len(lines)) if upright else (8.0, 4.0)
        self.ax_ = single_axes(ax, fig, size)
        self.figure_ = self.ax_.figure
        self._limits = _span(list(lines.values()))
        ids, places = unique_ids(lines), self._places(upright)
        significant = [self.evaluation.groups[name].is_significant for name in lines]
        boxes = [self._box(at, each, upright) for at, each in zip(places, lines.values(), strict=True)]
        bars = [self._bar(at, each, upright) for at, each in zip(places, lines.values(), strict=True)]
        self.bands_ = self._each("band", ids, boxes)
        self.intervals_ = self._each("interval", ids, bars)
        self.points_: list[Line2D] = []
        for at, each, beyond, name in zip(places, lines.values(), significant, ids, strict=True):
            self.points_ += self._point(at, each, beyond, upright, f"group-{name}-point")
        self._dress(upright, places, lines, significant)
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

    def _point(self, at: float, each: MetricResult, beyond: bool, upright: bool, gid: str) -> list[Line2D]:
        """Draw a point at the value; an infinite value is a triangle at the end of the axis."""
        low, high = self._limits
        value = float(np.clip(each.value, low, high))
        away = {1: ">" if upright else "^", -1: "<" if upright else "v"}
        marker = "o" if np.isfinite(each.value) else away[int(np.sign(each.value))]
        edge = REJECTED if beyond else model_colours(1)[0]
        face = REJECTED if beyond else self.ax_.get_facecolor()
        place = (value, at) if upright else (at, value)
        style: dict[str, Any] = {"ms": 6, "mfc": face, "mec": edge, "mew": 1.4, "clip_on": marker == "o"}
        return self.ax_.plot(*place, ls="", marker=marker, zorder=4, gid=gid, **style)

    @property
    def _has_dates(self) -> bool:
        return all(isinstance(name, (date, np.datetime64)) for name in self.evaluation.groups)

    @property
    def _is_ordered(self) -> bool:
        """Whether groups are dates or numbers."""
        numbers = all(isinstance(n, Real) and not isinstance(n, bool) for n in self.evaluation.groups)
        return self._has_dates or numbers

    def _usual(self) -> Along:
        return "x" if self._is_ordered or len(self.lines) > _MOST_NAMES else "y"

    def _each(self, part: str, names: list[str], paths: list[Any]) -> list[Artist]:
        style: dict[str, Any] = {"facecolor": blend(0.16), "linewidth": 0}
        if part == "interval":
            style = {"facecolor": "none", "edgecolor": blend(0.75), "linewidth": 1.4}
        found: list[Artist] = []
        for name, path in zip(names, paths, strict=True):
            found += shapes(self.ax_, [path], f"group-{name}-{part}", **style)
        return found

    @staticmethod
    def _box(place: float, each: MetricResult, upright: bool) -> Any:
        n, half = each.null, 0.36
        if np.isnan([n.low, n.high]).any():
            return None
        if upright:
            return rectangle(n.low, n.high, place - half, place + half)
        return rectangle(place - half, place + half, n.low, n.high)

    def _bar(self, place: float, each: MetricResult, upright: bool) -> Any:
        if np.isnan([each.interval.low, each.interval.high]).any():
            return None
        low, high = np.clip([each.interval.low, each.interval.high], *self._limits)
        ends = [(float(low), place), (float(high), place)]
        return strokes(ends if upright else [(p, v) for v, p in ends])

    def _dress(
        self, upright: bool, places: list[float], lines: dict[Any, MetricResult], significant: list[bool]
    ) -> None:
        ax, names, limits = self.ax_, display_names(lines), self._limits
        unit = " (%)" if next(iter(lines.values())).unit == "%" else ""
        if upright:
            ax.set_yticks(places, [shorten(n) for n in names], parse_math=False)
            ax.set_ylim(places[-1] + 0.6, -0.6)
            ax.set_xlim(*limits)
            ax.set_xlabel(f"{self.metric}{unit}", parse_math=False)
            self._sizes_at_right(lines)
        else:
            shown = list(range(0, len(names), -(-len(names) // _MOST_LABELS)))
            turned: dict[str, Any] = {"rotation": 30, "ha": "right"} if max(len(names[i]) for i in shown) > 5 else {}
            labels = [shorten(names[i], 16) for i in shown]
            ax.set_xticks([places[i] for i in shown], labels, parse_math=False, **turned)
            ax.set_xlim(-0.7, places[-1] + 0.7)
            ax.set_ylim(*limits)
            ax.set_ylabel(f"{self.metric}{unit}", parse_math=False)
            ax.set_xlabel(self.evaluation.by or "", parse_math=False)
        target = _target(list(lines.values()))
        dashes: dict[str, Any] = {"color": blend(0.45), "lw": 1, "ls": (0, (4, 3))}
        if target is not None or limits[0] < 0 < limits[1]:
            (ax.axvline if upright else ax.axhline)(target or 0.0, zorder=0.5, **dashes)
        ax.spines[["top", "right"]].set_visible(False)
        level = f"{100 * self.evaluation.settings.confidence_level:g} %"
        known = any(not np.isnan(each.interval.low) for each in lines.values())
        line: dict[str, Any] = {"color": blend(0.75), "lw": 1.4 if known else 0, "marker": "o", "ms": 6, "mew": 1.4}
        handles: list[Any] = [
            Line2D([], [], mfc=ax.get_facecolor(), mec=model_colours(1)[0], **line),
            Line2D([], [], mfc=REJECTED, mec=REJECTED, **line),
            Patch(facecolor=blend(0.16)),
        ]
        labels = [f"value, {level} CI" if known else "value", "significant (omnibus test)", "null range"]
        if not self.bands_:
            handles, labels = handles[:2], labels[:2]
        if target is not None:
            handles, labels = [*handles, Line2D([], [], **dashes)], [*labels, "expected if calibrated"]
        legend_above(ax, self._title(sum(significant)), handles, labels)

    def _title(self, significant: int) -> str:
        by, drawn, count = self.evaluation.by or "group", len(self.lines), len(self.evaluation.groups)
        if drawn < count and self.most is not None:
            return f"{self.metric}, the {drawn} worst of {count:,} groups"
        return f"{self.metric} by {by}: {significant} of {drawn} significant"

    def _sizes_at_right(self, lines: dict[Any, MetricResult]) -> None:
        """Write the rows and the adjusted p-value of each group at its right."""
        for i, name in enumerate(lines):
            part = self.evaluation.groups[name]
            self.ax_.annotate(
                f"{rows_text(part.table)}, {p_text(part.pvalue)}",
                (1, i),
                (6, 0),
                ("axes fraction", "data"),
                "offset points",
                va="center",
                fontsize="small",
                color=blend(0.65),
                annotation_clip=False,
            )

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values, one row per group.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        lines = self.lines
        parts = [self.evaluation.groups[name] for name in lines]
        columns = {
            "group": np.array([str(name) for name in lines], dtype=object),
            "rows": np.array([n_rows(part.table) for part in parts]),
            "value": np.array([each.value for each in lines.values()]),
            "low": np.array([each.interval.low for each in lines.values()]),
            "high": np.array([each.interval.high for each in lines.values()]),
            "null_low": np.array([each.null.low for each in lines.values()]),
            "null_high": np.array([each.null.high for each in lines.values()]),
            "omnibus_pvalue": np.array([part.pvalue for part in parts]),
            "significant": np.array([part.is_significant for part in parts]),
        }
        return drawn_frame(columns, backend)

    def __repr__(self) -> str:
        significant = sum(group.is_significant for group in self.evaluation.groups.values())
        return f"GroupDisplay({self.metric}, {len(self.evaluation.groups)} groups, {significant} significant)"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        lines = self.lines
        beyond = [str(name) for name in lines if self.evaluation.groups[name].is_significant]
        form = NumberFormat.for_spread(next(iter(lines.values())).unit, 0, signed=False)
        values = {str(name): each.value for name, each in lines.items()}
        top = max(values, key=lambda name: values[name])
        which = f": {', '.join(beyond[:6])}{' and others' if len(beyond) > 6 else ''}" if beyond else ""
        name, deviate = f"{self.metric[0].upper()}{self.metric[1:]}", "deviates" if len(beyond) == 1 else "deviate"
        return (
            f"{name} of {len(lines)} groups, from {form.value(min(values.values()))} to {form.value(values[top])} "
            f"({top}); {len(beyond)} of them {deviate} significantly by the omnibus test, adjusted for the "
            f"number of groups{which}."
        )


def _target(lines: list[MetricResult]) -> float | None:
    """Return the value that all groups should have, where only it is known and no null range, as for coverage."""
    expected = {each.null.expected for each in lines if np.isnan(each.null.low)}
    value = expected.pop() if len(expected) == 1 else np.nan
    return float(value) if np.isfinite(value) else None


def _span(lines: list[MetricResult]) -> tuple[float, float]:
    """Return axis limits that contain all finite values, intervals, null ranges and their target."""
    target = _target(lines)
    every: list[float] = [] if target is None else [target]
    for each in lines:
        every += [each.value, each.interval.low, each.interval.high, each.null.low, each.null.high]
    finite = [v for v in every if np.isfinite(v)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    room = 0.06 * max(high - low, 1e-9)
    return (0.0 if 0 <= low < 0.4 * high or high == low else low - room), high + room
