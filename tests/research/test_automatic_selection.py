"""The sentences about the choices of AutoCalibrator hold in the table of its study."""

import csv

from tools.programs import ROOT


def test_the_sentences_about_automatic_selection_hold_in_its_table():
    with (ROOT / "docs" / "studies" / "automatic_selection.csv").open() as file:
        rows = list(csv.DictReader(file))
    left = {(row["event rate"], row["error"], row["rows"]): int(row["none"]) / int(row["data sets"]) for row in rows}
    assert len(left) == 40
    assert all(share == 1 for (_, error, _), share in left.items() if error == "calibrated")
    many = [
        share for (rate, error, n), share in left.items() if n == "20000" and rate != "0.2 %" and error != "calibrated"
    ]
    assert max(many) <= 0.2
    assert left["1 %", "shift", "2000"] > 0.9
