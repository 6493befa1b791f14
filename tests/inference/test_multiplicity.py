"""Adjustment of p-values for multiple tests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cb
from calibrant.inference.multiplicity import benjamini_hochberg, holm

pvalues = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def test_adjusted_p_values_by_hand():
    p = [0.01, 0.04, 0.03, 0.005, 0.9]
    assert holm(p) == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.9])
    assert benjamini_hochberg(p) == pytest.approx([0.025, 0.05, 0.05, 0.025, 0.9])
    assert holm([]).size == benjamini_hochberg([]).size == 0


@pytest.mark.parametrize("values", [[0.5, 1.5], [[0.5]], [float("nan")]])
def test_values_other_than_p_values_are_refused(values):
    for adjust in (holm, benjamini_hochberg):
        with pytest.raises(cb.InputError, match=r"pvalues must be a sequence of numbers in \[0, 1\]; got"):
            adjust(values)


@given(pvalues)
def test_adjusted_p_values_keep_the_order_and_are_not_smaller(values):
    p = np.array(values)
    strict, mild = holm(p), benjamini_hochberg(p)
    assert (strict >= p).all()
    assert (strict >= mild - 1e-15).all()
    assert strict.max() <= 1
    order = np.argsort(p, kind="stable")
    assert (np.diff(strict[order]) >= 0).all()
