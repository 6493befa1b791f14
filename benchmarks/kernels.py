"""Compare decisions and PAVA-BC of this kernel with those of another build of it, as ratios in one process.

Run with the path of the other build, for instance that of an earlier commit: ``python -m benchmarks kernels --
build/other/_core.cpython-311-x86_64-linux-gnu.so``. Both builds must give the same blocks and rejections.
"""

import argparse
import importlib.util
import time
from collections.abc import Callable
from functools import partial
from types import ModuleType

import numpy as np

from calibrant._kernels import _core

SCORES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "uniform": lambda rng, rows: rng.random(rows),
    "rare": lambda rng, rows: rng.beta(0.2, 5, rows),
    "common": lambda rng, rows: rng.beta(5, 1, rows),
    "grid of 101": lambda rng, rows: rng.integers(0, 101, rows) / 100,
}


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("_core", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no extension module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def microseconds(works: list[Callable[[], object]], repeats: int) -> list[float]:
    """Return the median CPU time of each work; the works alternate, so that other load affects them equally."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for i, work in enumerate(works):
            start = time.thread_time()
            work()
            times[i].append(1e6 * (time.thread_time() - start))
    return [float(np.median(each)) for each in times]


def report(what: str, works: list[Callable[[], object]], repeats: int) -> None:
    other, this = microseconds(works, repeats)
    print(f"  {what:<64} {other:10.1f} us -> {this:9.1f} us   {other / this:6.2f} times as fast")


def compare(other: ModuleType, shape: str, rows: int, alpha: float) -> None:
    rng = np.random.default_rng(1)
    p = SCORES[shape](rng, rows)
    score, n, k = (np.array(column) for column in _core.count(p, (rng.random(rows) < p).astype(np.int64)))
    for n_min, n_max in ((rows // 20, rows // 5), (100, 1000), (10, 1000), (0, rows)):
        pava = [partial(each.pava_bc, n, k, n_min, n_max) for each in (other, _core)]
        start = np.array(pava[1]())
        assert np.array_equal(start, pava[0]())
        bin_n, bin_k, _ = _core.bin_sums(score, n, k, start)
        rejected = [partial(each.rejected, score, n, start, bin_n, bin_k, alpha) for each in (other, _core)]
        (theirs, open_theirs), (ours, open_ours) = rejected[0](), rejected[1]()
        assert open_theirs.size or open_ours.size or np.array_equal(theirs, ours)
        name = f"{shape}, {rows:,} rows, bins of {n_min:,} to {n_max:,}"
        repeats = max(20, min(200, 2_000_000 // rows))
        report(f"{name}: PAVA-BC", pava, repeats)
        report(f"{name}: decisions in {start.size:,} bins", rejected, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", help="path of the other compiled kernel")
    parser.add_argument("--alpha", type=float, default=0.05)
    arguments = parser.parse_args()
    other = load(arguments.other)
    for shape in SCORES:
        for rows in (1000, 10_000, 100_000, 1_000_000):
            compare(other, shape, rows, arguments.alpha)


if __name__ == "__main__":
    main()
