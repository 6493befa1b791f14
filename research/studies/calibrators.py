"""Compare the calibrators, and methods of the related work, on eight real data sets.

Run by ``make study NAME=calibrators``. The splits were fixed in advance: rows are shuffled once with seed 0; the first
half trains the model, the next quarter the calibrator, and the last quarter is evaluated.
"""

import csv
import sys
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import SeedSequence
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cb
from calibrant.inference.paired import bootstrap_difference, paired_replicates
from calibrant.inference.paired_rows import PairedRows
from research.reproduction.sources import DATA
from research.studies.related_calibrators import RELATED

RESULTS = Path(__file__).parents[2] / "docs" / "studies"
N_RESAMPLES = 499
METRICS = {"TCE": cb.TCE(), "ECE": cb.ECE(), "Brier": cb.METRICS["brier"](), "log loss": cb.METRICS["log_loss"]()}

OFFERED = {
    "BinningAverage": cb.calibrators.BinningAverage(),
    "Isotonic": cb.Isotonic(),
    "Isotonic(strict=True)": cb.Isotonic(strict=True),
    "Isotonic(extremes=True)": cb.Isotonic(extremes=True),
    "Platt": cb.Platt(),
    "Temperature": cb.calibrators.Temperature(),
    "Beta": cb.Beta(),
    "VennAbers": cb.calibrators.VennAbers(),
}
CANDIDATES = {"VennAbers", *RELATED}  # methods of related work, for comparison
MODELS = {
    "naive Bayes": GaussianNB,
    "random forest": lambda: RandomForestClassifier(200, random_state=0),
    "boosted trees": lambda: HistGradientBoostingClassifier(max_iter=300, random_state=0),
    "neural network": lambda: make_pipeline(StandardScaler(), MLPClassifier((64,), max_iter=300, random_state=0)),
}
COST_AWARE = {
    "credit default": "credit_default",
    "bank": "bank_full",
    "churn": "churn",
    "heart rates": "cardiotocography",
}
ZENODO = {"mammography": 25, "coil 2000": 15, "satimage": 3}
FEW_EVENTS = 250
NOTE_ON_THE_PAGE = (
    "``make study NAME=calibrators`` writes this page. Rows were shuffled once with seed 0: half trains the model, a "
    "quarter the calibrator, and a quarter evaluates the result, with 95 % intervals. ⁺ marks a significant difference "
    "from the uncalibrated model by a paired bootstrap of rows (p at most 0.05, not adjusted for the number of tests). "
    "The values are in ``docs/studies/calibrators.csv``.",
)
LEAKS = ("CLASS", "NSP")  # of cardiotocography: they encode the label


def data_sets() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield name, features and outcomes."""
    for name, file in COST_AWARE.items():
        frame = pd.read_csv(DATA / "cost_aware" / f"{file}.csv.gz").drop(columns=list(LEAKS), errors="ignore")
        y = frame.pop("label").to_numpy()
        yield name, pd.get_dummies(frame, drop_first=True).to_numpy(dtype=float), y
    spam = np.loadtxt(DATA / "spambase.data", delimiter=",")
    yield "spam", spam[:, :-1], spam[:, -1].astype(int)
    for name, number in ZENODO.items():
        with np.load(DATA / "zenodo" / f"x{number}data.npz") as rows:
            yield name, np.ascontiguousarray(rows["data"]), (rows["label"] == 1).astype(int)


def study(case: tuple[str, np.ndarray, np.ndarray, str]) -> list[dict[str, Any]]:
    """Return the results of each calibrator of one model on one data set."""
    name, X, y, kind = case
    order = np.random.default_rng(0).permutation(len(y))
    train, calibrate, test = np.split(order, [len(y) // 2, len(y) * 3 // 4])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MODELS[kind]().fit(X[train], y[train])
        p, new = (model.predict_proba(X[rows])[:, 1] for rows in (calibrate, test))
        predicted = {"uncalibrated": new}
        predicted |= {label: cal.fit(p, y[calibrate])(new) for label, cal in OFFERED.items()}
        predicted |= {label: fit(p, y[calibrate])(new) for label, fit in RELATED.items()}
    return [
        {"set": name, "model": kind, "rows": len(calibrate), "events": int(y[calibrate].sum()), "tested": len(test)}
        | {"calibrator": label, **row}
        for label, row in evaluated(y[test], predicted).items()
    ]


def evaluated(y: np.ndarray, predicted: dict[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """Return values with intervals and differences from the uncalibrated model, for each column of predictions."""
    labels = list(predicted)
    paired, tables = PairedRows.read(y, [np.clip(q, 0, 1) for q in predicted.values()])
    sampled = paired_replicates(
        paired, list(METRICS.values()), n_resamples=N_RESAMPLES, seed=SeedSequence(0), threads=False
    )
    found: dict[str, dict[str, Any]] = {label: {} for label in labels}
    for j, (metric, measure) in enumerate(METRICS.items()):
        values = [measure.value(table) for table in tables]
        with np.errstate(invalid="ignore"):  # the difference of two infinite log losses
            found_p = [
                _pvalue(value - values[0], sampled[:, i, j] - sampled[:, 0, j]) for i, value in enumerate(values)
            ]
        for i, label in enumerate(labels):
            row: dict[str, Any] = {metric: values[i], f"{metric} low": np.nan, f"{metric} high": np.nan}
            if np.isfinite(values[i]):
                spread = cb.interval(measure, tables[i], n_resamples=N_RESAMPLES, random_state=0, progress=False)
                row |= {f"{metric} low": spread.low, f"{metric} high": spread.high}
            found[label] |= row | {f"{metric} p": found_p[i]}
        # A method of related work is better if it beats the best of the others significantly.
        best = min((i for i, label in enumerate(labels) if label not in CANDIDATES), key=lambda i: values[i])
        for i in (i for i, label in enumerate(labels) if label in CANDIDATES):
            gain = values[i] - values[best]
            p = _pvalue(gain, sampled[:, i, j] - sampled[:, best, j])
            found[labels[i]][f"{metric} wins"] = bool(gain < 0 and p <= 0.05)
    return found


def _pvalue(value: float, sampled: np.ndarray) -> float:
    known = np.isfinite(value) and np.isfinite(sampled).all()
    return bootstrap_difference(value, sampled, 0.95)[2] if known else np.nan


def main(only: Iterable[str]) -> None:
    names = set(only)
    if names == {"--pages"}:  # write the tables from the results of the last run
        kept = pd.read_csv(RESULTS / "calibrators.csv").to_dict("records")
        write_summary(kept)
        write_page(kept)
        return
    cases = [(name, X, y, kind) for name, X, y in data_sets() for kind in MODELS if not names or name in names]
    rows = []
    with ProcessPoolExecutor() as pool:
        for case, found in zip(cases, pool.map(study, cases), strict=True):
            rows += found
            print(f"{case[0]}, {case[3]}")
    write_rows(rows)
    write_summary(rows)
    write_page(rows)


def write_rows(rows: list[dict[str, Any]]) -> None:
    """Write all values."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with (RESULTS / "calibrators.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({c: f"{v:.6g}" if isinstance(v, float) else v for c, v in row.items()} for row in rows)


