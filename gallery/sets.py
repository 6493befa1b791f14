"""Real predictions: the networks and models of the TCE paper's Figures 1 to 7, and FiveThirtyEight's forecasts."""

import csv
import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("CALIBRANT_DATA") or ROOT.parent / "shared" / "data")
CACHE = ROOT / "build" / "gallery" / "predictions"

NETWORKS = ("alexnet", "vgg19", "resnet18", "resnet152")
UCI = {"abalone": 5, "coil_2000": 15, "isolet": 9, "webpage": 23, "satimage": 3}
FORECASTS = ("538_mlb_games", "538_nhl_games", "538_wnba_games")

Columns = tuple[np.ndarray, np.ndarray]


def imagenet() -> dict[str, Columns]:
    """Figure 7: is there a dog in the picture?"""
    with np.load(DATA / "imagenet_dogs.npz") as scores:
        return {name: (scores["labels"], scores[name]) for name in NETWORKS}


def figure_models() -> Iterator[tuple[str, str]]:
    """Set and model of Figures 1 to 6."""
    for name in ("abalone", "coil_2000", "isolet", "webpage"):
        yield name, "logistic"
        yield name, "boosting"
    yield "satimage", "forest"
    yield "coil_2000", "forest"


def uci(name: str, model: str) -> Columns:
    """Outcomes and predictions of the test rows, 30 % of all; kept on disk, because fitting takes minutes."""
    path = CACHE / f"{name}-{model}.npz"
    if not path.exists():
        with np.load(DATA / "zenodo" / f"x{UCI[name]}data.npz") as rows:
            x, y = np.ascontiguousarray(rows["data"]), rows["label"] == 1
        x = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
        seen, unseen, y_seen, y_unseen = train_test_split(x, y, test_size=0.3, random_state=0)
        p = _MODELS[model]().fit(seen, y_seen).predict_proba(unseen)[:, 1]
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, y=y_unseen, p=p)
    with np.load(path) as kept:
        return kept["y"], kept["p"]


_MODELS = {
    "logistic": lambda: LogisticRegression(max_iter=10_000, random_state=0),
    "boosting": lambda: GradientBoostingClassifier(random_state=0),
    "forest": lambda: RandomForestClassifier(max_depth=10, random_state=0),
}


def forecast(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcome, forecast and season of every game that was decided."""
    with gzip.open(DATA / "forecasts" / f"{name}.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if float(row["prob1_outcome"]) in (0.0, 1.0)]
    columns = ("prob1_outcome", "prob1", "season")
    outcome, p, season = (np.array([float(row[c]) for row in rows]) for c in columns)
    return outcome, p, season.astype(int)
