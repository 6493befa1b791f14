"""Speed compared with an earlier commit and with one core, as ratios measured in turn in one run.

    python -m benchmarks inference                                    all ratios, written to docs/performance.csv
    python -m benchmarks inference -- --only compare --repeats 2      some of them, the shorter of two times

Earlier commits are built once in build/baseline. Each measurement is a process of its own, pinned to the cores that
it may use, without the time to import. Comparisons with the earlier commit use CPU time on one core; comparisons with
one core, and limits in seconds, use elapsed time.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.baseline import COMMIT, build
from calibrant._support.workers import available_cores

EVALUATE = "cb.evaluate(y, p, n_resamples=499, random_state=0)"
COMPARE = "cb.compare(y, {'a': p, 'b': other, 'c': p**1.1}, random_state=0)"
GAUSSIAN = "rg.evaluate(z, rg.Gaussian(m, np.ones(len(m))), random_state=0)"
GROUPS = "cb.evaluate(y[:99_990], p[:99_990] ** 1.3, by=np.repeat(np.arange(90), 1111), random_state=0)"
MANY_GROUPS = "cb.evaluate(y, p, by=np.repeat(np.arange(10_000), 100), random_state=0)"
WEIGHTS = "cb.evaluate(y[:100_000], p[:100_000], sample_weight=1 + other[:100_000], random_state=0)"
CLUSTERS = "cb.evaluate(y[:100_000], p[:100_000], cluster=np.arange(100_000) // 10, random_state=0)"
CLASSES = "cb.evaluate(labels, classes, random_state=0)"
BEFORE_WEIGHTS = "4ca9b9a"  # the last commit that measured these one replicate at a time
ECE = "[cb.ece(y, p) for _ in range(20)]"
BINCOUNTS = (
    "[(np.bincount(b, minlength=10), np.bincount(b, weights=y, minlength=10), np.bincount(b, weights=p, minlength=10)) "
    "for b in [np.minimum((p * 10).astype(np.int64), 9)] for _ in range(20)]"
)

CODE = """
import json, os, sys, time, warnings
work, cores, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if hasattr(os, "sched_setaffinity") and cores:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
if folder:  # before the finder of an editable installation
    sys.meta_path[:] = [each for each in sys.meta_path if "Redirecting" not in type(each).__name__]
    sys.path.insert(0, folder)
import numpy as np
import calibrant as cb
from calibrant import regression as rg
assert not folder or cb.__file__.startswith(folder), cb.__file__
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
p = rng.random(1_000_000)
y = (rng.random(p.size) < p).astype(int)
other = np.clip(p + 0.02 * rng.standard_normal(p.size), 0, 1)
m = rng.standard_normal(p.size)
z = m + rng.standard_normal(p.size)
classes = rng.dirichlet(np.ones(5), 20_000)
labels = (rng.random((20_000, 1)) > np.cumsum(classes, axis=1)[:, :-1]).sum(axis=1)
cb.evaluate(y[:500], p[:500], n_resamples=19)
if "sample_weight" in work or "cluster" in work:
    cb.evaluate(y[:500], p[:500], sample_weight=1 + p[:500], cluster=np.arange(500) // 5, n_resamples=19)
if "classes" in work:  # older commits do not take them
    cb.evaluate(labels[:500], classes[:500], n_resamples=19)
cb.compare(y[:500], {'a': p[:500], 'b': other[:500]}, n_resamples=19)
rg.evaluate(z[:500], rg.Gaussian(m[:500], np.ones(500)))
cpu, wall = time.process_time(), time.perf_counter()
eval(work)
print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall]))
"""


@dataclass(frozen=True)
class Ratio:
    """One line of the table: what was measured, the value, and its limit."""

    what: str
    measured: str
    value: float
    limit: float
    at_least: bool

    @property
    def is_met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def cells(self) -> list[str]:
        """Return the line as text."""
        limit = f"{'at least' if self.at_least else 'at most'} {self.limit:g}"
        return [self.what, self.measured, f"{self.value:.3g}", limit, "yes" if self.is_met else "no"]


class Runs:
    """Measures work in new processes; the shortest of several times."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats

    def measure(self, work: str, cores: int = 1, folder: Path | None = None) -> tuple[float, float]:
        """Return CPU seconds and seconds of the work in one process."""
        command = [sys.executable, "-c", CODE, work, str(cores), str(folder or "")]
        child = subprocess.run(command, capture_output=True, text=True, check=False)
        if child.returncode:
            raise SystemExit(child.stderr)
        cpu, wall = json.loads(child.stdout.splitlines()[-1])
        return cpu, wall

    def against_baseline(self, what: str, work: str, least: float, commit: str = COMMIT) -> Ratio:
        """Compare CPU times of this and of an earlier commit."""
        folder, pairs = build(commit), []
        for _ in range(self.repeats):
            pairs.append((self.measure(work, folder=folder)[0], self.measure(work)[0]))
        old, new = (min(times) for times in zip(*pairs, strict=True))
        return Ratio(what, f"CPU {new:.2f} s; {commit}: {old:.1f} s", old / new, least, at_least=True)

    def with_cores(self, what: str, work: str, cores: int, least: float) -> Ratio:
        """Compare elapsed times of one core and of several."""
        pairs = [(self.measure(work)[1], self.measure(work, cores)[1]) for _ in range(self.repeats)]
        one, several = (min(times) for times in zip(*pairs, strict=True))
        return Ratio(what, f"{one:.2f} s on 1 core, {several:.2f} s on {cores}", one / several, least, at_least=True)

    def seconds(self, what: str, work: str, cores: int, most: float) -> Ratio:
        """Measure the elapsed time."""
        cpu, wall = min((self.measure(work, cores) for _ in range(self.repeats)), key=lambda times: times[1])
        return Ratio(what, f"{wall:.1f} s on {cores} cores, CPU {cpu:.1f} s", wall, most, at_least=False)

    def side_by_side(self, what: str, ours: str, theirs: str, most: float) -> Ratio:
        """Compare two pieces of work of this commit."""
        pairs = [(self.measure(ours)[0], self.measure(theirs)[0]) for _ in range(max(self.repeats, 3))]
        mine, other = (min(times) for times in zip(*pairs, strict=True))
        return Ratio(what, f"CPU {50 * mine:.2f} ms against {50 * other:.2f} ms", mine / other, most, at_least=False)


