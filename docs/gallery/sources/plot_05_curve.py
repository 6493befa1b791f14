"""
Smooth calibration curve and belt
=================================

A smooth curve with a band does not depend on bins. The belt comes with a test.
"""

import numpy as np

from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
display = plots.CalibrationCurveDisplay.from_predictions(y, p, method=["spline", "belt"])
