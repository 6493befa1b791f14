"""
Point predictions
=================

Mean outcomes against predictions: is a regression unbiased at every level?
"""

import numpy as np

import calibrant as cb
from calibrant import plots

rng = np.random.default_rng(0)
y = rng.normal(50, 10, 2000)
predicted = 50 + 0.5 * (y - 50) + rng.normal(0, 6, 2000)
print(cb.evaluate(y, cb.Point(predicted)).verdict)
display = plots.BiasDisplay.from_predictions(y, predicted)