def command_ratios(repeats: int) -> Iterator[Ratio]:
    """Measure CPU times of commands from the shell."""
    import tempfile

    import numpy as np

    rng = np.random.default_rng(0)
    p = rng.random(1000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        lines = (f"{int(u < score)},{score:.6f}" for u, score in zip(rng.random(1000), p, strict=True))
        path.write_text("\n".join(["y,p", *lines]))
        evaluate = ["evaluate", str(path), "--label", "y", "--score", "p"]
        _cpu_of_command(evaluate, folder)  # writes the bytecode
        times = {name: [] for name in ("evaluate", "--version", "--help")}
        for _ in range(max(repeats, 5)):
            for name, seconds in times.items():
                seconds.append(_cpu_of_command(evaluate if name == "evaluate" else [name], folder))
    best = {name: min(seconds) for name, seconds in times.items()}
    what = "calibrant evaluate of a CSV of 1,000 rows, CPU seconds"
    yield Ratio(what, f"{best['evaluate']:.2f} s", best["evaluate"], 0.7, at_least=False)
    both = f"{best['--version']:.2f} s against {best['--help']:.2f} s"
    yield Ratio("calibrant --version against --help", both, best["--version"] / best["--help"], 1.25, at_least=False)


def _cpu_of_command(arguments: list[str], folder: str) -> float:
    """Return the CPU seconds of a command; modules are loaded from bytecode in the folder, as pip installs it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = folder
    command = [sys.executable, "-m", "calibrant", *arguments]
    before = os.times()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def ratios(runs: Runs) -> dict[str, Callable[[], Iterator[Ratio]]]:
    """Return the measurements by name."""
    cores = available_cores()

    def one(make: Callable[[], Ratio]) -> Callable[[], Iterator[Ratio]]:
        return lambda: iter([make()])

    measurements = {
        "evaluate": one(lambda: runs.against_baseline("evaluate, 1e6 rows, 499 replicates", EVALUATE, 6)),
        "90 groups": one(lambda: runs.against_baseline("evaluate, 90 miscalibrated groups of 1,111 rows", GROUPS, 50)),
        "compare": one(lambda: runs.against_baseline("compare, 3 models, 1e6 rows", COMPARE, 15)),
        "Gaussian": one(lambda: runs.against_baseline("evaluate, Gaussian forecasts, 1e6 rows", GAUSSIAN, 15)),
        "10,000 groups": one(
            lambda: runs.seconds("evaluate, 10,000 groups of 100 rows, seconds", MANY_GROUPS, min(cores, 2), 60)
        ),
        "weights": one(
            lambda: runs.against_baseline("evaluate, 100,000 rows with weights", WEIGHTS, 4, BEFORE_WEIGHTS)
        ),
        "clusters": one(
            lambda: runs.against_baseline("evaluate, 10,000 clusters of 10 rows", CLUSTERS, 3, BEFORE_WEIGHTS)
        ),
        "classes": one(lambda: runs.against_baseline("evaluate, 20,000 rows of 5 classes", CLASSES, 6, BEFORE_WEIGHTS)),
        "ece": one(lambda: runs.side_by_side("ece, 1e6 rows, against three np.bincount", ECE, BINCOUNTS, 1)),
        "command": lambda: command_ratios(runs.repeats),
    }
    for count, least in ((2, 1.7), (16, 6)):
        if cores >= count:
            what = f"evaluate, 1e6 rows, 499 replicates, {count} cores against 1"
            measurements[f"{count} cores"] = one(lambda c=count, w=what, x=least: runs.with_cores(w, EVALUATE, c, x))
    return measurements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="names of measurements")
    parser.add_argument("--repeats", type=int, default=1, help="times that each is measured")
    parser.add_argument("--write", type=Path, help="CSV file to which lines are written; other lines are kept")
    options = parser.parse_args()
    chosen = ratios(Runs(options.repeats))
    unknown = set(options.only) - set(chosen)
    if unknown:
        parser.error(f"--only takes {', '.join(chosen)}; got {', '.join(sorted(unknown))}")
    measured: list[Ratio] = []
    for name, measure in chosen.items():
        if options.only and name not in options.only:
            continue
        for ratio in measure():
            measured.append(ratio)
            print(f"  {'ok  ' if ratio.is_met else 'MISS'}  {'; '.join(ratio.cells()[:-1])}", flush=True)
            if options.write:  # at once: a run of many minutes may be interrupted
                write(options.write, [ratio])
    if not all(ratio.is_met for ratio in measured):
        raise SystemExit("A target was missed.")


def write(path: Path, measured: list[Ratio]) -> None:
    """Write the table; lines of other measurements are kept."""
    header, lines = ["computation", "measured", "value", "target", "reached"], dict[str, list[str]]()
    if path.exists():
        with path.open(newline="") as file:
            lines = {row[0]: row for row in list(csv.reader(file))[1:]}
    lines |= {ratio.what: ratio.cells() for ratio in measured}
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *lines.values()])


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
