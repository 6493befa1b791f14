"""The steps of action.yml: install the package, run `calibrant check`, and report the gates to GitHub.

All inputs come from the environment, so that no text of a workflow becomes a part of a command line.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

LOWEST_PYTHON = (3, 11)
FILES_OF_RESULTS = {"JUNIT": "--junit", "JSON": "--json"}
EXTRAS = r"\[([\w\s,.-]*)\]"


def requirement(package: str, source: str) -> str:
    """Return what pip installs, with the extra `cli`: the source, a file (a pattern is allowed), or a requirement."""
    if not package:
        return f"{source}[cli]"
    if re.match(r"[\w+]+://", package):
        return f"calibrant[cli] @ {package}"
    if package.endswith((".whl", ".tar.gz")) or ("/" in package and "://" not in package):
        return _file(package)
    name, extras, rest = re.fullmatch(rf"([\w.-]*)(?:\s*{EXTRAS})?(.*)", package).groups()  # type: ignore[union-attr]
    return f"{name}{_with_cli(extras)}{rest}"


def _file(package: str) -> str:
    """Return the one file or folder that the pattern names, with its extras."""
    pattern, extras = re.fullmatch(rf"(.*?)(?:{EXTRAS})?", package).groups()  # type: ignore[union-attr]
    files = sorted(glob.glob(pattern))
    if len(files) != 1:
        raise SystemExit(f"The input package must name one file; got {pattern!r}, which names {len(files)}: {files}.")
    return f"{files[0]}{_with_cli(extras)}"


def _with_cli(extras: str | None) -> str:
    names = {"cli", *(extras or "").replace(",", " ").split()}
    return f"[{','.join(sorted(names))}]"


def command(environment: dict[str, str]) -> list[str]:
    """Return the call of `calibrant check`."""
    results = [
        part
        for name, option in FILES_OF_RESULTS.items()
        if environment.get(name)
        for part in (option, environment[name])
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
    with tempfile.TemporaryDirectory() as folder:
        file = environment.get("JSON") or str(Path(folder, "result.json"))  # the summary needs the results
        status = subprocess.run(command({**environment, "JSON": file}), check=False).returncode
        _append(environment.get("GITHUB_OUTPUT"), f"passed={'true' if status == 0 else 'false'}\n")
        if status in (0, 1):
            text = Path(file).read_text(encoding="utf-8")
            _append(environment.get("GITHUB_STEP_SUMMARY"), summary(json.loads(text)))
    return status


def _append(path: str | None, text: str) -> None:
    if path:
        with open(path, "a", encoding="utf-8") as out:
            out.write(text)


def main(step: str, environment: dict[str, str]) -> int:
    """Run one step of the action."""
    if sys.version_info < LOWEST_PYTHON:
        python = ".".join(map(str, sys.version_info[:2]))
        raise SystemExit(f"Calibrant needs Python 3.11 or later; got {python}. Add a step actions/setup-python before.")
    if step == "install":
        wanted = requirement(environment.get("PACKAGE", ""), environment["SOURCE"])
        return subprocess.run([sys.executable, "-m", "pip", "install", wanted], check=False).returncode
    return check(environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], dict(os.environ)))
