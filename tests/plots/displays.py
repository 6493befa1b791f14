"""The displays of binary scores with the options that the tests draw them with, and readers of their artists."""

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from calibrant import plots

DRAWN_FAST = {"n_resamples": 49}
# Options of each display besides the predictions, with few resamples.
DISPLAYS = {
    plots.TestBasedReliabilityDisplay: DRAWN_FAST,
    plots.ReliabilityDisplay: {"band": "both", **DRAWN_FAST},
    plots.BinningDisplay: {},
    plots.CumulativeDisplay: {},
    plots.DecompositionDisplay: DRAWN_FAST,
    plots.NullDisplay: DRAWN_FAST,
    plots.CostDisplay: DRAWN_FAST,
    plots.RocHullDisplay: {},
}
each_display = pytest.mark.parametrize("display", DISPLAYS, ids=lambda d: d.__name__)
SEVERAL = (plots.ReliabilityDisplay, plots.DecompositionDisplay, plots.CostDisplay)  # take several models


class Fitted:
    """A classifier as scikit-learn's are, that gives its features back as probabilities."""

    def __init__(self, classes=(0, 1)):
        self.classes_ = np.array(classes)

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def page():
    return Figure(figsize=(8, 6), layout="constrained")


def extents(patch):
    """Return the lower left and the upper right corner of a patch."""
    vertices = patch.get_path().vertices
    return vertices.min(axis=0), vertices.max(axis=0)


def number(artist):
    """Return the number of the bin that an artist shows."""
    return int(re.search(r"-bin-(\d+)-", artist.get_gid())[1])
