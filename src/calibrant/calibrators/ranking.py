"""`Ranking`: candidates of `AutoCalibrator` with their values and gains, and the rule that chooses one of them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant._support.formatting import NumberFormat, TableText, format_pvalue, p_text
from calibrant._support.plain_data import frame_from_rows, plain
from calibrant.metrics.metric import Metric

__all__ = ["UNCALIBRATED", "Candidate", "Ranking"]

UNCALIBRATED = "uncalibrated"


@dataclass(frozen=True)
class Candidate:
    """A calibrator in the ranking: its value on rows that it was not fitted on, and its gain over the baseline.

    The gain is tested one-sided. Its p-value is adjusted for the number of calibrators by the bootstrap distribution of
    their largest gain (step-down).

    Attributes
    ----------
    name : str
        Name of the calibrator.
    value, low, high : float
        Value of the metric and its confidence interval.
    gain, gain_low, gain_high : float
        Gain over the baseline and its confidence interval.
    pvalue : float
        Adjusted p-value of the gain; NaN for the baseline.
    bias : float
        Mean calibrated probability less event rate; with several classes that of the class with the lowest p-value.
    bias_pvalue : float
        P-value of "the mean calibrated probability equals the event rate", adjusted for the number of classes.

    See Also
    --------
    Ranking, AutoCalibrator

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(600)
    >>> auto = cb.AutoCalibrator(calibrators=["platt"], n_resamples=199).fit(p, rng.random(600) < p**2)
    >>> best = auto.ranking_.candidates[0]
    >>> best.name, best.gain > 0, best.pvalue
    ('platt', True, 0.005)
    """

    name: str
    value: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float
    pvalue: float
    bias: float
    bias_pvalue: float


@dataclass(frozen=True, repr=False)
class Ranking:
    """All candidates, the best first.

    Attributes
    ----------
    candidates : tuple of Candidate
        The best first.
    chosen, baseline : str
        Names of the chosen candidate and of the baseline.
    metric, unit : str
        Name and unit of the metric.
    level : float
        Confidence level.
    alpha : float
        Significance level of gains and biases.
    failed : mapping of str to str
        Calibrators that could not be fitted, with the reason.

    See Also
    --------
    Candidate, AutoCalibrator

    Examples
    --------
    >>> import numpy as np
    >>> import calibrant as cb
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(600)
    >>> auto = cb.AutoCalibrator(calibrators=["platt"], n_resamples=199).fit(p, rng.random(600) < p**2)
    >>> auto.ranking_.chosen, auto.ranking_.baseline, auto.ranking_.metric
    ('platt', 'uncalibrated', 'log_loss')
    """

    candidates: tuple[Candidate, ...]
    chosen: str
    baseline: str
    metric: str
    unit: str
    level: float
    alpha: float
    failed: Mapping[str, str]

    @classmethod
    def choose(
        cls, found: Sequence[Candidate], metric: Metric, *, level: float, alpha: float, failed: Mapping[str, str]
    ) -> "Ranking":
        """Return the ranking of candidates, with the choice by its rule.

        Parameters
        ----------
        found : sequence of Candidate
            The first is the baseline.
        metric : Metric
            The metric that decides.
        level : float
            Confidence level of the intervals.
        alpha : float
            Significance level of gains and biases.
        failed : mapping of str to str
            Calibrators that could not be fitted, with the reason.

        Returns
        -------
        Ranking
            The best candidate first.
        """
        sign = 1.0 if getattr(metric, "direction", "lower") == "lower" else -1.0
        baseline = found[0]
        pool = [c for c in found if baseline.name != UNCALIBRATED or (c.gain > 0 and c.pvalue <= alpha)]
        unbiased = [c for c in pool if not c.bias_pvalue <= alpha]
        ordered = sorted(found, key=lambda each: sign * each.value)
        chosen = min(unbiased or pool or [baseline], key=lambda each: sign * each.value)
        return cls(tuple(ordered), chosen.name, baseline.name, metric.name, metric.unit, level, alpha, dict(failed))

    @property
    def rule(self) -> str:
        """The rule of the choice, in one sentence."""
        share = f"{100 * self.alpha:g} %"
        if self.baseline != UNCALIBRATED:
            return (
                "the calibrator with the best value is used, and one whose mean differs from the event rate at the "
                f"level of {share} only if all do."
            )
        return (
            f"of the calibrators whose gain is significant at {share}, the one with the best value is used, and one "
            "whose mean differs significantly from the event rate only if all of them do; without a significant gain "
            "the scores are left alone."
        )

    @property
    def verdict(self) -> str:
        """The recommendation: use a calibrator, or leave the model alone."""
        if self.chosen == UNCALIBRATED:
            return f"leave it alone: no calibrator is shown to improve the {self.metric}"
        return f"use {self.chosen}"

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return one row per candidate.

        Parameters
        ----------
        backend : str, default="pandas"
            Library of the frame, one that Narwhals supports: pandas, polars, pyarrow.

        Returns
        -------
        frame
            A frame of `backend`.
        """
        return frame_from_rows([vars(candidate) for candidate in self.candidates], backend)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON.

        Returns
        -------
        dict
            Numbers, text, lists and dicts, as ``json.dumps`` takes them.
        """
        return {
            "schema_version": 1,
            "kind": "ranking",
            "verdict": self.verdict,
            "chosen": self.chosen,
            "baseline": self.baseline,
            "metric": self.metric,
            "unit": self.unit,
            "level": self.level,
            "alpha": self.alpha,
            "rule": self.rule,
            "candidates": [plain(candidate) for candidate in self.candidates],
            "failed": dict(self.failed),
        }

    def __repr__(self) -> str:
        return self._text().to_text()

    def _repr_html_(self) -> str:
        return self._text().to_html()

    def _text(self) -> TableText:
        level = f"{100 * self.level:g} %"
        header = ["", self.metric, f"{level} interval", f"gain over {self.baseline}", f"{level} interval", "p-value"]
        cells = [[*header, "bias", "p-value of bias"]]
        for c in self.candidates:
            form = NumberFormat.for_spread(self.unit, c.high - c.low, signed=False)
            gain = NumberFormat.for_spread(self.unit, c.gain_high - c.gain_low, signed=True)
            row = [c.name, form.value(c.value), form.range(c.low, c.high)]
            gains = [gain.value(c.gain), gain.range(c.gain_low, c.gain_high), format_pvalue(c.pvalue)]
            row += gains if c.name != self.baseline else ["", "", ""]
            cells.append([*row, f"{c.bias:+.5f}", format_pvalue(c.bias_pvalue)])
        return TableText([f"Verdict: {self.verdict}"], cells, [*self._remarks(), f"Rule: {self.rule}"])

    def _remarks(self) -> Iterator[str]:
        """Yield why calibrators were not fitted, have an infinite loss, or are not used although theirs is lower."""
        for name, why in self.failed.items():
            yield f"{name} not fitted: {why}"
        if endless := [c.name for c in self.candidates if math.isinf(c.value)]:
            yield f"{', '.join(endless)}: infinite {self.metric}, because rows with an unsure outcome get 0 or 1."
        left = next((c for c in self.candidates if c.name == UNCALIBRATED == self.chosen), None)
        if left is not None and left.bias_pvalue <= self.alpha:
            yield (
                f"The mean of the scores differs from the event rate ({p_text(left.bias_pvalue)}), although no gain is "
                "significant: collect more rows, or correct it by Platt, which has two parameters."
            )
        place = [c.name for c in self.candidates].index(self.chosen)
        ahead = [c for c in self.candidates[:place] if self.chosen != self.baseline and c.pvalue <= self.alpha]
        if ahead:
            yield f"{', '.join(c.name for c in ahead)}: not used, because the mean differs from the event rate."
