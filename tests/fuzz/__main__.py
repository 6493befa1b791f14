"""Run one fuzz target with atheris: ``python -m tests.fuzz kernel --seconds 300``.

New inputs that reach new code go to build/fuzz/TARGET, inputs that fail to build/fuzz/failures. The exit code is not 0
if one fails. An input that fails belongs into tests/fuzz/corpus/TARGET, together with the repair.
"""

import argparse
import gc
import sys
from importlib import import_module
from inspect import isfunction
from pathlib import Path

from tests.fuzz.targets import CORPUS, TARGETS


def main() -> None:
    """Read the options, import the target with instrumentation, and run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=1800)
    parser.add_argument("--memory", type=int, default=4096, help="megabytes")
    options = parser.parse_args()
    try:
        import atheris
    except ModuleNotFoundError:
        sys.exit("make fuzz needs atheris: pip install atheris")
    target = import_module(f"tests.fuzz.{options.target}")
    found, failures = Path("build/fuzz") / options.target, Path("build/fuzz/failures")
    for folder in (found, failures):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (found / f"seed-{number}").write_bytes(seed)
        target.run(seed)  # imports what is imported late
    # The hook of atheris on imports does not see packages that are installed in place.
    for each in gc.get_objects():
        if isfunction(each) and str(each.__module__).startswith("calibrant."):
            atheris.instrument_func(each)
    flags = (
        f"-max_total_time={options.seconds}",
        f"-rss_limit_mb={options.memory}",
        f"-artifact_prefix={failures}/{options.target}-",
        *("-timeout=20", "-max_len=4096", "-print_final_stats=1"),
    )
    atheris.Setup([sys.argv[0], *flags, str(found), str(CORPUS / options.target)], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
