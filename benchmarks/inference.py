"""Speed of inference, as ratios to another build of calibrant and to one thread.

    python benchmarks/inference.py --baseline OTHER/bin/python     the same work in both environments, in turn
    python benchmarks/inference.py --threads 1 2 16                the same work with so many cores

Each measurement is a process of its own, pinned to the cores that it may use. Times are CPU seconds (baseline) or
seconds (threads), without the time to import.
"""

import argparse
import json
import os
import subprocess
import sys

WORK = {
    "evaluate, 1e3 rows": "cb.evaluate(y[:1000], p[:1000], n_resamples=499, random_state=0)",
    "evaluate, 1e5 rows": "cb.evaluate(y[:100_000], p[:100_000], n_resamples=499, random_state=0)",
    "evaluate, 1e6 rows": "cb.evaluate(y, p, n_resamples=499, random_state=0)",
    "evaluate, 90 miscalibrated groups of 1,111 rows": "cb.evaluate(y[:99_990], p[:99_990] ** 1.3, "
    "by=np.repeat(np.arange(90), 1111), random_state=0)",
    "compare, 3 models, 1e6 rows": "cb.compare(y, {'a': p, 'b': other, 'c': p**1.1}, random_state=0)",
    "regression.evaluate, Gaussian, 1e6 rows": "rg.evaluate(z, rg.Gaussian(m, np.ones(len(m))), random_state=0)",
}
NEW = {
    "evaluate, 10,000 groups of 100 rows": "cb.evaluate(y, p, by=np.repeat(np.arange(10_000), 100), random_state=0)",
}
CODE = """
import json, os, sys, time, warnings
cores = int(sys.argv[2])
if hasattr(os, "sched_setaffinity") and cores:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
import numpy as np
import calibrant as cb
from calibrant import regression as rg
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
p = rng.random(1_000_000)
y = (rng.random(p.size) < p).astype(int)
other = np.clip(p + 0.02 * rng.standard_normal(p.size), 0, 1)
m = rng.standard_normal(p.size)
z = m + rng.standard_normal(p.size)
cb.evaluate(y[:500], p[:500], n_resamples=19)
rg.evaluate(z[:500], rg.Gaussian(m[:500], np.ones(500)))
cpu, wall = time.process_time(), time.perf_counter()
eval(sys.argv[1])
print(json.dumps([time.process_time() - cpu, time.perf_counter() - wall]))
"""


def measure(python: str, work: str, cores: int) -> tuple[float, float]:
    """Return CPU seconds and seconds of the work in one process."""
    child = subprocess.run([python, "-c", CODE, work, str(cores)], capture_output=True, text=True, check=True)
    cpu, wall = json.loads(child.stdout.splitlines()[-1])
    return cpu, wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", help="Python of the environment with the other build")
    parser.add_argument("--threads", type=int, nargs="*", default=[], help="numbers of cores")
    parser.add_argument("--only", default="", help="text that the name of the work contains")
    options = parser.parse_args()
    chosen = {name: work for name, work in {**WORK, **NEW}.items() if options.only in name}
    for name, work in chosen.items():
        cpu, wall = measure(sys.executable, work, 1)
        line = f"{name:<50} {cpu:8.2f} s CPU, {wall:6.2f} s"
        if options.baseline and name in WORK:
            before, _ = measure(options.baseline, work, 1)
            line += f"; baseline {before:7.2f} s CPU, {before / cpu:.1f} times as much"
        several = {cores: measure(sys.executable, work, cores)[1] for cores in options.threads if cores > 1}
        line += "".join(
            f"; {cores} cores {time:.2f} s, {wall / time:.1f} times faster" for cores, time in several.items()
        )
        print(line, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
