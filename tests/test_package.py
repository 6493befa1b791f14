"""The package as such: what it exports, what importing it costs, what it says of itself."""

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import pytest

import calibrant as cb

PACKAGE = Path(cb.__file__).parent
FOLDERS = ("calibrators", "exceptions", "forecasts", "inference", "metrics", "plots", "regression", "results")
PACKAGES = pytest.mark.parametrize("name", ["calibrant", *(f"calibrant.{folder}" for folder in FOLDERS)])
MAX_PUBLIC_NAMES = 70
# Libraries that an installation without extras does not have.
OPTIONAL = """
sklearn lightgbm matplotlib duckdb pyarrow pyspark jinja2 click rich onnx torch sqlalchemy psycopg mlflow starlette
uvicorn prometheus_client pandas polars
"""
BARE = f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL.split()}))"
# Scripts outside this repository use these names; some of them are deprecated.
FIXED = """
evaluate compare interval null equivalence consistency detectable spiegelhalter hosmer_lemeshow ecce_test
slope_intercept slope_intercept_test classwise top_label proportions decisions optimal_prediction ScoreTable Tables
from_frame
tables_from_frame scan tables_scan from_query GCE Breakdown METRICS CALIBRATORS EqualWidth Quantile PAVA PAVABC Edges
LinearCost PowerCost ExponentialCost LogCost StepCost tce ece ace mce rmsce ecc brier log_loss auc smooth_ece
stratified_brier calbin calloss murphy_decomposition corp_decomposition TCE ECE ACE MCE RMSCE ECC save load to_sql
to_onnx InputError CalibrantWarning show_versions
"""


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def moved_names():
    """All deprecated names of all packages, with the public names that replace them."""
    for name in ("calibrant", *(f"calibrant.{folder}" for folder in FOLDERS)):
        if name != "calibrant.calibrators":  # which needs scikit-learn
            yield from ((name, old, new) for old, new in import_module(name)._lazy.moved.items())


def load(name):
    if name == "calibrant.calibrators":
        pytest.importorskip("sklearn")
    return import_module(name)


@PACKAGES
def test_every_public_name_can_be_imported(name):
    package = load(name)
    for public in package.__all__:
        assert getattr(package, public) is not None
    assert set(package.__all__) <= set(dir(package))


@pytest.mark.parametrize(("package", "old", "new"), list(moved_names()))
def test_a_name_that_moved_is_the_same_object_with_a_warning(package, old, new):
    if new.startswith("calibrators."):
        pytest.importorskip("sklearn")
    value = cb
    for part in new.split("."):
        value = getattr(value, part)
    text = rf"^{package}\.{old} is deprecated: use calibrant\.{new}; the old name will be removed in 1\.1\.$"
    with pytest.warns(DeprecationWarning, match=text) as caught:
        assert getattr(import_module(package), old) is value
    with pytest.warns(DeprecationWarning, match=text) as imported:
        exec(f"from {package} import {old}")
    assert len(caught) == len(imported) == 1
    assert caught[0].filename == __file__
    assert old not in dir(import_module(package))
    assert old not in import_module(package).__all__


def test_every_name_that_scripts_use_is_there():
    pytest.importorskip("sklearn")
    names = [*FIXED.split(), *(name for name in cb.calibrators.__all__ if name in cb._lazy.moved)]
    with pytest.warns(DeprecationWarning, match="is deprecated: use"):
        assert all(hasattr(cb, name) for name in names)


LISTED = {
    "star import": "from calibrant import *; print(evaluate.__name__, CalibrantWarning.__name__)",
    "help": "import calibrant; help(calibrant)",
    "members": "import inspect, calibrant; print(dict(inspect.getmembers(calibrant))['evaluate'].__name__)",
    "hasattr": "import calibrant as cb; print(all(hasattr(cb, name) for name in [*dir(cb), *cb._lazy.moved]))",
    "namespaces": "import calibrant as cb; from calibrant.metrics import *; from calibrant.plots import *; "
    "from calibrant.exceptions import *; from calibrant.inference import *; from calibrant.regression import *; "
    "print(tce.__module__, isinstance(1, CalibrationCounter))",
}


