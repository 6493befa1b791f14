"""
Regression error characteristic
===============================

The share of rows within each tolerance, for several models.
"""

import numpy as np

from calibrant import plots

rng = np.random.default_rng(0)
y = rng.normal(size=1000)
display = plots.RECDisplay.from_predictions(y, {"good": 0.9 * y + rng.normal(0, 0.2, 1000), "poor": 0.5 * y})
