"""Words of a report on predictive distributions."""

from typing import Any, ClassVar

import numpy as np

from calibrant.kinds.point.words import PointWords
from calibrant.kinds.words import FRESH_ROWS, Action, ReportTable
from calibrant.results.evaluation import Evaluation


class DistributionWords(PointWords):
    """How a report speaks of predictive distributions."""

    name: ClassVar[str] = "forecast"
    forecasts: ClassVar[str] = "forecasts"

    def means(self, e: Evaluation) -> tuple[float, float] | None:
        return None

    def recalibrate(self, e: Evaluation, rows: str) -> Action:
        """Recommend shifts of the quantiles where only quantiles are stated, and a map of the PIT values elsewhere.

        Distributions of counts have no continuous map: their means are recalibrated.
        """
        details: Any = e.details
        if details.is_discrete and details.has_means:
            return super().recalibrate(e, rows)
        quantiles = any(note.code == "levels" for note in e.notes)
        name, method = ("QuantileRecalibrator", "quantile") if quantiles else ("PITRecalibrator", "pit")
        central: Any = e.breakdowns.get("coverage")
        gain = ""
        if central is not None:
            widest = central.per_level["level"].argmax()
            level, observed = (f"{100 * central.per_level[name][widest]:.3g} %" for name in ("level", "observed"))
            gain = f"The coverage of {level} intervals changes from {observed} to about {level}. "
        code = f"cb.regression.{name}().fit(forecasts, outcomes)"
        return Action(f"Recalibrate with {method}.", f"{gain}{FRESH_ROWS}", code)

    def meaning(self, e: Evaluation) -> list[str]:
        """Return sentences about the widest and the narrowest central interval, or about the bias without them."""
        central: Any = e.breakdowns.get("coverage")
        if central is None:
            return super().meaning(e)
        levels, columns = central.per_level["level"], central.per_level
        return [
            f"Of 1,000 outcomes, expect {1000 * columns['observed'][i]:,.0f} inside the {100 * levels[i]:g} % interval "
            f"({100 * central.confidence_level:g} % CI {1000 * columns['low'][i]:,.0f} to "
            f"{1000 * columns['high'][i]:,.0f}); calibrated forecasts have {1000 * columns['expected'][i]:,.0f}."
            for i in dict.fromkeys((int(np.argmax(levels)), int(np.argmin(levels))))
        ]

    def tables(self, e: Evaluation, key: str) -> list[ReportTable]:
        bias = super().tables(e, key)
        if "coverage" not in e.breakdowns:
            return bias
        return [ReportTable("Coverage of central intervals", e.breakdowns["coverage"].cells()), *bias]

    def group_metric(self, e: Evaluation) -> str | None:
        """Return the coverage of the widest intervals, which shows the calibration of a group."""
        return next((name for name in reversed(tuple(e.metrics)) if name.startswith("coverage of ")), None)


WORDS = DistributionWords()
