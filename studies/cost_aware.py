"""The experiment of Yang & Bi (2025), Tables 1 and 2, on their five data sets: who lowers the expected cost?

Run by ``make study-costs``. Fixed beforehand: predicting too low costs five times too high; 10 bins, closed on the
right; 20 splits, 70 % to train and 30 % to measure; scaling and isotonic regression are tuned on two sevenths of the
training rows by a model of the rest, and applied to the model of all training rows, as in the paper. Trees are pruned
by the cross-validated Brier score of training rows; forests have 20 trees. MetaCal has 100 bootstrap models, 25 on the
two large sets (the paper finds no difference between 50 and 200), and learns with a tree of 20 rows a leaf or more.
"""

import csv
import sys
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import calibrant as cb
from calibrant._progress import progress
from reproduce.sources import DATA

RESULTS = Path(__file__).parent.parent / "docs" / "studies"
SETS = {
    "Cancer": "breast_cancer_wisconsin",
    "CTG": "cardiotocography",
    "Churn": "churn",
    "Default": "credit_default",
    "Bank": "bank_full",
}
LEAKS = ("CLASS", "NSP")  # of cardiotocography: they are the label in other words
SEEDS = 20
COST, EQUAL = cb.LinearCost(over=1, under=5), cb.LinearCost(over=1, under=1)
BINS = cb.EqualWidth(10, closed="right")
ECC = cb.ECC(cost=COST, bins=BINS)
PRUNING = {"ccp_alpha": np.geomspace(1e-5, 1e-2, 7)}
MODELS = ("tree", "forest")
METHODS = (
    "NoCal",
    "IR",
    "TS",
    "PS",
    "CATS",
    "CAPS",
    "CATS, continuous",
    "CAPS, continuous",
    "Isotonic, strict",
    "MetaCal",
)
# Means of the paper's Tables 1 and 2.
PUBLISHED = {
    ("tree", "Cancer"): (0.0822, 0.1561, 0.1033, 0.0967, 0.1015, 0.1035, 0.0577),
    ("tree", "CTG"): (0.0841, 0.2801, 0.0626, 0.0574, 0.0667, 0.0646, 0.0670),
    ("tree", "Churn"): (0.0472, 0.0992, 0.0421, 0.0431, 0.0366, 0.0397, 0.0369),
    ("tree", "Default"): (0.0102, 0.4495, 0.0134, 0.0207, 0.0115, 0.0156, 0.0071),
    ("tree", "Bank"): (0.0046, 0.1674, 0.0064, 0.0115, 0.0061, 0.0082, 0.0034),
    ("forest", "Cancer"): (0.1281, 0.0963, 0.1120, 0.0786, 0.1029, 0.0697, 0.0601),
    ("forest", "CTG"): (0.1158, 0.0715, 0.0960, 0.0681, 0.0949, 0.0496, 0.0539),
    ("forest", "Churn"): (0.1069, 0.0616, 0.1029, 0.0700, 0.1016, 0.0473, 0.0574),
    ("forest", "Default"): (0.0601, 0.2686, 0.0694, 0.0804, 0.0529, 0.0548, 0.1250),
    ("forest", "Bank"): (0.1238, 0.3168, 0.0486, 0.0590, 0.0294, 0.0340, 0.0328),
}
IN_PAPER = ("NoCal", "IR", "TS", "PS", "CATS", "CAPS", "MetaCal")


def features(name: str) -> tuple[np.ndarray, np.ndarray]:
    frame = pd.read_csv(DATA / "cost_aware" / f"{SETS[name]}.csv.gz").drop(columns=list(LEAKS), errors="ignore")
    y = frame.pop("label").to_numpy()
    return pd.get_dummies(frame, drop_first=True).to_numpy(dtype=float), y


def classifier(model: str, X: np.ndarray, y: np.ndarray) -> Any:
    """An unfitted classifier with its settings, which look at training rows only."""
    if model == "forest":
        return RandomForestClassifier(20, random_state=0)
    search = GridSearchCV(DecisionTreeClassifier(random_state=0), PRUNING, scoring="neg_brier_score", cv=3)
    return DecisionTreeClassifier(random_state=0, **search.fit(X, y).best_params_)


