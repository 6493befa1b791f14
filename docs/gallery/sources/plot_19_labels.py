"""
Predicted labels
================

Is each class predicted as often as it occurs?
"""

import numpy as np

import calibrant as cb
from calibrant import plots

rng = np.random.default_rng(0)
y = rng.choice(["cat", "dog", "fox"], 1500, p=[0.5, 0.3, 0.2])
predicted = np.where((y == "fox") & (rng.random(1500) < 0.5), "dog", y)
display = plots.ProportionDisplay.from_evaluation(cb.evaluate(y, cb.Labels(predicted)))
