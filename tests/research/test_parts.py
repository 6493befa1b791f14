"""The research program: each program and each table of the documentation belongs to one part."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from research import __main__ as command
from research.parts import DOCS, PARTS, chosen

STUDIES = Path(command.__file__).parent / "studies"
# Written by benchmarks and tools, which measure this machine.
MEASURED = {
    "corruption.csv", "corruption_summary.csv", "interrupts.csv", "monitor_speed.csv", "monitor_status.csv",
    "service.txt", "service_kill.json", "service_load.json", "service_pages.csv", "spark.csv",
    "spark_model.csv", "spark_workers.csv", "wheels.csv", "free_threading.csv", "sixteen_cores.csv",
}  # fmt: skip


def test_every_program_of_the_studies_is_a_part():
    programs = {path.stem for path in STUDIES.glob("*.py") if "__main__" in path.read_text(encoding="utf-8")}
    parts = {part.module.rpartition(".")[2] for part in PARTS.values() if part.module.startswith("research.studies.")}
    assert parts == programs


def test_every_table_of_the_documentation_has_one_part_that_writes_it():
    written = Counter(path for part in PARTS.values() for path in part.files)
    assert [path for path, count in written.items() if count > 1] == []
    tables = {path for path in (DOCS / "studies").iterdir() if path.name not in MEASURED}
    assert tables - written.keys() == set()
    for name, part in PARTS.items():
        assert part.files, f"{name} has written nothing"


def test_the_list_names_each_part_and_what_it_is_about(capsys):
    assert command.main([]) == 0
    shown = capsys.readouterr().out
    for name, part in PARTS.items():
        assert name in shown
        assert part.about in shown


def test_names_and_groups_choose_parts():
    assert chosen(["net_benefit"]) == [PARTS["net_benefit"]]
    assert chosen(["curves"]) == [PARTS["curves"], PARTS["net_benefit"], PARTS["event_rates"]]
    with pytest.raises(ValueError, match="no part or group is named 'nothing'"):
        chosen(["nothing"])


def test_a_part_runs_with_its_options(capfd):
    assert command.main(["run", "bella", "--", "--check"]) == 0
    assert "research.reproduction.bella --check" in capfd.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["run", "nothing"])


def test_the_sentences_about_automatic_selection_hold_in_its_table():
    with (DOCS / "studies" / "automatic_selection.csv").open() as file:
        rows = list(csv.DictReader(file))
    left = {(row["event rate"], row["error"], row["rows"]): int(row["none"]) / int(row["data sets"]) for row in rows}
    assert len(left) == 40
    assert all(share == 1 for (_, error, _), share in left.items() if error == "calibrated")
    many = [
        share for (rate, error, n), share in left.items() if n == "20000" and rate != "0.2 %" and error != "calibrated"
    ]
    assert max(many) <= 0.2
    assert left["1 %", "shift", "2000"] > 0.9
