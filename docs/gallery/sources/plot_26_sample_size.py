"""
How many rows do I need?
========================

`sample_size` plans an evaluation; `detectable` says what a data set can show.
"""

import numpy as np

import calibrant as cb

scores = np.random.default_rng(0).beta(2, 5, 1000)
print(cb.sample_size(scores, margin=0.1))
print(cb.inference.detectable(n=200, rate=0.1))
