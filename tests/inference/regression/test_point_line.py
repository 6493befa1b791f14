"""The line of outcomes on point predictions: its coefficients, standard errors and test."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb
from calibrant import regression as rg
from calibrant._support.errors import InputError

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "numbers.json").read_text())
FROZEN = {name: np.array(values) for name, values in GOLDEN["inputs"].items()}


def test_the_line_of_outcomes_on_predictions_is_that_of_statsmodels():
    fit = rg.slope_intercept(FROZEN["y"], FROZEN["mean"])
    frozen = GOLDEN["statsmodels"]
    assert [fit.intercept.value, fit.slope.value] == pytest.approx(frozen["coefficients"], abs=1e-9)
    assert [fit.intercept.standard_error, fit.slope.standard_error] == pytest.approx(frozen["errors"], abs=1e-9)
    shown = [[e.low, e.high] for e in (fit.intercept, fit.slope)]
    assert np.array(shown) == pytest.approx(np.array(frozen["intervals"]), abs=1e-9)
    assert tuple(fit.test) == pytest.approx((frozen["f"], frozen["f_pvalue"]), abs=1e-9)


@pytest.mark.parametrize(("scale", "shift"), [(1e-9, 0.0), (1e7, 0.0), (1.0, 1e5), (1e80, 0.0), (1e-80, 0.0)])
def test_neither_unit_nor_origin_changes_a_test(skewed, scale, shift):
    y, p = skewed
    moved = scale * (y + shift), scale * (p + shift)
    plain, other = rg.slope_intercept(y, p), rg.slope_intercept(*moved)
    assert other.test.pvalue == pytest.approx(plain.test.pvalue, rel=1e-4)
    assert other.slope.standard_error == pytest.approx(plain.slope.standard_error, rel=1e-6)
    one, two = rg.bias_by_bin(y, p), rg.bias_by_bin(*moved)
    assert two.per_bin["pvalue"] == pytest.approx(one.per_bin["pvalue"], rel=1e-4)
    parts = rg.mse_decomposition(*moved)
    assert parts.slope / scale**2 == pytest.approx(rg.mse_decomposition(y, p).slope, rel=1e-6)


def test_rounding_does_not_reject_calibrated_predictions(rng):
    q = rng.uniform(size=50)
    for origin in (0.0, 1e9):
        fit = rg.slope_intercept(q + origin, q + origin)
        assert tuple(fit.test) == (0.0, 1.0)
    steps = np.cumsum(np.r_[0, np.full(199, 0.1)])
    assert cb.evaluate(np.arange(200) * 0.1, cb.Point(steps), n_resamples=0).verdict == "calibrated"
    line = rg.slope_intercept(2 * q, q)
    assert tuple(line.test) == (math.inf, 0.0)


def test_an_untestable_line_is_noted(rng):
    y = [0.0] * 10 + [1, 2, 3, 2, 1, 4, 2, 2, 1, 3]
    fit = rg.slope_intercept(y, [0.1] * 10 + [2.0] * 10)
    assert math.isnan(fit.test.pvalue)
    assert fit.test.notes[-1].code == "no_line_test"


def test_leverage_counts_the_weight_of_its_own_row(rng):
    """A far row of little weight hardly moves the line; HC3 of weighted least squares by hand."""
    x = np.append(rng.normal(size=200), 50.0)
    y = np.append(x[:-1] + rng.normal(size=200), 53.0)
    w = np.append(np.full(200, 1.5), 0.1)
    X = np.column_stack([np.ones(201), x])
    bread = np.linalg.inv(X.T @ (w[:, None] * X))
    left = y - X @ (bread @ (X.T @ (w * y)))
    h = w * np.einsum("ij,jk,ik->i", X, bread, X)
    cover = bread @ (X.T * (w * left / (1 - h)) ** 2) @ X @ bread
    fit = rg.slope_intercept(y, x, sample_weight=w)
    assert fit.slope.standard_error == pytest.approx(np.sqrt(cover[1, 1]), rel=1e-9)


def test_tests_of_merged_importance_weights_are_refused(skewed, rng):
    y, p = skewed
    table = rg.MeanTable.from_arrays(y, np.round(p), sample_weight=rng.uniform(0.5, 2, 600)).merged()
    for measure in (rg.bias_by_bin, rg.slope_intercept):
        with pytest.raises(InputError, match="needs outcomes row by row"):
            measure(table)


def test_few_counts_on_a_line_are_not_tested():
    """Three rows of counts often lie on a line by chance."""
    assert cb.evaluate([0, 2, 4], cb.Point([1.0, 2.0, 3.0])).verdict == "inconclusive"
    assert math.isnan(rg.slope_intercept([0, 2, 4], [1.0, 2.0, 3.0]).test.pvalue)
    assert rg.slope_intercept([1, 2, 3], [1.0, 2.0, 3.0]).test.pvalue == 1
    many = np.arange(1.0, 9.0)
    assert rg.slope_intercept(2 * many, many).test.pvalue == 0
    assert cb.evaluate(2 * many - many.mean(), cb.Point(many)).verdict == "miscalibrated"
