"""Tables of point predictions: they add up, ignore the order of rows, and merge."""

import numpy as np
import pytest
from hypothesis import given
from strategies import point_columns, point_rows

from calibrant import regression as rg
from calibrant._support.errors import InputError


@given(point_rows, point_rows)
def test_tables_add_up_and_ignore_the_order_of_rows(left, right):
    def table(pairs):
        return rg.MeanTable.from_arrays(*point_columns(pairs))

    both = table(left + right)
    assert table(left) + table(right) == both
    assert table((left + right)[::-1]) == both
    assert both.merged() == both
    assert both.merged().size == both.size == len(left) + len(right)
    for measure in (rg.mse, rg.mean_error):
        assert measure(both.merged()) == pytest.approx(measure(both), abs=1e-12)


def test_a_table_copies_the_arrays_of_the_user(skewed):
    y, p = (a.copy() for a in skewed)
    table = rg.MeanTable.from_arrays(y, p)
    before = rg.mse(table)
    y[:] = 0
    assert rg.mse(table) == before
    with pytest.raises(ValueError, match="read-only"):
        table.prediction[0] = 1


def test_moments_of_a_query_make_the_table(skewed):
    y, p = np.round(skewed[0], 1), np.round(skewed[1])
    values, place = np.unique(p, return_inverse=True)
    n = np.bincount(place)
    mean = np.bincount(place, weights=y) / n
    m2 = np.bincount(place, weights=(y - mean[place]) ** 2)
    table = rg.MeanTable.from_moments(values, n, mean, m2)
    assert table == rg.MeanTable.from_arrays(y, p)
    assert rg.relative_mse(table) == pytest.approx(rg.relative_mse(y, p))
    with pytest.raises(InputError, match="needs outcomes row by row"):
        rg.mae(table)
    with pytest.raises(InputError, match="n must be whole numbers"):
        rg.MeanTable.from_moments([1.0], [0.5], [1.0], [0.0])


def test_tables_of_different_values_are_not_equal():
    table = rg.MeanTable.from_arrays
    assert table([1e-10, 2e-10], [1.0, 2.0]) != table([5e-9, -5e-9], [1.0, 2.0])
    assert table([1.0, 2.0], [1.0, 2.0]) != table([1.0, 2.1], [1.0, 2.0])
    far = np.random.default_rng(0).normal(1e9, 1, 200)
    place = np.repeat(np.arange(20.0), 10)
    whole = table(far, place)
    assert table(far[:95], place[:95]).merged() + table(far[95:], place[95:]).merged() == whole


def test_maps_of_tables_are_checked():
    table = rg.MeanTable.from_arrays([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    own = np.array([5.0, 6.0, 7.0])
    moved = table.map(lambda _: own)
    own[0] = 99
    assert moved.prediction.tolist() == [5.0, 6.0, 7.0]
    for f in (lambda p: p[:1], lambda p: p * np.nan):
        with pytest.raises(InputError, match="f must return a finite number for each"):
            table.map(f)
    assert rg.mae(rg.MeanTable.from_arrays([0.1] * 3, [1.0] * 3).merged()) == pytest.approx(0.9)


def test_values_with_infinite_squares_are_refused():
    for unit in (1e160, 1e-160):
        with pytest.raises(InputError, match="Use another unit"):
            rg.mse([unit, 2 * unit], [unit, unit])
