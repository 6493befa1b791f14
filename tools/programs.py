"""Programs that run by name: studies, benchmarks and kill tests. One entry point per folder lists them or runs some.

    python -m research                              list the programs, and the files that they write
    python -m research curves net_benefit           run programs, or groups of programs
    python -m research monitoring -- --missing 4    with options of the program
    python -m research --check                      compare stored results with new ones, where that takes seconds

Programs that take long keep their finished cells, so they can be stopped and run again.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["ONE_THREAD", "ROOT", "Program", "choose", "main"]

ROOT = Path(__file__).parents[1]
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
# Programs use processes; threads of BLAS and OpenMP beside them only wait for each other.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Program:
    """A program, and the files that it writes.

    Attributes
    ----------
    group : str
        Programs of a group run together.
    module : str
    writes : tuple of str
        Patterns of files below the root.
    time : str
        On two cores.
    options : tuple of str
        Arguments with which the program runs by default.
    check : tuple of str
        Arguments with which it compares its stored results with new ones, in seconds.
    libraries : str
        Dependency group of pyproject.toml that is installed before the program runs.
    environment : bool
        Whether these libraries exclude those of the package, so that the program runs in an environment without it.
    variables : Mapping
        Environment variables; by default one thread of BLAS and OpenMP per process.
    log : str
        File to which the output is written too.
    appends : bool
        Whether the output is added to the end of that file.
    """

    group: str
    module: str
    writes: tuple[str, ...]
    time: str
    options: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    libraries: str = ""
    environment: bool = False
    variables: Mapping[str, str] = field(default_factory=lambda: ONE_THREAD)
    log: str = ""
    appends: bool = False

    @property
    def files(self) -> list[Path]:
        """The files that exist."""
        return sorted(path for pattern in self.writes for path in ROOT.glob(pattern))

    @property
    def about(self) -> str:
        """The first line of the module's docstring."""
        path = ROOT / (self.module.replace(".", "/") + ".py")
        path = path if path.exists() else path.with_suffix("") / "__main__.py"
        return path.read_text(encoding="utf-8").split('"""')[1].splitlines()[0]

    def run(self, options: Sequence[str] | None = None, *, keep_log: bool = True) -> int:
        """Run the program in a process of its own and return its exit code."""
        command = ["-W", "ignore", "-m", self.module, *(self.options if options is None else options)]
        print(" ".join(command[2:]), flush=True)
        command = [self._python(), *command]
        variables = {**os.environ, **self.variables}
        if not (self.log and keep_log):
            return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode
        with (
            (ROOT / self.log).open("a" if self.appends else "w", encoding="utf-8") as log,
            subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                log.write(line)
        return process.returncode

    def _python(self) -> str:
        """Return the Python that runs the program, after its libraries are installed."""
        python = sys.executable
        if self.environment:
            folder = ROOT / f".venv-{self.libraries}"
            subprocess.run([python, "-m", "venv", folder], check=True)
            python = str(folder / "bin" / "python")
            subprocess.run([python, *PIP, "--upgrade", "pip"], check=True)
        if self.libraries:
            subprocess.run([python, *PIP, "--group", self.libraries], cwd=ROOT, check=True)
        return python


def listing(programs: Mapping[str, Program]) -> list[str]:
    """Return two lines for each program: group, name, time and the files that exist, and what it does."""
    lines = []
    for name, program in programs.items():
        files = [str(path.relative_to(ROOT)) for path in program.files]
        shown = f"{', '.join(files[:3])}{', ...' if len(files) > 3 else ''}"
        lines += [f"{program.group:17}{name:38}{program.time:27}{shown}".rstrip(), f"{'':17}{program.about}"]
    return lines


def choose(programs: Mapping[str, Program], names: Sequence[str]) -> list[Program]:
    """Return the programs with the given names and those of the given groups; an unknown name is an error."""
    chosen: dict[str, Program] = {}
    for name in names:
        named = {key: program for key, program in programs.items() if name in (key, program.group)}
        if not named:
            groups = dict.fromkeys(program.group for program in programs.values())
            raise ValueError(
                f"no program or group is named {name!r}; programs: {', '.join(programs)}; groups: {', '.join(groups)}."
            )
        chosen |= named
    return list(chosen.values())


def main(folder: str, programs: Mapping[str, Program], given: Sequence[str] | None = None) -> int:
    """List programs or run some; return the highest exit code."""
    given = list(sys.argv[1:] if given is None else given)
    names, options = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, None)
    parser = argparse.ArgumentParser(prog=f"python -m {folder}", epilog="Without names, the programs are listed.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a program or a group; options of it follow after --")
    parser.add_argument("--check", action="store_true", help="compare stored results with new ones")
    arguments = parser.parse_args(names)
    if not (arguments.names or arguments.check):
        print("\n".join(listing(programs)))
        return 0
    try:
        chosen = choose(programs, arguments.names or list(programs))
    except ValueError as error:
        parser.error(str(error))
    if arguments.check:
        return max(program.run(program.check, keep_log=False) for program in chosen if program.check)
    return max(program.run(options) for program in chosen)