@pytest.mark.parametrize("way", LISTED)
@pytest.mark.parametrize("installation", ["all that is installed", "no extra"])
def test_listing_all_names_works_in_every_installation(way, installation):
    start = "import warnings; warnings.simplefilter('ignore')" if way == "hasattr" else "pass"
    code = f"{start}; {BARE if installation == 'no extra' else 'pass'}; {LISTED[way]}"
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    printed = done.stdout
    if way == "help":
        assert re.search(r"^    evaluate\(", printed, flags=re.MULTILINE)
        assert not re.search(r"^    (class )?(LinearCost|Temperature)\(", printed, flags=re.MULTILINE)
    else:
        wanted = {
            "star import": "evaluate CalibrantWarning",
            "members": "evaluate",
            "hasattr": "True",
            "namespaces": "calibrant.inference.regression.bias_by_bin False",
        }
        assert printed == wanted[way] + "\n"


@pytest.mark.parametrize(
    ("use", "extra"),
    [
        ("cb.Platt()", "sklearn"),
        ("cb.calibrators.Beta", "sklearn"),
        ("cb.calibrators.CALIBRATORS['beta']", "sklearn"),
        ("cb.scorers['ece']", "sklearn"),
        ("cb.save(None, 'x')", "sklearn"),
        ("cb.plots.ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7])", "plot"),
        # SciPy reads attributes of a module torch that is None.
        ("sys.modules.pop('torch'); cb.evaluate([0, 1, 1], [0.1, 0.5, 0.9], n_resamples=49).plot()", "plot"),
        ("cb.Monitor('sqlite://')", "monitor"),
        ("cb.exceptions.StoreError('x')", "monitor"),
        ("cb.metrics.CalibrationCounter()", "torch"),
        ("type('Mine', (cb.metrics.CalibrationCounter,), {})", "torch"),
    ],
)
def test_a_name_whose_library_is_missing_names_the_extra_when_it_is_used(use, extra):
    code = f"""{BARE}
import calibrant as cb
try:
    {use}
except cb.exceptions.MissingExtraError as error:
    print(error.extra, isinstance(error, ModuleNotFoundError), error)
"""
    printed = python(code)
    assert printed.startswith(f"{extra} True ")
    assert printed.endswith(f': pip install "calibrant[{extra}]".')


@PACKAGES
def test_no_public_name_is_hidden_by_a_module(name):
    """Importing a module sets it as an attribute of its package, in the place of a public name."""
    package = load(name)
    modules = {path.stem for path in Path(package.__file__).parent.iterdir()}
    assert not modules & (set(package.__all__) - set(package._lazy.namespaces))


def test_there_is_one_front_door():
    assert cb.regression.evaluate is cb.evaluate


def test_the_public_surface_is_limited():
    assert len(cb.__all__) == len(set(cb.__all__)) <= MAX_PUBLIC_NAMES
    assert set(cb.METRICS) <= set(cb.metrics.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="calibrant"):
        cb.no_such_name  # noqa: B018


