"""Data for the laws: few distinct scores, so that ties and borders are common."""

import numpy as np
from hypothesis import strategies as st

import calibrant as cb

GRID = [0.0, 0.1, 0.3, 0.5, 0.6, 0.7, 0.9, 1.0]
score = st.one_of(st.sampled_from(GRID), st.floats(0, 1, allow_subnormal=True))
rows = st.lists(st.tuples(st.booleans(), score), max_size=60)
some_rows = st.lists(st.tuples(st.booleans(), score), min_size=1, max_size=60)
weights = st.integers(0, 5)
number = st.sampled_from([-3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 7.5])
point_rows = st.lists(st.tuples(number, number), min_size=1, max_size=30)


def columns(pairs):
    """Labels and scores of a list of pairs."""
    return np.array([y for y, _ in pairs], dtype=bool), np.array([p for _, p in pairs], dtype=float)


def point_columns(pairs):
    """Outcomes and point predictions of a list of pairs."""
    return np.array(pairs, dtype=float).T


def count(pairs):
    """The table of a list of pairs, empty or not."""
    return cb.ScoreTable.from_arrays(*columns(pairs)) if pairs else cb.ScoreTable.empty()


tables = some_rows.map(count)
