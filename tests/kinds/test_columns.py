"""Kinds of forecast as columns of files; tests/cli/test_cli_kinds.py runs the commands on each kind."""

import subprocess
import sys

import numpy as np
import pytest

import calibrant as cb
from calibrant._support.errors import Note
from calibrant.kinds.base import KINDS
from calibrant.kinds.columns import ForecastColumns, columns_by_kind, columns_of, parse_label, try_pos_label

# Ratings A, B and C as a kind of forecast: only its module `columns` is written, and it is put into the registry.
NEW_KIND = """
import sys
from types import ModuleType

import calibrant as cb
from calibrant.kinds import base
from calibrant.kinds.columns import ForecastColumns, Option

def check(rows):
    return rows

module = ModuleType("calibrant.kinds.rating.columns")
module.COLUMNS = ForecastColumns(
    noun="ratings",
    options=(Option("rating", "Ratings of customers."), Option("agency", "Who rates.", completes=("rating",))),
    outcome="label",
    check=check,
    forecast=lambda option, model, values: cb.Labels(values),
    holds_labels=True,
    special_options=("costs",),
    margin=("ratings 0.02", "Ratings: difference of a share."),
)
sys.modules["calibrant.kinds.rating"] = ModuleType("calibrant.kinds.rating")
sys.modules["calibrant.kinds.rating.columns"] = module
base.KINDS["rating"] = base.Kind("rating")

from calibrant.cli.main import run
code = run(sys.argv[1:])
print("exit code", code)
"""


def run_with_new_kind(*arguments):
    pytest.importorskip("rich", reason="rich is not installed")
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    done = subprocess.run([sys.executable, "-c", NEW_KIND, *arguments], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_the_commands_take_a_new_kind_without_a_change(tmp_path):
    rng = np.random.default_rng(0)
    rows = "\n".join(
        f"{a},{b}" for a, b in zip(rng.choice(list("ABC"), 300), rng.choice(list("ABC"), 300), strict=True)
    )
    (tmp_path / "rows.csv").write_text(f"y,r\n{rows}\n")
    given = (str(tmp_path / "rows.csv"), "-y", "y", "--rating", "r")
    text = run_with_new_kind("evaluate", "--help")
    assert "--rating COLUMN" in text
    assert "distributions 0.01; ratings 0.02" in " ".join(text.split())
    assert "Verdict: " in run_with_new_kind("evaluate", *given)
    assert "gates passed" in run_with_new_kind("check", *given, "--margin", "0.5")
    assert "--point and --rating must not be given together" in run_with_new_kind("evaluate", *given, "--point", "r")
    assert "--agency must be given with --rating; got it alone." in run_with_new_kind(
        "evaluate", *given[:3], "--point", "r", "--agency", "r"
    )
    assert "--cost must be given with --score or --rating only; got --point." in run_with_new_kind(
        "evaluate", *given[:3], "--point", "r", "--cost", "1:5"
    )
    assert "ratings" not in run_with_new_kind("fit", "--help")  # it has no calibrators


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_states_how_forecasts_are_columns(kind):
    form = columns_of(kind)
    assert isinstance(form, ForecastColumns)
    assert columns_by_kind()[kind] is form
    assert form.options[0].completes == ()


def test_options_and_thresholds_of_all_kinds_have_different_names():
    forms = columns_by_kind().values()
    names = [option.name for form in forms for option in form.options]
    names += [threshold.name for form in forms for threshold in form.thresholds]
    assert len(set(names)) == len(names)


def test_a_calibrator_names_the_columns_that_it_takes_as_a_model():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    rng = np.random.default_rng(0)
    proba, label = rng.dirichlet([1, 1, 1], 60), np.array(["ant", "bee", "cat"])[np.arange(60) % 3]
    calibrator = cb.calibrators.SoftmaxTemperature().fit(proba, label)
    names = ["ant", "bee", "cat"]
    assert columns_of("multiclass").model_columns(calibrator) == (names, names)
    assert columns_of("binary").model_columns(None) == (["score"], ["probability"])
    assert columns_of("distribution").model_columns is None


def test_labels_in_place_of_scores_are_recognised():
    are_labels = columns_of("binary").are_labels
    assert are_labels(np.array([0, 1, 1]))
    assert are_labels(np.array(["yes", "no"]))
    assert not are_labels(np.array([0.0, 0.5, 1.0]))
    assert not columns_of("point").are_labels(np.array([0, 1, 1]))


@pytest.mark.parametrize(
    ("text", "label"),
    [("1", 1), ("-2.0", -2), ("1e3", 1000), (".5", 0.5), ("TRUE", True), ("inf", None), ("1e999", None)],
)
def test_text_of_labels_is_parsed(text, label):
    assert parse_label(text) == label
    assert type(parse_label(text)) is type(label)


def test_the_label_of_the_event_is_tried_as_text_and_as_a_number():
    tried = []

    def read(label):
        tried.append(label)
        if label == "7":
            raise cb.InputError("pos_label must be a label.", argument="pos_label")
        return label

    assert try_pos_label("7", read, lambda result: ()) == 7
    assert tried == ["7", 7]
    assert try_pos_label("spam", read, lambda result: ()) == "spam"
    absent = Note("event_absent", 1, "No row has the label of the event.")
    assert try_pos_label("3", lambda label: label, lambda label: [absent] if label == "3" else []) == 3
