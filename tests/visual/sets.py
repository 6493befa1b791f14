"""Real predictions: the models of Figures 1 to 7 of the TCE paper, and FiveThirtyEight's forecasts."""

import csv
import gzip
from collections.abc import Iterator
from typing import Any

import numpy as np

from research.reproduction.sources import DATA, imagenet, uci

FORECASTS = ("538_mlb_games", "538_nhl_games", "538_wnba_games")

Columns = tuple[np.ndarray, np.ndarray]


def networks() -> dict[str, Columns]:
    """Figure 7: the event is a dog in the picture."""
    return {name: imagenet(name) for name in ("AlexNet", "VGG19", "Res18", "Res152")}


def figure_models() -> Iterator[tuple[str, Columns]]:
    """Yield name, outcomes and predictions of the models of Figures 1 to 6."""
    for name in ("abalone", "coil_2000", "isolet", "webpage"):
        for algorithm in ("LR", "GB"):
            yield f"{name} {algorithm}", uci(name, algorithm)[:2]
    for name in ("satimage", "coil_2000"):
        yield f"{name} RF", uci(name, "RF")[:2]


def forecast(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return outcome, forecast and season of every decided game."""
    with gzip.open(DATA / "forecasts" / f"{name}.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if float(row["prob1_outcome"]) in (0.0, 1.0)]
    columns = ("prob1_outcome", "prob1", "season")
    outcome, p, season = (np.array([float(row[c]) for row in rows]) for c in columns)
    return outcome, p, season.astype(int)


def forest_forecasts() -> tuple[np.ndarray, Any, slice, slice]:
    """Return predictions of a forest with the spread of its trees, for fitting and for evaluation."""
    from sklearn.datasets import make_friedman1
    from sklearn.ensemble import RandomForestRegressor

    from calibrant.regression import Gaussian

    X, y = make_friedman1(3000, noise=1.0, random_state=0)
    forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0).fit(X[:1000], y[:1000])
    trees = np.array([tree.predict(X) for tree in forest.estimators_])
    return y, Gaussian(trees.mean(axis=0), trees.std(axis=0)), slice(1000, 2000), slice(2000, 3000)
