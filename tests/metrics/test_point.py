"""Measures of point predictions: values of other libraries, laws, and input."""

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import point_columns, point_rows

import calibrant as cb
from calibrant import regression as rg
from calibrant._support.errors import CalibrantWarning, InputError

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "numbers.json").read_text())
FROZEN = {name: np.array(values) for name, values in GOLDEN["inputs"].items()}


def evaluate(y, p=None, **options):
    """Evaluate point predictions, or a table of them."""
    return cb.evaluate(y, None if p is None else cb.Point(p), **options)


def test_measures_agree_with_other_libraries():
    y, p = FROZEN["y"], FROZEN["mean"]
    assert rg.mse(y, p) == pytest.approx(GOLDEN["sklearn"]["mse"], abs=1e-9)
    assert rg.relative_mse(y, p) == pytest.approx(GOLDEN["sklearn"]["relative_mse"], abs=1e-9)
    assert rg.pinball(y, p, level=0.8) == pytest.approx(GOLDEN["sklearn"]["pinball"], abs=1e-9)
    accuracy = GOLDEN["uncertainty_toolbox"]["accuracy"]
    assert rg.mae(y, p) == pytest.approx(accuracy["mae"], abs=1e-9)
    assert math.sqrt(rg.mse(y, p)) == pytest.approx(accuracy["rmse"], abs=1e-9)
    assert rg.error_tolerance(y, p, share=0.5) == pytest.approx(accuracy["mdae"], rel=0.05)  # theirs is a midpoint


def test_the_ratio_and_the_quotient_handle_zeros():
    assert rg.ratio([0.0, 2.0], [1.0, 3.0]) == 2.0
    with pytest.raises(InputError, match="mean of y_true must not be 0"):
        rg.ratio([-1.0, 1.0], [1.0, 3.0])
    with pytest.raises(InputError, match="the first is row 1"):
        rg.mean_quotient([1.0, 0.0], [2.0, 3.0])
    with pytest.warns(CalibrantWarning, match="outcome is 0, which has no quotient: 1"):
        assert rg.mean_quotient([1.0, 0.0], [2.0, 3.0], zeros="drop") == 2.0
    with pytest.raises(InputError, match="must not be 0"):
        rg.mean_quotient([0.0, 0.0], [2.0, 3.0], zeros="drop")
    with pytest.raises(InputError, match="y_true must hold different outcomes"):
        rg.relative_mse([1.0, 1.0], [2.0, 3.0])


@given(point_rows)
def test_the_squared_error_is_the_sum_of_its_parts(pairs):
    y, p = point_columns(pairs)
    parts = rg.mse_decomposition(y, p)
    assert parts.mse == pytest.approx(rg.mse(y, p), abs=1e-12)
    assert parts.mcb >= -1e-12
    assert parts.dsc >= -1e-12
    assert parts.bias + parts.slope <= parts.mcb + 1e-9
    assert parts.bias == pytest.approx(rg.mean_error(y, p) ** 2, abs=1e-12)


@given(point_rows, st.sampled_from(["absolute", "squared"]))
def test_the_area_over_the_rec_curve_is_the_mean_error(pairs, loss):
    y, p = point_columns(pairs)
    curve = rg.rec_curve(y, p, loss=loss)
    steps = np.concatenate([[0.0], curve.accuracy[:-1]])
    area = float(np.sum((1 - steps) * np.diff(np.concatenate([[0.0], curve.tolerance]))))
    assert area == pytest.approx(curve.area_over, abs=1e-12)
    assert curve.area_over == pytest.approx((rg.mae if loss == "absolute" else rg.mse)(y, p), abs=1e-12)
    assert curve.at(curve.tolerance[-1]) == 1
    assert curve.needed(1) == curve.tolerance[-1]
    assert curve.at(-1) == 0


@given(point_rows, st.integers(1, 6))
def test_frequencies_are_counts_of_rows(pairs, n_bins):
    y, p = point_columns(pairs)
    times = 1 + np.arange(y.size) % 3
    again = np.repeat(y, times), np.repeat(p, times)
    for measure in (rg.mse, rg.mean_error, rg.mae):
        for option in ("frequency", "sample_weight"):
            assert measure(y, p, **{option: times}) == pytest.approx(measure(*again), abs=1e-12)
    one = rg.bias_by_bin(y, p, n_bins=n_bins, frequency=times).per_bin
    two = rg.bias_by_bin(*again, n_bins=n_bins).per_bin
    for name in one:
        assert one[name] == pytest.approx(two[name], abs=1e-9, nan_ok=True), name


