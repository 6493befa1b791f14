"""Words of a report on point predictions."""

import math
from typing import Any, ClassVar

import numpy as np

from calibrant.kinds.words import FRESH_ROWS, Action, ReportTable, Words, gain_text
from calibrant.results.evaluation import Evaluation


class PointWords(Words):
    """How a report speaks of point predictions."""

    name: ClassVar[str] = "prediction"
    forecasts: ClassVar[str] = "predictions"

    def means(self, e: Evaluation) -> tuple[float, float] | None:
        table: Any = e.table
        return table.mean_prediction, table.mean_outcome

    def recalibrate(self, e: Evaluation, rows: str) -> Action:
        details: Any = e.details
        parts = details.decomposition
        linear = "local" not in e.direction
        name, method = ("LinearRecalibrator", "linear") if linear else ("IsotonicRecalibrator", "isotonic")
        gain = gain_text("MSE", parts.mse, parts.bias + parts.slope if linear else parts.mcb)
        code = f"cb.regression.{name}().fit(predictions, outcomes)"
        return Action(f"Recalibrate with {method}.", f"{gain} {FRESH_ROWS}", code)

    def meaning(self, e: Evaluation) -> list[str]:
        """Return sentences about the bins with the largest significant bias, or about the middle one."""
        bins: Any = e.breakdowns["bias by bin"]
        b = bins.per_bin
        worst = [i for i in np.argsort(-b["n"] * np.abs(b["bias"])) if bins.significant[i]][:2] or [len(bins) // 2]
        sentences = [_bias_sentence(b, int(i), bins.level) for i in worst]
        t: Any = e.table
        return [
            *sentences,
            f"Over all rows: mean prediction {t.mean_prediction:.4g}, mean outcome {t.mean_outcome:.4g}.",
        ]

    def tables(self, e: Evaluation, key: str) -> list[ReportTable]:
        return [ReportTable("Bias by bin", e.breakdowns["bias by bin"].cells())]


WORDS = PointWords()


def _bias_sentence(b: Any, i: int, level: float) -> str:
    predicted, low, high = (float(b[name][i]) for name in ("mean_prediction", "low", "high"))
    span = ""
    if math.isfinite(low) and math.isfinite(high):  # the interval of the bias: prediction less outcome
        span = f" ({100 * level:g} % CI {predicted - high:.4g} to {predicted - low:.4g})"
    return f"Where the prediction is about {predicted:.4g}, expect {float(b['mean_outcome'][i]):.4g} on average{span}."
