"""`ClasswiseDisplay`: reliability of the top label and of the classes with the largest deviations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from calibrant._support.errors import InputError, check_count
from calibrant._support.formatting import p_text
from calibrant.metrics.gce import Breakdown
from calibrant.plots._canvas import (
    draw_title,
    join_short,
    panels,
    shapes,
    shorten_distinct,
    stacked_frame,
    unique_ids,
    vertical_lines,
)
from calibrant.plots._inputs import display_names
from calibrant.plots._palette import REJECTED, blend, model_colours
from calibrant.results.evaluation import Evaluation
from calibrant.results.text import bins_text

__all__ = ["ClasswiseDisplay"]

_TOP = "top label"
_MOST_CLASSES = 9
_COLUMNS = 4  # of panels of equal size, where there are more classes
_SHAPES = {0: (1, 0), 1: (1, 1), 2: (1, 2), 3: (1, 3), 4: (2, 2), 5: (2, 3), 6: (2, 3), 7: (3, 3), 8: (3, 3), 9: (3, 3)}


@dataclass(eq=False, repr=False)
class ClasswiseDisplay:
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
        Their ids (gid) are ``classwise-<name>-points`` and ``classwise-<name>-bin-<number>-interval``.

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
    def from_evaluation(
        cls, evaluation: Evaluation, *, ax: Axes | None = None, fig: FigureBase | None = None
    ) -> "ClasswiseDisplay":
        """Draw the stored breakdowns of an evaluation of class probabilities.

        Parameters
        ----------
        evaluation : Evaluation
            Of the kind "multiclass".
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        ClasswiseDisplay
            The display, drawn.
        """
        return cls.of(evaluation).plot(ax=ax, fig=fig)

    @classmethod
    def of(cls, evaluation: Evaluation, *, most: int = _MOST_CLASSES) -> "ClasswiseDisplay":
        """Return the display of an evaluation of class probabilities, not yet drawn.

        Parameters
        ----------
        evaluation : Evaluation
            Of the kind "multiclass".
        most : int, default=9
            Largest number of classes. More than 9 are drawn in columns of equal size.

        Returns
        -------
        ClasswiseDisplay
        """
        if evaluation.kind != "multiclass":
            raise InputError(
                f"evaluation must be of kind 'multiclass'; got {evaluation.kind!r}.", argument="evaluation"
            )
        details: Any = evaluation.details
        adjusted = {f"class {details.labels[c.label]}": c.adjusted_pvalue for c in details.classes}
        found = [(key, each) for key, each in evaluation.breakdowns.items() if key in adjusted][:most]
        names = display_names([_TOP, *(key for key, _ in found)])
        return cls(
            dict(zip(names, [evaluation.breakdowns["top-label ACE"], *(each for _, each in found)], strict=True)),
            {
                name: min(1.0, adjusted[key] * evaluation.decision.group_factor)
                for name, (key, _) in zip(names[1:], found, strict=True)
            },
            evaluation.settings.alpha,
            evaluation.settings.confidence_level,
            len(details.labels),
        )

    def plot(
        self, *, ax: Axes | None = None, fig: FigureBase | None = None, columns: int | None = None
    ) -> "ClasswiseDisplay":
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
        elif self._shown > _MOST_CLASSES:
            columns = _COLUMNS
        self._aside = columns is None and self._shown > 3  # the classes stand in their own block
        places = self._left_of_classes(ax, fig) if columns is None else self._columns(ax, fig, columns)
        self.axes_: dict[str, Axes] = {}
        self.points_: dict[str, Line2D] = {}
        self.intervals_: dict[str, list[Artist]] = {}
        titles = ["Top label", *shorten_distinct([name.removeprefix("class ") for name in self.pvalues], 14)]
        for i, (name, id_) in enumerate(zip(self.breakdowns, unique_ids(self.breakdowns), strict=True)):
            place, large, lowest = places[i]
            self.axes_[name] = self.figure_.add_subplot(place)
            self._draw(name, id_)
            self._dress(name, titles[i], large=large, lowest=lowest)
        return self

    def _left_of_classes(self, ax: Axes | None, fig: FigureBase | None) -> list[tuple[Any, bool, bool]]:
        """Return the place of each panel, whether it is large and whether it is the lowest: the top label is large."""
        rows, columns = _SHAPES[self._shown]
        widths = [1.0 if rows == 1 else 0.8 * rows, *[1.0] * columns]
        size = (11.5, 3.4) if rows == 1 else (11.5, 11.5 * rows / sum(widths) + 0.6)
        self.figure_, grid = panels(ax, fig, widths=widths, heights=[1.0] * rows, size=size)
        classes = (divmod(i, max(columns, 1)) for i in range(self._shown))
        found = [(grid[row, 1 + column], rows == 1) for row, column in classes]
        lowest = [i + 1 + columns > self._shown for i in range(self._shown)]
        return [(grid[:, 0], True, True), *((*each, last) for each, last in zip(found, lowest, strict=True))]

    def _columns(self, ax: Axes | None, fig: FigureBase | None, columns: int) -> list[tuple[Any, bool, bool]]:
        """Return the same for panels of equal size."""
        count = len(self.breakdowns)
        size = (11.5, self.height(columns, 11.5))
        rows = -(-count // columns)
        self.figure_, grid = panels(ax, fig, widths=[1.0] * columns, heights=[1.0] * rows, size=size)
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

    def _draw(self, name: str, id_: str) -> None:
        ax, p = self.axes_[name], self.breakdowns[name].partition
        low, high = self.breakdowns[name].rate_interval(self.confidence_level)
        end = _end(np.concatenate([p.mean_score, p.rate, high]))
        ax.plot([0, end], [0, end], color=blend(0.45), lw=1, ls=(0, (4, 3)), zorder=1)
        colour = REJECTED if self._significant(name) else model_colours(1)[0]
        self.intervals_[name] = shapes(
            ax,
            vertical_lines(p.mean_score, low, high),
            f"classwise-{id_}-bin-{{}}-interval",
            facecolor="none",
            edgecolor=colour,
            linewidth=1.1,
            alpha=0.75,
        )
        face = colour if name == _TOP or self._significant(name) else ax.get_facecolor()
        style: dict[str, Any] = {"color": colour, "lw": 1.2, "marker": "o", "ms": 4.5, "mfc": face, "mec": colour}
        (self.points_[name],) = ax.plot(p.mean_score, p.rate, zorder=3, gid=f"classwise-{id_}-points", **style)
        ax.set_xlim(-0.025 * end, 1.025 * end)
        ax.set_ylim(-0.025 * end, 1.025 * end)
        ax.set_aspect("equal", adjustable="box")

    def _dress(self, name: str, title: str, *, large: bool, lowest: bool) -> None:
        ax = self.axes_[name]
        ax.spines[["top", "right"]].set_visible(False)
        ax.locator_params(nbins=5 if large else 3)
        if not large:
            ax.tick_params(labelsize="small")
        if name == _TOP:
            ax.set_ylabel("share of correct rows")
            ax.set_xlabel("highest probability")
            level = f"{100 * self.confidence_level:g} % CI"
            some = f"; {self._shown} of {self.n_classes:,} classes" if self._shown < self.n_classes else ""
            draw_title(ax, title, level + ("; at the right single classes" if self._aside else some), size="medium")
            return
        if lowest:
            ax.set_xlabel("predicted", fontsize=None if large else "small")
        if large:
            ax.set_ylabel("observed")
        draw_title(ax, title, p_text(self.pvalues[name]), size="medium", reach=1.4)

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values, one row per panel and bin.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        parts = []
        for name, b in self.breakdowns.items():
            count = len(b.partition)
            columns = {"panel": np.full(count, name, dtype=object), "bin": np.arange(count)}
            columns |= {column: b.per_bin[column] for column in ("n", "k", "mean_score", "rate")}
            columns["rate_low"], columns["rate_high"] = b.rate_interval(self.confidence_level)
            columns["adjusted_pvalue"] = np.full(count, self.pvalues.get(name, np.nan))
            parts.append(columns)
        return stacked_frame(parts, backend)

    def __repr__(self) -> str:
        beyond = sum(map(self._significant, self.pvalues))
        return f"ClasswiseDisplay({self._shown} of {self.n_classes:,} classes, {beyond} significant)"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        p = self.breakdowns[_TOP].partition
        low, high = self.breakdowns[_TOP].rate_interval(self.confidence_level)
        off = int(((p.mean_score < low) | (p.mean_score > high)).sum())
        beyond = [name.removeprefix("class ") for name in self.pvalues if self._significant(name)]
        which = f" ({join_short(beyond)})" if beyond else ""
        return (
            f"Reliability of the top label in {bins_text(len(p))}, mean confidence outside the "
            f"{100 * self.confidence_level:g} % CI of the share of correct rows in {off}; and of {self._shown} of "
            f"{self.n_classes:,} classes, {len(beyond)} with a significant deviation{which}."
        )


def _end(values: Any) -> float:
    """Return the upper end of both axes: 1, or 1.05 times the largest value if that is below 0.6."""
    largest = float(np.nanmax(values))
    return 1.0 if largest > 0.6 else max(1.05 * largest, 1e-9)