@PACKAGES
def test_the_stub_lists_the_names_of_the_map(name):
    package = load(name)
    stub = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    names = {alias.asname for node in stub.body for alias in getattr(node, "names", []) if alias.asname}
    names |= {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    deprecated = {*package._lazy.moved, *package._lazy.deprecated}
    assert {name for name in names if not name.startswith("_")} == {*package.__all__, *deprecated}


def test_importing_loads_neither_numpy_nor_anything_heavy():
    code = "import sys, calibrant; print([m for m in ('numpy', 'scipy', 'narwhals') if m in sys.modules])"
    assert python(code) == "[]"


# Calls that need only a part of the libraries, and what they must not load.
ROWS = "import numpy as np; p = np.linspace(0.05, 0.95, 200); y = (np.arange(200) % 7 < 7 * p).astype(int)"
LARGE = ["matplotlib", "narwhals", "pandas", "scipy.optimize", "scipy.sparse", "scipy.stats", "sklearn"]
LEAN = {
    "cb.ece([0, 1, 1], [0.1, 0.8, 0.7])": [*LARGE, "scipy.special"],
    "cb.tce(y, p)": [*LARGE, "scipy.special"],
    "cb.evaluate(y, p, n_resamples=39)": LARGE,
    "str(cb.evaluate(y, p, n_resamples=39, by=y))": LARGE,
    "cb.inference.benjamini_hochberg([0.1, 0.2])": LARGE,
    "cb.proportions([0, 1, 1, 0], [0, 1, 0, 1])": LARGE,
}


@pytest.mark.parametrize("call", LEAN)
def test_large_libraries_are_loaded_only_where_they_are_used(call):
    from calibrant._kernels import KERNEL

    if KERNEL == "reference" and ("tce" in call or "evaluate" in call):
        pytest.skip("the reference kernel tests scores by scipy.stats")
    loaded = f"print([m for m in {LEAN[call]} if m in sys.modules])"
    code = f"import sys, calibrant as cb; {ROWS}; {call}; {loaded}"
    own = "[]"
    if "scipy.special" not in LEAN[call]:  # which loads scipy.sparse before SciPy 1.17
        own = python(f"import sys, scipy.special; {loaded}")
    assert python(code) in ("[]", own)


def test_versions_name_the_kernel(capsys):
    from calibrant._kernels import KERNEL

    cb.show_versions()
    printed = capsys.readouterr().out
    assert f"kernel {KERNEL}" in " ".join(printed.split())
    assert importlib.metadata.version("calibrant") == cb.__version__


@pytest.mark.parametrize("compiler", [None, "/usr/bin/c++"])
def test_a_kernel_that_was_not_built_is_reported_and_warned_of_if_there_is_a_compiler(monkeypatch, capsys, compiler):
    from calibrant._support import kernel_choice

    monkeypatch.delenv("CALIBRANT_KERNEL", raising=False)
    monkeypatch.setattr(kernel_choice, "_is_built", lambda: False)
    monkeypatch.setattr(kernel_choice, "_compiler", lambda: compiler)
    cb.show_versions()
    printed = capsys.readouterr().out
    if compiler is None:
        assert "reference (the compiled kernel was not built: no C++ compiler was found)" in printed
        kernel_choice.warn_of_failed_build()  # warnings are errors here
        return
    assert (
        "reference (the compiled kernel was not built, although there is /usr/bin/c++: pip install -v shows" in printed
    )
    with pytest.warns(
        cb.CalibrantWarning, match=r"was not built, although there is a C\+\+ compiler \(/usr/bin/c\+\+\)"
    ):
        kernel_choice.warn_of_failed_build()
    monkeypatch.setenv("CALIBRANT_KERNEL", "reference")
    kernel_choice.warn_of_failed_build()


def test_the_first_use_of_a_kernel_that_was_not_built_warns_once(tmp_path):
    """A copy of the package without the kernel, as a failed build leaves it."""
    copy = tmp_path / "calibrant"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "cpp"))
    code = textwrap.dedent(
        f"""
        import sys, warnings
        sys.path.insert(0, {str(tmp_path)!r})
        sys.meta_path = [finder for finder in sys.meta_path if "editable" not in str(finder).lower()]
        import calibrant as cb
        from calibrant._support import kernel_choice
        kernel_choice._compiler = lambda: "c++"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            values = cb.ece([0, 1], [0.2, 0.7]), cb.ece([0, 1], [0.2, 0.7])
        print(cb._kernels.KERNEL, sum("was not built" in str(each.message) for each in caught))
        """
    )
    environment = {name: value for name, value in os.environ.items() if name != "CALIBRANT_KERNEL"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "reference 1\n"


def test_a_wrong_kernel_name_is_an_error():
    code = "import os; os.environ['CALIBRANT_KERNEL'] = 'fast'; import calibrant as cb; cb.ece"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        python(code)
    assert "must be 'compiled' or 'reference'; got 'fast'" in caught.value.stderr


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()
