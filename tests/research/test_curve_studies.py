"""The committed simulation studies of curves, belts, net benefit and event rates show what the documentation says."""

import csv
from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[2] / "docs" / "studies"


def rows(name):
    with (STUDIES / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def is_wave(row):
    return "wave" in row["design"]


@pytest.mark.parametrize(("method", "least"), [("spline", 9), ("local", 5)])
def test_simultaneous_bands_cover_in_the_designs_that_were_run(method, least):
    found = [float(row["simultaneous"]) for row in rows("curves") if row["method"] == method and not is_wave(row)]
    assert len(found) >= least
    assert all(0.93 <= cover <= 0.97 for cover in found)


def test_isotonic_bands_are_conservative():
    found = [float(row["simultaneous"]) for row in rows("curves") if row["method"] == "isotonic"]
    assert len(found) == 10
    assert all(cover >= 0.97 for cover in found)


def test_size_of_the_belt_is_nominal():
    found = [float(row["size"]) for row in rows("belts")]
    assert len(found) == 9
    assert all(0.03 <= size <= 0.07 for size in found)


@pytest.mark.parametrize("column", ["model", "second model", "difference"])
def test_intervals_of_net_benefit_cover(column):
    found = [float(row[column]) for row in rows("net_benefit")]
    assert len(found) == 27
    assert all(cover >= 0.92 for cover in found)


@pytest.mark.parametrize("method", ["EM", "BBSE"])
def test_intervals_of_event_rates_cover_over_shifts(method):
    found = [row for row in rows("event_rates") if row["scores"] == "unchanged"]
    assert {row["ratio"] for row in found} == {"0.2", "0.5", "1", "2", "5"}
    assert all(0.92 <= float(row[f"{method}: coverage"]) <= 0.99 for row in found)
    assert all(float(row["check rejects"]) <= 0.1 for row in found)


def test_check_rejects_moved_scores_where_events_are_many():
    moved = [row for row in rows("event_rates") if row["scores"] != "unchanged" and row["reference"] == "10 %"]
    assert all(float(row["check rejects"]) > 0.4 for row in moved)
