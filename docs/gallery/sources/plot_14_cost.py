"""
Costs of overestimation and underestimation
===========================================

The expected calibration cost over a range of cost ratios.
"""

import numpy as np

from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
display = plots.CostDisplay.from_predictions(y, {"overconfident": p, "calibrated": truth}, n_resamples=99)
