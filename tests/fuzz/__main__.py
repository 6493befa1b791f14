"""Run one fuzz target with atheris: ``python -m tests.fuzz kernel --seconds 300 --jobs 4``.

Each job is a process of its own. Inputs that reach new code go to FOLDER/TARGET, inputs that fail to FOLDER/failures,
what a job prints to FOLDER/TARGET.log; with several jobs FOLDER is build/fuzz/1, build/fuzz/2, and so on. A job that
fails starts again until its time is over or it failed five times. The last line counts inputs and failures; the exit
code is 1 if there is one. An input that fails belongs in tests/fuzz/corpus/TARGET, together with the repair.
"""

import argparse
import sys
from pathlib import Path

from tests.fuzz.jobs import Summary, fuzz, run_jobs
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Read the options and run the jobs, or be one of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--jobs", type=int, default=1, help="processes that run at the same time")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--memory", type=int, default=4096, help="megabytes of each process")
    parser.add_argument("--seed", type=int, default=0, help="of random changes; 0 chooses one")
    parser.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        import atheris  # noqa: F401
    except ModuleNotFoundError:
        sys.exit("make fuzz needs atheris: pip install atheris")
    if options.job:
        fuzz(options.target, options.folder, options.seconds, options.memory, options.seed)
    parts = [options.folder / str(i + 1) for i in range(options.jobs)] if options.jobs > 1 else [options.folder]
    found = Summary.total(run_jobs(options.target, parts, options.seconds, options.memory, options.seed))
    sys.stdout.write(found.line(options.target, len(parts), options.seconds) + "\n")
    return int(found.failed)


if __name__ == "__main__":
    sys.exit(main())
