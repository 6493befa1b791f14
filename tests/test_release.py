"""Files for releases and for other repositories: workflows, the action, the hook, the recipe, notes of a release."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

import calibrant as cb
from tools import action_check, release_notes

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="the tests run outside the checkout")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def load_yaml(path):
    return pytest.importorskip("yaml", reason="PyYAML is not installed").safe_load(path.read_text(encoding="utf-8"))


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# Workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_have_few_permissions_and_no_endless_job(path):
    workflow = load_yaml(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "uses" in job or job["timeout-minutes"] <= 90, name
        for step in job.get("steps", []):
            assert "uses" not in step or re.search(r"@v\d|@release/v\d|^\./", step["uses"]), step
            assert "${{" not in step.get("run", ""), "values of expressions reach a shell by the environment only"


def test_only_the_job_that_publishes_can_ask_for_an_identity():
    jobs = load_yaml(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["pypi"]
    assert "password" not in json.dumps(jobs["pypi"])


def test_make_targets_of_workflows_exist():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    called = {
        name for path in WORKFLOWS for name in re.findall(r"run: make ([\w-]+)", path.read_text(encoding="utf-8"))
    }
    assert called
    assert called <= targets


def test_wheels_are_tested_on_each_python_of_the_matrix():
    built = set(re.findall(r"cp3(\d+)-", project()["tool"]["cibuildwheel"]["build"]))
    matrix = load_yaml(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["versions"]["strategy"]["matrix"]
    assert {f"3.{minor}" for minor in built} == set(matrix["python"])
    stated = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["project"]["classifiers"]))
    assert set(stated) == set(matrix["python"])


def test_actionlint_accepts_the_workflows():
    linter = shutil.which("actionlint")
    if linter is None:
        pytest.skip("actionlint is not installed")
    done = subprocess.run([linter, *map(str, WORKFLOWS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# The action


def gates(tmp_path, monkeypatch, **environment):
    """Run the check of the action in an empty folder and return its status, its output and its summary."""
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    lines = [f"{int(y)},{a},{a**3}" for y, a in zip(rng.random(2000) < p, p, strict=True)]
    Path("my scores.csv").write_text("\n".join(["outcome,good,cubed", *lines]))
    files = {"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary"}
    status = action_check.main("check", {"FILES": "'my scores.csv'", "JSON": "out.json", **files, **environment})
    return status, Path("output").read_text(), Path("summary").read_text() if Path("summary").exists() else ""


@pytest.mark.parametrize(("score", "status", "word"), [("good", 0, "warning"), ("cubed", 1, "**failed**")])
def test_the_action_reports_the_gates(tmp_path, monkeypatch, score, status, word):
    arguments = f"--label outcome --score {score} --resamples 39"
    found, output, summary = gates(tmp_path, monkeypatch, ARGUMENTS=arguments, JUNIT="out.xml")
    assert (found, output) == (status, f"passed={'true' if status == 0 else 'false'}\n")
    assert f"| {word} | {score} | must not be miscalibrated |" in summary
    assert Path("out.xml").exists()


def test_the_action_fails_on_bad_input_without_a_summary(tmp_path, monkeypatch):
    found, output, summary = gates(tmp_path, monkeypatch, ARGUMENTS="--label outcome --score no_such_column")
    assert (found, output, summary) == (2, "passed=false\n", "")


def test_text_of_the_action_cannot_break_its_table():
    gate = {"score": "a|b", "group": "<img>", "rule": "r\n", "found": "f", "passed": True, "warning": True}
    assert action_check.summary({"gates": [gate]}).splitlines()[-1] == "| warning | a\\|b, &lt;img> | r  | f |"


def test_the_action_shows_its_summary_without_a_file_of_results(tmp_path, monkeypatch):
    arguments = "--label outcome --score cubed --resamples 39"
    found, _, summary = gates(tmp_path, monkeypatch, ARGUMENTS=arguments, JSON="")
    assert found == 1
    assert "| **failed** | cubed |" in summary
    assert not list(tmp_path.glob("*.json"))


@pytest.mark.parametrize(
    ("package", "installed"),
    [
        ("", "/source[cli]"),
        ("calibrant", "calibrant[cli]"),
        ("calibrant==0.2.0", "calibrant[cli]==0.2.0"),
        ("calibrant[onnx] >= 0.2", "calibrant[cli,onnx] >= 0.2"),
        ("calibrant[cli, onnx]==0.2.0", "calibrant[cli,onnx]==0.2.0"),
        ("calibrant @ git+https://example.com/c.git@v1", "calibrant[cli] @ git+https://example.com/c.git@v1"),
        ("git+https://example.com/c.git", "calibrant[cli] @ git+https://example.com/c.git"),
        ("wheels/calibrant-*.whl", "wheels/calibrant-0.2.0-py3-none-any.whl[cli]"),
        ("wheels/*.whl[onnx]", "wheels/calibrant-0.2.0-py3-none-any.whl[cli,onnx]"),
        ("./wheels", "./wheels[cli]"),
    ],
)
def test_the_action_installs_its_source_a_file_or_a_requirement(tmp_path, monkeypatch, package, installed):
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "calibrant-0.2.0-py3-none-any.whl").touch()
    monkeypatch.chdir(tmp_path)
    assert action_check.requirement(package, "/source") == installed


@pytest.mark.parametrize("count", [0, 2])
def test_the_action_refuses_a_pattern_that_does_not_name_one_file(tmp_path, monkeypatch, count):
    for number in range(count):
        (tmp_path / f"calibrant-0.{number}-py3-none-any.whl").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=f"must name one file; got 'calibrant-\\*.whl', which names {count}"):
        action_check.requirement("calibrant-*.whl", "/source")


def test_the_action_asks_for_a_supported_python(monkeypatch):
    assert project()["project"]["requires-python"] == f">={'.'.join(map(str, action_check.LOWEST_PYTHON))}"
    monkeypatch.setattr(action_check.sys, "version_info", (3, 10, 4))
    with pytest.raises(SystemExit, match="needs Python 3.11 or later; got 3.10"):
        action_check.main("install", {})


def test_inputs_of_the_action_reach_its_steps_by_the_environment_only():
    action = load_yaml(ROOT / "action.yml")
    given = [value for step in action["runs"]["steps"] for value in step["env"].values()]
    assert {f"${{{{ inputs.{name} }}}}" for name in action["inputs"]} <= set(given)
    assert not [step for step in action["runs"]["steps"] if "${{" in step["run"]]


def test_the_hook_runs_the_check_with_the_extra_of_the_command_line():
    (hook,) = load_yaml(ROOT / ".pre-commit-hooks.yaml")
    assert (hook["id"], hook["entry"], hook["language"]) == ("calibrant-check", "calibrant check", "python")
    assert hook["additional_dependencies"] == [".[cli]"]
    assert "cli" in project()["project"]["optional-dependencies"]


# The recipe


CONDA = {"matplotlib": "matplotlib-base", "duckdb": "python-duckdb", "torch": "pytorch"}


def test_the_recipe_has_the_bounds_and_the_version_of_the_project():
    recipe, about = load_yaml(ROOT / "packaging" / "conda" / "recipe.yaml"), project()
    bounds = about["project"]["dependencies"] + [
        each for extra in about["project"]["optional-dependencies"].values() for each in extra
    ]
    lowest = {each.name: str(each.specifier) for each in map(Requirement, bounds) if each.name != "calibrant"}
    build = {each.name: str(each.specifier) for each in map(Requirement, about["build-system"]["requires"])}
    wanted = {CONDA.get(name, name): bound for name, bound in (lowest | build).items()}
    wanted["python"] = about["project"]["requires-python"]
    run = recipe["requirements"]["run"] + recipe["requirements"]["run_constraints"]
    stated = dict(each.split() for each in run + [each for each in recipe["requirements"]["host"] if " " in each])
    assert {name: wanted[name] for name in stated} == stated
    assert {"numpy", "scipy", "narwhals", "python"} <= set(stated)
    assert recipe["context"]["version"] == release_notes.package_version()


def test_the_documentation_lists_the_bounds_of_each_extra():
    text = (ROOT / "docs" / "installation.rst").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^   \* - (?:``(\w+)``|\(none\))\n     - (.*)$", text, flags=re.MULTILINE))
    about = project()["project"]
    stated = {"": about["dependencies"]} | about["optional-dependencies"]
    for extra in set(stated) - {"all"}:
        wanted = {each for each in stated[extra] if not each.startswith("calibrant[")}
        assert wanted == {each for each in re.findall(r"``([^`]+)``", rows[extra]) if ">=" in each}, extra


def test_show_versions_lists_the_libraries_of_each_extra(capsys):
    cb.show_versions()
    shown = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    about = project()["project"]
    stated = [*about["dependencies"], *(each for extra in about["optional-dependencies"].values() for each in extra)]
    assert {Requirement(each).name for each in stated} <= shown


# Notes of a release


@pytest.fixture
def release(tmp_path):
    (tmp_path / "src" / "calibrant").mkdir(parents=True)
    (tmp_path / "src" / "calibrant" / "versions.py").write_text('__version__ = "1.2.0"\n')

    def write(changelog):
        (tmp_path / "CHANGELOG.md").write_text(changelog)
        return tmp_path

    return write


def test_the_notes_of_a_release_are_its_section(release):
    root = release("# Changelog\n\n## 1.2.0 (2026-01-31)\n\n- new\n\n## 1.1.0 (2025-01-31)\n\n- old\n")
    assert release_notes.release_notes("v1.2.0", root) == "- new\n"


@pytest.mark.parametrize(
    ("tag", "heading", "reason"),
    [
        ("v1.3.0", "1.2.0 (2026-01-31)", "The tag must be v1.2.0"),
        ("v1.2.0", "1.2.0 (unreleased)", "must have a heading '1.2.0 \\(YYYY-MM-DD\\)'"),
        ("v1.2.0", "1.1.0 (2026-01-31)", "must have a heading"),
    ],
)
def test_a_release_without_a_version_or_a_date_is_refused(release, tag, heading, reason):
    with pytest.raises(SystemExit, match=reason):
        release_notes.release_notes(tag, release(f"# Changelog\n\n## {heading}\n\n- new\n"))


def test_the_version_is_the_same_everywhere():
    version = release_notes.package_version()
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert next(iter(release_notes.sections((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))).startswith(version)


# The example of a workflow


def test_the_example_for_ci_installs_a_wheel():
    workflow = load_yaml(ROOT / "examples" / "ci" / "github-actions.yml")
    commands = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert any(".whl" in command for command in commands)
    assert not any(re.search(r'pip install "?calibrant', command) for command in commands)
