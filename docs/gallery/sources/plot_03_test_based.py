"""
Test-based reliability diagram
==============================

The diagram of TCE: predictions that an exact binomial test rejects are orange.
"""

import numpy as np

from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
display = plots.TestBasedReliabilityDisplay.from_predictions(y, p)
print(display.breakdown)
