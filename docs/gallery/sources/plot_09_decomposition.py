"""
Miscalibration against discrimination
=====================================

The Brier score is miscalibration minus discrimination plus uncertainty. Two models with equal Brier scores
can differ in both.
"""

import numpy as np

from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
display = plots.DecompositionDisplay.from_predictions(
    y, {"overconfident": p, "calibrated": truth, "noisy": rng.beta(8 * truth + 0.1, 8.1 - 8 * truth)}, n_resamples=99
)
