"""The committed study of e-processes says what the documentation claims."""

import csv
from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[2] / "docs" / "studies"


def rows(name):
    with (STUDIES / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_no_valid_design_has_more_than_5_percent_of_streams_with_an_alarm():
    table = rows("monitoring_false_alarms.csv")
    independent = [row for row in table if float(row["correlation of days"]) == 0]
    valid = [row for row in independent if not (row["dependence"] == "independent" and float(row["day effect"]) > 0)]
    assert len(valid) >= 140
    assert {(row["streams"], row["windows"]) for row in valid} == {("2000", "1000")}
    designs = {(rate, size) for rate in ("0.5", "0.05", "0.005") for size in ("20", "200", "5000")}
    for effect in ("0.0", "0.2"):
        found = {
            (row["event rate"], row["rows per window"])
            for row in valid
            if (row["dependence"], row["groups"], row["day effect"]) == ("window", "1", effect)
        }
        assert found == designs
    assert max(float(row["share with an alarm"]) for row in valid) <= 0.05


def test_the_default_alarms_as_rarely_as_the_documentation_says():
    table = [row for row in rows("monitoring_false_alarms.csv") if float(row["correlation of days"]) == 0]
    default = [row for row in table if row["dependence"] == "window"]
    for margin, most in (("0.1", 0.006), ("0.0", 0.013)):
        assert max(float(row["share with an alarm"]) for row in default if row["margin"] == margin) <= most


def test_effects_of_a_day_break_the_guarantee_for_independent_rows():
    broken = [row for row in rows("monitoring_false_alarms.csv") if row["dependence"] == "independent"]
    assert max(float(row["share with an alarm"]) for row in broken if float(row["day effect"]) > 0) == 1


@pytest.mark.parametrize("change", ["shift 0.2", "shift 0.5", "shift -0.5", "slope 0.7", "one of 20 groups: shift 0.5"])
def test_the_form_for_independent_rows_takes_at_most_1_5_times_as_long_as_the_best_other_method(change):
    delays = {
        row["method"]: float(row["median delay"])
        for row in rows("monitoring_delays.csv")
        if row["change"] == change and row["day effect"] == "0.0" and row["median delay"]
    }
    own = delays["e-process, independent rows, margin 0"]
    others = [delay for method, delay in delays.items() if not method.startswith("e-process")]
    assert own <= 1.5 * min(others)


def test_calibrated_classes_and_distributions_rarely_raise_an_alarm():
    table = [row for row in rows("monitoring_events.csv") if row["calibrated"] == "yes"]
    assert {row["forecasts"] for row in table} == {"class probabilities", "distributions"}
    assert {row["dependence"] for row in table} == {"window", "any", "independent"}
    assert max(float(row["share with an alarm"]) for row in table) <= 0.05
