"""
Groups
======

A model can be calibrated overall and wrong in a group. p-values are adjusted for the number of groups.
"""

import numpy as np

import calibrant as cb
from calibrant import plots

rng = np.random.default_rng(0)
p = rng.beta(2, 5, 8000)
region = rng.choice(["north", "east", "south", "west"], 8000)
y = rng.random(8000) < np.where(region == "south", 0.7 * p, p)
result = cb.evaluate(y, p, by=region, n_resamples=199)
display = plots.GroupDisplay.from_evaluation(result)

# %%
# One row per group and metric:

frame = result.to_frame()
print(frame[frame["metric"] == "log-odds error"].iloc[:, :5])
