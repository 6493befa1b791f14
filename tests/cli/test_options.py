"""The options of the commands agree with the arguments of the Python functions."""

import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest

import calibrant as cb

click = pytest.importorskip("click", reason="click is not installed")
pytest.importorskip("rich", reason="rich is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from calibrant._support.sql_dialects import DIALECTS  # noqa: E402
from calibrant.cli import options  # noqa: E402
from calibrant.cli.main import COMMANDS, calibrant  # noqa: E402
from calibrant.export.scored_files import calibrate_file  # noqa: E402
from calibrant.kinds.base import KINDS, kind_of  # noqa: E402
from calibrant.kinds.columns import columns_of  # noqa: E402
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
    "non_inferiority": "--not-worse-than",
}

# The Python functions that take the options of each command.
FUNCTIONS = {
    "evaluate": (cb.evaluate, cb.scan, cb.ECE, cb.Gaussian, cb.NegativeBinomial),
    "compare": (cb.compare, cb.scan, cb.ECE, cb.Gaussian, cb.NegativeBinomial),
    "check": (cb.evaluate, cb.scan, cb.ECE, cb.Gaussian, cb.NegativeBinomial),
    "fit": (cb.scan, cb.calibrators.CATS),
    "apply": (calibrate_file,),
    "export": (cb.to_sql,),
    "audit": (cb.audit, cb.scan),
    "monitor": (),  # groups of commands
    "serve": (ServiceSettings,),
    "demo": (),
}

