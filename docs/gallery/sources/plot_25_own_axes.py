"""
Own axes and files
==================

Diagrams draw in the axes of your figure, and several share one.
"""

import matplotlib.pyplot as plt
import numpy as np

from calibrant import plots

rng = np.random.default_rng(0)
truth = rng.beta(2, 5, 4000)
y = rng.random(4000) < truth
p = truth**2 / (truth**2 + (1 - truth) ** 2)  # an overconfident model

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
plots.ReliabilityDisplay.from_predictions(y, p, name="overconfident", ax=left)
plots.ReliabilityDisplay.from_predictions(y, truth, name="calibrated", ax=left)
plots.CumulativeDisplay.from_predictions(y, p, ax=right)
left.set_title("Two models")
