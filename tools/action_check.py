"""The steps of action.yml: install the package, run `calibrant check`, and report the gates to GitHub.

All inputs come from the environment, so that no text of a workflow becomes a part of a command line.
"""

import glob
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

FILES_OF_RESULTS = {"JUNIT": "--junit", "JSON": "--json"}


def requirement(package: str, source: str) -> str:
    """Return what pip installs, with the extra `cli`: a requirement, a wheel (a pattern is allowed), or the source."""
    found = sorted(glob.glob(package)) if package else [source]
    name = found[0] if len(found) == 1 else package
    return name if "[" in name else f"{name}[cli]"


def command(environment: dict[str, str]) -> list[str]:
    """Return the call of `calibrant check`."""
    results = [
        each
        for name, option in FILES_OF_RESULTS.items()
        if environment.get(name)
        for each in (option, environment[name])
    ]
    files, arguments = (shlex.split(environment.get(name, "")) for name in ("FILES", "ARGUMENTS"))
    return [sys.executable, "-m", "calibrant", "check", *files, *arguments, *results, "--force"]


def summary(result: dict[str, object]) -> str:
    """Return the gates as a table in Markdown."""
    gates: list[dict[str, object]] = result["gates"]  # type: ignore[assignment]
    lines = ["### Calibration", "", "| | forecast | rule | found |", "|---|---|---|---|"]
    for gate in gates:
        status = "warning" if gate["warning"] else "passed" if gate["passed"] else "**failed**"
        subject = gate["score"] if gate["group"] is None else f"{gate['score']}, {gate['group']}"
        lines.append(" | ".join(["", status, *map(_cell, (subject, gate["rule"], gate["found"])), ""]).strip())
    return "\n".join(lines) + "\n"


def _cell(text: object) -> str:
    return str(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def check(environment: dict[str, str]) -> int:
    """Run the check, write the output `passed` and the summary of the job, and return the exit status."""
    status = subprocess.run(command(environment), check=False).returncode
    _append(environment.get("GITHUB_OUTPUT"), f"passed={'true' if status == 0 else 'false'}\n")
    file = environment.get("JSON")
    if status in (0, 1) and file:
        _append(environment.get("GITHUB_STEP_SUMMARY"), summary(json.loads(Path(file).read_text(encoding="utf-8"))))
    return status


def _append(path: str | None, text: str) -> None:
    if path:
        with open(path, "a", encoding="utf-8") as out:
            out.write(text)


def main(step: str, environment: dict[str, str]) -> int:
    """Run one step of the action."""
    if step == "install":
        wanted = requirement(environment.get("PACKAGE", ""), environment["SOURCE"])
        return subprocess.run([sys.executable, "-m", "pip", "install", wanted], check=False).returncode
    return check(environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], dict(os.environ)))
