"""The committed study of audits says what the documentation claims."""

import csv
from pathlib import Path

STUDIES = Path(__file__).parents[3] / "docs" / "studies"


def rows(name):
    with (STUDIES / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_audits_of_calibrated_models_find_something_in_at_most_6_percent():
    table = [row for row in rows("audit_false_findings.csv") if row["method"] == "audit"]
    assert len(table) == 4
    assert {row["sets"] for row in table} == {"500"}
    assert max(float(row["sets with a finding"]) for row in table) <= 0.06


def test_large_planted_segments_are_found():
    found = {
        (row["depth"], row["share"], row["error"]): float(row["planted segment found"])
        for row in rows("audit_power.csv")
        if row["method"] == "audit"
    }
    assert all(found[depth, "0.1", "0.6"] == 1 for depth in "123")
