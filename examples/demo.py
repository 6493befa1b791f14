"""The steps of ``make demo`` in Python: evaluate two models, compare them, and recalibrate one of them.

The data are the handwritten digits of scikit-learn; the event is "this digit is an 8". All predictions are out of fold
(five-fold cross-validation).
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

import calibrant as cb
from calibrant.cli.demo import digit_scores

PICTURES = Path(__file__).parent.parent / "build" / "demo"


def predictions() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the outcomes and the predictions of both models."""
    found = digit_scores()
    return found["is_8"], {name: found[name] for name in ("forest", "logistic")}


def recalibrated() -> np.ndarray:
    """Return out-of-fold predictions of the recalibrated forest."""
    pixels, digit = load_digits(return_X_y=True)
    model = cb.CalibratedModel(RandomForestClassifier(random_state=0), cb.Isotonic(strict=True), ensemble=False)
    return cross_val_predict(model, pixels, digit == 8, cv=5, method="predict_proba", n_jobs=-1)[:, 1]


def ink() -> np.ndarray:
    """Return the group of each digit by its amount of ink, five groups of equal size."""
    return digit_scores()["ink"]


def main() -> None:
    y, scores = predictions()
    print(f"Is this digit an 8?  {y.size:,} handwritten digits, {y.mean():.1%} are; scores are out of fold.")
    print("Evaluation of a random forest, each metric with its confidence interval and its null range:\n")
    print(cb.evaluate(y, scores["forest"]))

    print("\n\nTCE per bin (the high scores underestimate: the forest is underconfident):\n")
    print(cb.TCE()(y, scores["forest"]))

    print("\n\nComparison with a logistic regression on the same digits:\n")
    comparison = cb.compare(y, scores)
    print(comparison)
    print(
        "\nTCE: the percentage of predictions that an exact test against the outcomes of their bin rejects."
        "\nECE, ACE: mean absolute difference between predictions and event rates. Lower is better for all."
    )

    print("\n\nRecalibration of the forest by cb.CalibratedModel(forest, cb.Isotonic(strict=True), ensemble=False):\n")
    recalibration = cb.compare(y, {"forest": scores["forest"], "recalibrated": recalibrated()})
    print(recalibration)

    PICTURES.mkdir(parents=True, exist_ok=True)
    pictures = {"forest": comparison.models["forest"], "comparison": comparison, "recalibrated": recalibration}
    for name, result in pictures.items():
        figure = Figure(figsize=(11, 6.2), layout="constrained")
        cb.plots.save(result.plot(fig=figure), PICTURES / f"{name}.png")
    print(f"\nFigures: {', '.join(f'{name}.png' for name in pictures)} in {PICTURES}")


if __name__ == "__main__":
    main()
