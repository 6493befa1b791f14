"""`ClasswiseDisplay` and `ProportionDisplay`: the reliability of single classes, and how often each is predicted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from calibrant._support.errors import InputError, check_count
from calibrant._support.formatting import p_text
from calibrant.metrics.gce import Breakdown
from calibrant.plots import canvas
from calibrant.plots.display import AxesDisplay, class_names, display_names, stacked
from calibrant.results.evaluation import Evaluation
from calibrant.results.text import bins_text

_TOP = "top label"
_MOST_PANELS, _MOST_ROWS = 9, 20  # of classes
_COLUMNS = 4  # of panels of equal size, where there are more classes
_SHAPES = {0: (1, 0), 1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 5: (2, 3), 6: (2, 3), 7: (3, 3), 8: (3, 3), 9: (3, 3)}


def _of_kind(evaluation: Evaluation, diagram: str, **options: Any) -> Any:
    """Return a diagram that only some kinds of forecast have, not yet drawn."""
    from calibrant.kinds.base import KINDS

    make = getattr(KINDS[evaluation.kind].figures, diagram, None)
    if make is None:
        kinds = " or ".join(repr(name) for name, kind in KINDS.items() if hasattr(kind.figures, diagram))
        raise InputError(f"evaluation must be of kind {kinds}; got {evaluation.kind!r}.")
    return make(evaluation, **options)


class ClassDisplay(AxesDisplay):
    """A diagram of the classes of an evaluation."""

    @classmethod
    def from_evaluation(cls, evaluation: Evaluation, *, ax: Axes | None = None, fig: FigureBase | None = None) -> Self:
        """Draw the classes of an evaluation of class probabilities or, as proportions, of predicted classes.

        Parameters
        ----------
        evaluation : Evaluation
            Its results are drawn; nothing is computed again.
        ax : Axes, optional
            Axes whose place the panels take.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        Display
            The display, drawn.
        """
        return cls.of(evaluation).plot(ax=ax, fig=fig)

    @classmethod
    def of(cls, evaluation: Evaluation) -> Self:
        """Return the display of an evaluation, not yet drawn.

        Parameters
        ----------
        evaluation : Evaluation
            Of class probabilities or, for proportions, of predicted classes.

        Returns
        -------
        Display
        """
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class ClasswiseDisplay(ClassDisplay):
    """Reliability diagrams of class probabilities: the top label, and each class against the rest.

    The panel of the top label shows the share of correct rows against the highest probability of each row. The other
    panels show how often a class occurs against its predicted probability, the most significant class first. Points are
    bins with an equal number of rows, with the exact confidence interval of the rate. On the dashed diagonal the rate
    equals the prediction. A class with a significant deviation (adjusted by Holm) is orange with filled points. Each
    panel has its own limits.

    `from_evaluation` creates and draws it.

    Attributes
    ----------
    breakdowns : mapping of name to Breakdown
        "top label" first, then the classes.
    pvalues : mapping of name to float
        The adjusted p-value of each class.
    alpha, confidence_level : float
    n_classes : int
        Number of all classes.
    figure_, axes_ : figure, and mapping of name to Axes, after drawing
    points_, intervals_ : mappings of name to artists
        Their ids (gid) are ``classwise-<name>-points`` and ``classwise-<name>-bin-<number>-interval``. `data` has one
        row per panel and bin.

    See Also
    --------
    classwise, ProportionDisplay

    Examples
    --------
    >>> from calibrant import evaluate
    >>> from matplotlib.figure import Figure
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 300)
    >>> y = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    >>> result = evaluate(y, p, n_resamples=19)
    >>> ClasswiseDisplay.from_evaluation(result, fig=Figure(figsize=(11, 3.4)))
    ClasswiseDisplay(3 of 3 classes, 0 significant)
    """

    breakdowns: Mapping[str, Breakdown]
    pvalues: Mapping[str, float]
    alpha: float
    confidence_level: float
    n_classes: int

    @classmethod
    def of(cls, evaluation: Evaluation, *, most: int = _MOST_PANELS) -> "ClasswiseDisplay":
        """Return the display of an evaluation of class probabilities, not yet drawn.

        Parameters
        ----------
        evaluation : Evaluation
            Of class probabilities.
        most : int, default=9
            Largest number of classes. More than 9 are drawn in columns of equal size.

        Returns
        -------
        ClasswiseDisplay
        """
        display: ClasswiseDisplay = _of_kind(evaluation, "classwise", most=most)
        return display

    @classmethod
    def of_breakdowns(
        cls, evaluation: Evaluation, top_label: Breakdown, classes: Mapping[str, tuple[Breakdown, float]], count: int
    ) -> "ClasswiseDisplay":
        """Return the display of breakdowns of the top label and of classes, not yet drawn.

        Parameters
        ----------
        evaluation : Evaluation
            Its settings are used.
        top_label : Breakdown
            Share of correct rows by their highest probability.
        classes : mapping of name to (Breakdown, float)
            Each class with its adjusted p-value.
        count : int
            Number of all classes.

        Returns
        -------
        ClasswiseDisplay
        """
        names, settings = display_names([_TOP, *classes]), evaluation.settings
        breakdowns = dict(zip(names, [top_label, *(breakdown for breakdown, _ in classes.values())], strict=True))
        pvalues = dict(zip(names[1:], (pvalue for _, pvalue in classes.values()), strict=True))
        return cls(breakdowns, pvalues, settings.alpha, settings.confidence_level, count)

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None, columns: int | None = None) -> Self:
        """Draw in the place of `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes whose place the panels take.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.
        columns : int, optional
            Number of columns of panels of equal size. By default the panel of the top label is large and stands at the
            left of the classes.

        Returns
        -------
        ClasswiseDisplay
            This display; artists are attributes that end in ``_``.
        """
        if columns is not None:
            check_count("columns", columns)
        elif self._shown > _MOST_PANELS:
            columns = _COLUMNS
        self._aside = columns is None and self._shown > 3  # the classes stand in their own block
        places = self._left_of_classes(ax, fig) if columns is None else self._in_columns(ax, fig, columns)
        self.axes_: dict[str, Axes] = {}
        self.points_: dict[str, Line2D] = {}
        self.intervals_: dict[str, list[Artist]] = {}
        titles = ["Top label", *canvas.shorten_distinct([name.removeprefix("class ") for name in self.pvalues], 14)]
        for i, (name, id_) in enumerate(zip(self.breakdowns, canvas.unique_ids(self.breakdowns), strict=True)):
            place, large, lowest = places[i]
            self.axes_[name] = self.figure_.add_subplot(place)
            self._draw_panel(name, id_)
            self._dress(name, titles[i], large=large, lowest=lowest)
        return self

    def _left_of_classes(self, ax: Axes | None, fig: FigureBase | None) -> list[tuple[Any, bool, bool]]:
        """Return the place of each panel, whether it is large and whether it is the lowest: the top label is large."""
        rows, columns = _SHAPES[self._shown]
        widths = [1.0 if rows == 1 else 0.8 * rows, *[1.0] * columns]
        size = (11.5, 3.4) if rows == 1 else (11.5, 11.5 * rows / sum(widths) + 0.6)
        self.figure_, grid = canvas.panels(ax, fig, widths=widths, heights=[1.0] * rows, size=size)
        classes = (divmod(i, max(columns, 1)) for i in range(self._shown))
        places = [
            (grid[row, 1 + column], rows == 1, i + 1 + columns > self._shown) for i, (row, column) in enumerate(classes)
        ]
        return [(grid[:, 0], True, True), *places]

    def _in_columns(self, ax: Axes | None, fig: FigureBase | None, columns: int) -> list[tuple[Any, bool, bool]]:
        """Return the same for panels of equal size."""
        count = len(self.breakdowns)
        size = (11.5, self.height(columns, 11.5))
        rows = -(-count // columns)
        self.figure_, grid = canvas.panels(ax, fig, widths=[1.0] * columns, heights=[1.0] * rows, size=size)
        return [(grid[divmod(i, columns)], columns <= 2, i + columns >= count) for i in range(count)]

    def height(self, columns: int, width: float) -> float:
        """Return the height in inches at which panels in `columns` columns are square, for a figure of this width.

        Parameters
        ----------
        columns : int
            Number of columns of panels.
        width : float
            Width of the figure in inches.

        Returns
        -------
        float
            Inches.
        """
        return float(1.12 * width / columns * -(-len(self.breakdowns) // columns))

    @property
    def _shown(self) -> int:
        """Number of drawn classes."""
        return len(self.breakdowns) - 1

    def _significant(self, name: str) -> bool:
        return self.pvalues.get(name, 1.0) <= self.alpha

    def _draw_panel(self, name: str, id_: str) -> None:
        ax, p = self.axes_[name], self.breakdowns[name].partition
        low, high = self.breakdowns[name].rate_interval(self.confidence_level)
        largest = float(np.nanmax([p.mean_score, p.rate, high]))
        end = 1.0 if largest > 0.6 else max(1.05 * largest, 1e-9)
        ax.plot([0, end], [0, end], **canvas.dashes(zorder=1))
        colour = canvas.REJECTED if self._significant(name) else canvas.model_colours(1)[0]
        bars, ids = canvas.vertical_lines(p.mean_score, low, high), f"classwise-{id_}-bin-{{}}-interval"
        self.intervals_[name] = canvas.lines(ax, bars, ids, colour, 1.1, alpha=0.75)
        face = colour if name == _TOP or self._significant(name) else ax.get_facecolor()
        style: dict[str, Any] = {"lw": 1.2, "marker": "o", "ms": 4.5, "mfc": face, "mec": colour, "zorder": 3}
        (self.points_[name],) = ax.plot(p.mean_score, p.rate, color=colour, gid=f"classwise-{id_}-points", **style)
        limits = (-0.025 * end, 1.025 * end)
        canvas.dress(ax, xlim=limits, ylim=limits, aspect="equal", adjustable="box")

    def _dress(self, name: str, title: str, *, large: bool, lowest: bool) -> None:
        ax = self.axes_[name]
        ax.locator_params(nbins=5 if large else 3)
        if not large:
            ax.tick_params(labelsize="small")
        if name == _TOP:
            ax.set(xlabel="highest probability", ylabel="share of correct rows")
            level = f"{100 * self.confidence_level:g} % CI"
            some = f"; {self._shown} of {self.n_classes:,} classes" if self._shown < self.n_classes else ""
            canvas.draw_title(
                ax, title, level + ("; at the right single classes" if self._aside else some), size="medium"
            )
            return
        if lowest:
            ax.set_xlabel("predicted", fontsize=None if large else "small")
        if large:
            ax.set_ylabel("observed")
        canvas.draw_title(ax, title, p_text(self.pvalues[name]), size="medium", reach=1.4)

    def _columns_of(self, name: str) -> dict[str, Any]:
        breakdown = self.breakdowns[name]
        count = len(breakdown.partition)
        columns = {column: breakdown.per_bin[column] for column in ("n", "k", "mean_score", "rate")}
        columns["rate_low"], columns["rate_high"] = breakdown.rate_interval(self.confidence_level)
        pvalue = np.full(count, self.pvalues.get(name, np.nan))
        return {"bin": np.arange(count), **columns, "adjusted_pvalue": pvalue}

    def _columns(self) -> dict[str, Any]:
        return stacked("panel", {name: self._columns_of(name) for name in self.breakdowns})

    def __repr__(self) -> str:
        count = sum(map(self._significant, self.pvalues))
        return f"ClasswiseDisplay({self._shown} of {self.n_classes:,} classes, {count} significant)"

    def alt_text(self) -> str:
        p = self.breakdowns[_TOP].partition
        low, high = self.breakdowns[_TOP].rate_interval(self.confidence_level)
        outside = int(((p.mean_score < low) | (p.mean_score > high)).sum())
        significant = [name.removeprefix("class ") for name in self.pvalues if self._significant(name)]
        which = f" ({canvas.join_short(significant)})" if significant else ""
        return (
            f"Reliability of the top label in {bins_text(len(p))}, mean confidence outside the "
            f"{100 * self.confidence_level:g} % CI of the share of correct rows in {outside}; and of {self._shown} of "
            f"{self.n_classes:,} classes, {len(significant)} with a significant deviation{which}."
        )


@dataclass(frozen=True)
class ClassShare:
    """One class: its shares (in %), and an estimate with confidence interval that is drawn beside them."""

    name: str
    predicted: float
    observed: float
    value: float
    low: float
    high: float
    adjusted_pvalue: float
    significant: bool


@dataclass(eq=False, repr=False)
class ProportionDisplay(ClassDisplay):
    """Predicted and observed share of each class, the most significant class first, at most 20 classes.

    The left panel has two points per class: its predicted share (hollow) and its observed share (filled). For class
    probabilities the predicted share is the mean probability; of ordered classes the shares are those of outcomes at or
    below each class. The right panel shows the difference of the shares with
    its confidence interval for predicted classes, and the log-odds error of each class with its confidence interval for
    class probabilities. Orange points are significant (adjusted by Holm).

    `from_evaluation` creates and draws it.

    Attributes
    ----------
    classes : sequence of ClassShare
        The drawn classes, in order.
    n_classes : int
        Number of all classes.
    measure : str
        Name of the estimate in the right panel.
    confidence_level : float
    figure_, ax_, ax_estimate_
        After drawing.
    predicted_, observed_, points_, intervals_ : lists of artists
        One per class, with the id (gid) ``proportion-<class>-<part>``; no interval where it is undefined.
        `data` has one row per class; shares are in %.

    See Also
    --------
    proportions, ClasswiseDisplay

    Examples
    --------
    >>> from calibrant import Labels, evaluate
    >>> from matplotlib.figure import Figure
    >>> y_true, y_pred = np.repeat(["a", "b", "c"], 100), np.repeat(["a", "b"], 150)
    >>> ProportionDisplay.from_evaluation(evaluate(y_true, Labels(y_pred)), fig=Figure())
    ProportionDisplay(3 of 3 classes, 3 significant)
    """

    classes: Sequence[ClassShare]
    n_classes: int
    measure: str
    confidence_level: float

    @classmethod
    def of(cls, evaluation: Evaluation) -> "ProportionDisplay":
        display: ProportionDisplay = _of_kind(evaluation, "proportions")
        return display

    @classmethod
    def of_classes(
        cls, evaluation: Evaluation, measure: str, labels: Sequence[object], estimates: Sequence[tuple[float, ...]]
    ) -> "ProportionDisplay":
        """Return the display of the classes of an evaluation, not yet drawn.

        Parameters
        ----------
        evaluation : Evaluation
            Its details have the results of the classes.
        measure : str
            Name of the estimate in the right panel.
        labels : sequence
            The classes in the order of their results.
        estimates : sequence of tuples
            For each class its observed share, and the estimate with its limits.

        Returns
        -------
        ProportionDisplay
        """
        details: Any = evaluation.details
        shares = []
        for i, (name, c, numbers) in enumerate(zip(class_names(labels), details.classes, estimates, strict=True)):
            observed, value, low, high = numbers
            p = min(c.adjusted_pvalue * evaluation.decision.group_factor, 1.0)
            significant = p <= evaluation.settings.alpha
            share = ClassShare(name, 100 * c.predicted, 100 * observed, value, low, high, p, significant)
            shares.append((p, c.pvalue, -abs(c.predicted - observed), i, share))
        shown = [share for *_, share in sorted(shares)[:_MOST_ROWS]]
        return cls(shown, len(shares), measure, evaluation.settings.confidence_level)

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> Self:
        self.figure_, grid = canvas.panels(ax, fig, widths=(1.25, 1), size=(8.4, self.height()))
        self.ax_ = self.figure_.add_subplot(grid[0, 0])
        self.ax_estimate_: Axes = self.figure_.add_subplot(grid[0, 1], sharey=self.ax_)
        self.predicted_: list[Line2D] = []
        self.observed_: list[Line2D] = []
        self.points_: list[Line2D] = []
        self.intervals_: list[Artist] = []
        ids = canvas.unique_ids(c.name for c in self.classes)
        for i, (c, id_) in enumerate(zip(self.classes, ids, strict=True)):
            self._draw_shares(i, c, f"proportion-{id_}")
            self._draw_estimate(i, c, f"proportion-{id_}")
        self._dress()
        return self

    def height(self) -> float:
        """Return the height in inches at which all classes are legible.

        Returns
        -------
        float
            Inches.
        """
        return 1.5 + 0.24 * len(self.classes)

    def _draw_shares(self, place: int, c: ClassShare, ids: str) -> None:
        gap = canvas.strokes([(c.predicted, place), (c.observed, place)])
        canvas.lines(self.ax_, [gap], f"{ids}-gap", canvas.blend(0.4), 1.2)
        predicted, observed = self._marks()
        self.observed_ += self.ax_.plot(c.observed, place, zorder=3, gid=f"{ids}-observed", **observed)
        self.predicted_ += self.ax_.plot(c.predicted, place, zorder=4, gid=f"{ids}-predicted", **predicted)

    def _marks(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the styles of predicted and observed shares."""
        blue, red = canvas.model_colours(1)[0], canvas.event_colour()
        predicted = {"marker": "D", "ms": 5, "mfc": self.ax_.get_facecolor(), "mec": blue}
        observed = {"marker": "o", "ms": 6.5, "mfc": red, "mec": red}
        return {"ls": "", "mew": 1.4, **predicted}, {"ls": "", "mew": 1.4, **observed}

    def _draw_estimate(self, place: int, c: ClassShare, ids: str) -> None:
        ax = self.ax_estimate_
        if np.isfinite([c.low, c.high]).all():
            bar = canvas.strokes([(c.low, place), (c.high, place)])
            self.intervals_ += canvas.lines(ax, [bar], f"{ids}-interval", canvas.blend(0.75), 1.4)
        self.points_ += ax.plot(c.value, place, gid=f"{ids}-point", **canvas.point(ax, significant=c.significant))

    def _dress(self) -> None:
        ax, right, classes = self.ax_, self.ax_estimate_, self.classes
        shares = [v for c in classes for v in (c.predicted, c.observed)]
        _set_limits(ax, shares if min(shares) > 0.5 * max(shares) else [0.0, *shares])
        _set_limits(right, [v for c in classes for v in (0.0, c.value, c.low, c.high)])
        ax.set_yticks(range(len(classes)), canvas.shorten_distinct([c.name for c in classes], 28), parse_math=False)
        ax.set_ylim(len(classes) - 0.4, -0.6)
        right.tick_params(labelleft=False, left=False)
        right.axvline(0, **canvas.dashes(zorder=0.5))
        for side, label in ((ax, "share of rows (%)"), (right, self.measure)):
            canvas.dress(side, xlabel=label)
            side.grid(axis="y", color=canvas.blend(0.12), lw=0.8)
            side.set_axisbelow(True)
            side.locator_params(axis="x", nbins=6)
        right.spines["left"].set_visible(False)
        few = len(classes) < self.n_classes
        title = f"{len(classes)} most significant of {self.n_classes:,} classes" if few else "Class proportions"
        canvas.legend_above(ax, title, [Line2D([], [], **style) for style in self._marks()], ["predicted", "observed"])
        name = self.measure.partition(" (")[0]
        small = f"{100 * self.confidence_level:g} % CI; {self._significant} significant (filled)"
        canvas.draw_title(right, f"{name[0].upper()}{name[1:]}", small)

    @property
    def _significant(self) -> int:
        return sum(c.significant for c in self.classes)

    def _columns(self) -> dict[str, Any]:
        names = ("predicted", "observed", "value", "low", "high", "adjusted_pvalue", "significant")
        return {"class": [c.name for c in self.classes]} | {k: [getattr(c, k) for c in self.classes] for k in names}

    def __repr__(self) -> str:
        return f"ProportionDisplay({len(self.classes)} of {self.n_classes:,} classes, {self._significant} significant)"

    def alt_text(self) -> str:
        gaps = sorted(self.classes, key=lambda c: -abs(c.predicted - c.observed))
        named = [
            f"{canvas.shorten(c.name, 28)} {c.predicted:.3g} % predicted, {c.observed:.3g} % observed" for c in gaps[:3]
        ]
        return (
            f"Predicted and observed shares of {len(self.classes)} of {self.n_classes:,} classes, "
            f"{self._significant} with a significant deviation; largest differences: {canvas.join_short(named)}."
        )


def _set_limits(ax: Axes, values: Sequence[float]) -> None:
    finite = [v for v in values if np.isfinite(v)]
    low, high = min(finite), max(finite)
    room = 0.05 * max(high - low, 1e-9)
    ax.set_xlim(low - room, high + room)
