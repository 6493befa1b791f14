"""
Coverage of prediction intervals
================================

Do 90 % intervals hold 90 % of the outcomes?
"""

import numpy as np

import calibrant as cb
from calibrant import plots, regression

y = np.random.default_rng(0).normal(size=2000)
forecasts = {"too narrow": cb.Gaussian(0 * y, 0.7), "calibrated": cb.Gaussian(0 * y, 1.0)}
display = plots.CoverageDisplay.from_predictions(y, forecasts)
print(regression.coverage(y, forecasts["too narrow"]))
