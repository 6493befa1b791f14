"""What ``make demo`` shows on the command line, in Python: whose probabilities can be believed, can they be repaired?

Handwritten digits that ship with scikit-learn; the event is "this is an 8". Every prediction is made by a model that
has not seen that digit (five-fold cross-validation).
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

import calibrant as cb
from calibrant.cli.digits import digit_scores

PICTURES = Path(__file__).parent.parent / "build" / "demo"


def predictions() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Outcomes, and the predictions of both models."""
    found = digit_scores()
    return found["is_8"], {name: found[name] for name in ("forest", "logistic")}


def repaired() -> np.ndarray:
    """The forest's predictions once more, calibrated; model and calibrator have not seen the digit either."""
    pixels, digit = load_digits(return_X_y=True)
    model = cb.CalibratedModel(RandomForestClassifier(random_state=0), cb.Isotonic(strict=True))
    return cross_val_predict(model, pixels, digit == 8, cv=5, method="predict_proba", n_jobs=-1)[:, 1]


def ink() -> np.ndarray:
    """How much ink every digit took, in five groups of equal size."""
    return digit_scores()["ink"]


def main() -> None:
    y, scores = predictions()
    print(f"Is this digit an 8?  {y.size:,} handwritten digits, {y.mean():.1%} are; scores are out of fold.")
    print("A random forest, evaluated: every metric with a confidence interval and its value expected if calibrated.\n")
    print(cb.evaluate(y, scores["forest"]))

    print("\n\nWhere do its scores deviate? Bin by bin (its high scores underestimate: it is underconfident):\n")
    print(cb.TCE()(y, scores["forest"]))

    print("\n\nAnd a logistic regression beside it, on the same digits:\n")
    comparison = cb.compare(y, scores)
    print(comparison)
    print(
        "\nTCE: the percentage of predictions that an exact test finds incompatible with what happened near them."
        "\nECE, ACE: how far predictions and outcomes lie apart, from 0 to 1. Lower is better for all."
    )

    print("\n\nRepaired: the same forest behind cb.CalibratedModel(forest, cb.Isotonic(strict=True)):\n")
    repair = cb.compare(y, {"forest": scores["forest"], "repaired": repaired()})
    print(repair)

    PICTURES.mkdir(parents=True, exist_ok=True)
    pictures = {"forest": comparison.models["forest"], "comparison": comparison, "repaired": repair}
    for name, result in pictures.items():
        figure = Figure(figsize=(11, 6.2), layout="constrained")
        cb.plots.save(result.plot(fig=figure), PICTURES / f"{name}.png")
    print(f"\nThe same in pictures: {', '.join(f'{name}.png' for name in pictures)} in {PICTURES}")


if __name__ == "__main__":
    main()
