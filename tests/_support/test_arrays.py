"""Arithmetic of long columns in pieces."""

import math

import numpy as np
import pytest

from calibrant._support.arrays import dot, gram, in_pieces
from calibrant._support.logistic import expit

SIZES = [0, 1, 8_193, 32_767, 32_768, 32_769, 100_000]


def logarithms(n, p):
    return n * np.log(p) - np.log1p(-p) / 3


@pytest.mark.parametrize("size", SIZES)
def test_pieces_give_the_bytes_of_whole_columns(rng, size):
    n, p = rng.integers(0, 5, size), rng.random(size)
    whole = logarithms(n, p)
    assert in_pieces(logarithms, n, p).tobytes() == whole.tobytes()
    out = np.full(size, np.nan)
    assert in_pieces(logarithms, n, p, out=out) is out
    assert out.tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pieces_keep_the_type_and_the_shape(dtype):
    column = np.linspace(0, 1, 80_000, dtype=dtype)
    assert in_pieces(np.sqrt, column).dtype == dtype
    assert in_pieces(np.sqrt, column.reshape(2, -1)).shape == (2, 40_000)


@pytest.mark.parametrize("size", SIZES)
def test_expit_may_replace_its_argument(rng, size):
    x = rng.normal(0, 300, size)
    wanted = expit(x)
    assert expit(x, out=x) is x
    assert x.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("size", SIZES)
def test_sums_of_products_are_those_of_exact_arithmetic(rng, size):
    n, p = rng.integers(0, 5, size), rng.random(size)
    assert dot(n, p) == pytest.approx(math.fsum(n * p), rel=1e-14)


@pytest.mark.parametrize("shape", [(0, 2, 3), (10_000, 1, 1), (10_001, 2, 3), (3_000, 16, 16), (3_000, 20, 30)])
def test_products_of_matrices_equal_those_of_whole_ones(rng, shape):
    size, *columns = shape
    a, b = (rng.normal(size=(size, count)) for count in columns)
    assert gram(a, b).shape == tuple(columns)
    assert gram(a, b) == pytest.approx(a.T @ b, rel=1e-12, abs=1e-11)
