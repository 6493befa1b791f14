"""`SegmentDisplay`: the log-odds error of each segment of an audit, with its interval."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase

from calibrant.plots._canvas import draw_title, shorten, single_axes
from calibrant.plots._palette import MODELS, REJECTED, blend
from calibrant.results.audit import Audit, Segment

__all__ = ["SegmentDisplay"]

_MOST_LETTERS = 44


@dataclass(eq=False, repr=False)
class SegmentDisplay:
    """Segments of an audit as a forest plot: the largest errors first; areas show numbers of rows.

    Log-odds errors to the right are underestimated (more events than predicted), those to the left overestimated. Mean
    errors of numbers are predictions less outcomes: those to the right are overestimated. At the right margin stand
    rows and means.

    `from_audit` creates and draws it.

    Attributes
    ----------
    audit : Audit
    figure_, ax_ : Figure, Axes

    See Also
    --------
    SegmentMapDisplay, audit

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> region = rng.integers(0, 3, 6_000)
    >>> p = rng.uniform(0.2, 0.8, 6_000)
    >>> found = cb.audit(rng.random(6_000) < p + np.where(region == 2, 0.15, 0), p, {"region": region})
    >>> found.plot().data()["rule"].tolist()
    ['region = 2']
    """

    audit: Audit

    @classmethod
    def from_audit(cls, audit: Audit, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "SegmentDisplay":
        """Draw the segments of an audit.

        Parameters
        ----------
        audit : Audit
            Result of `calibrant.audit`.
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        SegmentDisplay
            The display, drawn.
        """
        return cls(audit).plot(ax=ax, fig=fig)

    @property
    def segments(self) -> list[Segment]:
        """The segments in the order in which they are drawn, from above."""
        return sorted(self.audit.segments, key=lambda s: -abs(s.error) if np.isfinite(s.error) else 0.0)

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "SegmentDisplay":
        """Draw in `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        SegmentDisplay
            This display; artists are attributes that end in ``_``.
        """
        shown = self.segments
        self.ax_ = single_axes(ax, fig, (10.0, 1.5 + 0.34 * max(len(shown), 1)))
        self.figure_ = self.ax_.figure
        self._draw(shown)
        self._dress(shown)
        return self

    def _draw(self, shown: list[Segment]) -> None:
        largest = max((segment.n_rows for segment in shown), default=1)
        for place, segment in enumerate(shown):
            colour = REJECTED if segment.direction == "underestimates" else MODELS[0]
            self.ax_.plot([segment.low, segment.high], [place, place], color=colour, lw=2.2, solid_capstyle="round")
            self.ax_.scatter(
                segment.error,
                place,
                s=16 + 60 * segment.n_rows / largest,
                color=colour,
                zorder=3,
                gid=f"segment-{place + 1}",
            )
            rates = _means(segment)
            self.ax_.annotate(
                f"{segment.n_rows:,} rows: {rates}",
                (1.0, place),
                (6, 0),
                ("axes fraction", "data"),
                "offset points",
                va="center",
                fontsize="small",
                color=blend(0.75),
                parse_math=False,
            )

    def _dress(self, shown: list[Segment]) -> None:
        ax = self.ax_
        labels = [shorten(segment.rule, _MOST_LETTERS) for segment in shown]
        ax.set_yticks(range(len(shown)), labels, parse_math=False, fontsize="small")
        ax.set_ylim(max(len(shown), 1) - 0.4, -0.6)
        ax.axvline(0, color=blend(0.4), lw=1, ls=(0, (4, 3)), zorder=0.5)
        ends = [abs(end) for s in shown for end in (s.low, s.high, s.error) if np.isfinite(end)]
        reach = 1.1 * max(ends, default=1.0)
        ax.set_xlim(-reach, reach)
        error = self.audit.error_name.replace("log_odds", "log-odds").replace("_", " ")
        ax.set_xlabel(f"{error}{', prediction less outcome' if not self.audit.terms.is_share else ''}")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        sides = ("overestimated", "underestimated")[:: 1 if self.audit.terms.is_share else -1]
        small = f"{sides[0]} to the left, {sides[1]} to the right; {100 * self.audit.confidence_level:g} % CI"
        draw_title(ax, self.audit.verdict[:1].upper() + self.audit.verdict[1:], small if shown else "")

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn segments, one row each.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        return self.audit.to_frame(backend)

    def __repr__(self) -> str:
        return f"SegmentDisplay({self.audit.verdict})"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        form = self.audit.terms.error_format
        each = "; ".join(f"{s.rule}: {s.error:{form}}" for s in self.segments)
        name = "Log-odds errors" if self.audit.terms.is_share else "Mean errors"
        return f"{name} of segments ({self.audit.verdict}){': ' + each if each else ''}."


def _means(segment: Segment) -> str:
    if not segment.terms.is_share:
        return f"{segment.predicted:.4g} predicted, {segment.observed:.4g} observed"
    return f"{100 * segment.predicted:.3g} % predicted, {100 * segment.observed:.3g} % observed"
