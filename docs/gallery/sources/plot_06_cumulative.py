"""
Cumulative differences
======================

The sum of outcome minus prediction, in order of prediction. It needs no bins. The curve of a calibrated model
lies in the grey band with a probability of 95 %.
"""

import numpy as np

from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
display = plots.CumulativeDisplay.from_predictions(y, p)
