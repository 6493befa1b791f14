"""Run fuzz targets with atheris, all or those named: ``python -m tests.fuzz kernel --seconds 300 --jobs 4``.

Each job is a process of its own. Inputs that reach new code go to FOLDER/TARGET, inputs that fail to FOLDER/failures,
what a job prints to FOLDER/TARGET.log; with several jobs FOLDER is build/fuzz/1, build/fuzz/2, and so on. A job that
fails starts again until its time is over or it failed five times. The last line counts inputs and failures; the exit
code is 1 if there is one. An input that fails belongs in tests/fuzz/corpus/TARGET, together with the repair.

The target ``service`` sends 10,000 requests drawn from the OpenAPI description to the service, on each kind of store.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from tests.fuzz.jobs import Summary, fuzz, run_jobs
from tests.fuzz.targets import TARGETS

SERVICE = "service"
REQUESTS = "10000"


def main() -> int:
    """Read the options and run the jobs of each target, or be one of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, SERVICE], help="by default all but service")
    parser.add_argument("--seconds", type=int, default=1800, help="time of each target")
    parser.add_argument("--jobs", type=int, default=1, help="processes that run at the same time")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--memory", type=int, default=4096, help="megabytes of each process")
    parser.add_argument("--seed", type=int, default=0, help="of random changes; 0 chooses one")
    parser.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        fuzz(options.targets[0], options.folder, options.seconds, options.memory, options.seed)
    return max(send_requests() if target == SERVICE else run(target, options) for target in options.targets or TARGETS)


def run(target: str, options: argparse.Namespace) -> int:
    """Run the jobs of a target; return 1 if there is a failure."""
    if importlib.util.find_spec("atheris") is None:
        sys.exit("make fuzz needs atheris: pip install atheris")
    parts = [options.folder / str(i + 1) for i in range(options.jobs)] if options.jobs > 1 else [options.folder]
    found = Summary.total(run_jobs(target, parts, options.seconds, options.memory, options.seed))
    sys.stdout.write(found.line(target, len(parts), options.seconds) + "\n")
    return int(found.failed)


def send_requests() -> int:
    """Test the service with many drawn requests."""
    command = [sys.executable, "-m", "pytest", "-q", "tests/monitor/service/test_openapi.py", "-k", "drawn"]
    return subprocess.run(command, env={**os.environ, "CALIBRANT_SERVICE_REQUESTS": REQUESTS}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
