"""Fitted maps of every kind, and new rows for them: what each SQL engine must compute as Python does."""

import numpy as np

import calibrant as cb
from calibrant import regression as rg

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
CLASSES = [f"c{j}" for j in range(3)]
QUANTILES = {level: f"q{j}" for j, level in enumerate(LEVELS)}


def new_rows(n):
    """Scores, class probabilities, points, normal forecasts and quantiles, with the ends of their ranges."""
    rng = np.random.default_rng(6)
    proba = rng.dirichlet([1.0, 0.5, 0.2], n)
    proba[:3] = np.eye(3)
    score = np.concatenate([[0.0, 1.0, 5e-324], rng.random(n - 3)])
    columns = {"i": np.arange(n), "p": score, "x": rng.normal(10, 8, n), "sd": np.exp(rng.normal(size=n) / 3)}
    quantiles = np.sort(columns["x"][:, None] + rng.normal(size=(n, len(LEVELS))), axis=1)
    columns |= {name: quantiles[:, j] for j, name in enumerate(QUANTILES.values())}
    return columns | {name: proba[:, j] for j, name in enumerate(CLASSES)}


def fitted_maps(n=2000):
    """Return maps of every kind, fitted to n rows: calibrator, options of to_sql, and the function in Python."""
    rng = np.random.default_rng(7)
    p, proba, x = rng.random(n), rng.dirichlet([1.0, 0.5, 0.2], n), rng.normal(10, 5, n)
    event, label = rng.random(n) < p**2, (rng.random(n)[:, None] > np.cumsum(proba**1.3, axis=1)).sum(axis=1)
    outcome, forecast = x + np.sin(x) + rng.normal(size=n), rg.Gaussian(x, np.ones(n))
    binary = (
        cb.Isotonic(),
        cb.Isotonic(strict=True),
        cb.Platt(),
        cb.Beta(),
        cb.LogitSpline(n_knots=4),
        cb.calibrators.Temperature(),
        cb.calibrators.BinningAverage(),
    )
    for cal in (*binary, cb.calibrators.PriorShift(prevalence=0.03)):
        fitted = cal.fit(p, event)
        yield fitted, {"column": "p"}, lambda rows, fitted=fitted: fitted(rows["p"])[:, None]
    several = (
        cb.calibrators.Dirichlet(),
        cb.calibrators.MatrixScaling(),
        cb.calibrators.VectorScaling(),
        cb.calibrators.SoftmaxTemperature(),
        cb.calibrators.Spline(),
        cb.StructuredScaling(),
    )
    for cal in (*several, cb.calibrators.OneVsRest(cb.Isotonic()), cb.calibrators.Cumulative()):
        fitted = cal.fit(proba, np.minimum(label, 2))
        yield fitted, {"columns": CLASSES}, lambda rows, f=fitted: f(np.column_stack([rows[n] for n in CLASSES]))
    points = (rg.LinearRecalibrator(cv=None), rg.IsotonicRecalibrator(cv=None), rg.LocalRecalibrator(cv=None))
    for cal in (*points, rg.CostRecalibrator(cb.costs.LinearCost(1, 4), n_bins=5, cv=None)):
        fitted = cal.fit(x, outcome)
        yield fitted, {"column": "x"}, lambda rows, fitted=fitted: fitted.predict(rows["x"])[:, None]
    fitted = rg.LocalRecalibrator(cv=None).fit(4 * np.round(x / 4), outcome)  # few pieces
    yield fitted, {"column": "x"}, lambda rows, fitted=fitted: fitted.predict(rows["x"])[:, None]
    for cal in (rg.VarianceScaling(shift=True), rg.PITRecalibrator(), rg.QuantileRecalibrator()):
        fitted = cal.fit(forecast, outcome)
        options = {"columns": {"mean": "x", "sd": "sd"}, "level": 0.95}
        yield fitted, options, lambda rows, f=fitted: f(rg.Gaussian(rows["x"], rows["sd"])).quantile([0.95])
    quantiles = rg.Quantiles(LEVELS, forecast.quantile(LEVELS))
    fitted = rg.QuantileRecalibrator().fit(quantiles, outcome)
    # Quantiles that cross after their shifts are sorted.
    yield fitted, {"columns": QUANTILES, "level": 0.75}, lambda rows, f=fitted: f(_quantiles(rows)).quantile([0.75])


def _quantiles(rows):
    return rg.Quantiles(LEVELS, np.column_stack([rows[name] for name in QUANTILES.values()]))
