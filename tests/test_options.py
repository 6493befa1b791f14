"""Options of every public function: values of wrong types are errors that say which; names are escaped."""

import contextlib
import inspect
from typing import get_args

import numpy as np
import pytest

import calibrant as cb
from calibrant import inference, metrics, regression
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


def option_names(signature):
    """Yield the names of arguments, also those of a typed dictionary."""
    for name, p in signature.parameters.items():
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            yield name
        elif p.kind is p.VAR_KEYWORD and get_args(p.annotation):
            yield from get_args(p.annotation)[0].__annotations__


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
            for option in option_names(signature):
                if option not in given and (name, option) not in NO_OPTIONS:
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


def test_random_numbers_have_one_default_seed():
    """The same call gives the same numbers, wherever a seed can be given."""
    seeds = {}
    for namespace in (cb, *(getattr(cb, name) for name in cb._lazy.namespaces)):
        for name in getattr(namespace, "__all__", ()):
            if callable(value := getattr(namespace, name)) and (name, namespace) != ("Settings", cb.results):
                with contextlib.suppress(ValueError, ModuleNotFoundError):
                    if (p := inspect.signature(value).parameters.get("random_state")) is not None:
                        seeds[name] = p.default
    assert len(seeds) > 20
    assert set(seeds.values()) == {0}


def raises(call, message):
    with pytest.raises(cb.InputError, match=message):
        call()


def test_margins_and_limits_of_wrong_types_are_named():
    raises(lambda: cb.equivalence("ece", Y, P, margin=None), "margin must be a positive number; got None")
    raises(lambda: cb.TCE(alpha="x"), "alpha must lie between 0 and 1; got 'x'")
    raises(lambda: cb.bins.PAVABC(n_min="x"), "n_min and n_max must satisfy 0 <= n_min <= n_max; got 'x' and None")
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
    page = grouped.to_html(tmp_path / "a.html")
    assert page.read_text(encoding="utf-8").startswith("<!")


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
    by = cb.from_frame(pl.DataFrame({"y": Y, "p": P, name: Y}), y="y", p="p", by=name)
    assert by.total() == TABLE if hasattr(by, "total") else len(by) == 2
