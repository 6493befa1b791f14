"""
Which of two models is better calibrated?
=========================================

`compare` tests the difference on the same rows.
"""

import numpy as np

import calibrant as cb

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
comparison = cb.compare(y, {"old": p, "new": truth}, n_resamples=199)
print(comparison.verdict)
display = comparison.plot()
