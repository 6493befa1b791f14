"""Studies, benchmarks and kill tests: each program has a name, and each stored table one program that writes it."""

import re
import subprocess
from collections import Counter

import pytest

from benchmarks.__main__ import PROGRAMS as BENCHMARKS
from research.__main__ import PROGRAMS as RESEARCH
from tests.fuzz.targets import TARGETS as FUZZ
from tests.visual.__main__ import PROGRAMS as PICTURES
from tools import programs
from tools.kill.__main__ import PROGRAMS as KILLS
from tools.programs import ROOT, choose, main

ENTRIES = {"research": RESEARCH, "benchmarks": BENCHMARKS, "tools.kill": KILLS, "tests.visual": PICTURES}
# Which entry point a target of make calls with NAME.
TARGETS = {"study": "research", "bench": "benchmarks", "kill": "tools.kill", "pictures": "tests.visual"}
# Written by environments of tools/environments.sh, and once by hand on another machine.
MEASURED = {"corruption.csv", "corruption_summary.csv", "wheels.csv", "sixteen_cores.csv"}
TEXTS = ("*.md", "docs/*.rst", "docs/*/*.rst", "docs/studies/*.txt")
SOURCES = ("benchmarks", "conftest.py", "examples", "research", "tests", "tools")


def environments() -> set[str]:
    text = (ROOT / "tools" / "environments.sh").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+)\(\) \{  # ", text, flags=re.MULTILINE))


def commands() -> set[tuple[str, str]]:
    """Return the targets of make, with their names, that texts and comments show."""
    paths = [path for pattern in TEXTS for path in ROOT.glob(pattern) if path.name != "CHANGELOG.md"]
    sources = [path for name in SOURCES for path in [ROOT / name, *(ROOT / name).rglob("*.*")]]
    paths += [path for path in sources if path.suffix in (".py", ".R", ".rst", ".md", ".sh")]
    shown = re.compile(r"``?make ([a-z][a-z-]*)(?: NAME=(\w+))?|^make ([a-z-]+)(?: NAME=(\w+))? +#", re.MULTILINE)
    found = {match for path in set(paths) for match in shown.findall(path.read_text(encoding="utf-8"))}
    return {(quoted or line, name or line_name) for quoted, name, line, line_name in found}


def test_commands_in_texts_are_targets_of_the_makefile_with_names_that_exist():
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {target: {*ENTRIES[entry]} for target, entry in TARGETS.items()}
    for target, entry in TARGETS.items():
        named[target] |= {program.group for program in ENTRIES[entry].values()}
    named |= {"env": environments(), "fuzz": {*FUZZ, "service"}}
    shown = commands()
    assert {target for target, _ in shown} >= {"demo", "check", "test", "study", "bench", "kill", "env", "pictures"}
    assert {target for target, _ in shown} - targets == set()
    assert {(target, name) for target, name in shown if name and name not in named.get(target, ())} == set()


@pytest.mark.parametrize("entry", ENTRIES)
def test_programs_exist_and_say_what_they_do(entry, capsys):
    assert main(entry, ENTRIES[entry], []) == 0
    shown = capsys.readouterr().out
    for name, program in ENTRIES[entry].items():
        assert name in shown
        assert program.about in shown


def test_every_program_of_the_studies_has_a_name():
    files = {path.stem for path in (ROOT / "research" / "studies").glob("*.py") if "__main__" in path.read_text()}
    named = {p.module.rpartition(".")[2] for p in RESEARCH.values() if p.module.startswith("research.studies.")}
    assert named == files


def test_every_benchmark_has_a_name():
    files = {
        path.stem for path in (ROOT / "benchmarks").glob("*.py") if 'if __name__ == "__main__"' in path.read_text()
    }
    assert {program.module.rpartition(".")[2] for program in BENCHMARKS.values()} == files - {"__main__"}


def test_every_table_of_the_documentation_has_one_program_that_writes_it():
    written = Counter(path for entry in ENTRIES.values() for program in entry.values() for path in program.files)
    pictures = {path for program in PICTURES.values() for path in program.files}
    assert [path for path, count in written.items() if count > 1 and path not in pictures] == []
    tables = {path for path in (ROOT / "docs" / "studies").iterdir() if path.name not in MEASURED}
    assert tables - written.keys() == set()
    for name, program in (RESEARCH | KILLS).items():
        assert program.files or program.writes[0].startswith("build/"), f"{name} has written nothing"


def test_names_and_groups_choose_programs():
    assert choose(RESEARCH, ["net_benefit"]) == [RESEARCH["net_benefit"]]
    assert choose(RESEARCH, ["curves"]) == [RESEARCH["curves"], RESEARCH["net_benefit"], RESEARCH["event_rates"]]
    with pytest.raises(ValueError, match="no program or group is named 'nothing'"):
        choose(RESEARCH, ["nothing"])


def test_a_program_runs_with_its_options(capfd):
    assert main("research", RESEARCH, ["bella", "--", "--check"]) == 0
    assert "research.reproduction.bella --check" in capfd.readouterr().out
    assert main("research", RESEARCH, ["bella", "--check"]) == 0
    assert "research.reproduction.bella --check" in capfd.readouterr().out
    with pytest.raises(SystemExit):
        main("research", RESEARCH, ["nothing"])


def test_the_output_of_a_program_is_kept_in_its_log(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    (tmp_path / "greet.py").write_text('import sys\n"""Greet."""\nprint("hello", *sys.argv[1:])\n')
    program = programs.Program("words", "greet", (), "no time", options=("you",), log="log.txt", appends=True)
    assert [program.run(), program.run(["all"])] == [0, 0]
    assert (tmp_path / "log.txt").read_text() == "hello you\nhello all\n"
    assert "hello all" in capfd.readouterr().out
    program.run(["none"], keep_log=False)
    assert "none" not in (tmp_path / "log.txt").read_text()


def test_environments_are_listed():
    command = ["bash", str(ROOT / "tools" / "environments.sh")]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert {line.split()[0] for line in listed.splitlines()} == environments() >= {"lowest", "sanitize", "wheel"}
    assert subprocess.run([*command, "nothing"], capture_output=True, check=False).returncode == 2


@pytest.mark.parametrize("name", ["Makefile", "tools/environments.sh", "pyproject.toml"])
def test_files_of_tests_that_commands_name_exist(name):
    paths = re.findall(r"\btests/[\w/.]++(?!\$)", (ROOT / name).read_text(encoding="utf-8"))
    assert paths
    assert not [path for path in paths if not (ROOT / path).exists()]
