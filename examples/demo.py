"""Two models on real data: which one's probabilities can be believed? Run with ``make demo``.

Handwritten digits that ship with scikit-learn; the event is "this is an 8". Every prediction is made by a model that
has not seen that digit (five-fold cross-validation).
"""

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cb

MODELS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)),
    "random forest": RandomForestClassifier(random_state=0),
}


def shown(result: cb.Breakdown) -> str:
    return f"{result.value:.1f} %" if result.unit == "%" else f"{result.value:.3f}"


def main() -> None:
    pixels, digit = load_digits(return_X_y=True)
    y = digit == 8
    print(f"Is this digit an 8?  {y.size:,} handwritten digits, {y.mean():.1%} are; scores are out of fold.\n")

    tables = {}
    for name, model in MODELS.items():
        scores = cross_val_predict(model, pixels, y, cv=5, method="predict_proba")[:, 1]
        tables[name] = cb.ScoreTable.from_arrays(y, scores)

    metrics = {
        "TCE": cb.TCE(),
        "TCE, small bins": cb.TCE(bins=cb.PAVABC.consistent()),
        "ECE": cb.ECE(),
        "ACE": cb.ACE(),
        "MCE": cb.MCE(),
    }
    print(f"{'model':<20}" + "".join(f"{name:>{len(name) + 6}}" for name in metrics))
    for model, table in tables.items():
        print(f"{model:<20}" + "".join(f"{shown(metric(table)):>{len(name) + 6}}" for name, metric in metrics.items()))

    print(
        "\nTCE: the percentage of predictions that an exact test finds incompatible with what happened near them;"
        "\n     with small bins (about the root of N rows) a perfect model reads 2-8 % on average."
        "\nECE, ACE, MCE: how far predictions and outcomes lie apart, from 0 to 1. Lower is better for all.\n"
        "\nWhere do the forest's scores fail? Bin by bin (its high scores are too low: it is too modest):\n"
    )
    print(cb.TCE()(tables["random forest"]))


if __name__ == "__main__":
    main()
