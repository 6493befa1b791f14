"""The terms in which a comparison of each kind of forecast is described."""

from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.evaluation.binary import LOG_ODDS_ERROR
from calibrant.inference.multiclass.decision import NAME as CLASSWISE_LOG_ODDS_ERROR

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
    scores : tuple of str
        Scores with which the verdict may disagree; the first that exists counts.
    best : str
        "lower" or "higher": the better values of these scores.
    ability : str
        What a model with the better score does better.
    meaning : str
        What "better calibrated" refers to; '' if the name of the metric says it.
    tests : tuple of str
        The tests whose largest p-value counts; empty if there is one test.
    objection : str
        The test that must not be significant in the other direction; '' if there is none.
    """

    decides: str
    quantity: str
    scores: tuple[str, ...]
    best: str
    ability: str
    meaning: str = ""
    tests: tuple[str, ...] = ()
    objection: str = ""


TERMS: Mapping[str, ComparisonTerms] = {
    "binary": ComparisonTerms(
        decides=LOG_ODDS_ERROR,
        quantity="log-odds error",
        tests=("log-odds errors", "absolute gaps", "squared gaps"),
        scores=("Brier",),
        best="lower",
        ability="discriminates better",
    ),
    "multiclass": ComparisonTerms(
        decides=CLASSWISE_LOG_ODDS_ERROR,
        quantity="class-wise log-odds error",
        tests=("class-wise log-odds errors", "class-wise squared gaps"),
        objection="squared gaps of the top label",
        scores=("Brier",),
        best="lower",
        ability="discriminates better",
    ),
    "labels": ComparisonTerms(
        decides="error of class proportions",
        quantity="error of class proportions (mean over classes)",
        meaning="Better calibrated means that classes are predicted in proportions nearer to those of the outcomes.",
        scores=("accuracy",),
        best="higher",
        ability="predicts more rows correctly",
    ),
    "point": ComparisonTerms(
        decides="bias by bin",
        quantity="bias by bin (in standard deviations of the outcome)",
        meaning="Better calibrated means a smaller bias by bin: the mean error over bins of the prediction.",
        scores=("MSE",),
        best="lower",
        ability="discriminates better",
    ),
    "distribution": ComparisonTerms(
        decides="coverage error",
        quantity="coverage error (mean over levels)",
        meaning=(
            "Better calibrated means a smaller coverage error: the shares of outcomes at or below the predicted "
            "quantiles are nearer to their levels."
        ),
        scores=("CRPS", "pinball loss"),
        best="lower",
        ability="discriminates better",
    ),
}
