"""Fit the models of section 4.2 with the scikit-learn of 2023, and store their predictions.

Run by ``make study NAME=uci_fit`` in a separate environment (scikit-learn 1.2.2, numpy 1.24.4): newer versions stop the
logistic regression at another point. The target restricts numpy and OpenBLAS to AVX2: with AVX-512 a few printed digits
of boosted trees and of logistic regressions change. As in the authors' program, features are standardised over all
rows, including test rows: by numpy's standard deviation, and for spambase by that of pandas (N - 1).
"""

import sys
import time
from pathlib import Path

import numpy as np
from imblearn.datasets import fetch_datasets
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from research.reproduction.sources import SETS

MODELS = {
    "LR": lambda: LogisticRegression(max_iter=10000, random_state=0),
    "SVM": lambda: SVC(probability=True, random_state=0),
    "RF": lambda: RandomForestClassifier(max_depth=10, random_state=0),
    "GB": lambda: GradientBoostingClassifier(random_state=0),
    "MLP": lambda: MLPClassifier(hidden_layer_sizes=(1000,), max_iter=10000, random_state=0),
}


def read(folder: Path, name: str) -> "tuple[np.ndarray, np.ndarray]":
    """Return standardised features and labels, from the folder or from the internet."""
    if name == "spambase":
        path = folder / "spambase.data"
        url = "https://archive.ics.uci.edu/ml/machine-learning-databases/spambase/spambase.data"
        rows = np.loadtxt(path if path.exists() else url, delimiter=",")
        # Some copies have 0.62 here. The documentation of UCI gives this column a standard deviation of 0.64476, which
        # needs 0.63, and only with 0.63 do SVM and MLP have the printed values.
        rows[3, 9] = 0.63
        x, y, ddof = rows[:, :-1], rows[:, -1] == 1, 1
    else:
        rows = fetch_datasets(data_home=str(folder), filter_data=(name,), download_if_missing=True)[name]
        x, y, ddof = rows.data, rows.target == 1, 0
    spread = x.std(axis=0, ddof=ddof)
    return (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1), y.astype(np.int64)


def main(folder: Path, out: Path) -> None:
    """Fit the missing models; an interrupted run can be resumed."""
    out.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        missing = [model for model in MODELS if not (out / f"{name}-{model}.npz").exists()]
        if not missing:
            continue
        x, y = read(folder, name)
        seen, unseen, y_seen, y_unseen = train_test_split(x, y, test_size=0.3, random_state=0)
        for model in missing:
            began = time.perf_counter()
            p = MODELS[model]().fit(seen, y_seen).predict_proba(unseen)[:, 1]
            order = np.argsort(p)  # the order of equal predictions with this numpy on this machine
            np.savez_compressed(
                out / f"{name}-{model}.npz", y=y_unseen.astype(np.int8), p=p, order=order.astype(np.uint16)
            )
            print(f"{name} {model}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
