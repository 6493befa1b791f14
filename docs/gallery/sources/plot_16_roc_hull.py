"""
ROC curve and its convex hull
=============================

The segments of the hull are the bins of isotonic recalibration.
"""

import numpy as np

from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
display = plots.RocHullDisplay.from_predictions(y[:500], p[:500])