HAZARDS = {
    "missing prediction": ([1.0, 2.0], [1.0, float("nan")], "y_pred has 1 missing value"),
    "missing outcome": ([1.0, None], [1.0, 2.0], "y_true has 1 missing value"),
    "infinite": ([1.0, 2.0], [1.0, float("inf")], "finite numbers"),
    "text": (["a", "b"], [1.0, 2.0], "must hold numbers"),
    "lengths": ([1.0, 2.0], [1.0], "has 1 rows, y_true has 2"),
    "empty": ([], [], "hold no rows"),
    "two columns": ([1.0, 2.0], [[1.0, 2.0], [1.0, 2.0]], "one dimension"),
    "complex": ([1.0, 2.0], [1j, 2.0], "must hold numbers"),
}


MEASURES = [
    rg.mean_error,
    rg.ratio,
    rg.mse,
    rg.mae,
    rg.relative_mse,
    rg.bias_by_bin,
    rg.tce,
    rg.rec_curve,
    rg.mse_decomposition,
    rg.slope_intercept,
    rg.cost_by_bin,
    rg.mean_quotient,
    rg.error_tolerance,
    evaluate,
]


@pytest.mark.parametrize("hazard", HAZARDS)
def test_bad_input_is_refused_with_value_and_place(hazard):
    y, p, words = HAZARDS[hazard]
    with pytest.raises(InputError, match=words):
        rg.MeanTable.from_arrays(y, p)


@pytest.mark.parametrize("hazard", ["missing prediction", "lengths"])
@pytest.mark.parametrize("measure", MEASURES, ids=lambda f: f.__name__)
def test_every_function_of_rows_reads_them_with_the_shared_reader(measure, hazard):
    y, p, words = HAZARDS[hazard]
    with pytest.raises(InputError, match=words):
        measure(y, p)


@pytest.mark.parametrize("measure", MEASURES, ids=lambda f: f.__name__)
def test_input_is_never_changed(measure, skewed):
    y, p = (a.copy() for a in skewed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure(y + 5, p)
        measure(y := y + 5, p)
    assert np.array_equal(y, skewed[0] + 5)
    assert np.array_equal(p, skewed[1])


def test_missing_rows_are_dropped_on_request_and_counted():
    y, p = [1.0, None, 3.0], [1.0, 2.0, 5.0]
    table = rg.MeanTable.from_arrays(y, p, missing="drop")
    assert (table.n_in, table.n_dropped, table.size) == (3, 1, 2)
    with pytest.warns(CalibrantWarning, match="Rows dropped because a value is missing: 1"):
        assert rg.mean_error(y, p, missing="drop") == 1.0
    assert rg.bias_by_bin(y, p, missing="drop").notes[0].count == 1
    for option in ("sample_weight", "frequency"):
        with pytest.raises(InputError, match=f"{option} must be positive in at least one row; got zero in every row"):
            rg.mse([1.0], [1.0], **{option: [0.0]})
    with pytest.raises(InputError, match=r"frequency must be a whole number of rows, 0 or more; got 0.5 \(row 1\)"):
        rg.mse([1.0, 2.0], [1.0, 2.0], frequency=[1, 0.5])
    with pytest.raises(InputError, match="must not be given together"):
        rg.mse([1.0], [1.0], frequency=[1], sample_weight=[1])
    dropped = evaluate([1.0, 2.0, 3.0, 5.0], [1.0, 2.5, 3.0, 4.0], frequency=[0, 2, 1, 3], by=list("abaa"))
    assert {name: group.table.size for name, group in dropped.groups.items()} == {"a": 4, "b": 2}
    with pytest.raises(InputError, match="No row is left"):
        rg.mse([1.0, None], [1.0, 2.0], sample_weight=[0.0, 1.0], missing="drop")
    with pytest.raises(InputError, match="y_pred must be omitted with a MeanTable"):
        rg.mse(table, p)
    with pytest.raises(InputError, match="y_pred is missing"):
        rg.mse(y)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        rg.mse([1.0], [1.0], colour="red")
    with pytest.raises(TypeError, match="unexpected keyword argument 'y_prob'"):
        rg.mse([1.0], y_prob=[1.0])
    with pytest.raises(TypeError, match="missing a required argument: 'y_true'"):
        rg.mse()
    with pytest.raises(InputError, match="confidence_level"):
        rg.slope_intercept([1.0, 2.0, 4.0], [1.0, 2.0, 3.0], confidence_level=95)
    with pytest.raises(InputError, match="alpha"):
        rg.bias_by_bin([1.0, 2.0], [1.0, 2.0], alpha="a")
    with pytest.raises(InputError, match="a number for each row"):
        rg.cost_by_bin([1.0, 2.0], [1.0, 2.0], cost=lambda p, a: 1.0)
    assert rg.mse(y_true=[1.0], y_pred=[2.0]) == 1.0


def test_pandas_indexes_must_agree():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    y, p = pd.Series([1.0, 2.0], index=[0, 1]), pd.Series([1.0, 2.0], index=[1, 0])
    for measure in (rg.mse, evaluate, rg.bias_by_bin):
        with pytest.raises(InputError, match="indexes"):
            measure(y, p)
    assert rg.mse(y, pd.Series([1.0, 3.0])) == 0.5
