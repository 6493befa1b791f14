"""
Rootogram of counts
===================

Bars hang from the expected frequencies, on a root scale. A Poisson forecast of overdispersed counts expects too few
zeros and too few high counts, so these bars end below zero.
"""

import numpy as np

import calibrant as cb
from calibrant import plots

rng = np.random.default_rng(0)
mean = rng.uniform(1, 4, 5000)
claims = rng.negative_binomial(2, 2 / (2 + mean))
display = plots.RootogramDisplay.from_predictions(claims, cb.Poisson(mean), max_count=12)
