"""Brent's method against that of SciPy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from calibrant._support.roots import find_root

FUNCTIONS = {
    "steep": lambda x: math.tanh(40 * x),
    "flat": lambda x: x**3 + 1e-3 * x,
    "curved": lambda x: math.exp(x) - 1,
    "step": lambda x: -1.0 if x < 0 else 1.0,
    "kink": lambda x: x if x < 0 else 30 * x,
    "rational": lambda x: x / (1 + abs(x)) ** 0.5,
}
distances = st.floats(1e-3, 50.0)


@given(st.sampled_from(sorted(FUNCTIONS)), st.floats(-3, 3), distances, distances, st.sampled_from([1e-12, 1e-7, 1e-3]))
def test_roots_are_bitwise_those_of_scipy(name, root, below, above, xtol):
    def function(x):
        return FUNCTIONS[name](x - root)

    for low, high in ((root - below, root + above), (root + above, root - below)):
        assert find_root(function, low, high, xtol=xtol) == brentq(function, low, high, xtol=xtol)


def test_a_root_at_an_end_is_returned():
    assert find_root(lambda x: x, 0.0, 1.0) == 0.0
    assert find_root(lambda x: x - 1, 0.0, 1.0) == 1.0


@pytest.mark.parametrize("function", [lambda x: x * x + 1, lambda x: math.nan])
def test_equal_signs_are_an_error(function):
    with pytest.raises(ValueError, match="different signs"):
        find_root(function, -1.0, 1.0)


def test_a_function_that_never_settles_is_an_error():
    with pytest.raises(RuntimeError, match="no root"):
        find_root(lambda x: 1.0 if x > 0 else -1.0, -1e300, 1.0, xtol=1e-300, rtol=1e-300)
