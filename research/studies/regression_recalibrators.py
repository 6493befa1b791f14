"""Compare the recalibrators of point predictions and predictive distributions on real data.

California housing, abalone and diabetes, 50 random splits each (seeds 0 to 49): half of the rows train a model, a
quarter the recalibrators, and a quarter is evaluated. ``make study NAME=regression`` writes
docs/studies/regression.rst and two CSV files.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from calibrant import regression as rg
from research.reproduction.sources import DATA
from research.studies.designs import RESULTS, spread_over_cores, write

SPLITS = 50
MOST_ROWS = 6_000  # of california_housing, sampled for each split
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])

POINT: dict[str, Callable[[], Any]] = {
    "LinearRecalibrator()": lambda: rg.LinearRecalibrator(cv=None),
    "LinearRecalibrator(against='outcome')": lambda: rg.LinearRecalibrator(against="outcome", cv=None),
    "IsotonicRecalibrator()": lambda: rg.IsotonicRecalibrator(cv=None),
    "LocalRecalibrator()": lambda: rg.LocalRecalibrator(cv=None),
}
DISTRIBUTION: dict[str, Callable[[], Any]] = {
    "VarianceScaling()": rg.VarianceScaling,
    "VarianceScaling(level=None)": lambda: rg.VarianceScaling(level=None),
    "PITRecalibrator()": rg.PITRecalibrator,
    "QuantileRecalibrator()": rg.QuantileRecalibrator,
    "ParetoRecalibrator()": rg.ParetoRecalibrator,
}


def data_sets() -> dict[str, tuple[pd.DataFrame, np.ndarray]]:
    """Return features and targets by name."""
    found = {}
    for name, target in (("california_housing", "median_house_value"), ("abalone", "rings")):
        frame = pd.read_csv(DATA / "regression" / f"{name}.csv.gz")
        found[name] = (frame.drop(columns=target), frame[target].to_numpy(dtype=float))
    diabetes = load_diabetes(as_frame=True)
    found["diabetes"] = (diabetes.data, diabetes.target.to_numpy(dtype=float))
    return found


def columns(X: pd.DataFrame) -> Any:
    """Return a transformer that imputes numbers and encodes categories."""
    text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    numbers = [name for name in X if name not in text]
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((SimpleImputer(strategy="median"), numbers), (encode, text))


def forecasts(X: pd.DataFrame, y: np.ndarray, seed: int, *parts: pd.DataFrame) -> Iterator[tuple[str, list[Any]]]:
    """Yield each model with its forecasts of the parts."""
    linear = make_pipeline(columns(X), LinearRegression()).fit(X, y)
    spread = float(np.sqrt(np.sum((y - linear.predict(X)) ** 2) / (len(y) - X.shape[1] - 1)))
    yield "linear model", [rg.Gaussian(linear.predict(part), spread) for part in parts]
    forest = make_pipeline(columns(X), RandomForestRegressor(100, min_samples_leaf=3, random_state=seed)).fit(X, y)
    yield "random forest", [_tree_forecast(forest, part) for part in parts]
    boosted = []
    for level in LEVELS:
        model = HistGradientBoostingRegressor(loss="quantile", quantile=level, max_iter=100, random_state=seed)
        boosted.append(make_pipeline(columns(X), model).fit(X, y))
    yield (
        "quantile boosting",
        [rg.Quantiles(LEVELS, np.sort(np.column_stack([m.predict(part) for m in boosted]), axis=1)) for part in parts],
    )


def _tree_forecast(forest: Any, X: pd.DataFrame) -> rg.Gaussian:
    """Return mean and standard deviation over trees, a common measure of the uncertainty of a forest."""
    encoded = forest[:-1].transform(X)
    predicted = np.array([tree.predict(encoded) for tree in forest[-1].estimators_])
    return rg.Gaussian(predicted.mean(axis=0), np.maximum(predicted.std(axis=0), 1e-6))


def split(task: tuple[str, int]) -> list[dict[str, Any]]:
    """Return all metrics of one split."""
    name, seed = task
    X, y = data_sets()[name]
    order = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
    half, three = len(order) // 2, 3 * len(order) // 4
    train, recalibrate, test = order[:half], order[half:three], order[three:]
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model, (known, new) in forecasts(X.iloc[train], y[train], seed, X.iloc[recalibrate], X.iloc[test]):
            common = {"data": name, "model": model, "split": seed}
            points = known.point(), new.point()
            for method, predicted in recalibrated_points(points[0], y[recalibrate], points[1]):
                rows.append({**common, "kind": "point", "method": method, **point_metrics(y[test], predicted)})
            for method, predicted in recalibrated_forecasts(known, y[recalibrate], new):
                found = distribution_metrics(y[test], predicted)
                rows.append({**common, "kind": "distribution", "method": method, **found})
    return rows


def recalibrated_points(known: np.ndarray, y: np.ndarray, new: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    yield "none", new
    for method, make in POINT.items():
        yield method, make().fit(known, y).predict(new)


def recalibrated_forecasts(known: Any, y: np.ndarray, new: Any) -> Iterator[tuple[str, Any]]:
    yield "none", new
    for method, make in DISTRIBUTION.items():
        if isinstance(known, rg.Quantiles) and method in ("PITRecalibrator()", "ParetoRecalibrator()"):
            continue
        yield method, make().fit(known, y)(new)


def point_metrics(y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    table = rg.MeanTable.from_arrays(y, predicted)
    bins = rg.bias_by_bin(table)
    turned = rg.bias_by_bin(rg.MeanTable.from_arrays(predicted, y))
    return {
        "relative_mse": rg.relative_mse(table),
        "mean_error": rg.mean_error(table) / y.std(),
        "bias_by_prediction": bins.mean_absolute / y.std(),
        "bias_by_outcome": turned.mean_absolute / y.std(),
        "biased_share": bins.biased_share,
    }


def distribution_metrics(y: np.ndarray, predicted: Any) -> dict[str, float]:
    covered = rg.coverage(y, predicted, levels=[0.5, 0.9])
    u = rg.pit(y, predicted)
    density = not isinstance(predicted, rg.Quantiles)
    return {
        "coverage_50": 100 * covered.per_level["observed"][0],
        "coverage_90": 100 * covered.per_level["observed"][1],
        "width_90": covered.per_level["width"][1] / y.std(),
        "crps": rg.crps(y, predicted) / y.std(),
        "nll": rg.nll(y, predicted) if density else np.nan,
        "a_squared": rg.anderson_darling(u).statistic,
    }


SHOWN = {
    "point": {
        "relative_mse": ("relative MSE", "{:.4f}"),
        "mean_error": ("mean error / sd", "{:+.4f}"),
        "bias_by_prediction": ("bias by prediction / sd", "{:.4f}"),
        "bias_by_outcome": ("bias by outcome / sd", "{:.4f}"),
        "biased_share": ("rows in biased bins, %", "{:.1f}"),
    },
    "distribution": {
        "coverage_90": ("90 % intervals cover, %", "{:.2f}"),
        "coverage_50": ("50 % intervals cover, %", "{:.2f}"),
        "width_90": ("width of 90 % / sd", "{:.3f}"),
        "crps": ("CRPS / sd", "{:.4f}"),
        "nll": ("NLL", "{:.3f}"),
        "a_squared": ("A²", "{:.1f}"),
    },
}


def averages(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return means over splits."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] == kind:
            groups.setdefault((row["data"], row["model"], row["method"]), []).append(row)
    found = []
    for (data, model, method), some in groups.items():
        line = {"data": data, "model": model, "method": method, "splits": len(some)}
        found.append({**line, **{m: float(np.mean([row[m] for row in some])) for m in SHOWN[kind]}})
    return found


def write_page(kinds: dict[str, list[dict[str, Any]]]) -> None:
    """Write the tables of the documentation."""
    titles = {"point": "Point predictions", "distribution": "Predictive distributions"}
    lines = [
        "Recalibrators for regression on real data",
        "=========================================",
        "",
        "Written by ``make study NAME=regression``: means over 50 random splits. Half of the rows train the model, a "
        "quarter the recalibrators, and the last quarter is evaluated (of California housing, "
        f"{MOST_ROWS:,} rows are sampled for each split). sd is the standard deviation of the outcomes. The "
        "conclusions are in :doc:`../regression`; the values are in ``docs/studies/regression_point.csv`` and "
        "``docs/studies/regression_distribution.csv``.",
        "",
    ]
    for kind, rows in kinds.items():
        lines += [titles[kind], "-" * len(titles[kind]), ""]
        for data, own in groupby(rows, lambda row: row["data"]):
            lines += [
                data.replace("_", " ").capitalize(),
                "^" * len(data),
                "",
                ".. list-table::",
                "   :header-rows: 1",
                "",
            ]
            lines += _cells(["model", "recalibrator", *(name for name, _ in SHOWN[kind].values())])
            last = None
            for row in own:
                shown = [f.format(row[m]) if row[m] == row[m] else "" for m, (_, f) in SHOWN[kind].items()]
                lines += _cells(["" if row["model"] == last else row["model"], row["method"], *shown])
                last = row["model"]
            lines.append("")
    (RESULTS / "regression.rst").write_text("\n".join(lines))


def _cells(cells: list[str]) -> list[str]:
    return [f"   {'* -' if i == 0 else '  -'} {cell}".rstrip() for i, cell in enumerate(cells)]


def main(splits: int) -> None:
    tasks = [(name, seed) for seed in range(splits) for name in data_sets()]
    rows = [row for done in spread_over_cores(split, tasks, "splits") for row in done]
    rows.sort(key=lambda row: list(data_sets()).index(row["data"]))
    kinds = {kind: averages(rows, kind) for kind in SHOWN}
    for kind, found in kinds.items():
        rows = [{k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in found]
        write(f"regression_{kind}", rows)
    write_page(kinds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SPLITS)
