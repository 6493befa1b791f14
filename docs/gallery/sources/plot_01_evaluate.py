"""
Is my model calibrated?
=======================

`evaluate` returns a verdict with its reasons: an omnibus test of calibration, and an equivalence test at a
margin.
"""

import numpy as np

import calibrant as cb

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
result = cb.evaluate(y, p, n_resamples=199)
print(result)

# %%
# The overview shows the bins, the null distribution and the cumulative differences.

display = result.plot()
