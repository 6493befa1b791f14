"""
Regression with quantiles
=========================

A model predicts quantiles of a number. This tutorial checks whether 5 % of the outcomes lie below the 5 % quantile, and
so on, and recalibrates them.
"""

import numpy as np
from sklearn.linear_model import QuantileRegressor

import calibrant as cb
from calibrant import plots, regression

rng = np.random.default_rng(0)
x = rng.uniform(0, 10, 3000)
y = 5 + 2 * x + rng.normal(0, 0.5 + 0.4 * x)  # the spread rises with x
levels = [0.05, 0.25, 0.5, 0.75, 0.95]
fit, valid, test = np.split(np.arange(3000), [600, 1800])

# %%
# The model assumes one spread for all x, so its quantiles are lines with the same slope.

center = QuantileRegressor(quantile=0.5, alpha=0, solver="highs").fit(x[fit, None], y[fit])
residual = y[fit] - center.predict(x[fit, None])
quantiles = center.predict(x[:, None])[:, None] + 0.7 * np.quantile(residual, levels)  # and they are too narrow
forecast = cb.Quantiles(levels, quantiles)

# %%
# Evaluate
# --------

result = cb.evaluate(y[test], forecast[test], n_resamples=199)
print(result.verdict, result.direction)
print(regression.coverage(y[test], forecast[test]))

# %%

display = plots.CoverageDisplay.from_predictions(y[test], {"model": forecast[test]})

# %%
# Recalibrate
# -----------
# `QuantileRecalibrator` moves each quantile so that it has its share of the validation rows below it. The verdict
# becomes ``inconclusive``: no deviation is significant, but 1,200 rows cannot show a coverage error below 1 %.

cal = regression.QuantileRecalibrator().fit(forecast[valid], y[valid])
after = cal(forecast[test])
print(cb.evaluate(y[test], after, n_resamples=199).verdict)
display = plots.CoverageDisplay.from_predictions(y[test], {"before": forecast[test], "after": after})

# %%
# Calibrated on average is not calibrated everywhere. For low x the intervals are too wide, for high x too narrow:

half = np.where(x[test] < 5, "low x", "high x")
groups = cb.evaluate(y[test], after, by=half, n_resamples=199).groups
print({name: (group.verdict, group.direction) for name, group in groups.items()})