def write_summary(rows: list[dict[str, Any]]) -> None:
    """Write mean ranks, and how often a calibrator improved or worsened a metric significantly."""
    frame = pd.DataFrame(rows)
    cells, few = frame.groupby(["set", "model"]), frame["events"] < FEW_EVENTS
    ranks = pd.DataFrame({f"rank: {metric}": cells[metric].rank() for metric in METRICS})
    ranks[f"log loss, under {FEW_EVENTS} events"] = ranks["rank: log loss"].where(few)
    summary = ranks.groupby(frame["calibrator"]).mean().round(1)
    before = frame[frame["calibrator"] == "uncalibrated"].set_index(["set", "model"])
    joined = frame.join(before[list(METRICS)].add_suffix(" before"), on=["set", "model"])
    for metric in ("Brier", "log loss"):
        # A change between finite and infinite log loss needs no test.
        infinite = np.isinf(joined[metric]) != np.isinf(joined[f"{metric} before"])
        sure, gain = (joined[f"{metric} p"] <= 0.05) | infinite, joined[metric] < joined[f"{metric} before"]
        counts = [which.groupby(joined["calibrator"]).sum().astype(str) for which in (sure & gain, sure & ~gain)]
        summary[f"{metric}: helped, harmed"] = counts[0] + ", " + counts[1]
    summary.sort_values("rank: log loss").to_csv(RESULTS / "calibrators_summary.csv", lineterminator="\n")


def write_page(rows: list[dict[str, Any]]) -> None:
    """Write a table per data set: each calibrator of each model, before and after, with intervals."""
    title = "Calibrators on eight real data sets"
    lines = [title, "=" * len(title), "", *NOTE_ON_THE_PAGE, ""]
    for name, of_set in groupby(rows, key=lambda row: row["set"]):
        own = list(of_set)
        first = own[0]
        lines += [name[0].upper() + name[1:], "-" * len(name), ""]
        lines += [f"{first['rows']:,} rows ({first['events']:,} events) calibrated, {first['tested']:,} measured.", ""]
        lines += [".. list-table::", "   :header-rows: 1", ""]
        lines += _cells(["model", "calibrator", "TCE, %", "ECE", "Brier", "log loss"])
        for row in own:
            shown = row["model"] if row["calibrator"] == "uncalibrated" else ""
            lines += _cells([shown, row["calibrator"], *(_shown(row, metric) for metric in METRICS)])
        lines.append("")
    (RESULTS / "calibrators.rst").write_text("\n".join(lines))


def _cells(cells: list[str]) -> list[str]:
    return [f"   {'* -' if i == 0 else '  -'} {cell}".rstrip() for i, cell in enumerate(cells)]


def _shown(row: dict[str, Any], metric: str) -> str:
    if not np.isfinite(row[metric]):
        return "infinite"
    decimals = 1 if metric == "TCE" else 4
    value, low, high = (f"{row[name]:.{decimals}f}" for name in (metric, f"{metric} low", f"{metric} high"))
    p = row[f"{metric} p"]
    sure = "" if not p <= 0.05 else "⁺"
    return f"{value}{sure} ({low} to {high})"


if __name__ == "__main__":
    main(sys.argv[1:])
