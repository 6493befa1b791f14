"""Scores of two models of handwritten digits, which ship with scikit-learn: the data of the demo."""

import csv
import io
from pathlib import Path
from typing import Any

from calibrant._support.errors import MissingExtraError
from calibrant._support.file_writing import write_file

__all__ = ["digit_scores", "write_digits"]


def digit_scores() -> dict[str, Any]:
    """Return the outcome "this digit is an 8", the scores of a forest and a logistic model, and the amount of ink.

    Scores are out of fold (five folds); the ink is in five groups of equal size.
    """
    try:
        import numpy as np
        from sklearn.datasets import load_digits
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import cross_val_predict
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ModuleNotFoundError as error:
        raise MissingExtraError("The demo needs scikit-learn", "sklearn", name=error.name) from error
    pixels, digit = load_digits(return_X_y=True)
    is_8 = digit == 8
    models = {
        "forest": RandomForestClassifier(random_state=0),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)),
    }
    scores = {
        name: cross_val_predict(model, pixels, is_8, cv=5, method="predict_proba")[:, 1]
        for name, model in models.items()
    }
    amount = pixels.sum(axis=1)
    fifth = np.searchsorted(np.quantile(amount, (0.2, 0.4, 0.6, 0.8)), amount, side="right")
    ink = np.array(["1 least ink", "2", "3", "4", "5 most ink"])[fifth]
    return {"is_8": is_8, **scores, "ink": ink}


def write_digits(folder: Path) -> int:
    """Write `digit_scores` to digits.csv, its rows by turns to past.csv and new.csv, and return their number."""
    columns = digit_scores()
    columns["is_8"] = columns["is_8"].astype(int)
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    for name, part in {"digits": rows, "past": rows[::2], "new": rows[1::2]}.items():
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(columns)
        writer.writerows(part)
        write_file(folder / f"{name}.csv", text.getvalue(), follow_links=False)
    return len(rows)
