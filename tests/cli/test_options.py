"""The options of the commands agree with the arguments of the Python functions."""

import inspect
import re

import pytest

import calibrant as cb

click = pytest.importorskip("click", reason="click is not installed")
pytest.importorskip("rich", reason="rich is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from calibrant._support.sql_dialects import DIALECTS  # noqa: E402
from calibrant.cli import forecast_columns, options  # noqa: E402
from calibrant.cli.main import COMMANDS, calibrant  # noqa: E402
from calibrant.export.scored_files import calibrate_file  # noqa: E402
from calibrant.kinds.base import KINDS  # noqa: E402
from calibrant.metrics.metric import FORECAST_KINDS  # noqa: E402
from calibrant.monitor.service.service_settings import ServiceSettings  # noqa: E402

# Arguments of Python functions and their options. All others are the argument with dashes: sample_weight,
# --sample-weight.
OPTIONS = {
    "y": "--label",
    "p": "--score",
    "costs": "--cost",
    "columns": "--column",
    "n_bins": "--bins",
    "n_resamples": "--resamples",
}

# The Python functions that take the options of each command.
FUNCTIONS = {
    "evaluate": (cb.evaluate, cb.tables_scan, cb.ECE, cb.Gaussian),
    "compare": (cb.compare, cb.tables_scan, cb.ECE, cb.Gaussian),
    "check": (cb.evaluate, cb.tables_scan, cb.ECE, cb.Gaussian),
    "fit": (cb.tables_scan, cb.CATS),
    "apply": (calibrate_file,),
    "export": (cb.to_sql,),
    "audit": (cb.inference.audit_scan,),
    "monitor": (),  # groups of commands
    "serve": (ServiceSettings,),
    "demo": (),
}

# Options of the command line alone: files, outputs, thresholds, columns of forecasts, and `absolute_margin`, which is
# margin=cb.AbsoluteMargin(...) in Python.
COMMAND_LINE_ONLY = {
    *("class_score", "predicted_label", "point", "quantile", "sample"),
    *("encoding", "max_bytes", "sha256", "spark"),
    *("html", "json_file", "junit", "output", "force", "folder"),
    *("require", "max_tce_excess", "max_ece", "equivalence", "absolute_margin", "audit_columns"),
    *("csv_file", "monitor", "browser", "duration", "config"),
    *("method", "settings", "sql", "onnx"),
}

# Arguments of Python functions alone: data, objects, and limits that a command sets itself.
PYTHON_ONLY = {
    *("y_true", "y_prob", "y_probs", "forecast", "forecasts", "rows", "paths", "calibrator", "source", "target"),
    "scores",
    *("metrics", "bins", "classes", "column", "progress", "memory_limit", "kind", "grid", "eps", "index"),
    "level",  # of recalibrators of distributions, which the command line does not export
}


def option_name(argument):
    return OPTIONS.get(argument, "--" + argument.replace("_", "-"))


def options_of(command):
    found = calibrant.get_command(click.Context(calibrant), command)
    return [parameter for parameter in found.params if isinstance(parameter, click.Option)]


def arguments_of(command):
    """Return the arguments of the command's Python functions with their defaults."""
    return {
        name: argument.default
        for function in FUNCTIONS[command]
        for name, argument in inspect.signature(function).parameters.items()
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_is_named_as_its_argument(command):
    known = arguments_of(command)
    for option in options_of(command):
        if option.name in COMMAND_LINE_ONLY or (command == "apply" and option.name in forecast_columns.KINDS):
            assert option.name not in known
            continue
        assert option.name in known
        assert option.opts[0] == option_name(option.name)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_argument_has_an_option(command):
    there = {option.name for option in options_of(command)}
    rows_only = {"by", "max_memory", "resolution"} if command in ("compare", "fit") else set()  # nothing is counted
    parameters = set(inspect.signature(cb.CATS).parameters) if command == "fit" else set()  # --set gives them
    in_file = set(inspect.signature(ServiceSettings).parameters) if command == "serve" else set()  # --config has them
    assert set(arguments_of(command)) - there - PYTHON_ONLY - rows_only - parameters - in_file == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_options_have_the_defaults_of_their_arguments(command):
    known = arguments_of(command)
    compared = 0
    for option in options_of(command):
        default = known.get(option.name, inspect.Parameter.empty)
        if option.is_flag or option.multiple or option.required or default is inspect.Parameter.empty:
            continue
        if option.name in ("n_bins", "n_resamples", "cost", "max_body", "max_queue"):  # None: that of the kind or file
            continue
        assert option.to_info_dict()["default"] == default, option.name
        compared += 1
    assert compared or command in ("apply", "demo", "monitor")


def shown_default(name):
    return next(option.show_default for option in options_of("evaluate") if option.name == name)


def test_the_defaults_of_the_margin_are_shown():
    margins = [KINDS[name].panel.DEFAULTS.margin for name in ("binary", "labels", "point", "distribution")]
    assert [float(number) for number in re.findall(r"[0-9.]+", shown_default("margin"))] == list(margins)


def test_the_default_number_of_bins_is_that_of_ece():
    assert cb.ECE(n_bins=int(shown_default("n_bins"))) == cb.ECE()


def test_the_default_numbers_of_resamples_are_shown():
    y, numbers = [0, 1] * 20, [0.5, 1.5] * 20
    binary = cb.evaluate(y, [0.4, 0.6] * 20)
    others = [cb.evaluate(y, [[0.6, 0.4], [0.4, 0.6]] * 20), cb.evaluate(numbers, cb.Point(numbers[::-1]))]
    shown = [int(number) for number in re.findall("[0-9]+", shown_default("n_resamples"))]
    assert shown[0] == binary.settings.n_resamples
    assert {result.settings.n_resamples for result in others} == {shown[1]}


def test_each_kind_of_forecast_has_an_option():
    assert set(forecast_columns.KINDS.values()) == set(FORECAST_KINDS)
    for command in ("evaluate", "check", "compare"):
        assert set(forecast_columns.KINDS) <= {option.name for option in options_of(command)}


def test_the_dialects_are_those_of_the_library():
    dialect = next(option for option in options_of("export") if option.name == "dialect")
    assert set(dialect.type.choices) == set(DIALECTS)


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("500 MB", 5 * 10**8), ("1GiB", 2**30), ("1e9", 10**9), ("64kib", 2**16)]
)
def test_sizes_are_parsed(text, size):
    assert options.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "lots", "-1", "0", "1.2.3GB", "1e99", "2 PB", "nan"])
def test_invalid_sizes_are_errors(text):
    with pytest.raises(click.BadParameter, match="is not a number of bytes"):
        options.parse_size(text)


@pytest.mark.parametrize(("text", "step"), [("2**-20", 2.0**-20), ("2^-20", 2.0**-20), ("1e-6", 1e-6)])
def test_steps_are_parsed(text, step):
    assert options.parse_step(text) == step


@pytest.mark.parametrize("text", ["fine", "2**", "3**-2", ""])
def test_invalid_steps_are_errors(text):
    with pytest.raises(click.BadParameter, match="is not a number"):
        options.parse_step(text)


def test_costs_are_parsed():
    assert options.parse_cost("1:5") == options.parse_cost(" 1.0 : 5e0 ") == cb.LinearCost(over=1, under=5)


@pytest.mark.parametrize("text", ["5", "1:2:3", "a:b", "1:", "-1:5", "1.2.3:5"])
def test_invalid_costs_are_errors(text):
    with pytest.raises(click.BadParameter, match="is not OVER:UNDER"):
        options.parse_cost(text)
