"""Bad input: each public function that takes rows reads them with the shared reader and reports what it did.

The shared reader is tested on all hazards in tests/tables/test_rows.py; here each function gets two of each kind.
"""

import functools
import inspect
import warnings

import numpy as np
import pytest
from hazards import ACCEPTED, NOTED, REFUSED, P, Y, put

import calibrant as cb
from calibrant.results.evaluation import Evaluation


def takes_rows(value):
    if not inspect.isfunction(value):
        return False
    return list(inspect.signature(value).parameters)[:2] == ["y_true", "y_prob"]


def public():
    """All public functions of the package, of metrics, and of tests of calibration."""
    tests = ["detectable", "ecce_test", "hosmer_lemeshow", "slope_intercept_test", "spiegelhalter"]
    for namespace, names in ((cb, cb.__all__), (cb.metrics, cb.metrics.__all__), (cb.inference, tests)):
        for name in names:
            yield name, getattr(namespace, name)


PUBLIC = {name: function for name, function in public() if takes_rows(function)}
PUBLIC["murphy_decomposition"] = functools.partial(cb.metrics.murphy_decomposition, bins=cb.bins.EqualWidth(10))
PUBLIC["evaluate"] = functools.partial(cb.evaluate, n_resamples=19)
# These need counts: importance weights are refused.
OF_COUNTS = [PUBLIC[name] for name in ("calbin", "ecce_test")]
# These do not exist where all scores are 0 or 1.
OF_PROBABILITIES = ("ecce_test", "hosmer_lemeshow", "spiegelhalter", "slope_intercept")
# These have no value where only one class occurs.
TWO_CLASSES = ("auc", "stratified_brier", "slope_intercept")
FUNCTIONS = pytest.mark.parametrize("function", PUBLIC.values(), ids=list(PUBLIC))


def test_every_metric_is_tested():
    assert set(cb.metrics.metric_names("binary")) <= set(PUBLIC)


@FUNCTIONS
@pytest.mark.parametrize("hazard", ["NaN in p", "negative frequency"])
def test_bad_input_is_refused_with_value_place_and_hint(function, hazard):
    check_refused(function, hazard, "forecast" if function is PUBLIC["evaluate"] else "y_prob")


def check_refused(function, hazard, prediction):
    """The error names the argument that the function has."""
    y, p, options, message, argument, row = REFUSED[hazard]
    with pytest.raises(cb.InputError, match=message.replace("y_prob", prediction)) as caught:
        function(y, p, **options)
    assert isinstance(caught.value, ValueError)
    assert caught.value.argument == argument.replace("y_prob", prediction)
    assert row in (None, caught.value.row)
    assert prediction == "y_prob" or "y_prob" not in str(caught.value)


