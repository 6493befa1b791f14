"""
Sharpness against calibration
=============================

Recalibrations of a predictive distribution of which none is better in both.
"""

import numpy as np

import calibrant as cb
from calibrant import plots, regression

y = np.random.default_rng(0).standard_t(3, size=1000)
cal = regression.ParetoRecalibrator().fit(cb.Gaussian(0 * y, 1.0), y)
display = plots.ParetoDisplay.from_recalibrator(cal)
