"""Errors that carry the arguments they mention as data."""

import pickle

import numpy as np
import pytest

import calibrant as cb
from calibrant._support.errors import Argument, InputError, MissingExtraError, Note


def option(argument: Argument) -> str:
    """Write an argument as an option of a command."""
    return f"--{argument.name}" if argument.value is None else f"--{argument.name} {argument.value}"


def test_plain_text_is_written_unchanged():
    error = InputError("{count} and missing='drop' stay.", hint="So does {this}.")
    assert str(error) == error.write(option) == "{count} and missing='drop' stay. So does {this}."


def test_each_interface_writes_arguments_in_its_own_way():
    error = InputError(
        Argument("alpha") + " must lie below 1; got 2.", hint="Pass " + Argument("alpha", 0.05) + " instead.", value=2
    )
    assert str(error) == "alpha must lie below 1; got 2. Pass alpha=0.05 instead."
    assert error.write(option) == "--alpha must lie below 1; got 2. Pass --alpha 0.05 instead."
    assert (error.argument, error.value, error.hint) == ("alpha", 2, "Pass alpha=0.05 instead.")


def test_python_code_replaces_name_and_value():
    error = InputError("No.", hint="Use " + Argument("step", "2**-20", python="step=2**-20") + ".")
    assert str(error) == "No. Use step=2**-20."
    assert error.write(option) == "No. Use --step 2**-20."


def test_texts_and_arguments_are_joined_in_order():
    text = "a " + Argument("b") + " c " + (Argument("d") + " e")
    assert text.write() == "a b c d e"


def test_an_explicit_argument_precedes_the_mentioned_one():
    assert InputError(Argument("a") + " and " + Argument("b"), argument="b").argument == "b"
    assert InputError("Plain.").argument is None


def test_a_pickled_error_keeps_its_data():
    error = InputError(Argument("y") + " is bad.", hint="Pass " + Argument("z", 1) + ".", row=3, value="x")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.write(option)) == (str(error), error.write(option))
    assert vars(copy).keys() == vars(error).keys()
    assert (copy.argument, copy.row, copy.value, copy.hint) == ("y", 3, "x", "Pass z=1.")


@pytest.mark.parametrize(
    ("call", "python", "command_line"),
    [
        (lambda y, p: cb.ece(y, np.where(p > 0.5, np.nan, p)), "Pass missing='drop'", "Pass --missing drop"),
        (lambda y, p: cb.ece(np.where(y, "yes", "no"), p), "pos_label='yes'.", "--pos_label yes."),
        (lambda y, p: cb.ece(y, p, sample_weight=p, frequency=y), "sample_weight and frequency", "--sample_weight and"),
        (lambda y, p: cb.ece(y, p, n_bins=0), "n_bins must", "--n_bins must"),
        (lambda y, p: cb.evaluate(y, p, alpha=2), "alpha must", "--alpha must"),
        (lambda y, p: cb.evaluate(y, p, margin=-1), "use cb.AbsoluteMargin.", "use --absolute_margin."),
        (lambda y, p: cb.evaluate(y, p, n_resamples=0), "n_resamples must", "--n_resamples must"),
        (lambda y, p: cb.evaluate(y, p, confidence_level=1), "confidence_level must", "--confidence_level must"),
        (lambda y, p: cb.evaluate(y, p, cluster=y), "cluster must", "--cluster must"),
    ],
)
def test_errors_of_the_library_mention_arguments_as_data(call, python, command_line):
    p = np.linspace(0.05, 0.95, 20)
    y = np.arange(20) % 2
    with pytest.raises(InputError) as caught:
        call(y, p)
    assert python in str(caught.value)
    assert command_line in caught.value.write(option)


def test_a_missing_extra_is_data_and_text():
    error = MissingExtraError("Diagrams need matplotlib", "plot", name="matplotlib")
    assert isinstance(error, ModuleNotFoundError)
    assert (error.extra, error.name) == ("plot", "matplotlib")
    same = pickle.loads(pickle.dumps(error))
    assert (str(same), same.extra, same.name) == (str(error), "plot", "matplotlib")
    assert str(error) == 'Diagrams need matplotlib: pip install "calibrant[plot]".'


def test_the_text_of_a_note_has_no_control_characters():
    """A stored table, or the name of a column, could hold them."""
    note = Note("missing", 3, "\x1b[31m{count} rows\ud800\n")
    assert note.text == "\\x1b[31m3 rows\\ud800\\n"


RENAMED = {
    "classwise": lambda **options: list(cb.metrics.classwise("ece", ["b"], [[0.2, 0.8]], **options).per_class),
    "top_label": lambda **options: cb.metrics.top_label(["b", "a"], [[0.2, 0.8], [0.7, 0.3]], **options),
    "proportions": lambda **options: cb.metrics.proportions(["b", "a"], ["a", "a"], **options).labels,
}


@pytest.mark.parametrize("name", RENAMED)
def test_a_renamed_option_works_with_a_warning(name):
    call, text = (
        RENAMED[name],
        rf"^labels= of {name}\(\) is deprecated: use classes=; the old name will be removed in 1\.1\.$",
    )
    with pytest.warns(DeprecationWarning, match=text) as caught:
        assert call(labels=["a", "b"]) == call(classes=["a", "b"])
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(InputError, match="labels must be omitted with classes: it is its old name"):
        call(labels=["a", "b"], classes=["a", "b"])
