"""The terms in which a comparison of each kind of forecast is described."""

from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.evaluation.binary import LOG_ODDS_ERROR
from calibrant.inference.multiclass import NAME as CLASSWISE_LOG_ODDS_ERROR

__all__ = ["TERMS", "ComparisonTerms"]


@dataclass(frozen=True)
class ComparisonTerms:
    """How a comparison of one kind of forecast is described.

    Attributes
    ----------
    decides : str
        The metric that decides.
    quantity : str
        Its square in a sentence, after "Squared".
    meaning : str
        What "better calibrated" refers to; '' if the name of the metric says it.
    confirmed_by : str
        The tests whose largest p-value counts; '' if there is one test.
    objection : str
        The test that must not be significant in the other direction; '' if there is none.
    scores : tuple of str
        Scores with which the verdict may disagree; the first that exists counts.
    best : str
        "lower" or "higher": the better values of these scores.
    ability : str
        What a model with the better score does better.
    """

    decides: str
    quantity: str
    meaning: str
    confirmed_by: str
    objection: str
    scores: tuple[str, ...]
    best: str
    ability: str

    @property
    def n_tests(self) -> str:
        """Number of tests whose largest p-value counts, as a word."""
        return {0: "one", 1: "two", 2: "three"}[self.confirmed_by.count(",") + self.confirmed_by.count(" and ")]


TERMS: Mapping[str, ComparisonTerms] = {
    "binary": ComparisonTerms(
        LOG_ODDS_ERROR,
        "log-odds error",
        "",
        "log-odds errors, absolute gaps and squared gaps",
        "",
        ("Brier",),
        "lower",
        "discriminates better",
    ),
    "multiclass": ComparisonTerms(
        CLASSWISE_LOG_ODDS_ERROR,
        "class-wise log-odds error",
        "",
        "class-wise log-odds errors and class-wise squared gaps",
        "squared gaps of the top label",
        ("Brier",),
        "lower",
        "discriminates better",
    ),
    "labels": ComparisonTerms(
        "error of class proportions",
        "error of class proportions (mean over classes)",
        "Better calibrated means that the classes are predicted in proportions nearer to those of the outcomes.",
        "",
        "",
        ("accuracy",),
        "higher",
        "predicts more rows correctly",
    ),
    "point": ComparisonTerms(
        "bias by bin",
        "bias by bin (in standard deviations of the outcome)",
        "Better calibrated means a smaller bias by bin: the mean error over bins of the prediction.",
        "",
        "",
        ("MSE",),
        "lower",
        "discriminates better",
    ),
    "distribution": ComparisonTerms(
        "coverage error",
        "coverage error (mean over levels)",
        "Better calibrated means a smaller coverage error: the shares of outcomes at or below the predicted quantiles "
        "are nearer to their levels.",
        "",
        "",
        ("CRPS", "pinball loss"),
        "lower",
        "discriminates better",
    ),
}
