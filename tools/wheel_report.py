"""Report the installed wheel: its size, the CPU time to import it, and the tests that passed.

    python tools/wheel_report.py dist tests.xml [--write docs/studies/wheels.csv]

Runs in the environment of the wheel. `dist` is the folder of the wheel, and `tests.xml` what pytest --junit-xml wrote.
"""

import argparse
import csv
import importlib.metadata
import platform
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

COLUMNS = (
    "python",
    "gil",
    "calibrant",
    "wheel",
    "kilobytes",
    "import_ms",
    "first_ece_ms",
    "numpy",
    "scipy",
    "passed",
    "skipped",
    "failed",
)
REPEATS = 9


def installed_wheel(folder: Path) -> Path:
    """Return the wheel in the folder whose version and tags are those of the installation."""
    text = importlib.metadata.distribution("calibrant").read_text("WHEEL") or ""
    tags = {line.removeprefix("Tag: ") for line in text.splitlines() if line.startswith("Tag: ")}
    for wheel in folder.glob(f"calibrant-{importlib.metadata.version('calibrant')}-*.whl"):
        python, abi, platforms = wheel.stem.split("-")[-3:]
        if tags & {f"{python}-{abi}-{platform_tag}" for platform_tag in platforms.split(".")}:
            return wheel
    raise SystemExit(f"{folder} must hold the wheel that is installed, with one of the tags {sorted(tags)}.")


def milliseconds(code: str) -> float:
    """Return the median CPU time of a program in a new process, less that of an empty one.

    CPU time, because other work on the machine does not change it.
    """
    taken: dict[str, list[float]] = {program: [] for program in (code, "pass")}
    for _ in range(REPEATS):
        for program, seconds in taken.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", program], check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return 1000 * (statistics.median(taken[code]) - statistics.median(taken["pass"]))


def test_counts(path: Path) -> dict[str, int]:
    """Return the numbers of tests that passed, were skipped and failed."""
    total = {"tests": 0, "skipped": 0, "failed": 0}
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        total["tests"] += int(suite.get("tests", 0))
        total["skipped"] += int(suite.get("skipped", 0))
        total["failed"] += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    return {"passed": total["tests"] - total["skipped"] - total["failed"], **total}


def report(folder: Path, tests: Path) -> dict[str, object]:
    """Return the row of this Python."""
    wheel, counts = installed_wheel(folder), test_counts(tests)
    return {
        "python": platform.python_version(),
        "gil": "yes" if getattr(sys, "_is_gil_enabled", lambda: True)() else "no",
        "calibrant": importlib.metadata.version("calibrant"),
        "wheel": "-".join(wheel.stem.split("-")[-3:]),
        "kilobytes": round(wheel.stat().st_size / 1000),
        "import_ms": round(milliseconds("import calibrant"), 1),
        "first_ece_ms": round(milliseconds("import calibrant; calibrant.ece([0, 1], [0.2, 0.7])"), 1),
        "numpy": importlib.metadata.version("numpy"),
        "scipy": importlib.metadata.version("scipy"),
        **{name: counts[name] for name in ("passed", "skipped", "failed")},
    }


def write(path: Path, row: dict[str, object]) -> None:
    """Put the row into the table, in the place of an older one of the same Python."""
    old = list(csv.DictReader(path.open(encoding="utf-8"))) if path.exists() else []
    rows = [line for line in old if (line["python"], line["gil"]) != (row["python"], row["gil"])] + [row]
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda line: (str(line["python"]), str(line["gil"]))))


def main() -> None:
    """Print the row, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("tests", type=Path)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    row = report(given.folder, given.tests)
    print(", ".join(f"{name} {value}" for name, value in row.items()))
    if given.write is not None:
        write(given.write, row)


if __name__ == "__main__":
    main()
