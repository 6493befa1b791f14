"""`ProportionDisplay`: predicted and observed share per class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from calibrant._support.errors import InputError
from calibrant.plots._canvas import (
    draw_title,
    drawn_frame,
    join_short,
    legend_above,
    panels,
    shapes,
    shorten,
    shorten_distinct,
    strokes,
    unique_ids,
)
from calibrant.plots._inputs import class_names
from calibrant.plots._palette import REJECTED, blend, event_colour, model_colours
from calibrant.results.evaluation import Evaluation

__all__ = ["ProportionDisplay"]

_MOST_CLASSES = 20


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
class ProportionDisplay:
    """Predicted and observed share of each class, the most significant class first, at most 20 classes.

    The left panel has two points per class: its predicted share (hollow) and its observed share (filled). For class
    probabilities the predicted share is the mean probability. The right panel shows the difference of the shares with
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
    def from_evaluation(
        cls, evaluation: Evaluation, *, ax: Axes | None = None, fig: FigureBase | None = None
    ) -> "ProportionDisplay":
        """Draw the stored shares of an evaluation of class probabilities or of predicted classes.

        Parameters
        ----------
        evaluation : Evaluation
            Of the kind "multiclass" or "labels".
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        ProportionDisplay
            The display, drawn.
        """
        return cls.of(evaluation).plot(ax=ax, fig=fig)

    @classmethod
    def of(cls, evaluation: Evaluation) -> "ProportionDisplay":
        """Return the display of an evaluation, not yet drawn.

        Parameters
        ----------
        evaluation : Evaluation
            Of the kind "multiclass" or "labels".

        Returns
        -------
        ProportionDisplay
        """
        if evaluation.kind not in ("multiclass", "labels"):
            raise InputError(
                f"evaluation must be of kind 'multiclass' or 'labels'; got {evaluation.kind!r}.",
                argument="evaluation",
            )
        details: Any = evaluation.details
        every = details.classes
        shown = _class_shares(evaluation)[:_MOST_CLASSES]
        measure = "log-odds error" if evaluation.kind == "multiclass" else "difference (points)"
        return cls(shown, len(every), measure, evaluation.settings.confidence_level)

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "ProportionDisplay":
        """Draw in the place of `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        ProportionDisplay
            This display; artists are attributes that end in ``_``.
        """
        size = (8.4, proportions_height(len(self.classes)))
        self.figure_, grid = panels(ax, fig, widths=(1.25, 1), size=size)
        self.ax_ = self.figure_.add_subplot(grid[0, 0])
        self.ax_estimate_ = self.figure_.add_subplot(grid[0, 1], sharey=self.ax_)
        self.predicted_: list[Line2D] = []
        self.observed_: list[Line2D] = []
        self.points_: list[Line2D] = []
        self.intervals_: list[Artist] = []
        for i, (each, id_) in enumerate(zip(self.classes, unique_ids(c.name for c in self.classes), strict=True)):
            self._draw_shares(i, each, f"proportion-{id_}")
            self._draw_estimate(i, each, f"proportion-{id_}")
        self._dress()
        return self

    def _draw_shares(self, place: int, c: ClassShare, ids: str) -> None:
        ax = self.ax_
        style: dict[str, Any] = {"facecolor": "none", "edgecolor": blend(0.4), "linewidth": 1.2}
        shapes(ax, [strokes([(c.predicted, place), (c.observed, place)])], f"{ids}-gap", **style)
        marks: dict[str, Any] = {"ls": "", "ms": 6.5, "mew": 1.4}
        blue, red = model_colours(1)[0], event_colour()
        paper = ax.get_facecolor()
        self.observed_ += ax.plot(
            c.observed, place, marker="o", mfc=red, mec=red, zorder=3, gid=f"{ids}-observed", **marks
        )
        self.predicted_ += ax.plot(
            c.predicted, place, marker="D", mfc=paper, mec=blue, zorder=4, gid=f"{ids}-predicted", **(marks | {"ms": 5})
        )

    def _draw_estimate(self, place: int, c: ClassShare, ids: str) -> None:
        ax = self.ax_estimate_
        if np.isfinite([c.low, c.high]).all():
            style: dict[str, Any] = {"facecolor": "none", "edgecolor": blend(0.75), "linewidth": 1.4}
            self.intervals_ += shapes(ax, [strokes([(c.low, place), (c.high, place)])], f"{ids}-interval", **style)
        edge = REJECTED if c.significant else model_colours(1)[0]
        face = REJECTED if c.significant else ax.get_facecolor()
        style = {"ls": "", "marker": "o", "ms": 6, "mfc": face, "mec": edge, "mew": 1.4}
        self.points_ += ax.plot(c.value, place, zorder=4, gid=f"{ids}-point", **style)

    def _dress(self) -> None:
        ax, right, classes = self.ax_, self.ax_estimate_, self.classes
        shares = [v for c in classes for v in (c.predicted, c.observed)]
        _set_limits(ax, shares if min(shares) > 0.5 * max(shares) else [0.0, *shares])
        _set_limits(right, [v for c in classes for v in (0.0, c.value, c.low, c.high)])
        ax.set_yticks(range(len(classes)), shorten_distinct([c.name for c in classes], 28), parse_math=False)
        ax.set_ylim(len(classes) - 0.4, -0.6)
        ax.set_xlabel("share of rows (%)")
        right.set_xlabel(self.measure)
        right.tick_params(labelleft=False, left=False)
        right.axvline(0, color=blend(0.45), lw=1, ls=(0, (4, 3)), zorder=0.5)
        for each in (ax, right):
            each.spines[["top", "right"]].set_visible(False)
            each.grid(axis="y", color=blend(0.12), lw=0.8)
            each.set_axisbelow(True)
            each.locator_params(axis="x", nbins=6)
        right.spines["left"].set_visible(False)
        marks: dict[str, Any] = {"ls": "", "mew": 1.4}
        blue, red = model_colours(1)[0], event_colour()
        handles: list[Any] = [
            Line2D([], [], marker="D", ms=5, mfc=ax.get_facecolor(), mec=blue, **marks),
            Line2D([], [], marker="o", ms=6.5, mfc=red, mec=red, **marks),
        ]
        few = len(classes) < self.n_classes
        title = f"{len(classes)} most significant of {self.n_classes:,} classes" if few else "Class proportions"
        legend_above(ax, title, handles, ["predicted", "observed"])
        name = "Log-odds error" if self.measure == "log-odds error" else "Difference"
        small = f"{100 * self.confidence_level:g} % CI; {self._significant} significant (filled)"
        draw_title(right, name, small)

    @property
    def _significant(self) -> int:
        return sum(c.significant for c in self.classes)

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values, one row per class; shares are in %.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        columns = ("predicted", "observed", "value", "low", "high", "adjusted_pvalue", "significant")
        names: dict[str, Any] = {"class": np.array([c.name for c in self.classes], dtype=object)}
        return drawn_frame(names | {k: np.array([getattr(c, k) for c in self.classes]) for k in columns}, backend)

    def __repr__(self) -> str:
        return f"ProportionDisplay({len(self.classes)} of {self.n_classes:,} classes, {self._significant} significant)"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        gaps = sorted(self.classes, key=lambda c: -abs(c.predicted - c.observed))
        named = [f"{shorten(c.name, 28)} {c.predicted:.3g} % predicted, {c.observed:.3g} % observed" for c in gaps[:3]]
        return (
            f"Predicted and observed shares of {len(self.classes)} of {self.n_classes:,} classes, "
            f"{self._significant} with a significant deviation; largest differences: {join_short(named)}."
        )


