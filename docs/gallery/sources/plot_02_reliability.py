"""
Reliability diagram
===================

Event rates against mean predictions, with exact confidence intervals. Points below the diagonal mean that the
model overestimates.
"""

import numpy as np

import calibrant as cb
from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
display = plots.ReliabilityDisplay.from_predictions(
    y, p, bins=cb.bins.EqualSize(10), band="consistency", n_resamples=199
)

# %%
# The drawn values, and a description in one sentence for readers who cannot see the figure.

print(display.data().round(3))
print(display.alt_text())
