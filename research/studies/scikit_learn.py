"""Compare `CalibratedModel` with scikit-learn's `CalibratedClassifierCV` on eight data sets with four classifiers.

Each split draws at most 5,000 rows: 60 % fit classifier and calibrator by five-fold cross-validation, 40 % are
predicted. Both libraries get the same rows, folds and fitted classifiers, so that only the calibration differs.
Values of finished splits are kept in build/studies, so an interrupted study can be resumed; ``make study
NAME=scikit_learn`` writes docs/studies/scikit_learn.csv, scikit_learn_methods.csv and scikit_learn.rst.

    python -m research.studies.scikit_learn           run what is missing, then write the tables
    python -m research.studies.scikit_learn --page    write the tables only
    python -m research.studies.scikit_learn --smoke   two data sets, two splits; tables go to build/studies/smoke
"""

import csv
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.metaestimators import available_if

import calibrant as cb
from calibrant.inference.multiplicity import holm
from research.reproduction import rst
from research.reproduction.sources import DATA, ROOT
from research.studies.designs import RESULTS, spread_over_cores

SPLITS = 20
FIRST = 100  # the default of CalibratedModel was chosen on splits 0 to 19
MOST_ROWS = 5_000
TEST_SHARE = 0.4
WORK = ROOT / "build" / "studies"
CRITERIA = ("Brier", "log loss")

MODELS: dict[str, Callable[[], Any]] = {
    "naive Bayes": GaussianNB,
    "random forest": lambda: RandomForestClassifier(50, min_samples_leaf=2, random_state=0),
    "boosted trees": lambda: HistGradientBoostingClassifier(max_iter=40, random_state=0),
    "linear SVM": lambda: make_pipeline(StandardScaler(), LinearSVC(C=0.1, random_state=0)),
}
SCIKIT_LEARN = ("sigmoid", "isotonic", "temperature")
CALIBRATORS: dict[str, Callable[[bool], Any]] = {  # by whether the classifier has probabilities
    "Platt": lambda _: "platt",
    "Platt(on='score')": lambda _: cb.Platt(on="score"),
    "Isotonic": lambda _: cb.Isotonic(),
    "Temperature": lambda _: cb.calibrators.Temperature(),
    "Beta": lambda _: cb.Beta(),
}
NEED_PROBABILITIES = ("Temperature", "Beta")
LIKE = {"Platt": "sigmoid", "Isotonic": "isotonic", "Temperature": "temperature"}


def binary_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    frame = pd.read_csv(DATA / "cost_aware" / f"{name}.csv.gz")
    y = frame.pop("label").to_numpy(dtype=np.int64)
    return pd.get_dummies(frame, drop_first=True).to_numpy(dtype=float), y


def heart_rates() -> tuple[np.ndarray, np.ndarray]:
    """Return cardiotocograms in three classes: normal, suspect and pathologic."""
    frame = pd.read_csv(DATA / "cost_aware" / "cardiotocography.csv.gz").drop(columns=["CLASS", "label"])
    y = frame.pop("NSP").to_numpy(dtype=np.int64)
    return frame.to_numpy(dtype=float), y - 1


def spam() -> tuple[np.ndarray, np.ndarray]:
    rows = np.loadtxt(DATA / "spambase.data", delimiter=",")
    return rows[:, :-1], rows[:, -1].astype(np.int64)


def zenodo(number: int) -> tuple[np.ndarray, np.ndarray]:
    with np.load(DATA / "zenodo" / f"x{number}data.npz") as rows:
        return np.ascontiguousarray(rows["data"]), (rows["label"] == 1).astype(np.int64)


DATA_SETS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "churn": lambda: binary_set("churn"),
    "heart rates": heart_rates,
    "credit default": lambda: binary_set("credit_default"),
    "bank": lambda: binary_set("bank_full"),
    "spam": spam,
    "mammography": lambda: zenodo(25),
    "coil 2000": lambda: zenodo(15),
    "digits": lambda: load_digits(return_X_y=True),
}
load = cache(lambda name: DATA_SETS[name]())


