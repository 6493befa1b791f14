"""The worked example of docs/costs.rst, on 30,000 credit card clients. Run by ``make study NAME=credit``."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeRegressor

import calibrant as cb
from calibrant import plots
from research.reproduction.costs.data import features

DOCS = Path(__file__).parents[2] / "docs"
COST = cb.costs.LinearCost(over=1, under=5)


def main() -> None:
    X, y = features("Default")
    order = np.random.default_rng(0).permutation(len(y))
    train, tune, test = np.split(order, [len(y) // 2, len(y) * 7 // 10])
    forest = RandomForestClassifier(50, random_state=0).fit(X[train], y[train])
    tuning, scores = (forest.predict_proba(X[rows])[:, 1] for rows in (tune, test))
    learner = DecisionTreeRegressor(min_samples_leaf=20, random_state=0)
    meta = cb.calibrators.MetaCal(forest, learner, COST, n_bootstrap=50, out_of_bag=True, random_state=0, n_jobs=-1)
    predictions = {
        "uncalibrated": scores,
        "Isotonic": cb.Isotonic(strict=True).fit(tuning, y[tune])(scores),
        "CATS": cb.calibrators.CATS(COST).fit(tuning, y[tune])(scores),
        "CAPS": cb.calibrators.CAPS(COST).fit(tuning, y[tune])(scores),
        "MetaCal": meta.fit(X[train], y[train]).predict_proba(X[test])[:, 1],
    }
    comparison = cb.compare(
        y[test],
        predictions,
        baseline="uncalibrated",
        metrics={"ECC": cb.metrics.ECC(cost=COST), "bias": cb.METRICS["bias"](), "Brier": cb.METRICS["brier"]()},
        n_resamples=499,
        progress=False,
    )
    chosen = cb.decisions(y[test], predictions, false_positive=1, false_negative=5, progress=False)
    for name, result in (("costs_comparison", comparison), ("costs_decisions", chosen)):
        (DOCS / "studies" / f"{name}.txt").write_text(f"{result}\n")
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    plots.save(
        plots.CostDisplay.from_predictions(y[test], predictions, fig=figure), DOCS / "images" / "credit_costs.svg"
    )


if __name__ == "__main__":
    main()
