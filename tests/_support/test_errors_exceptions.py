"""Public exceptions: the place that tracebacks show, copies of them for other processes, and their examples."""

import doctest
import importlib
import pickle
import traceback

import pytest

import calibrant as cb

pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")  # errors of the monitor

NAMES = sorted(cb.exceptions.__all__)


def an_error(name: str) -> BaseException:
    """Return an error of each class, with the data that it carries."""
    error = getattr(cb.exceptions, name)
    if name == "FileWriteError":
        return error("report.html", OSError(28, "No space left on device"))
    if name == "MissingExtraError":
        return error("Diagrams need matplotlib", "plot", name="matplotlib")
    return error("y_true must hold 0 and 1; got 2.")


@pytest.mark.parametrize("name", NAMES)
def test_a_traceback_names_an_importable_class(name):
    shown = traceback.format_exception_only(an_error(name))[0].partition(":")[0]
    module, _, found = shown.rpartition(".")
    assert getattr(importlib.import_module(module), found) is getattr(cb.exceptions, name)


@pytest.mark.parametrize("name", NAMES)
def test_an_error_can_be_pickled(name):
    error = an_error(name)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_an_exception_run(name):
    """doctest looks for examples of classes in the module that they name, and so misses these."""
    home = importlib.import_module(f"calibrant.{cb.exceptions._lazy.homes[name]}")
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(cb.exceptions, name), globs=vars(home).copy())
    assert example.examples
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example).failed == 0
