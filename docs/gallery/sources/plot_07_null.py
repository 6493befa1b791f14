"""
Null distribution of a metric
=============================

ECE is above 0 for every model. The null distribution shows which values a calibrated model has.
"""

import numpy as np

import calibrant as cb
from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
display = plots.NullDisplay.from_predictions(y, truth, metric="ece", n_resamples=499)
print(cb.null("ece", y, truth, n_resamples=499, random_state=0))
