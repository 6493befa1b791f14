"""
Rare events on logit axes
=========================

With 1 % events a linear diagram shows a dot in a corner. Logit axes and bins of equal information are chosen
by themselves.
"""

import numpy as np

import calibrant as cb
from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.beta(0.5, 50, 60_000)
y = rng.random(60_000) < truth
p = truth**0.9  # overestimates the lowest scores most
display = plots.ReliabilityDisplay.from_predictions(y, p)

# %%
# The margin is in log-odds, so it means the same for rare and for common events: odds that are accurate to 10
# %. A margin in probability would call these scores harmless:

print(cb.evaluate(y, p, n_resamples=199).verdict)
print(cb.evaluate(y, p, margin=cb.AbsoluteMargin(0.02), n_resamples=199).verdict)
