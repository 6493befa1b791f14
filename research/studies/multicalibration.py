"""Compare `Multicalibrator` with MCGrad, with `CalibratedModel` and with uncalibrated scores on real data.

Each split draws at most 10,000 rows: half fit the model, a quarter the calibrators, a quarter are predicted. All
calibrators get the same scores and features. Values of finished splits are kept in build/studies, so an interrupted
study can be resumed; ``make study NAME=multicalibration`` writes docs/studies/multicalibration.csv and .rst.

    python -m research.studies.multicalibration           run what is missing, then write the tables
    python -m research.studies.multicalibration --page    write the tables only
    python -m research.studies.multicalibration --quick   four data sets, one model, five splits of 4,000 rows (30 s)
    python -m research.studies.multicalibration --smoke   one data set, two splits; tables go to build/studies/smoke
"""

import csv
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import calibrant as cb
from calibrant.inference.multiplicity import holm
from research.reproduction import rst
from research.reproduction.sources import DATA, ROOT
from research.studies.designs import RESULTS, spread_over_cores
from research.studies.scikit_learn import paired

SPLITS = 10
QUICK = ("credit default", "churn", "COMPAS", "heart rates")  # data sets, and below their splits and rows
QUICK_SPLITS, QUICK_ROWS = 5, 4_000
FIRST = 100  # the settings of Multicalibrator were chosen on splits 0 to 4
MOST_ROWS = 10_000
WORK = ROOT / "build" / "studies"
OURS = ("Multicalibrator", "Multicalibrator, LightGBM")
METHODS = ("raw", "CalibratedModel", *OURS, "MCGrad")
CRITERIA = ("log loss", "MCE")
DEMOGRAPHIC = ["sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]


def cost_aware(name: str) -> pd.DataFrame:
    leaks = ["CLASS", "NSP"]  # of cardiotocography: they encode the label
    return pd.read_csv(DATA / "cost_aware" / f"{name}.csv.gz").drop(columns=leaks, errors="ignore")


def compas() -> pd.DataFrame:
    frame = pd.read_csv(DATA / "forecasts" / "compas_two_years.csv.gz")
    return frame[[*DEMOGRAPHIC, "c_charge_degree", "label"]]


def breast_cancer() -> pd.DataFrame:
    data = load_breast_cancer(as_frame=True)
    return data.data.assign(label=1 - data.target)


DATA_SETS: dict[str, Callable[[], pd.DataFrame]] = {
    "bank": lambda: cost_aware("bank_full"),
    "credit default": lambda: cost_aware("credit_default"),
    "churn": lambda: cost_aware("churn"),
    "COMPAS": compas,
    "heart rates": lambda: cost_aware("cardiotocography"),
    "breast cancer": breast_cancer,
}


def prepared(frame: pd.DataFrame) -> Any:
    text = categories(frame)
    rest = [name for name in frame if name not in text]
    return make_column_transformer((OneHotEncoder(handle_unknown="ignore"), text), (StandardScaler(), rest))


MODELS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "logistic regression": lambda X: make_pipeline(prepared(X), LogisticRegression(max_iter=1000)),
    "random forest": lambda X: make_pipeline(
        prepared(X), RandomForestClassifier(50, min_samples_leaf=5, random_state=0)
    ),
}


