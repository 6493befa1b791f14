"""The research program: reproductions of the papers, and the studies behind the tables of the documentation.

    python -m research                              list the parts, and the files that they write
    python -m research run curves net_benefit       run parts, or groups of parts
    python -m research run monitoring -- --missing 4     with options of the part

Parts that take long keep their finished cells, so they can be stopped and run again.
"""

import argparse
import os
import subprocess
import sys

from research.parts import DOCS, PARTS, Part, chosen

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # parts use processes


def main(arguments: list[str] | None = None) -> int:
    """List or run parts; return the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    own, options = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, None)
    parser = argparse.ArgumentParser(
        prog="python -m research", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("list", help="list the parts (default)")
    run = commands.add_parser("run", help="run parts or groups")
    run.add_argument("names", nargs="+", metavar="NAME")
    found = parser.parse_args(own)
    if found.command != "run":
        print("\n".join(listing()))
        return 0
    try:
        parts = chosen(found.names)
    except ValueError as error:
        parser.error(str(error))
    return max(run_part(part, options) for part in parts)


def listing() -> list[str]:
    """Return a line for each part: group, name, time, and the files that exist."""
    lines = []
    for name, part in PARTS.items():
        files = [str(path.relative_to(DOCS)) for path in part.files]
        lines.append(f"{part.group:17}{name:38}{part.time:27}{', '.join(files[:3])}{', ...' if len(files) > 3 else ''}")
        lines.append(f"{'':17}{part.about}")
    return lines


def run_part(part: Part, options: list[str] | None = None) -> int:
    """Run a part in a process of its own, with one thread each; return its exit code."""
    command = [sys.executable, "-W", "ignore", "-m", part.module, *(part.options if options is None else options)]
    print(" ".join(command[3:]), flush=True)
    return subprocess.run(command, check=False, env={**os.environ, **ONE_THREAD}).returncode


if __name__ == "__main__":
    sys.exit(main())
