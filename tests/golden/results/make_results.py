"""Results of each kind of forecast on small samples, frozen as KIND.json beside this file.

``python tests/golden/results/make_results.py binary point`` writes binary.json and point.json.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy import stats

import calibrant as cb

HERE = Path(__file__).parent
N = 400
RESAMPLING = {"n_resamples": 39}
LEFT_OUT = ("spec", "schema_version")  # of parts of results: the settings of the whole have the metrics' once more
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])

rng = np.random.default_rng(7)
GROUPS = np.array(["a", "b"])[rng.integers(0, 2, N)]
CLUSTERS = rng.integers(0, 30, N)
WEIGHTS = rng.integers(1, 4, N) * 0.7
FEATURES = np.column_stack([rng.integers(0, 3, N), rng.normal(size=N)])
P = rng.beta(2, 3, N)
EVENT = (rng.random(N) < np.where(FEATURES[:, 0] == 2, np.minimum(1.7 * P, 1), P)).astype(int)
PROBA = rng.dirichlet([1.5] * 3, N)
SHARP = PROBA**1.5 / (PROBA**1.5).sum(axis=1, keepdims=True)
CLASS = (PROBA.cumsum(axis=1) > rng.random((N, 1)) ** 1.3).argmax(axis=1)
ACTUAL = np.array(list("xyz"))[CLASS]
PREDICTED = np.where(rng.random(N) < 0.7, ACTUAL, "x")
MEAN, SPREAD = rng.normal(5, 2, N), np.exp(rng.normal(0, 0.3, N))
NUMBER = MEAN + SPREAD * rng.normal(size=N) + 0.5 * (FEATURES[:, 0] == 1)


def quantiles():
    return cb.Quantiles(LEVELS, MEAN[:, None] + SPREAD[:, None] * stats.norm.ppf(LEVELS))


CASES = {
    "binary": {
        "plain": lambda: cb.evaluate(EVENT, P, costs=cb.costs.LinearCost(1, 5), **RESAMPLING),
        "groups": lambda: cb.evaluate(EVENT, P, by=GROUPS, metrics=["ece", "brier"], **RESAMPLING),
        "clusters": lambda: cb.evaluate(EVENT, P, cluster=CLUSTERS, metrics=["ace", "ecc"], **RESAMPLING),
        "weights": lambda: cb.evaluate(EVENT, P, sample_weight=WEIGHTS, metrics=["tce", "auc"], **RESAMPLING),
        "compare": lambda: cb.compare(EVENT, {"one": P, "two": P**1.2}, metrics=["ece"], **RESAMPLING),
        "audit": lambda: cb.audit(EVENT, P, FEATURES, n_resamples=39),
    },
    "multiclass": {
        "plain": lambda: cb.evaluate(CLASS, PROBA, **RESAMPLING),
        "groups": lambda: cb.evaluate(CLASS, PROBA, by=GROUPS, metrics=["ece"], **RESAMPLING),
        "clusters": lambda: cb.evaluate(CLASS, PROBA, cluster=CLUSTERS, metrics=["tce"], **RESAMPLING),
        "compare": lambda: cb.compare(CLASS, {"one": PROBA, "two": SHARP}, metrics=["ece"], **RESAMPLING),
        "audit": lambda: cb.audit(CLASS, PROBA, FEATURES, n_resamples=39),
    },
    "labels": {
        "plain": lambda: cb.evaluate(ACTUAL, cb.Labels(PREDICTED)),
        "groups": lambda: cb.evaluate(ACTUAL, cb.Labels(PREDICTED), by=GROUPS),
        "clusters": lambda: cb.evaluate(ACTUAL, cb.Labels(PREDICTED), cluster=CLUSTERS),
        "compare": lambda: cb.compare(ACTUAL, {"one": cb.Labels(PREDICTED), "two": cb.Labels(ACTUAL[::-1])}),
    },
    "ordinal": {
        "plain": lambda: cb.evaluate(CLASS, cb.Ordinal(PROBA), **RESAMPLING),
        "groups": lambda: cb.evaluate(CLASS, cb.Ordinal(PROBA), by=GROUPS, metrics=["rps"], **RESAMPLING),
        "clusters": lambda: cb.evaluate(CLASS, cb.Ordinal(PROBA), cluster=CLUSTERS, metrics=["rps"], **RESAMPLING),
        "weights": lambda: cb.evaluate(CLASS, cb.Ordinal(SHARP), sample_weight=WEIGHTS, metrics=["ece"], **RESAMPLING),
        "compare": lambda: cb.compare(CLASS, {"one": cb.Ordinal(PROBA), "two": cb.Ordinal(SHARP)}, **RESAMPLING),
        "audit": lambda: cb.audit(CLASS, cb.Ordinal(PROBA), FEATURES, n_resamples=39),
    },
    "point": {
        "plain": lambda: cb.evaluate(NUMBER, cb.Point(MEAN), **RESAMPLING),
        "groups": lambda: cb.evaluate(NUMBER, cb.Point(MEAN), by=GROUPS, metrics=["ratio"], **RESAMPLING),
        "clusters": lambda: cb.evaluate(NUMBER, cb.Point(MEAN), cluster=CLUSTERS, metrics=["mse"], **RESAMPLING),
        "weights": lambda: cb.evaluate(NUMBER, cb.Point(MEAN), sample_weight=WEIGHTS, metrics=["mae"], **RESAMPLING),
        "compare": lambda: cb.compare(NUMBER, {"one": cb.Point(MEAN), "two": cb.Point(MEAN + 0.1)}, **RESAMPLING),
        "audit": lambda: cb.audit(NUMBER, cb.Point(MEAN), FEATURES, n_resamples=39),
    },
    "distribution": {
        "plain": lambda: cb.evaluate(NUMBER, cb.Gaussian(MEAN, SPREAD), **RESAMPLING),
        "groups": lambda: cb.evaluate(NUMBER, cb.Gaussian(MEAN, SPREAD), by=GROUPS, metrics=["crps"], **RESAMPLING),
        "clusters": lambda: cb.evaluate(NUMBER, quantiles(), cluster=CLUSTERS, metrics=["crps"], **RESAMPLING),
        "compare": lambda: cb.compare(
            NUMBER, {"one": cb.Gaussian(MEAN, SPREAD), "two": cb.Gaussian(MEAN + 0.2, 1.3 * SPREAD)}, **RESAMPLING
        ),
    },
}


def plain(value, left_out=LEFT_OUT):
    """Return a value of a result as JSON holds it; of groups and models without the tables of bins."""
    if isinstance(value, dict):
        within = {key: (*left_out, "breakdowns") if key in ("groups", "models") else left_out for key in value}
        return {str(key): plain(value[key], within[key]) for key in value if key not in left_out}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each, left_out) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def results(kind):
    """Return the results of the cases of a kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: plain(make().to_dict()) for name, make in CASES[kind].items()}


if __name__ == "__main__":
    for kind in sys.argv[1:]:
        lines = (
            f"{json.dumps(name)}: {json.dumps(result, separators=(',', ':'))}" for name, result in results(kind).items()
        )
        (HERE / f"{kind}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
