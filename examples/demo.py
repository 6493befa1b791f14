"""Two models on real data: which one's probabilities can be believed, and can the other's be repaired? ``make demo``.

Handwritten digits that ship with scikit-learn; the event is "this is an 8". Every prediction is made by a model that
has not seen that digit (five-fold cross-validation).
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cb

PICTURES = Path(__file__).parent.parent / "build" / "demo"
MODELS = {
    "forest": RandomForestClassifier(random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)),
}


def predictions() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Outcomes, and the predictions of both models."""
    pixels, digit = load_digits(return_X_y=True)
    y = digit == 8
    return y, {
        name: cross_val_predict(model, pixels, y, cv=5, method="predict_proba")[:, 1] for name, model in MODELS.items()
    }


def repaired() -> np.ndarray:
    """The forest's predictions once more, calibrated; model and calibrator have not seen the digit either."""
    pixels, digit = load_digits(return_X_y=True)
    model = cb.CalibratedModel(MODELS["forest"], cb.Isotonic(strict=True))
    return cross_val_predict(model, pixels, digit == 8, cv=5, method="predict_proba", n_jobs=-1)[:, 1]


def ink() -> np.ndarray:
    """How much ink every digit took, in five groups of equal size."""
    amount = load_digits().data.sum(axis=1)
    fifths = np.searchsorted(np.quantile(amount, (0.2, 0.4, 0.6, 0.8)), amount, side="right")
    return np.array(["1 least ink", "2", "3", "4", "5 most ink"])[fifths]


def main() -> None:
    y, scores = predictions()
    print(f"Is this digit an 8?  {y.size:,} handwritten digits, {y.mean():.1%} are; scores are out of fold.")
    print("A random forest, evaluated: every number with an interval, and with what a right model would read.\n")
    print(cb.evaluate(y, scores["forest"]))

    print("\n\nWhere do its scores fail? Bin by bin (its high scores are too low: it is too modest):\n")
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
