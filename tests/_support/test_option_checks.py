"""Options of functions: unknown keyword arguments are named, with the nearest known one."""

import inspect

import numpy as np
import pytest

import calibrant as cb
from calibrant import inference, metrics, regression
from calibrant._support.errors import check_keywords

Y, P = [0, 1, 1, 0], [0.2, 0.7, 0.6, 0.1]


def row_functions():
    """All public functions of rows that are not methods, with the arguments of a call."""
    seen = {}
    for namespace in (cb, inference, metrics, regression):
        for name in namespace.__all__:
            function = getattr(namespace, name)
            if inspect.isfunction(function) and "sample_weight" in inspect.signature(function).parameters:
                seen[f"{namespace.__name__}.{name}"] = function
    return seen


FUNCTIONS = row_functions()


def test_no_public_function_of_rows_hides_its_options():
    assert len(FUNCTIONS) > 50
    for name, function in FUNCTIONS.items():
        kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
        assert inspect.Parameter.VAR_KEYWORD not in kinds, name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_unknown_argument_is_a_type_error_that_names_it(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    columns = {"y_probs": {"a": P, "b": P}, "forecasts": {"a": P, "b": P}, "metric": "ece", "table": Y, "margin": 1.0}
    given = [columns.get(name, Y) for name, p in list(parameters.items()) if p.kind is p.POSITIONAL_OR_KEYWORD]
    with pytest.raises(TypeError, match="sample_weights"):
        FUNCTIONS[name](*given, sample_weights=[1, 1, 1, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cb.ece(Y, P, n_bin=5), r"ece\(\) has no argument 'n_bin'. Did you mean 'n_bins'"),
        (
            lambda: cb.evaluate(Y, P, weights=Y),
            r"evaluate\(\) has no argument 'weights'. Did you mean 'sample_weight'\?",
        ),
        (lambda: cb.evaluate(Y, P, n_resample=9), "Did you mean 'n_resamples'"),
        (lambda: cb.compare(Y, {"a": P, "b": P}, clusters=Y), r"compare\(\) has no argument 'clusters'. .*'cluster'"),
        (lambda: cb.decisions(Y, {"a": P}, missing_="drop"), "Did you mean 'missing'"),
        (lambda: cb.interval("ece", Y, P, conf_level=0.9), "Did you mean 'confidence_level'"),
        (lambda: cb.spiegelhalter(Y, P, xyz=1), r"It has y_true, y_prob, cluster, .*, missing\."),
        (lambda: cb.ECE()(Y, P, weight=Y), "no argument 'weight'. Did you mean 'sample_weight'"),
        (lambda: regression.mse(Y, P, weight=Y), r"mse\(\) has no argument 'weight'"),
        (lambda: regression.mean_quotient([1, 2], [1, 2], zero="drop"), "Did you mean 'zeros'"),
    ],
)
def test_the_nearest_argument_is_suggested(call, message):
    with pytest.raises(cb.InputError, match=message) as caught:
        call()
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("name", "given", "nearest"),
    [
        ("from_frame", "weight", "'sample_weight'"),
        ("tables_from_frame", "bye", "'by'"),
        ("from_query", "dialects", "'dialect'"),
        ("tables_from_query", "missing_", "'missing'"),
        ("scan", "formats", "'format'"),
        ("tables_scan", "progresses", "'progress'"),
        ("to_sql", "dialects", "'dialect'"),
        ("to_onnx", "calibrater", "'calibrator'"),
        ("sample_size", "powr", "'power'"),
        ("detectable", "alfa", "'alpha'"),
        ("classwise", "weights", "'sample_weight'"),
        ("top_label", "weights", "'sample_weight'"),
        ("proportions", "label", "'labels'"),
        ("ECE", "nbins", "'n_bins'"),
        ("TCE", "alphas", "'alpha'"),
        ("Brier", "n_bins", "It has none"),
        ("Beta", "parameter", "'parameters'"),
        ("Dirichlet", "reg_lamda", "'reg_lambda'"),
        ("CalibratedModel", "calibrater", "'calibrator'"),
    ],
)
def test_other_functions_and_constructors_suggest_the_nearest_argument_too(name, given, nearest):
    if name in ("Beta", "Dirichlet", "CalibratedModel"):
        pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    function = getattr(cb, name)
    with pytest.raises(cb.InputError, match=rf"{name}\(\) has no argument '{given}'\. .*{nearest}") as caught:
        function(**{given: 1})
    assert isinstance(caught.value, TypeError)


def test_from_arrays_suggests_the_nearest_argument():
    for table in (cb.ScoreTable, regression.MeanTable):
        with pytest.raises(cb.InputError, match="Did you mean 'sample_weight'"):
            table.from_arrays(Y, P, sample_weights=Y)


def test_displays_name_unknown_arguments():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    plots = pytest.importorskip("calibrant.plots", reason="matplotlib is not installed")
    for name in plots.__all__:
        display = getattr(plots, name)
        make = getattr(display, "from_predictions", None)
        if make is None or "sample_weight" not in inspect.signature(make).parameters:
            continue
        with pytest.raises(TypeError, match="no argument 'weights'. Did you mean 'sample_weight'"):
            make(np.array(Y), np.array(P), weights=Y)


def test_known_arguments_are_accepted():
    check_keywords("f", ["a", "b"], ["a", "b", "c"])
    check_keywords("f", [], [])