def proportions_height(count: int) -> float:
    """Return the height in inches of the proportions of this number of classes."""
    return 1.5 + 0.24 * min(count, _MOST_CLASSES)


def _set_limits(ax: Axes, values: Sequence[float]) -> None:
    finite = [v for v in values if np.isfinite(v)]
    low, high = min(finite), max(finite)
    room = 0.05 * max(high - low, 1e-9)
    ax.set_xlim(low - room, high + room)


def _class_shares(e: Evaluation) -> list[ClassShare]:
    """Return the stored results of all classes, the most significant first."""
    details: Any = e.details
    alpha, factor = e.settings.alpha, e.decision.group_factor
    names = class_names(details.labels if e.kind == "multiclass" else [c.label for c in details.classes])
    found: list[tuple[float, float, float, int, ClassShare]] = []
    for name, c in zip(names, details.classes, strict=True):
        if e.kind == "multiclass":
            observed, estimate = c.observed, (c.log_odds_error, c.low, c.high)
        else:
            observed, estimate = c.actual, (100 * c.difference, 100 * c.low, 100 * c.high)
        p = min(1.0, c.adjusted_pvalue * factor)
        share = ClassShare(name, 100 * c.predicted, 100 * observed, *estimate, p, p <= alpha)
        found.append((p, c.pvalue, -abs(c.predicted - observed), len(found), share))
    return [share for *_, share in sorted(found, key=lambda each: each[:4])]
