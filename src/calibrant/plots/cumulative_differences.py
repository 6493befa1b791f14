"""`CumulativeDisplay`: cumulative differences between outcomes and predictions, the diagram of ECCE."""

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import FigureBase

from calibrant._support.arrays import Floats
from calibrant._support.errors import InputError
from calibrant._support.formatting import p_text
from calibrant.inference.bands import Band, cumulative_band
from calibrant.inference.calibration_tests import ecce_test
from calibrant.metrics.calibration_errors import Ecce, ecce
from calibrant.plots import canvas
from calibrant.plots.display import TableDisplay
from calibrant.plots.probability_axes import quantile
from calibrant.results.text import rows_text
from calibrant.results.verdict import TestResult
from calibrant.tables.rows import RowOptions
from calibrant.tables.score_table import ScoreTable, read_score_table

_RUNS = 500  # of the curve, each drawn by at most four points


@dataclass(eq=False, repr=False)
class CumulativeDisplay(TableDisplay):
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
        After drawing; `data` has the points of the curve.

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

    _size = (6.4, 4.4)

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

    def _draw(self) -> None:
        ax, (share, curve, _) = self.ax_, self.points()
        kept, reach, colour = canvas.curve_indices(curve, _RUNS), float(self.band.high[0]), canvas.event_colour()
        style: dict[str, Any] = {"color": canvas.blend(0.5), "alpha": 0.2, "lw": 0, "gid": "cumulative-band"}
        self.band_: PolyCollection = ax.fill_between([0, 1], [-reach, -reach], [reach, reach], **style)
        ax.axhline(0, **canvas.dashes())
        (self.curve_,) = ax.plot(share[kept], curve[kept], color=colour, lw=1.6, gid="cumulative-curve")
        ends = [int(np.argmin(curve)), int(np.argmax(curve))]
        style = {"ls": "", "marker": "o", "ms": 5, "color": colour, "clip_on": False, "gid": "cumulative-extremes"}
        (self.extremes_,) = ax.plot(share[ends], curve[ends], **style)
        shares = np.linspace(0, 1, 6)
        scores = canvas.distinct_labels(np.array([quantile(self.table, s) for s in shares]))
        canvas.dress(ax, xlim=(0, 1), ylabel="sum of (outcome - prediction) / rows")
        ax.set_xticks(shares, [f"{100 * share:.0f} %\n{score}" for share, score in zip(shares, scores, strict=True)])
        ax.set_xlabel("share of rows, and prediction at that share")
        small = f"grey: {100 * self.band.level:g} % null range of the curve"
        canvas.draw_title(ax, self._value_text, small)

    @property
    def _value_text(self) -> str:
        return f"ECCE-MAD = {self.ecce.mad:.4f}{'' if self.test is None else f', {p_text(self.pvalue)}'}"

    @property
    def pvalue(self) -> float:
        """p-value of the test, by resampling with few expected events; NaN where the test does not exist."""
        if self.test is None:
            return float("nan")
        by_draws = self.test.resampling_pvalue
        return self.test.pvalue if by_draws is None else by_draws

    def _columns(self) -> dict[str, Any]:
        share, curve, score = self.points()
        kept, reach = canvas.curve_indices(curve, _RUNS), float(self.band.high[0])
        limits = {"band_low": np.full(kept.size, -reach), "band_high": np.full(kept.size, reach)}
        return {"share": share[kept], "score": score[kept], "difference": curve[kept], **limits}

    def __repr__(self) -> str:
        return f"CumulativeDisplay({self._value_text}, {rows_text(self.table)})"

    def alt_text(self) -> str:
        share, curve, score = self.points()
        far = int(np.argmax(np.abs(curve)))
        leaves = "leaves" if self.ecce.mad > float(self.band.high[0]) else "lies inside"
        p = "" if self.test is None else f" ({p_text(self.pvalue)} by the test)"
        return (
            f"Cumulative differences of {rows_text(self.table)} in order of prediction: farthest from 0 is "
            f"{curve[far]:+.3g}, at a prediction of {score[far]:.3g} and {100 * share[far]:.0f} % of rows; the curve "
            f"{leaves} the {100 * self.band.level:g} % null range{p}."
        )
