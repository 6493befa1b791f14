"""
Count once, merge later
=======================

Tables of days or machines add up exactly, so ten billion rows need no more memory than their distinct scores.
"""

import numpy as np

import calibrant as cb

rng = np.random.default_rng(0)

days = []
for _ in range(7):
    p = rng.random(20_000).round(3)
    days.append(cb.ScoreTable.from_arrays(rng.random(20_000) < p, p))
week = sum(days[1:], start=days[0])
print(week)
print(cb.evaluate(week, n_resamples=99).verdict)
