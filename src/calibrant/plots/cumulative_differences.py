"""`CumulativeDisplay`: cumulative differences between outcomes and predictions, the diagram of ECCE."""

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError
from calibrant._support.formatting import p_text
from calibrant.inference.bands import Band, cumulative_band
from calibrant.inference.calibration_tests import ecce_test
from calibrant.metrics.calibration_errors import Ecce, ecce
from calibrant.plots._canvas import curve_indices, distinct_labels, draw_title, drawn_frame, single_axes
from calibrant.plots._density import quantile
from calibrant.plots._inputs import predict_scores, result_table
from calibrant.plots._palette import blend, event_colour
from calibrant.results.text import rows_text
from calibrant.results.verdict import TestResult
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable, read_score_table

__all__ = ["CumulativeDisplay"]

_RUNS = 500  # of the curve, each drawn by at most four points


@dataclass(eq=False, repr=False)
class CumulativeDisplay:
    """Cumulative differences, in order of prediction: the curve whose extremes are ECCE.

    At a share of rows x the curve is the sum of (outcome - prediction) over the rows with the lowest predictions, over
    the number of all rows. Where it rises, predictions underestimate; where it falls, they overestimate; its slope is
    the size of the deviation. It needs neither bins nor a bandwidth. The whole curve of a calibrated model lies inside
    the band with a probability of 95 % (Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu 2022).

    `from_predictions`, `from_estimator` or `from_breakdown` creates and draws it.

    Attributes
    ----------
    table : ScoreTable
    band : Band
        Of constant height; asymptotic and slightly conservative. With few expected events, `test` has a p-value by
        resampling, which may differ from the band.
    test : TestResult or None
        ``ecce_test(kind="mad")``; None where it does not exist (importance weights, scores of 0 and 1 only).
    ecce : Ecce
    figure_, ax_, curve_, band_, extremes_
        After drawing.

    See Also
    --------
    cumulative_band, ecce

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> display = CumulativeDisplay.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.9], fig=Figure())
    >>> display.curve_.get_ydata().round(3)
    array([ 0.   , -0.025,  0.025,  0.05 ])
    """

    table: ScoreTable
    band: Band
    test: TestResult | None
    ecce: Ecce

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        confidence_level: float = 0.95,
        ax: Axes | None = None,
        fig: FigureBase | None = None,
        **rows: Unpack[RowOptions],
    ) -> "CumulativeDisplay":
        """Compute the cumulative differences and draw them.

        Parameters
        ----------
        y_true, y_prob : columns
            Outcomes and predicted probabilities; or one `ScoreTable`.
        confidence_level : float, default=0.95
            Probability that the whole curve of a calibrated model lies inside the band.
        ax, fig
            See `plot`.
        sample_weight, frequency, pos_label, missing
            How rows are read; see `ScoreTable.from_arrays`.

        Returns
        -------
        CumulativeDisplay
            The display, drawn; its attribute ``figure_`` is the figure.
        """
        table = read_score_table(y_true, y_prob, rows)
        try:
            test: TestResult | None = ecce_test(table, kind="mad")
        except InputError:  # weights, or hard labels: the curve exists, the test does not
            test = None
        band = cumulative_band(table, confidence_level=confidence_level)
        return cls(table, band, test, ecce(table)).plot(ax=ax, fig=fig)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> "CumulativeDisplay":
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
        CumulativeDisplay
            The display, drawn.
        """
        return cls.from_predictions(y, predict_scores(estimator, X, options), **options)

    @classmethod
    def from_breakdown(cls, breakdown: Any, **options: Any) -> "CumulativeDisplay":
        """Draw the curve of the table of a result; options as for `from_predictions`.

        Parameters
        ----------
        breakdown : MetricValue or Breakdown
            Result of a metric, with its table.
        **options
            Those of `from_predictions`.

        Returns
        -------
        CumulativeDisplay
            The display, drawn.
        """
        return cls.from_predictions(result_table(breakdown), **options)

    def points(self) -> tuple[Floats, Floats, Floats]:
        """Return share of rows, cumulative difference and score, at 0 and after each distinct score.

        Returns
        -------
        tuple of three arrays
            Of equal length.
        """
        t = self.table
        share = np.concatenate([[0.0], np.cumsum(t.n, dtype=np.float64)]) / t.size
        curve = np.concatenate([[0.0], np.cumsum(t.k - t.n * t.score)]) / t.size
        return share, curve, np.concatenate([t.score[:1], t.score])

    def plot(self, *, ax: Axes | None = None, fig: FigureBase | None = None) -> "CumulativeDisplay":
        """Draw in `ax`, in `fig`, or in a new figure.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in.
        fig : Figure or SubFigure, optional
            Figure to draw in, if `ax` is not given; by default a new one.

        Returns
        -------
        CumulativeDisplay
            This display; artists are attributes that end in ``_``.
        """
        share, curve, _ = self.points()
        kept = curve_indices(curve, _RUNS)
        self.ax_ = single_axes(ax, fig, (6.4, 4.4))
        self.figure_ = self.ax_.figure
        reach = float(self.band.high[0])
        self.band_: PolyCollection = self.ax_.fill_between(
            [0, 1], [-reach, -reach], [reach, reach], color=blend(0.5), alpha=0.2, lw=0, gid="cumulative-band"
        )
        self.ax_.axhline(0, color=blend(0.45), lw=1, ls=(0, (4, 3)))
        (self.curve_,) = self.ax_.plot(share[kept], curve[kept], color=event_colour(), lw=1.6, gid="cumulative-curve")
        low, high = int(np.argmin(curve)), int(np.argmax(curve))
        self.extremes_: Line2D
        (self.extremes_,) = self.ax_.plot(
            share[[low, high]],
            curve[[low, high]],
            ls="",
            marker="o",
            ms=5,
            color=event_colour(),
            clip_on=False,
            gid="cumulative-extremes",
        )
        self._dress()
        return self

    def _dress(self) -> None:
        ax = self.ax_
        shares = np.linspace(0, 1, 6)
        scores = distinct_labels(np.array([quantile(self.table, s) for s in shares]))
        ax.set_xlim(0, 1)
        ax.set_xticks(shares, [f"{100 * share:.0f} %\n{score}" for share, score in zip(shares, scores, strict=True)])
        ax.set_xlabel("share of rows, and prediction at that share")
        ax.set_ylabel("sum of (outcome - prediction) / rows")
        ax.spines[["top", "right"]].set_visible(False)
        p = "" if self.test is None else f", {p_text(self.pvalue)}"
        small = f"grey: {100 * self.band.level:g} % null range of the curve"
        draw_title(ax, f"ECCE-MAD = {self.ecce.mad:.4f}{p}", small)

    @property
    def pvalue(self) -> float:
        """p-value of the test, by resampling with few expected events; NaN where the test does not exist."""
        if self.test is None:
            return float("nan")
        by_draws = self.test.resampling_pvalue
        return self.test.pvalue if by_draws is None else by_draws

    def data(self, backend: str = "pandas") -> Any:
        """Return the drawn values: the points of the curve, and the band.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        share, curve, score = self.points()
        kept = curve_indices(curve, _RUNS)
        reach = float(self.band.high[0])
        columns = {"share": share[kept], "score": score[kept], "difference": curve[kept]}
        sides = {"band_low": np.full(kept.size, -reach), "band_high": np.full(kept.size, reach)}
        return drawn_frame(columns | sides, backend)

    def __repr__(self) -> str:
        p = "" if self.test is None else f", {p_text(self.pvalue)}"
        return f"CumulativeDisplay(ECCE-MAD = {self.ecce.mad:.4f}{p}, {rows_text(self.table)})"

    def alt_text(self) -> str:
        """Return a description of the diagram in one sentence.

        Returns
        -------
        str
            The text for readers who cannot see the figure.
        """
        share, curve, score = self.points()
        far = int(np.argmax(np.abs(curve)))
        leaves = "leaves" if self.ecce.mad > float(self.band.high[0]) else "lies inside"
        p = "" if self.test is None else f" ({p_text(self.pvalue)} by the test)"
        return (
            f"Cumulative differences of {rows_text(self.table)} in order of prediction: farthest from 0 is "
            f"{curve[far]:+.3g}, at a prediction of {score[far]:.3g} and {100 * share[far]:.0f} % of rows; the curve "
            f"{leaves} the {100 * self.band.level:g} % null range{p}."
        )