# Options of the command line alone: files, outputs, thresholds, columns of forecasts, and `absolute_margin` and
# `relative_margin`, which are margin=cb.AbsoluteMargin(...) and margin=cb.RelativeMargin(...) in Python.
COMMAND_LINE_ONLY = {
    *("class_score", "ordinal_score", "predicted_label", "point", "quantile", "sample"),
    *("poisson", "negative_binomial", "relative_margin"),
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
    *("metrics", "bins", "classes", "column", "progress", "kind", "grid", "eps", "index"),
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
        if option.name in COMMAND_LINE_ONLY or (command == "apply" and option.name in options.names_of_forecasts()):
            assert option.name not in known
            continue
        assert option.name in known
        assert option.opts[0] == option_name(option.name)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_argument_has_an_option(command):
    there = {option.name for option in options_of(command)}
    counted = command not in ("audit", "compare", "fit")
    rows_only = set() if counted else {"by", "max_memory", "resolution"}
    parameters = (
        set(inspect.signature(cb.calibrators.CATS).parameters) if command == "fit" else set()
    )  # --set gives them
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


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_of_the_margin_is_shown(kind):
    text, _ = columns_of(kind).margin
    assert text in shown_default("margin").split("; ")
    assert float(re.search("[0-9.]+", text)[0]) == kind_of(kind).defaults.DEFAULTS.margin


def test_the_default_number_of_bins_is_that_of_ece():
    assert cb.ECE(n_bins=int(shown_default("n_bins"))) == cb.ECE()


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_number_of_resamples_is_shown(kind):
    shown = {words: int(number) for number, words in re.findall(r"(\d+) for ([\w ]+)", shown_default("n_resamples"))}
    words = {"binary": "scores of one event", "labels": "predicted labels"}.get(kind, "other kinds")
    assert kind_of(kind).defaults.DEFAULTS.n_resamples == shown[words]


def test_each_kind_of_forecast_has_an_option():
    names = [{option.name for option in columns_of(kind).options} for kind in KINDS]
    assert all(names)
    assert set().union(*names) == set(options.names_of_forecasts())
    for command in ("evaluate", "check", "compare"):
        assert set().union(*names) <= {option.name for option in options_of(command)}


def test_the_dialects_are_those_of_the_library():
    dialect = next(option for option in options_of("export") if option.name == "dialect")
    assert set(dialect.type.choices) == set(DIALECTS)


# For each option of an evaluation: how it is given, and the same in Python.
SETTINGS = {
    "margin": (["--margin", "0.3"], {"margin": 0.3}),
    "absolute_margin": (["--absolute-margin", "0.05"], {"margin": cb.AbsoluteMargin(0.05)}),
    "alpha": (["--alpha", "0.01"], {"alpha": 0.01}),
    "n_bins": (["--bins", "7"], {"n_bins": 7}),
    "costs": (["--cost", "1:5"], {"costs": {"1:5": cb.costs.LinearCost(over=1, under=5)}}),
    "confidence_level": (["--confidence-level", "0.9"], {"confidence_level": 0.9}),
    "n_resamples": (["--resamples", "59"], {"n_resamples": 59}),
    "random_state": (["--random-state", "3"], {"random_state": 3}),
    "cluster": (["--cluster", "shop"], {"cluster": "shop"}),
    "time": (["--time", "day"], {"time": "day"}),
    "sample_weight": (["--sample-weight", "count"], {"sample_weight": "count"}),
    "frequency": (["--frequency", "count"], {"frequency": "count"}),
    "missing": (["--missing", "drop"], {"missing": "drop"}),
    "by": (["--by", "g"], {"by": "g"}),
    "focus": (["--focus", "0.5"], {"focus": 0.5}),
    "pos_label": (["--pos-label", "yes"], {"pos_label": "yes"}),
    "several": (["--alpha", "0.2", "--bins", "5", "--margin", "0.2"], {"alpha": 0.2, "n_bins": 5, "margin": 0.2}),
}
# Options of how files are read and counted, and of outputs.
NOT_SETTINGS = {
    *("y", "format", "encoding", "max_bytes", "sha256", "max_memory", "resolution", "spark"),
    *("html", "json_file", "force"),
    "relative_margin",  # of means; see test_counts_equal_those_in_python
}


def test_each_option_of_an_evaluation_is_compared_with_python():
    names = {option.name for option in options_of("evaluate")} - set(options.names_of_forecasts()) - NOT_SETTINGS
    assert names == set(SETTINGS) - {"several"}


@pytest.fixture
def event_scores(here):
    """Write rows of two scores of one event to scores.csv, and return their columns."""
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.95, 800).round(3)
    columns = {
        "y": np.where(rng.random(800) < p**1.5, "yes", "no"),
        "p": p,
        "q": (p**1.5).round(3),
        "g": np.where(np.arange(800) % 2, "odd", "even"),
        "shop": np.array([f"shop {i % 40}" for i in range(800)]),
        "count": rng.integers(0, 3, 800),
        "day": np.datetime64("2025-01-30") + np.arange(800) // 5,
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    Path("scores.csv").write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return columns


@pytest.mark.parametrize(
    ("options", "make", "given"),
    [
        (["--poisson", "rate"], lambda c: cb.Poisson(c["rate"]), {}),
        (["--poisson", "rate", "--exposure", "years"], lambda c: cb.Poisson(c["rate"], exposure=c["years"]), {}),
        (
            ["--negative-binomial", "rate", "--dispersion", "alpha", "--exposure", "years", "--relative-margin", "0.2"],
            lambda c: cb.NegativeBinomial(c["rate"], c["alpha"], exposure=c["years"]),
            {"margin": cb.RelativeMargin(0.2)},
        ),
    ],
)
def test_counts_equal_those_in_python(here, call, options, make, given):
    rng = np.random.default_rng(4)
    c = {"rate": rng.gamma(2, 0.5, 300).round(3) + 0.01, "years": rng.uniform(0.5, 2, 300).round(2)}
    c |= {"alpha": np.full(300, 0.5), "y": rng.poisson(c["rate"])}
    rows = zip(*(column.tolist() for column in c.values()), strict=True)
    Path("counts.csv").write_text("\n".join([",".join(c), *(",".join(map(str, row)) for row in rows)]) + "\n")
    text = call("evaluate", "counts.csv", "-y", "y", *options, "--resamples", "19", "--json", "-")
    expected = json.loads(cb.evaluate(c["y"], make(c), n_resamples=19, **given).to_json())
    assert json.loads(text)["models"]["rate"] == expected


def as_columns(given, columns):
    """Return the arguments with columns in place of their names."""
    named = {name: columns[given[name]] for name in ("cluster", "time", "sample_weight", "frequency") if name in given}
    groups = {"by": {given["by"]: columns[given["by"]]}} if "by" in given else {}
    return {**given, **named, **groups}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_an_evaluation_equal_those_in_python(event_scores, call, name):
    options, given = SETTINGS[name]
    common = ["--pos-label", "yes", *(["--resamples", "39"] if name != "n_resamples" else [])]
    text = call("evaluate", "scores.csv", "-y", "y", "-p", "p", *common, *options, "--json", "-")
    arguments = {"pos_label": "yes", "n_resamples": 39, **as_columns(given, event_scores)}
    assert json.loads(text)["models"]["p"] == json.loads(
        cb.evaluate(event_scores["y"], event_scores["p"], **arguments).to_json()
    )


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ("by", "focus")])
def test_settings_of_a_comparison_equal_those_in_python(event_scores, call, name):
    options, given = SETTINGS[name]
    common = ["--pos-label", "yes", *(["--resamples", "39"] if name != "n_resamples" else [])]
    found = json.loads(call("compare", "scores.csv", "-y", "y", "-p", "p", "-p", "q", *common, *options, "--json", "-"))
    arguments = {"pos_label": "yes", "n_resamples": 39, **as_columns(given, event_scores)}
    forecasts = {score: event_scores[score] for score in ("p", "q")}
    expected = json.loads(cb.compare(event_scores["y"], forecasts, **arguments).to_json())
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("options", "given"),
    [
        (["--baseline", "q"], {"baseline": "q"}),
        (["--baseline", "q", "--not-worse-than", "0.5"], {"baseline": "q", "non_inferiority": 0.5}),
        (
            ["--baseline", "q", "--not-worse-than", "log loss=0.01", "--not-worse-than", "Brier=0.02"],
            {"baseline": "q", "non_inferiority": {"log loss": 0.01, "Brier": 0.02}},
        ),
    ],
)
def test_options_of_a_comparison_equal_those_in_python(event_scores, call, options, given):
    common = ("compare", "scores.csv", "-y", "y", "-p", "p", "-p", "q", "--pos-label", "yes", "--resamples", "39")
    forecasts = {score: event_scores[score] for score in ("p", "q")}
    compared = cb.compare(event_scores["y"], forecasts, pos_label="yes", n_resamples=39, **given)
    found = json.loads(call(*common, *options, "--json", "-", code=1 if compared.passed is False else 0))
    expected = json.loads(compared.to_json())
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize("name", ["margin", "alpha", "confidence_level", "n_resamples", "random_state"])
def test_settings_of_class_probabilities_equal_those_in_python(forecasts, call, name):
    options, given = SETTINGS[name]
    common = ["--resamples", "39"] if name != "n_resamples" else []
    text = call("evaluate", "forecasts.csv", "-y", "animal", "--class-score", "p_*", *common, *options, "--json", "-")
    proba = np.column_stack([forecasts[f"p_{animal}"] for animal in ("ant", "bee", "cat")])
    arguments = {"classes": ["ant", "bee", "cat"], "n_resamples": 39, **given}
    expected = json.loads(cb.evaluate(forecasts["animal"], proba, **arguments).to_json())
    assert json.loads(text)["models"]["p_*"] == expected


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
    assert options.parse_cost("1:5") == options.parse_cost(" 1.0 : 5e0 ") == cb.costs.LinearCost(over=1, under=5)


@pytest.mark.parametrize("text", ["5", "1:2:3", "a:b", "1:", "-1:5", "1.2.3:5"])
def test_invalid_costs_are_errors(text):
    with pytest.raises(click.BadParameter, match="is not OVER:UNDER"):
        options.parse_cost(text)
