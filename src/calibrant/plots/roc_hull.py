"""`RocHullDisplay`: the ROC curve and its convex hull, whose segments are the bins of PAVA."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Unpack

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.path import Path

from calibrant._support.arrays import Floats
from calibrant.metrics.bins import PAVA
from calibrant.metrics.proper_scores import AUC
from calibrant.plots import canvas
from calibrant.plots.display import TableDisplay
from calibrant.results.text import rows_text
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import Partition, ScoreTable, need_both_classes, read_score_table

_MOST_POINTS = 1_000


@dataclass(eq=False, repr=False)
class RocHullDisplay(TableDisplay):
    """The ROC curve with its convex hull.

    Each segment of the hull is a bin of `PAVA`, and its slope is the odds of the event in that bin over the odds in all
    rows. Where the curve lies below the hull (a concavity, shaded), the ranking of the rows is worse than a tie;
    isotonic recalibration merges these scores (Flach and Wu 2005).

    `from_predictions`, `from_estimator` or `from_breakdown` creates and draws it.

    Attributes
    ----------
    hull : Partition
        Bins of PAVA.
    auc, hull_auc : float
        Areas under curve and hull.
    figure_, ax_, curve_, segments_, concavities_
        After drawing; segments and concavities have the id (gid) ``roc-hull-bin-<number>-<part>``, numbered from 0
        for the lowest scores. `data` has one row per segment, by rising score: its end (fpr, tpr), scores, size and
        event rate of its bin, and the largest distance of the curve from it (depth).

    See Also
    --------
    calloss, auc

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> display = RocHullDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.9], fig=Figure())
    >>> display.auc, display.hull_auc
    (0.75, 0.875)
    """

    _size = (5.6, 5.6)

    hull: Partition

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[RowOptions],
    ) -> "RocHullDisplay":
        """Compute the ROC curve and its hull, and draw them.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities; or one `ScoreTable`. Both classes must occur.
        ax, fig
            See `plot`.
        sample_weight, frequency, pos_label, missing
            How rows are read; see `ScoreTable.from_arrays`.

        Returns
        -------
        RocHullDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        table = read_score_table(y_true, y_prob, rows)
        need_both_classes(table, "A ROC curve")
        return cls(PAVA()(table)).plot(ax=ax, fig=fig)

    @property
    def table(self) -> ScoreTable:
        """Table of the rows."""
        return self.hull.table

    @property
    def auc(self) -> float:
        """Area under the curve."""
        return AUC().value(self.table)

    @property
    def hull_auc(self) -> float:
        """Area under the hull: the AUC of the scores recalibrated by PAVA."""
        p = self.hull
        return AUC().value(ScoreTable(np.arange(len(p), dtype=np.float64), p.n, p.k))

    def _rates(self, n: Any, k: Any) -> tuple[Floats, Floats]:
        """Return false and true positive rates, by falling threshold."""
        others, events = np.cumsum((n - k)[::-1]), np.cumsum(k[::-1])
        return np.append(0.0, others / others[-1]), np.append(0.0, events / events[-1])

    def _drawn_indices(self) -> Any:
        """Return the indices of the drawn points: all corners, and points for an accuracy of 0.2 %."""
        x, y = self._rates(self.table.n, self.table.k)
        if x.size <= _MOST_POINTS:
            return np.arange(x.size)
        steps = np.searchsorted(x + y, np.linspace(0, 2, _MOST_POINTS))
        return np.unique(np.concatenate([np.minimum(steps, x.size - 1), self._corners(), [x.size - 1]]))

    def _corners(self) -> Any:
        """Return the indices of the points that the hull touches, by falling score."""
        return np.concatenate([[0], len(self.table) - self.hull.start[::-1]])

    def _draw(self) -> None:
        ax, (x, y) = self.ax_, self._rates(self.table.n, self.table.k)
        kept, corners = self._drawn_indices(), self._corners()
        colour, red = canvas.model_colours(1)[0], canvas.event_colour()
        runs = list(pairwise(corners))[::-1]  # by score, rising
        ax.plot([0, 1], [0, 1], **canvas.dashes())
        below = [_concavity(x, y, kept[(kept >= a) & (kept <= z)]) for a, z in runs]
        shade: dict[str, Any] = {"facecolor": canvas.REJECTED, "alpha": 0.45, "linewidth": 0}
        self.concavities_: list[Artist] = canvas.shapes(ax, below, "roc-hull-bin-{}-concavity", **shade)
        segments = [canvas.strokes([(x[a], y[a]), (x[z], y[z])]) for a, z in runs]
        self.segments_: list[Artist] = canvas.lines(ax, segments, "roc-hull-bin-{}-segment", red, 1.8)
        marks: dict[str, Any] = {"ls": "", "marker": "o", "ms": 4 if len(runs) <= 60 else 2}
        (self.corners_,) = ax.plot(x[corners], y[corners], color=red, zorder=4, **marks)
        (self.curve_,) = ax.plot(x[kept], y[kept], color=colour, lw=1.3, gid="roc-hull-curve", zorder=3)
        canvas.dress(ax, xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
        hull = Line2D([], [], color=red, lw=1.8, marker="o", ms=4)
        handles = [Line2D([], [], color=colour, lw=1.3), hull, Patch(color=canvas.REJECTED, alpha=0.45, lw=0)]
        canvas.legend(ax, handles, ["ROC curve", "convex hull (PAVA bins)", "concavities"], loc="lower right")
        title = f"AUC = {self.auc:.4f}, of the hull {self.hull_auc:.4f}"
        canvas.draw_title(ax, title, f"{rows_text(self.table)}, {self._segments_text}")

    @property
    def _segments_text(self) -> str:
        return f"{len(self.hull)} segment{'s' * (len(self.hull) != 1)}"

    def _columns(self) -> dict[str, Any]:
        p = self.hull
        fpr, tpr = self._rates(p.n, p.k)
        columns = {name: getattr(p, name) for name in ("min_score", "max_score", "n", "k", "rate")}
        return {"bin": np.arange(len(p)), **columns, "fpr": fpr[:0:-1], "tpr": tpr[:0:-1], "depth": self._depths()}

    def _depths(self) -> Floats:
        """Return the largest distance of the curve from each segment."""
        p, (x, y), (hx, hy) = self.hull, self._rates(self.table.n, self.table.k), self._rates(self.hull.n, self.hull.k)
        bins = p.labels[::-1]  # of the curve's points, from the highest score on
        before = len(p) - 1 - bins  # the corner of the hull that their segment starts from
        dx, dy = np.diff(hx)[before], np.diff(hy)[before]
        across = ((x[1:] - hx[before]) * dy - (y[1:] - hy[before]) * dx) / np.hypot(dx, dy)
        return np.maximum(np.maximum.reduceat(across[::-1], p.start), 0.0)

    def __repr__(self) -> str:
        return f"RocHullDisplay(AUC = {self.auc:.4f}, of the hull {self.hull_auc:.4f}, {rows_text(self.table)})"

    def alt_text(self) -> str:
        return (
            f"ROC curve of {rows_text(self.table)} with an area of {self.auc:.4f}, and its convex hull of "
            f"{self._segments_text}, the bins of PAVA, with an area of {self.hull_auc:.4f}."
        )


def _concavity(x: Floats, y: Floats, run: Any) -> Path | None:
    """Return the area between a segment and the curve below it; None if the curve follows the segment."""
    points = np.column_stack([x[run], y[run]])
    (ax, ay), (zx, zy) = points[0], points[-1]
    across = (points[:, 0] - ax) * (zy - ay) - (points[:, 1] - ay) * (zx - ax)
    return Path(np.concatenate([points, points[:1]]), closed=True) if across.max() > 1e-12 else None
