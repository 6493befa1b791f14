"""
PIT histogram
=============

The probability integral transform of calibrated forecasts is uniform. A hump means that the distributions are
too wide.
"""

import numpy as np

import calibrant as cb
from calibrant import plots

y = np.random.default_rng(0).normal(size=2000)
display = plots.PITDisplay.from_predictions(y, cb.Gaussian(0 * y, 1.5))
