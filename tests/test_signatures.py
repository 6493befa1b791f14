"""Signatures of public functions: unknown arguments are errors of Python, and of type checkers before."""

import inspect
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import get_args, get_origin

import numpy as np
import pytest

import calibrant as cb
from calibrant import inference, metrics, regression
from calibrant.tables.rows import RowOptions, WeightOptions
from tools import write_stub

ROOT = Path(__file__).parents[1]
Y, P = [0, 1, 1, 0], [0.2, 0.7, 0.6, 0.1]


def reads_rows(function):
    """Whether a function has the options for reading rows, by name or as a typed dictionary."""
    parameters = inspect.signature(function).parameters.values()
    options = [p.annotation for p in parameters if p.kind is p.VAR_KEYWORD]
    return any(p.name == "sample_weight" for p in parameters) or any(map(get_origin, options))


FUNCTIONS = {
    f"{namespace.__name__}.{name}": getattr(namespace, name)
    for namespace in (cb, inference, metrics, regression)
    for name in namespace.__all__
    if inspect.isfunction(getattr(namespace, name)) and reads_rows(getattr(namespace, name))
}


def test_no_public_function_of_rows_hides_its_options():
    assert len(FUNCTIONS) > 50
    for name, function in FUNCTIONS.items():
        parameters = inspect.signature(function).parameters.values()
        hidden = [p.annotation for p in parameters if p.kind is p.VAR_KEYWORD]
        assert all(get_args(options)[0] in (RowOptions, WeightOptions) for options in hidden), name


@pytest.mark.parametrize(("table", "options"), [(cb.ScoreTable, RowOptions), (regression.MeanTable, WeightOptions)])
def test_row_options_are_those_of_the_table(table, options):
    assert list(inspect.signature(table.from_arrays).parameters)[2:] == [
        name for name in inspect.signature(cb.ScoreTable.from_arrays).parameters if name in options.__annotations__
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_unknown_argument_is_a_type_error_that_names_it(name):
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    columns = {"y_probs": {"a": P, "b": P}, "forecasts": {"a": P, "b": P}, "metric": "ece", "table": Y, "margin": 1.0}
    needed = {
        name: columns.get(name, Y)
        for name, p in parameters.items()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    }
    given = {name: columns.get(name, Y) for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD}
    with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weights'"):
        FUNCTIONS[name](**(given | needed), sample_weights=[1, 1, 1, 1])


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: cb.ece(Y, P, n_bin=5), "n_bin"),
        (lambda: metrics.ECE(nbins=5), "nbins"),
        (lambda: metrics.ECE()(Y, P, weight=Y), "weight"),
        (lambda: metrics.Brier()(Y, P, weight=Y), "weight"),
        (lambda: regression.MSE()(Y, P, pos_label=1), "pos_label"),
        (lambda: cb.from_frame({}, y="y", p="p", weight="w"), "weight"),
    ],
)
def test_unknown_arguments_of_metrics_and_readers_are_type_errors(call, argument):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{argument}'"):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (cb.ece, "missing a required argument: 'y_true'"),
        (lambda: cb.ece(Y, P, 5), "too many positional arguments"),
        (lambda: cb.ece(Y, P, y_true=Y), "multiple values for argument 'y_true'"),
    ],
)
def test_functions_of_metrics_take_two_columns(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_displays_refuse_unknown_arguments():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    plots = pytest.importorskip("calibrant.plots", reason="matplotlib is not installed")
    for name in plots.__all__:
        make = getattr(getattr(plots, name), "from_predictions", None)
        if make is not None and reads_rows(make):
            with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
                make(np.array(Y), np.array(P), weights=Y)


def test_stubs_state_the_arguments_of_metrics(tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    packages = [name for name in write_stub.PACKAGES if name not in ("calibrant.calibrators", "calibrant.plots")]
    written = {name: tmp_path / f"{name}.pyi" for name in packages}
    write_stub.write(written)
    for name, stub in written.items():
        assert stub.read_text() == (write_stub.SOURCE / name.replace(".", "/") / "__init__.pyi").read_text(), name


def test_type_checkers_find_unknown_arguments_and_accept_the_modules_of_kinds():
    """Each wrong call of the file is marked, and a mark without an error is one too."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    files = ["tests/typing/signatures.py", "tests/typing/kinds.py"]
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", *files]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout.startswith("Success"), done.stdout + done.stderr


@pytest.fixture(scope="module")
def pyright(tmp_path_factory):
    """Run pyright in an environment in which Calibrant is installed."""
    program = shutil.which("pyright")
    if program is None:
        pytest.skip("pyright is not installed")
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "calibrant.pth").write_text(f"{write_stub.SOURCE}\n{sysconfig.get_path('purelib')}\n")
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])

    def run(*arguments):
        done = subprocess.run(
            [program, *arguments], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    return run


def test_pyright_finds_unknown_arguments_too(pyright):
    printed = pyright(str(ROOT / "tests/typing/signatures.py"))
    assert printed.startswith("0 errors"), printed


def test_types_of_at_least_95_percent_of_the_public_names_are_known(pyright):
    printed = pyright("--verifytypes", "calibrant", "--ignoreexternal")
    (share,) = re.findall(r"^Type completeness score: ([0-9.]+)%", printed, flags=re.MULTILINE)
    assert float(share) >= 95
