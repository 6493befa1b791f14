"""Options of every public function: wrong types and unknown names are errors that say which; names are escaped."""

import inspect

import numpy as np
import pytest

import calibrant as cb
from calibrant import inference, metrics, regression
from calibrant._support.errors import check_keywords
from calibrant._support.formatting import printable

RNG = np.random.default_rng(0)
P = RNG.random(60)
Y = (RNG.random(60) < P).astype(int)
TABLE = cb.ScoreTable.from_arrays(Y, P)
WRONG = ["x", None, -1, object(), [1], {}, 1.5, True, float("nan"), b"x"]
GIVEN = {
    "y_true": Y,
    "y_prob": P,
    "y_probs": {"a": P, "b": np.sqrt(P)},
    "forecasts": {"a": P, "b": np.sqrt(P)},
    "metric": "ece",
    "forecast": P,
    "table": TABLE,
    "margin": 1.0,
    "y_pred": P,
}
# Objects of the library, not options of users; show_versions prints.
NO_OPTIONS = {("cumulative_band", "rows")}
NOT_CALLED = {"show_versions", "CalibrationCounter"}


def has_all(signature, given):
    needed = [name for name, p in signature.parameters.items() if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
    needed += [n for n, p in signature.parameters.items() if p.default is p.empty and p.kind is p.KEYWORD_ONLY]
    return all(name in given for name in needed)


def options():
    """Yield each public function and class that can be called with the arguments above, and each of its options."""
    seen = set()
    for namespace in (cb, cb.bins, cb.costs, cb.calibrators, inference, metrics, regression):
        for name in getattr(namespace, "__all__", ()):  # calibrators may lack scikit-learn
            function = getattr(namespace, name)
            is_error = inspect.isclass(function) and issubclass(function, BaseException)
            if not (inspect.isfunction(function) or inspect.isclass(function)) or is_error or name in NOT_CALLED:
                continue
            signature = inspect.signature(function)
            given = {
                each: GIVEN[each] for each, p in signature.parameters.items() if each in GIVEN and p.default is p.empty
            }
            if (id(function), name) in seen or not has_all(signature, given):
                continue
            seen.add((id(function), name))
            for option, p in signature.parameters.items():
                named = p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
                if named and option not in given and (name, option) not in NO_OPTIONS:
                    yield pytest.param(function, given, option, id=f"{namespace.__name__}.{name}-{option}")


def use(function, given, option, value):
    few = {"n_resamples": 39} if "n_resamples" in inspect.signature(function).parameters else {}
    made = function(**given, **{**few, option: value})
    if hasattr(made, "fit") and inspect.isclass(function):
        made.fit(P, Y)
    elif isinstance(made, metrics.Metric):
        made(TABLE)


@pytest.mark.parametrize(("function", "given", "option"), list(options()))
@pytest.mark.filterwarnings("ignore")
def test_options_of_wrong_types_are_input_errors(function, given, option):
    bare = []
    for value in WRONG:
        try:
            use(function, given, option, value)
        except (cb.InputError, ModuleNotFoundError):
            pass
        except Exception as error:
            bare.append((value, error))
    assert not bare


def raises(call, message):
    with pytest.raises(cb.InputError, match=message):
        call()


def test_margins_and_limits_of_wrong_types_are_named():
    raises(lambda: cb.equivalence("ece", Y, P, margin=None), "margin must be a positive number; got None")
    raises(lambda: cb.TCE(alpha="x"), "alpha must lie between 0 and 1; got 'x'")
    raises(lambda: cb.PAVABC(n_min="x"), "n_min and n_max must satisfy 0 <= n_min <= n_max; got 'x' and None")
    raises(lambda: metrics.OptimalBins(n_min=None), "n_min must be a number; got None")


def test_names_of_files_of_wrong_types_are_named():
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    raises(lambda: cb.ScoreTable.from_parquet(None), "path must be the name of a file; got None")


def test_exports_name_arguments_of_wrong_types():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    cal = cb.Platt().fit(P, Y)
    raises(lambda: cb.to_sql(cal, None), "column must be the name of one column")
    raises(lambda: cb.to_sql(cal, 5), "column must be a name")
    raises(lambda: cb.to_sql(cal, "p", dialect=[1]), "dialect must be one of")
    raises(lambda: cb.load(None), "path must be the name of a file; got None")
    raises(lambda: cb.save(cal, 3), "path must be the name of a file; got 3")
    pytest.importorskip("onnx", reason="onnx is not installed")
    raises(lambda: cb.to_onnx(cal, shape=3), "shape must be a sequence of sizes and names; got 3")


def test_an_unknown_frame_library_is_named():
    pytest.importorskip("pandas", reason="pandas is not installed")
    found = cb.evaluate(Y, P, n_resamples=39)
    for backend in ("x", None, [1], 1.5):
        raises(lambda backend=backend: found.to_frame(backend=backend), "backend must be pandas, polars, pyarrow")


@pytest.mark.parametrize(
    ("given", "meant"), [("groups", "by"), ("labels", "classes"), ("seed", "random_state"), ("group", "by")]
)
def test_names_of_other_libraries_are_translated(given, meant):
    raises(
        lambda: cb.evaluate(Y, P, **{given: Y}), rf"evaluate\(\) has no argument '{given}'\. Did you mean '{meant}'\?"
    )


@pytest.mark.parametrize("given", ["y_pred", "y_prob", "y_score"])
def test_other_names_of_the_forecast_are_translated(given):
    raises(lambda: cb.evaluate(Y, **{given: P}), rf"has no argument '{given}'\. Did you mean 'forecast'\?")


HOSTILE = {"infinite": [np.inf, -np.inf], "escape": ["\x1b[31mred", "b\nc"], "surrogate": ["\ud800x", "b"]}


@pytest.fixture(scope="module", params=HOSTILE)
def grouped(request):
    values = np.array(HOSTILE[request.param], dtype=object if request.param != "infinite" else float)
    return cb.evaluate(np.tile(Y, 4), np.tile(P, 4), by=values[np.arange(240) % 2], n_resamples=39)


def test_names_of_groups_reach_terminals_escaped(grouped):
    for text in (repr(grouped), grouped._repr_html_()):
        assert all(line.isprintable() for line in text.split("\n"))
        text.encode()


def test_names_of_groups_do_not_break_figures_and_reports(grouped, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    pytest.importorskip("jinja2", reason="jinja2 is not installed")
    from calibrant import plots

    display = grouped.plot()
    for ending in ("svg", "png", "pdf"):
        plots.save(display, tmp_path / f"a.{ending}")
    grouped.to_html(tmp_path / "a.html").encode()
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!")


def test_names_of_groups_do_not_break_frames(grouped):
    pytest.importorskip("pandas", reason="pandas is not installed")
    assert len(grouped.to_frame()) > 0


def test_names_of_models_and_columns_are_escaped():
    compared = cb.compare(Y, {"a\x1b[31m": P, "b": np.sqrt(P)}, n_resamples=39)
    assert "\x1b" not in repr(compared)
    assert "a\\x1b[31m" in repr(compared)
    error = cb.InputError("the column a\x1b[31m must be a number.", hint="Line\nbreaks stay.")
    assert str(error) == "the column a\\x1b[31m must be a number. Line\nbreaks stay."
    assert printable("é ✓") == "é ✓"


@pytest.mark.parametrize("name", ["*", "^p.*$", "^y"])
@pytest.mark.parametrize("lazy", [False, True])
def test_columns_of_polars_may_be_named_like_patterns(name, lazy):
    pl = pytest.importorskip("polars", reason="polars is not installed")
    frame = pl.DataFrame({name: Y, "p": P, "pq": P})
    found = cb.from_frame(frame.lazy() if lazy else frame, y=name, p="p")
    assert found == TABLE
    by = cb.tables_from_frame(pl.DataFrame({"y": Y, "p": P, name: Y}), y="y", p="p", by=name)
    assert by.total() == TABLE if hasattr(by, "total") else len(by) == 2


OUTCOMES, SCORES = [0, 1, 1, 0], [0.2, 0.7, 0.6, 0.1]


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
    columns = {
        "y_probs": {"a": SCORES, "b": SCORES},
        "forecasts": {"a": SCORES, "b": SCORES},
        "metric": "ece",
        "table": OUTCOMES,
        "margin": 1.0,
    }
    given = [columns.get(name, OUTCOMES) for name, p in list(parameters.items()) if p.kind is p.POSITIONAL_OR_KEYWORD]
    with pytest.raises(TypeError, match="sample_weights"):
        FUNCTIONS[name](*given, sample_weights=[1, 1, 1, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cb.ece(OUTCOMES, SCORES, n_bin=5), r"ece\(\) has no argument 'n_bin'. Did you mean 'n_bins'"),
        (
            lambda: cb.evaluate(OUTCOMES, SCORES, weights=OUTCOMES),
            r"evaluate\(\) has no argument 'weights'. Did you mean 'sample_weight'\?",
        ),
        (lambda: cb.evaluate(OUTCOMES, SCORES, n_resample=9), "Did you mean 'n_resamples'"),
        (
            lambda: cb.compare(OUTCOMES, {"a": SCORES, "b": SCORES}, clusters=OUTCOMES),
            r"compare\(\) has no argument 'clusters'. .*'cluster'",
        ),
        (lambda: cb.decisions(OUTCOMES, {"a": SCORES}, missing_="drop"), "Did you mean 'missing'"),
        (lambda: cb.interval("ece", OUTCOMES, SCORES, conf_level=0.9), "Did you mean 'confidence_level'"),
        (lambda: cb.spiegelhalter(OUTCOMES, SCORES, xyz=1), r"It has y_true, y_prob, cluster, .*, missing\."),
        (lambda: cb.ECE()(OUTCOMES, SCORES, weight=OUTCOMES), "no argument 'weight'. Did you mean 'sample_weight'"),
        (lambda: regression.mse(OUTCOMES, SCORES, weight=OUTCOMES), r"mse\(\) has no argument 'weight'"),
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
            table.from_arrays(OUTCOMES, SCORES, sample_weights=OUTCOMES)


def test_displays_name_unknown_arguments():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    plots = pytest.importorskip("calibrant.plots", reason="matplotlib is not installed")
    for name in plots.__all__:
        display = getattr(plots, name)
        make = getattr(display, "from_predictions", None)
        if make is None or "sample_weight" not in inspect.signature(make).parameters:
            continue
        with pytest.raises(TypeError, match="no argument 'weights'. Did you mean 'sample_weight'"):
            make(np.array(OUTCOMES), np.array(SCORES), weights=OUTCOMES)


def test_known_arguments_are_accepted():
    check_keywords("f", ["a", "b"], ["a", "b", "c"])
    check_keywords("f", [], [])
