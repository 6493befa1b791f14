"""
Dependent rows
==============

Rows of one patient depend on each other. Without `cluster` the intervals are too narrow.
"""

import numpy as np

import calibrant as cb

rng = np.random.default_rng(0)
patient = np.repeat(np.arange(200), 20)
p = rng.beta(2, 2, 4000)
shift = rng.normal(0, 0.8, 200)[patient]
y = rng.random(4000) < 1 / (1 + np.exp(-np.log(p / (1 - p)) - shift))
for options in ({}, {"cluster": patient}):
    bias = cb.evaluate(y, p, n_resamples=199, **options)["bias"]
    low, high = bias.interval.low, bias.interval.high
    print(f"{'with' if options else 'without'} cluster: 95 % CI of the bias {low:+.4f} to {high:+.4f}")