FRONT = {
    "evaluate": cb.evaluate,
    "evaluate by": lambda y, p, **options: cb.evaluate(y, p, by=np.arange(len(y)) % 2, **options),
    "evaluate cluster": lambda y, p, **options: cb.evaluate(y, p, cluster=np.arange(len(y)) // 2, **options),
    "audit": lambda y, p, **options: cb.audit(y, p, {"x": np.arange(len(y))}, **options),
    **{name: functools.partial(getattr(cb, name), "ece") for name in ("interval", "null", "consistency")},
    "equivalence": functools.partial(cb.equivalence, "ece", margin=0.1),
}


# Class probabilities are a forecast; the lengths of other columns must agree with that of the outcomes.
HAZARDS = [name for name, case in REFUSED.items() if "columns" not in name and len(np.atleast_1d(case[0])) == len(Y)]


@pytest.mark.parametrize("front", FRONT)
@pytest.mark.parametrize("hazard", HAZARDS)
def test_functions_of_a_forecast_call_it_so_in_errors(front, hazard):
    """`evaluate` has no argument y_prob."""
    check_refused(FRONT[front], hazard, "forecast")


@FUNCTIONS
@pytest.mark.parametrize("case", ["missing, dropped", "zero weight"])
def test_unusual_input_is_used_and_noted(function, case):
    y, p, options, codes = NOTED[case]
    if "sample_weight" in options and function in OF_COUNTS:
        refused = r"sample_weight must be omitted for|unexpected keyword argument 'sample_weight'"
        with pytest.raises((cb.InputError, TypeError), match=refused):
            function(y, p, **options)
        return
    if "sample_weight" in options and function is cb.tce:
        codes = codes | {"weighted_test"}
    if "sample_weight" in options and function is PUBLIC["evaluate"]:
        codes = codes | {"no_null"}  # of TCE, which needs counts
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(y, p, **options)
    if isinstance(result, float):
        assert not np.isnan(result)
        assert len({str(warning.message) for warning in caught}) == len(codes)
        assert all(warning.category is cb.CalibrantWarning for warning in caught)
        assert all(warning.filename == __file__ for warning in caught)
    else:
        assert not caught
        found = {note.code for note in result.notes}
        assert codes <= found <= codes | {"few_events"}  # of a test with few rows


@pytest.mark.parametrize("name", TWO_CLASSES)
def test_metrics_that_need_two_classes_say_so(name):
    with pytest.raises(cb.InputError, match="needs rows with and without|must have rows with and without"):
        PUBLIC[name](Y * 0, P)


@pytest.mark.parametrize("name", OF_PROBABILITIES)
def test_tests_that_need_probabilities_refuse_hard_labels(name):
    with pytest.raises(cb.InputError, match="slope does not exist|must have a score other than|degree of freedom"):
        PUBLIC[name](Y, Y)


@FUNCTIONS
@pytest.mark.parametrize("case", ["bool y", "objects"])
def test_equivalent_inputs_give_the_same_result_without_a_warning(function, case):
    y, p = ACCEPTED[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer(function, y, p) == answer(function, Y, P)


def answer(function, y, p):
    """The result as something that can be compared."""
    result = function(y, p)
    return result if not isinstance(result, Evaluation) else result.to_dict()


@FUNCTIONS
def test_input_is_never_changed(function):
    y, p, w = Y.astype(float), put(P, 3, 1 + 1e-12), np.full(200, 2.0)
    y[5], p[7] = np.nan, np.nan
    copies = y.copy(), p.copy(), w.copy()
    options = {"frequency" if function in OF_COUNTS else "sample_weight": w}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cb.CalibrantWarning)
        function(y, p, missing="drop", **options)
    for array, copy in zip((y, p, w), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@FUNCTIONS
def test_pandas_indexes_must_agree(function):
    pd = pytest.importorskip("pandas")
    y, p = pd.Series(Y), pd.Series(P)
    assert answer(function, y, P) == answer(function, Y, P)
    with pytest.raises(cb.InputError, match="indexes of y_true and (y_prob|forecast) differ.*to_numpy"):
        function(y, p.sample(frac=1, random_state=0))


@pytest.mark.parametrize("name", sorted(cb.metrics.metric_names("binary")))
def test_empty_or_incomplete_input_is_an_error(name):
    function = getattr(cb.metrics, name)
    with pytest.raises(cb.InputError, match="holds no rows"):
        function(cb.ScoreTable.empty())
    with pytest.raises(cb.InputError, match="y_prob is missing"):
        function(Y)
    table = cb.ScoreTable.from_arrays(Y, P)
    assert function(table, sample_weight=None, pos_label=None, missing="raise") == function(table)
    with pytest.raises(cb.InputError, match="sample_weight must be omitted with a ScoreTable; got both"):
        function(table, sample_weight=np.ones(200))
    with pytest.raises(cb.InputError, match="y_prob must be omitted with a ScoreTable"):
        function(table, P)


@pytest.mark.parametrize("other", ["a\0", b"a\0"])
def test_nul_at_the_end_of_text_in_a_list_tells_labels_and_groups_apart(other):
    cells = ["a" if isinstance(other, str) else b"a", other] * 20
    result = cb.evaluate([0, 1] * 20, [0.2, 0.8] * 20, by=cells, n_resamples=9)
    assert set(result.groups) == set(cells)
    assert cb.ScoreTable.from_arrays(cells, [0.2, 0.8] * 20, pos_label=cells[0]).k.tolist() == [20, 0]