@cache
def load(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    frame = DATA_SETS[name]()
    y = frame.pop("label").to_numpy(dtype=np.int64)
    return frame, y


def categories(frame: pd.DataFrame) -> list[str]:
    return [name for name in frame if frame[name].dtype.kind not in "iufb"]


def mcgrad(X: pd.DataFrame, y: np.ndarray, p: np.ndarray, new: pd.DataFrame, scores: np.ndarray) -> np.ndarray:
    from mcgrad.methods import MCGrad

    text = categories(X)
    rest = [name for name in X if name not in text]
    fitted = MCGrad().fit(X.assign(_score=p, _label=y), "_score", "_label", None, text, rest)
    return np.asarray(fitted.predict(new.assign(_score=scores), "_score", text, rest))


def multicalibration_error(X: pd.DataFrame, y: np.ndarray, p: np.ndarray) -> float:
    """Return MCGrad's multicalibration error in percentage points."""
    from mcgrad.metrics import MulticalibrationError

    text = categories(X)
    rest = [name for name in X if name not in text]
    frame = X.assign(_score=p, _label=y)
    found = MulticalibrationError(
        frame, "_label", "_score", categorical_segment_columns=text, numerical_segment_columns=rest
    )
    return 100 * float(found.mce)


def log_loss(y: np.ndarray, p: np.ndarray) -> float:
    return float(cb.log_loss(y, np.clip(p, 1e-7, 1 - 1e-7)))


def predictions(model: Any, X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each method with its predictions of new rows; the model was fitted on rows other than X."""
    frozen = FrozenEstimator(model)
    p, scores = (model.predict_proba(rows)[:, 1] for rows in (X, new))
    yield "raw", scores
    yield "CalibratedModel", cb.CalibratedModel(frozen).fit(X, y).predict_proba(new)[:, 1]
    for name, backend in zip(OURS, ("sklearn", "lightgbm"), strict=True):
        yield name, cb.Multicalibrator(backend=backend).fit(X, y, scores=p)(new, scores)
    yield "MCGrad", mcgrad(X, y, p, new, scores)


def split(task: tuple[str, str, int], most_rows: int = MOST_ROWS) -> dict[str, Any]:
    """Return the criteria of all methods on one split."""
    logging.disable(logging.CRITICAL)
    name, kind, seed = task
    X, y = load(name)
    rows = np.random.default_rng([seed, *name.encode()]).permutation(len(y))[:most_rows]
    train, calibrate, test = np.split(rows, [rows.size // 2, rows.size * 3 // 4])
    found: dict[str, Any] = {"set": name, "model": kind, "split": seed, "calibrate": calibrate.size, "test": test.size}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[kind](X).fit(X.iloc[train], y[train])
        for method, p in predictions(model, X.iloc[calibrate], y[calibrate], X.iloc[test]):
            found[f"{method} | log loss"] = log_loss(y[test], p)
            found[f"{method} | MCE"] = multicalibration_error(X.iloc[test], y[test], p)
    return found


def comparisons(values: pd.DataFrame) -> pd.DataFrame:
    """Return paired differences of `Multicalibrator` from each other method, adjusted over all cells of the method."""
    rows: list[dict[str, Any]] = []
    for ours in OURS:
        for other in (method for method in METHODS if method not in OURS):
            for (name, kind), own in values.groupby(["set", "model"], sort=False):
                for criterion in CRITERIA:
                    a, b = own[f"{ours} | {criterion}"], own[f"{other} | {criterion}"]
                    row = {"ours": ours, "other": other, "set": name, "model": kind, "criterion": criterion}
                    row |= {"splits": len(own), "value of ours": a.mean(), "value of other": b.mean()}
                    # New rows over all others: those that fit the model and those that fit the calibrators.
                    rows.append(row | paired(a.to_numpy() - b.to_numpy(), 1 / 3))
    table = pd.DataFrame(rows)
    for column in ("p", "p without correction"):
        groups = table[column].fillna(1.0).groupby([table["ours"], table["other"]])
        table[column.replace("p", "adjusted p", 1)] = groups.transform(lambda p: holm(p.to_numpy()))
    return table


def counts(own: pd.DataFrame, column: str) -> str:
    sure = own[column] <= 0.05
    return f"{int((sure & (own['difference'] < 0)).sum())}, {int((sure & (own['difference'] > 0)).sum())}"


def summary(compared: pd.DataFrame) -> Iterator[list[str]]:
    for (ours, other, criterion), own in compared.groupby(["ours", "other", "criterion"], sort=False):
        columns = ("adjusted p", "adjusted p without correction")
        yield [ours, other, criterion, *(counts(own, column) for column in columns), str(len(own))]


def cells(compared: pd.DataFrame, values: pd.DataFrame) -> Iterator[list[str]]:
    """Yield for each data set and model the means of all methods, and the difference from MCGrad with its interval."""
    against = compared[(compared["ours"] == OURS[0]) & (compared["other"] == "MCGrad")]
    for (name, kind), own in values.groupby(["set", "model"], sort=False):
        for criterion in CRITERIA:
            digits = 4 if criterion == "log loss" else 2
            means = [f"{own[f'{method} | {criterion}'].mean():.{digits}f}" for method in METHODS]
            chosen = (against["set"] == name) & (against["model"] == kind) & (against["criterion"] == criterion)
            row = against[chosen].iloc[0]
            interval = f"{row['low']:+.{digits}f} to {row['high']:+.{digits}f}"
            difference = f"{row['difference']:+.{digits}f} ({interval}), p = {row['adjusted p']:.2g}"
            yield [name, kind, criterion, *means, difference]


DESIGN = """\
Multicalibration on real data
=============================

``make study NAME=multicalibration`` writes this page. `Multicalibrator`, with trees by scikit-learn and by LightGBM, is
compared with MCGrad 0.1.5, with `CalibratedModel` (isotonic) and with the uncalibrated scores. There are {sets} data
sets; the models are: {models}. Each of {splits} splits draws at most {rows:,} rows:
half fit the model, a quarter the calibrators, and a quarter are predicted. All calibrators have the same scores and
features, and their default settings. Those of `Multicalibrator` were chosen on other splits of churn, COMPAS and heart
rates. The criteria are the log loss of the predicted rows, and MCGrad's multicalibration error (MCE) in percentage
points: the largest calibration error of its segments.

Differences are paired over splits. Splits overlap, so the variance of their mean is multiplied by 1 + (splits) (test
rows) / (other rows) (Nadeau and Bengio, 2003). The p-values against each other method are adjusted by Holm over data
sets, models and criteria. The correction for overlap is conservative, so the table also counts the cells that differ
without it.

"""


def page(values: pd.DataFrame | None, most_rows: int = MOST_ROWS) -> str:
    """Return the page; without values, its design alone."""
    if values is None:
        design = DESIGN.format(sets=len(DATA_SETS), models=", ".join(MODELS), splits=SPLITS, rows=MOST_ROWS)
        return design + "The study has not been run with this version.\n"
    models = ", ".join(values["model"].drop_duplicates())
    splits = int(values.groupby(["set", "model"])["split"].count().min())
    text = DESIGN.format(sets=values["set"].nunique(), models=models, splits=splits, rows=most_rows)
    if most_rows == QUICK_ROWS:
        text += "These are the results of the quick design (``--quick``), which takes half a minute.\n\n"
    compared = comparisons(values)
    against = compared[compared["other"] == "MCGrad"]
    worse = against[(against["adjusted p"] <= 0.05) & (against["difference"] > 0)]
    header = ["ours", "other", "criterion", "better, worse (adjusted)", "better, worse (without correction)", "cells"]
    return "\n".join(
        [
            text + rst.heading("Results", "-"),
            f"`Multicalibrator` is shown to be worse than MCGrad in {len(worse)} of {len(against)} comparisons.",
            "",
            rst.list_table(header, summary(compared)),
            "Means over splits, and the difference of `Multicalibrator` (scikit-learn) from MCGrad with a 95 % "
            "interval and the adjusted p-value; negative differences favour `Multicalibrator`. All comparisons are in "
            "``docs/studies/multicalibration.csv``.",
            "",
            rst.list_table(
                ["data set", "model", "criterion", *METHODS, "difference from MCGrad"], cells(compared, values)
            ),
        ]
    )


def run(tasks: Iterable[tuple[str, str, int]], path: Path, most_rows: int = MOST_ROWS) -> pd.DataFrame:
    """Return the values of all tasks; those in the file are not computed again."""
    tasks = list(tasks)
    done = {tuple(row[:3]) for row in pd.read_csv(path).itertuples(index=False)} if path.exists() else set()
    path.parent.mkdir(parents=True, exist_ok=True)
    names = ["set", "model", "split", "calibrate", "test"] + [f"{m} | {c}" for m in METHODS for c in CRITERIA]
    work = partial(split, most_rows=most_rows)
    for found in spread_over_cores(work, [task for task in tasks if task not in done], "splits"):
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


def write(values: pd.DataFrame, folder: Path, most_rows: int = MOST_ROWS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    form: dict[str, Any] = {"index": False, "lineterminator": "\n", "float_format": "%.6g"}
    comparisons(values).to_csv(folder / "multicalibration.csv", **form)
    (folder / "multicalibration.rst").write_text(page(values, most_rows), encoding="utf-8")


def main(arguments: list[str]) -> None:
    values, quick = WORK / "multicalibration.csv", WORK / "multicalibration_quick.csv"
    if arguments == ["--smoke"]:
        smoke = WORK / "smoke"
        (smoke / "multicalibration_values.csv").unlink(missing_ok=True)
        tasks = [("breast cancer", kind, seed) for kind in MODELS for seed in range(2)]
        write(run(tasks, smoke / "multicalibration_values.csv"), smoke)
    elif arguments == ["--quick"] or (arguments == ["--page"] and not values.exists() and quick.exists()):
        tasks = [(name, "logistic regression", FIRST + i) for i in range(QUICK_SPLITS) for name in QUICK]
        write(run(tasks, quick, QUICK_ROWS), RESULTS, QUICK_ROWS)
    elif arguments == ["--page"] and not values.exists():
        (RESULTS / "multicalibration.rst").write_text(page(None), encoding="utf-8")
    else:
        tasks = [(name, kind, FIRST + i) for i in range(SPLITS) for name in DATA_SETS for kind in MODELS]
        write(run([] if arguments == ["--page"] else tasks, values), RESULTS)


if __name__ == "__main__":
    main(sys.argv[1:])
