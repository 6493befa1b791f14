"""
Recalibrate scores
==================

Fit a calibrator on held-out rows, and evaluate it on other rows.
"""

import numpy as np

import calibrant as cb
from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model
cal = cb.Isotonic(strict=True).fit(p[:2000], y[:2000])
after = cal(p[2000:])
display = plots.ReliabilityDisplay.from_predictions(
    y[2000:], {"before": p[2000:], "after": after}, bins=cb.bins.EqualSize(10)
)

# %%
# Deploy the map in a database:

print(cb.to_sql(cb.Platt().fit(p[:2000], y[:2000]), "score"))