def one_split(task: tuple[str, str, int, bool]) -> list[dict[str, Any]]:
    """ECC of every method on the measured part of one split; MetaCal, which takes nearly all of the time, if asked."""
    name, model, seed, with_meta = task
    X, y = features(name)
    order = np.random.default_rng(seed).permutation(len(y))
    fit_on, tune_on, measured = np.split(order, [len(y) // 2, len(y) * 7 // 10])
    train = np.concatenate([fit_on, tune_on])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base = classifier(model, X[train], y[train])
        rough = base.fit(X[fit_on], y[fit_on]).predict_proba(X[tune_on])[:, 1]
        p = base.fit(X[train], y[train]).predict_proba(X[measured])[:, 1]
        calibrators = {
            "IR": cb.Isotonic(extremes=True),
            "TS": cb.CATS(EQUAL, bins=BINS, grid="paper"),
            "PS": cb.CAPS(EQUAL, bins=BINS, grid="paper", random_state=seed),
            "CATS": cb.CATS(COST, bins=BINS, grid="paper"),
            "CAPS": cb.CAPS(COST, bins=BINS, grid="paper", random_state=seed),
            "CATS, continuous": cb.CATS(COST, bins=BINS),
            "CAPS, continuous": cb.CAPS(COST, bins=BINS),
            "Isotonic, strict": cb.Isotonic(strict=True),
        }
        said = {"NoCal": p} | {label: cal.fit(rough, y[tune_on])(p) for label, cal in calibrators.items()}
        rounds = 25 if len(y) > 20_000 else 100
        meta = cb.MetaCal(base, DecisionTreeRegressor(min_samples_leaf=20, random_state=0), COST, n_bootstrap=rounds)
        meta.set_params(random_state=seed, progress=False)
        if with_meta:
            said["MetaCal"] = meta.fit(X[train], y[train]).predict_proba(X[measured])[:, 1]
    tables = {label: cb.ScoreTable.from_arrays(y[measured], q) for label, q in said.items()}
    common = {"set": name, "model": model, "seed": seed}
    return [
        common | {"method": label, "ecc": ECC.value(table), "brier": cb.METRICS["brier"]().value(table)}
        for label, table in tables.items()
    ]


def main(only: Iterable[str]) -> None:
    names = [name for name in only if name in SETS] or list(SETS)
    if "--pages" not in sys.argv:
        with_meta = "--scaling" not in sys.argv  # which keeps what MetaCal last gave
        tasks = [(name, model, seed, with_meta) for seed in range(SEEDS) for model in MODELS for name in names]
        rows = []
        if not with_meta:
            kept = pd.read_csv(RESULTS / "cost_aware.csv")
            rows = kept[kept["method"] == "MetaCal"].to_dict("records")
        with ProcessPoolExecutor() as pool:
            for found in progress(pool.map(one_split, tasks), len(tasks), "splits", show=True):
                rows += found
                write(rows)
    write_page(pd.read_csv(RESULTS / "cost_aware.csv"))


def write(rows: list[dict[str, Any]]) -> None:
    with (RESULTS / "cost_aware.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)


def write_page(frame: pd.DataFrame) -> None:
    """Our means beside the paper's, and whether the sign of every change agrees."""
    title = "The experiment of Yang & Bi"
    lines = [title, "=" * len(title), "", *(__doc__ or "").split("\n\n", 1)[1].strip().splitlines(), ""]
    lines += [
        "Mean ECC over the splits, its difference from no calibration with the paired standard error, and the",
        "paper's mean. ↓ and ↑: lower and higher than no calibration by more than chance (paired t at 0.05,",
        "corrected for splits that share rows; the paper's own tests are not).",
        "",
        *_findings(frame),
        "",
    ]
    for (model, name), part in frame.groupby(["model", "set"], sort=False):
        lines += [f"{name}, {model}", "-" * len(f"{name}, {model}"), "", *_table(str(model), str(name), part), ""]
    (RESULTS / "cost_aware.rst").write_text("\n".join(lines))


def _findings(frame: pd.DataFrame) -> Iterator[str]:
    """How often the signs agree with the paper's, method by method."""
    for method in IN_PAPER[1:]:
        same = []
        for (model, name), part in frame.groupby(["model", "set"], sort=False):
            wide = part.pivot_table(index="seed", columns="method", values="ecc").mean()
            paper = dict(zip(IN_PAPER, PUBLISHED[str(model), str(name)], strict=True))
            same.append((wide[method] < wide["NoCal"]) == (paper[method] < paper["NoCal"]))
        yield f"- {method}: the sign of its change agrees with the paper's in {sum(same)} of {len(same)} cases."


def _table(model: str, name: str, part: pd.DataFrame) -> Iterator[str]:
    wide = part.pivot_table(index="seed", columns="method", values="ecc")
    brier = part.pivot_table(index="seed", columns="method", values="brier").mean()
    paper = dict(zip(IN_PAPER, PUBLISHED[model, name], strict=True))
    yield from [".. list-table::", "   :header-rows: 1", ""]
    yield from _cells(["method", "ECC", "less NoCal (standard error)", "", "the paper's ECC", "sign agrees", "Brier"])
    for method in METHODS:
        gap = wide[method] - wide["NoCal"]
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        # The splits share rows: their variance is that of Nadeau and Bengio (2003).
        shared = gap.std(ddof=1) * np.sqrt(1 / len(gap) + 3 / 7)
        sure = shared > 0 and 2 * t.sf(abs(gap.mean()) / shared, len(gap) - 1) <= 0.05
        arrow = "" if not sure else ("↓" if gap.mean() < 0 else "↑")
        change = "" if method == "NoCal" else f"{gap.mean():+.4f} ({error:.4f})"
        agrees = ""
        if method in paper and method != "NoCal":
            theirs = paper[method] - paper["NoCal"]
            agrees = "yes" if (gap.mean() < 0) == (theirs < 0) else ("**no**" if sure else "no, within chance")
        shown = f"{paper[method]:.4f}" if method in paper else ""
        yield from _cells([method, f"{wide[method].mean():.4f}", change, arrow, shown, agrees, f"{brier[method]:.4f}"])


def _cells(cells: list[str]) -> list[str]:
    return [f"   {'* -' if i == 0 else '  -'} {cell}".rstrip() for i, cell in enumerate(cells)]


if __name__ == "__main__":
    main(sys.argv[1:])