class SharedFit(ClassifierMixin, BaseEstimator):
    """A classifier that is fitted once per set of rows and then shared; all methods calibrate the same fits."""

    fits: dict[bytes, Any]

    def __init__(self, estimator: Any, fits: dict[bytes, Any]) -> None:
        self.estimator = estimator
        self.fits = fits

    def __sklearn_clone__(self) -> "SharedFit":
        return SharedFit(self.estimator, self.fits)

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SharedFit":
        """Fit, or take the fit on the same rows."""
        key = digest(X, y)
        if key not in self.fits:
            self.fits[key] = clone(self.estimator).fit(X, y)
        self.fitted_, self.key_ = self.fits[key], key
        self.classes_, self.n_features_in_ = self.fitted_.classes_, X.shape[1]
        return self

    def _response(self, method: str, X: np.ndarray) -> np.ndarray:
        key = self.key_ + digest(X) + method.encode()
        if key not in self.fits:
            self.fits[key] = getattr(self.fitted_, method)(X)
        return self.fits[key]

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self._response("predict_proba", X)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return self._response("decision_function", X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.fitted_.predict(X)


def digest(*arrays: np.ndarray) -> bytes:
    found = blake2b(digest_size=16)
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.digest()


def label(method: str, ensemble: bool) -> str:
    return f"{method}, ensemble" if ensemble else method


def candidates(model: SharedFit) -> Iterator[tuple[str, Any]]:
    """Yield each method with its unfitted model; both libraries have the same five folds."""
    folds, probabilities = StratifiedKFold(5), hasattr(model, "predict_proba")
    for method in SCIKIT_LEARN:
        for ensemble in (True, False):
            calibrated = CalibratedClassifierCV(model, method=method, ensemble=ensemble, cv=folds)
            yield label(method, ensemble), calibrated
    yield "CalibratedModel()", cb.CalibratedModel(model)
    for name, make in CALIBRATORS.items():
        if probabilities or name not in NEED_PROBABILITIES:
            for ensemble in (True, False):
                calibrated = cb.CalibratedModel(model, make(probabilities), ensemble=ensemble, cv=folds)
                yield label(name, ensemble), calibrated


def split(task: tuple[str, str, int]) -> dict[str, Any]:
    """Return the criteria of all methods on one split."""
    name, kind, seed = task
    X, y = load(name)
    rows = np.random.default_rng([seed, *name.encode()]).permutation(len(y))[:MOST_ROWS]
    test, train = np.split(rows, [round(TEST_SHARE * rows.size)])
    model = SharedFit(MODELS[kind](), {})
    found: dict[str, Any] = {"set": name, "model": kind, "split": seed, "train": train.size, "test": test.size}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, calibrated in candidates(model):
            proba = calibrated.fit(X[train], y[train]).predict_proba(X[test])
            for criterion, value in zip((*CRITERIA, "infinite"), criteria(proba, y[test]), strict=True):
                found[f"{method} | {criterion}"] = value
    return found


def criteria(proba: np.ndarray, y: np.ndarray) -> tuple[float, float, int]:
    """Return Brier score and log loss, as scikit-learn defines them, and whether the log loss is infinite unclipped."""
    chosen = proba[np.arange(y.size), y]
    brier = float(np.mean((proba**2).sum(axis=1) - 2 * chosen + 1)) / (2 if proba.shape[1] == 2 else 1)
    eps = np.finfo(np.float64).eps
    return brier, float(-np.mean(np.log(np.clip(chosen, eps, 1 - eps)))), int((chosen <= 0).any())


def pairs(methods: Iterable[str]) -> list[tuple[str, str]]:
    """Return the comparisons: our default against each of scikit-learn's methods, then like with like."""
    known = set(methods)
    wanted = [("CalibratedModel()", label(theirs, e)) for theirs in SCIKIT_LEARN for e in (True, False)]
    wanted += [(label(ours, e), label(theirs, e)) for ours, theirs in LIKE.items() for e in (True, False)]
    return [(ours, theirs) for ours, theirs in wanted if ours in known]


def comparisons(values: pd.DataFrame) -> pd.DataFrame:
    """Return paired differences (ours minus theirs) in each cell, with p-values adjusted over all cells of ours."""
    methods = {column.partition(" | ")[0] for column in values if " | " in column}
    tables: list[dict[str, Any]] = []
    for ours, theirs in pairs(methods):
        rows = []
        for (name, kind), own in values.groupby(["set", "model"], sort=False):
            if own[f"{ours} | Brier"].isna().any():
                continue
            for criterion in CRITERIA:
                a, b = own[f"{ours} | {criterion}"], own[f"{theirs} | {criterion}"]
                row = {"ours": ours, "scikit-learn": theirs, "set": name, "model": kind, "criterion": criterion}
                row |= {"splits": len(own), "value of ours": a.mean(), "value of scikit-learn": b.mean()}
                rows.append(row | paired(a.to_numpy() - b.to_numpy(), (own["test"] / own["train"]).mean()))
        tables += rows
    table = pd.DataFrame(tables)
    for column in ("p", "p without correction"):
        adjusted = table[column].fillna(1.0).groupby(table["ours"]).transform(lambda p: holm(p.to_numpy()))
        table[column.replace("p", "adjusted p", 1)] = adjusted
    return table


def paired(differences: np.ndarray, ratio: float) -> dict[str, float]:
    """Return the mean difference over splits, its interval, and p-values.

    Splits overlap, so the variance is multiplied by 1 + splits * test rows / training rows (Nadeau and Bengio, 2003).
    """
    n, mean = differences.size, float(differences.mean())
    plain = float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    error = plain * np.sqrt(1 + n * ratio)
    reach = error * stats.t.ppf(0.975, n - 1) if n > 1 else np.nan
    found = {"difference": mean, "low": mean - reach, "high": mean + reach}
    for column, scale in (("p", error), ("p without correction", plain)):
        found[column] = 2 * float(stats.t.sf(abs(mean) / scale, n - 1)) if scale > 0 else np.nan
    return found


def summary(compared: pd.DataFrame) -> Iterator[list[str]]:
    """Yield for each pair and criterion the relative difference over data sets, and the number of cells that differ."""
    for (ours, theirs, criterion), own in compared.groupby(["ours", "scikit-learn", "criterion"], sort=False):
        change = 100 * np.log(own["value of ours"] / own["value of scikit-learn"])
        by_set = change.groupby(own["set"]).mean().to_numpy()
        reach = stats.t.ppf(0.975, by_set.size - 1) * by_set.std(ddof=1) / np.sqrt(by_set.size)
        yield [
            ours,
            theirs,
            criterion,
            f"{by_set.mean():+.2f} % ({by_set.mean() - reach:+.2f} to {by_set.mean() + reach:+.2f})",
            *(counts(own, column) for column in ("adjusted p", "adjusted p without correction")),
            str(len(own)),
        ]


def counts(own: pd.DataFrame, column: str) -> str:
    sure = own[column] <= 0.05
    return f"{int((sure & (own['difference'] < 0)).sum())}, {int((sure & (own['difference'] > 0)).sum())}"


def by_method(values: pd.DataFrame) -> pd.DataFrame:
    """Return means of each method over the cells that all methods have."""
    methods = dict.fromkeys(column.partition(" | ")[0] for column in values if " | " in column)
    common = values.dropna()
    rows = []
    for method in methods:
        row: dict[str, Any] = {"method": method}
        row |= {criterion: f"{common[f'{method} | {criterion}'].mean():.5f}" for criterion in CRITERIA}
        rows.append(row | {"splits with infinite log loss": int(common[f"{method} | infinite"].sum())})
    return pd.DataFrame(rows)


DESIGN = """\
Comparison with scikit-learn
============================

``make study NAME=scikit_learn`` writes this page (10 minutes on two cores). `CalibratedModel` is compared with
scikit-learn's ``CalibratedClassifierCV`` on eight data sets, two of them with several classes, and four classifiers:
naive Bayes, a random forest, boosted trees and a linear SVM, which has margins only. Each of {splits} splits draws at
most {rows:,} rows; 60 % fit classifier and calibrator by five-fold cross-validation, and 40 % are predicted. Both
libraries have the same rows, folds and fitted classifiers, so only the calibration differs. The criteria are Brier
score and log loss, defined and clipped as in ``sklearn.metrics``. `Temperature` and `Beta` need probabilities, so
they are not compared on the SVM.

Differences are paired over splits. Splits overlap, so the variance of their mean is multiplied by 1 + (splits) (test
rows) / (training rows) (Nadeau and Bengio, 2003). The p-values of each of our methods are adjusted by Holm over all
its comparisons: data sets, classifiers, criteria and methods of scikit-learn. The correction for overlap is
conservative, so the table also counts the cells that differ without it. The default of `CalibratedModel` was chosen on
other splits of the same data sets, of 500, 1,500 and 5,000 rows: on data of other kinds it may do worse than here.

"""


def page(values: pd.DataFrame | None) -> str:
    """Return the page; without values, its design alone."""
    text = DESIGN.format(splits=SPLITS, rows=MOST_ROWS)
    if values is None:
        return text + "The study has not been run with this version.\n"
    compared = comparisons(values)
    default = compared[compared["ours"] == "CalibratedModel()"]
    worse = default[(default["adjusted p"] <= 0.05) & (default["difference"] > 0)]
    header = ["ours", "scikit-learn", "criterion", "difference (95 % CI over data sets)"]
    header += ["better, worse (adjusted)", "better, worse (without correction)", "cells"]
    return "\n".join(
        [
            text + rst.heading("Results", "-"),
            f"Differences are ours minus scikit-learn's, relative, so negative ones favour Calibrant. "
            f"`CalibratedModel` with its defaults is shown to be worse in {len(worse)} of {len(default)} comparisons.",
            "",
            rst.list_table(header, summary(compared)),
            "Values of each cell, with intervals, are in ``docs/studies/scikit_learn.csv``. Means of each method over "
            "the cells that all methods have:",
            "",
            rst.list_table(list(by_method(values)), by_method(values).astype(str).to_numpy().tolist()),
        ]
    )


def run(tasks: Iterable[tuple[str, str, int]], path: Path) -> pd.DataFrame:
    """Return the values of all tasks; those in the file are not computed again."""
    tasks = list(tasks)
    done = {tuple(row[:3]) for row in pd.read_csv(path).itertuples(index=False)} if path.exists() else set()
    path.parent.mkdir(parents=True, exist_ok=True)
    names = columns()
    for found in spread_over_cores(split, [task for task in tasks if task not in done], "splits"):
        fresh = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            if fresh:
                writer.writeheader()
            writer.writerow(found)
    values = pd.read_csv(path)
    order = {task: i for i, task in enumerate(tasks)}
    place = [order.get((row.set, row.model, row.split), len(order)) for row in values.itertuples()]
    return values.iloc[np.argsort(place, kind="stable")]


def columns() -> list[str]:
    """Return the columns of the file of values."""
    methods = [name for name, _ in candidates(SharedFit(GaussianNB(), {}))]
    return ["set", "model", "split", "train", "test"] + [f"{m} | {c}" for m in methods for c in (*CRITERIA, "infinite")]


def write(values: pd.DataFrame, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    form: dict[str, Any] = {"index": False, "lineterminator": "\n", "float_format": "%.6g"}
    comparisons(values).to_csv(folder / "scikit_learn.csv", **form)
    by_method(values).to_csv(folder / "scikit_learn_methods.csv", **form)
    (folder / "scikit_learn.rst").write_text(page(values), encoding="utf-8")


def main(arguments: list[str]) -> None:
    values = WORK / "scikit_learn.csv"
    if arguments == ["--smoke"]:
        smoke = WORK / "smoke"
        (smoke / "values.csv").unlink(missing_ok=True)
        tasks = [(name, kind, seed) for name in ("heart rates", "churn") for kind in MODELS for seed in range(2)]
        write(run(tasks, smoke / "values.csv"), smoke)
    elif arguments == ["--page"] and not values.exists():
        (RESULTS / "scikit_learn.rst").write_text(page(None), encoding="utf-8")
    else:
        tasks = [(name, kind, FIRST + i) for i in range(SPLITS) for name in DATA_SETS for kind in MODELS]
        write(run([] if arguments == ["--page"] else tasks, values), RESULTS)


if __name__ == "__main__":
    main(sys.argv[1:])
