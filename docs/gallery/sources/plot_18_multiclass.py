"""
Multiclass probabilities
========================

Each class against the rest, with one verdict for all.
"""

import numpy as np

import calibrant as cb
from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.dirichlet([1, 1, 1], 3000)
y = (truth.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1)
p = truth**1.5 / (truth**1.5).sum(axis=1, keepdims=True)  # overconfident
result = cb.evaluate(y, p, n_resamples=99)
print(result.verdict, result.direction)
display = plots.ClasswiseDisplay.from_evaluation(result)
