"""The committed study of audits says what the documentation claims."""

import csv
from pathlib import Path

import pytest

STUDIES = Path(__file__).parents[2] / "docs" / "studies"


def rows(name):
    with (STUDIES / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_audits_of_calibrated_models_find_something_in_at_most_6_percent():
    table = [row for row in rows("audit_false_findings.csv") if row["method"] == "audit"]
    designs = {"scores", "clusters", "weights", "outcome weights", "top labels", "points"}
    assert {row["design"] for row in table} == designs
    assert {row["n_features"] for row in table} >= {"10", "20", "50"}
    assert min(int(row["sets"]) for row in table) >= 450
    assert max(float(row["sets with a finding"]) for row in table) <= 0.06


def test_large_planted_segments_are_found():
    found = {
        (row["depth"], row["share"], row["error"]): float(row["planted segment found"])
        for row in rows("audit_power.csv")
        if row["method"] == "audit"
    }
    assert all(found[depth, "0.1", "0.6"] == 1 for depth in "123")


def test_the_worked_example_is_the_output_of_its_script(data_folder, monkeypatch):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from research.studies import audit_example

    monkeypatch.setattr(audit_example, "DATA", data_folder)
    expected = (STUDIES / "audit_credit.txt").read_text(encoding="utf-8").splitlines()
    found = audit_example.credit_audit().splitlines()
    assert [line.split("  ")[1] for line in found[8:16]] == [line.split("  ")[1] for line in expected[8:16]]
    assert found[:3] == expected[:3]


@pytest.mark.parametrize("design", ["clusters", "weights", "outcome weights", "top labels", "points"])
def test_designs_of_the_study_can_be_audited(design):
    from research.studies.audit import Task

    assert isinstance(Task("audit", 1, 1_000, 4, 0.2, design).run(0)[0], bool)
