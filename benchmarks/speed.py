"""Speed compared with other libraries, as ratios measured side by side in one process.

Run with ``make bench NAME=speed``. np.sort selects its instruction set when NumPy is loaded, so its AVX2 path is timed
in a separate process.
"""

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.random import SeedSequence
from scipy.optimize import minimize
from scipy.stats import binomtest
from sklearn.calibration import _SigmoidCalibration, _TemperatureScaling, calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calibrant as cb
from calibrant import plots
from calibrant._kernels import KERNEL
from calibrant.inference.resampling import resample_metrics
from calibrant.inference.table_sample import TableSample

RNG = np.random.default_rng(1)
# Until NumPy 2.3 the features were named one by one.
NO_AVX512 = "X86_V4 AVX512_ICL AVX512_SPR AVX512_SKX AVX512_CLX AVX512_CNL AVX512F AVX512CD"


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the shortest time of several runs, after one warm-up run."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def rows(size: int) -> tuple[np.ndarray, np.ndarray]:
    p = RNG.random(size)
    return (RNG.random(size) < p).astype(np.int64), p


def report(what: str, value: str, target: str, ok: bool) -> bool:
    print(f"  {'ok  ' if ok else 'MISS'}  {what:<74} {value:>12}   {target}")
    return ok


def dog_scores() -> tuple[str, np.ndarray, np.ndarray]:
    folder = Path(os.environ.get("CALIBRANT_DATA") or "../shared/data")
    if (folder / "imagenet_dogs.npz").exists():
        with np.load(folder / "imagenet_dogs.npz") as scores:
            return "AlexNet's 50,000 scores", scores["labels"], scores["alexnet"]
    y, p = rows(50_000)
    return "50,000 uniform scores (no real data: set CALIBRANT_DATA)", y, p.astype(np.float32)


def against_binomtest() -> bool:
    name, y, p = dog_scores()
    breakdown = cb.TCE()(cb.ScoreTable.from_arrays(y, p))
    partition = breakdown.partition
    table, labels = partition.table, partition.labels
    chosen = RNG.choice(len(table), 300, replace=False)

    def loop() -> None:
        for i in chosen:
            bin_ = labels[i]
            binomtest(int(partition.k[bin_]), int(partition.n[bin_]), float(table.score[i]))

    slow = seconds(loop, 3) / 300 * table.size
    fast = seconds(lambda: cb.tce(y, p), 50)
    print(f"\n{name}: loop over binomtest {slow:.1f} s (300 calls, scaled), cb.tce {fast * 1e3:.2f} ms")
    return report(
        "cb.tce, arrays to number, against a loop over binomtest",
        f"{slow / fast:,.0f} x",
        ">= 25,000 x",
        slow / fast >= 25_000,
    )


def against_scikit_learn() -> bool:
    y, p = rows(1_000_000)
    ours = seconds(lambda: cb.tce(y, p), 5)
    curve = seconds(lambda: calibration_curve(y, p, n_bins=10, strategy="quantile"), 5)
    isotonic = seconds(lambda: IsotonicRegression().fit(p, y), 3)
    print(
        f"\n1,000,000 float64 rows: cb.tce {ours * 1e3:.0f} ms, calibration_curve {curve * 1e3:.0f} ms, "
        f"isotonic {isotonic * 1e3:.0f} ms"
    )
    results = [
        report("cb.tce against calibration_curve(strategy='quantile')", f"{ours / curve:.2f}", "<= 1", ours <= curve),
        report("cb.tce against IsotonicRegression().fit", f"{ours / isotonic:.2f}", "<= 0.33", ours <= isotonic / 3),
    ]
    return all(results)


def every_metric() -> bool:
    y, p = rows(1_000_000)
    table = cb.ScoreTable.from_arrays(y, p)
    curve = seconds(lambda: calibration_curve(y, p, n_bins=10, strategy="quantile"), 5)
    print(f"\n1,000,000 float64 rows: every binary metric on a table, against calibration_curve ({curve * 1e3:.0f} ms)")
    results = []
    for name in cb.metrics.metric_names("binary"):
        mine = seconds(partial(cb.METRICS[name](), table), 5)
        results.append(report(f"{name} ({mine * 1e3:.1f} ms)", f"{mine / curve:.2f}", "<= 1", mine <= curve))
    return all(results)


def avx2_sort(size: int) -> float:
    code = (
        "import numpy as np, time\n"
        f"p = np.random.default_rng(1).random({size})\n"
        "times = []\n"
        "for _ in range(4):\n"
        "    copy = p.copy(); start = time.perf_counter(); copy.sort(); times.append(time.perf_counter() - start)\n"
        "print(min(times))"
    )
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": NO_AVX512}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def at_ten_million() -> bool:
    y, p = rows(10_000_000)
    ours = seconds(lambda: cb.tce(y, p), 4)
    here = seconds(lambda: np.sort(p), 3)
    avx2 = avx2_sort(p.size)
    print(
        f"\n10,000,000 float64 rows: cb.tce {ours * 1e3:.0f} ms, np.sort {avx2 * 1e3:.0f} ms (AVX2 path), "
        f"{here * 1e3:.0f} ms (as it runs here)"
    )
    sort = report(
        "cb.tce against np.sort of the scores, AVX2 path", f"{ours / avx2:.1f} x", "<= 6 x, aim 4 x", ours <= 6 * avx2
    )
    extra = extra_memory(y, p) / (y.nbytes + p.nbytes)
    memory = report("peak extra memory against the input", f"{extra:.1f} x", "<= 4 x", extra <= 4)
    return sort and memory


def extra_memory(y: np.ndarray, p: np.ndarray) -> float:
    """Return the increase of the peak resident set while tce runs, in a separate process (Linux)."""
    code = (
        "import numpy as np, calibrant as cb\n"
        "cb.tce([0, 1, 0, 1], [.1, .2, .3, .4])\n"
        f"r = np.random.default_rng(1); p = r.random({p.size}); y = np.empty({p.size}, dtype=np.int64)\n"
        "for part in np.array_split(np.arange(p.size), 100): y[part] = r.random(part.size) < p[part]\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "def high(): return int(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1])\n"
        "before = high(); cb.tce(y, p); print((high() - before) * 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def naive_bootstrap(y: np.ndarray, p: np.ndarray, count: int) -> list[float]:
    """Bootstrap ECE in plain NumPy: digitize, then sums over the same ten bins."""
    rng = np.random.default_rng(0)
    edges = np.arange(1, 10) / 10
    values = []
    for _ in range(count):
        rows = rng.integers(0, y.size, y.size)
        again, score = y[rows], p[rows]
        bins = np.digitize(score, edges)
        predicted = np.bincount(bins, weights=score, minlength=10)
        happened = np.bincount(bins, weights=again, minlength=10)
        values.append(np.abs(predicted - happened).sum() / y.size)
    return values


def resampling_cost() -> bool:
    name, y, p = dog_scores()
    table = cb.ScoreTable.from_arrays(y, p)
    partition = cb.TCE()(table).partition
    labels = partition.labels
    chosen = RNG.choice(len(table), 300, replace=False)

    def loop() -> None:
        for i in chosen:
            binomtest(int(partition.k[labels[i]]), int(partition.n[labels[i]]), float(table.score[i]))

    once = seconds(loop, 3) / 300 * table.size
    tce = seconds(lambda: cb.interval(cb.TCE(), table, n_resamples=1000, random_state=0, progress=False), 2)
    # Uniform scores, so that no bin is empty. The fastest of 20 runs of 50 replicates, scaled.
    y, p = rows(50_000)
    table = cb.ScoreTable.from_arrays(y, p)
    naive = seconds(lambda: naive_bootstrap(y, p, 50), 20) * 20
    draws = {"seed": SeedSequence(0), "n_resamples": 50, "null": False, "show": False}
    ece = seconds(lambda: resample_metrics([cb.ECE()], TableSample(table), **draws), 20) * 20
    print(
        f"\n{name}: one loop over binomtest {once:.1f} s, 1,000 bootstrap replicates of TCE {tce:.2f} s; "
        f"50,000 uniform scores: of ECE {ece:.2f} s, in numpy {naive:.2f} s"
    )
    results = [
        report(
            "1,000 replicates of TCE against one loop over binomtest", f"1/{once / tce:.0f}", "< 1/20", tce < once / 20
        ),
        report("1,000 replicates of ECE against numpy", f"{ece / naive:.2f}", "< 0.33", ece < naive / 3),
    ]
    return all(results)


def evaluation_cost() -> bool:
    times = {}
    for size in (250_000, 500_000, 1_000_000):
        y, p = rows(size)
        times[size] = seconds(partial(cb.evaluate, y, p, n_resamples=200, progress=False), 1)
    print("\ncb.evaluate, 200 replicates: " + ", ".join(f"{n:,} rows {t:.1f} s" for n, t in times.items()))
    largest, smallest = times[1_000_000], times[250_000]
    results = [
        report("cb.evaluate on 1,000,000 rows", f"{largest:.1f} s", "< 10 s", largest < 10),
        report("cost of 4 times the rows", f"{largest / smallest:.1f} x", "<= 5 x (linear)", largest <= 5 * smallest),
    ]
    return all(results)


def drawing_cost() -> bool:
    """Time each diagram of a million rows, drawn and written as SVG, without the computation of its results."""
    y, p = rows(1_000_000)
    table = cb.ScoreTable.from_arrays(y, p)
    tested, binned = cb.TCE()(table), cb.ECE()(table)
    found = cb.null(cb.ECE(), table, n_resamples=99, progress=False)

    def on_paper() -> dict[str, Figure]:
        return {"fig": Figure(figsize=(8, 6), layout="constrained")}

    def written(display: Any) -> int:
        return len(plots.svg(display))

    work: dict[str, Callable[[], int]] = {
        "test-based": lambda: written(plots.TestBasedReliabilityDisplay.from_breakdown(tested, **on_paper())),
        "reliability": lambda: written(plots.ReliabilityDisplay.from_breakdown(binned, **on_paper())),
        "bins": lambda: written(plots.BinningDisplay.from_breakdown({"a": tested, "b": binned}, **on_paper())),
        "cumulative": lambda: written(plots.CumulativeDisplay.from_predictions(table, **on_paper())),
        "ROC hull": lambda: written(plots.RocHullDisplay.from_predictions(table, **on_paper())),
        "costs": lambda: written(plots.CostDisplay.from_predictions(table, n_resamples=0, **on_paper())),
        "decomposition": lambda: written(
            plots.DecompositionDisplay.from_predictions(table, n_resamples=0, **on_paper())
        ),
        "null": lambda: written(plots.NullDisplay.from_null(found, **on_paper())),
    }
    measuring = seconds(lambda: cb.TCE()(y, p), 3)
    times = {name: seconds(draw, 2) for name, draw in work.items()}
    print(f"\ndiagrams of 1,000,000 rows: measuring them (TCE) {measuring:.2f} s; drawing and writing SVG:")
    print("  " + ", ".join(f"{name} {t:.2f} s" for name, t in times.items()))
    slowest = max(times, key=lambda name: times[name])
    return report(
        f"the slowest diagram of 1,000,000 rows: {slowest}", f"{times[slowest]:.2f} s", "<= 2 s", times[slowest] <= 2
    )


def calibrating_cost() -> bool:
    y, p = rows(1_000_000)
    y = (RNG.random(y.size) < p**1.5).astype(np.int64)
    logit = np.log(p) - np.log1p(-p)
    pairs = {
        "Isotonic": (
            lambda: cb.Isotonic().fit(p, y)(p),
            lambda: IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(p),
            "scikit-learn's IsotonicRegression",
            3,
        ),
        "Platt": (
            lambda: cb.Platt().fit(p, y)(p),
            lambda: _SigmoidCalibration().fit(logit, y).predict(logit),
            "scikit-learn's sigmoid, on logits made before",
            5,
        ),
        "Temperature": (
            lambda: cb.calibrators.Temperature().fit(p, y)(p),
            lambda: _TemperatureScaling().fit(logit, y).predict(logit),
            "scikit-learn's temperature, on logits made before",
            5,
        ),
        "Beta": (lambda: cb.Beta().fit(p, y)(p), lambda: betacal(p, y), "betacal's regression", 5),
    }
    print("\n1,000,000 rows, fitted and applied")
    results = []
    for name, (ours, theirs, whose, target) in pairs.items():
        mine, other = seconds(ours, 5), seconds(theirs, 2)
        what = f"{name} ({mine * 1e3:.0f} ms) against {whose} ({other * 1e3:.0f} ms)"
        results.append(report(what, f"{other / mine:.1f} x", f">= {target} x", other >= target * mine))
    return all(results)


def relabelling_cost() -> bool:
    """Time `optimal_prediction` against a loop over the local search of SciPy, which may miss the minimum."""
    draws = RNG.random((100_000, 100))
    limits = {
        cb.costs.LinearCost(1, 5): 1.0,
        cb.costs.PowerCost(0.5, 1, 5): 10.0,
        cb.costs.LogCost(1, 5): 10.0,
        cb.costs.ExponentialCost(1, 5): 10.0,
        cb.costs.PowerCost(2, 1, 5): 10.0,
    }
    print("\n100,000 rows of 100 draws: the cheapest prediction of each")
    results = []
    for cost, limit in limits.items():
        start = time.perf_counter()
        found = cb.metrics.optimal_prediction(draws, cost)
        ours = time.perf_counter() - start
        start = time.perf_counter()
        local = [
            minimize(lambda q, row=row, cost=cost: np.mean(cost(q, row)), 0.5, method="L-BFGS-B", bounds=[(0, 1)])
            for row in draws[:200]
        ]
        loop = (time.perf_counter() - start) * len(draws) / 200
        dearer = sum(np.mean(cost(q, row)) > each.fun + 1e-9 for q, row, each in zip(found, draws, local, strict=False))
        name = f"{type(cost).__name__}{f'({cost.k:g})' if hasattr(cost, 'k') else ''}"
        results.append(report(f"{name}, seconds", f"{ours:.2f} s", f"<= {limit:g} s", ours <= limit))
        what = f"{name} against a loop over minimize (200 rows, scaled), dearer in {dearer}"
        results.append(report(what, f"{loop / ours:,.0f} x", ">= 20 x, in 0", loop >= 20 * ours and not dearer))
    return all(results)


def betacal(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Fit beta calibration as betacal 1.1 does: logistic regression of scikit-learn on two logarithms."""
    try:
        from betacal import BetaCalibration
    except ImportError:
        inside = np.clip(p, np.finfo(float).eps, 1 - np.finfo(float).eps)
        x = np.column_stack([np.log(inside), -np.log(1 - inside)])
        return LogisticRegression(C=99999999999).fit(x, y).predict_proba(x)[:, 1]
    return BetaCalibration(parameters="abm").fit(p.reshape(-1, 1), y).predict(p)


def binning_numbers() -> bool:
    """Time bias by bins of point predictions, with intervals and tests, against sums over bins after a sort."""
    p = RNG.normal(size=10_000_000)
    y = p + RNG.normal(size=p.size)
    start = np.arange(10) * (p.size // 10)

    def by_sorting() -> tuple[np.ndarray, ...]:
        order = np.argsort(p)
        return tuple(np.add.reduceat(column[order], start) for column in (p, y))

    ours, sums = seconds(lambda: cb.regression.bias_by_bin(y, p), 4), seconds(by_sorting, 4)
    print(f"\n10,000,000 predicted numbers: bias_by_bin {ours:.2f} s, argsort and add.reduceat {sums:.2f} s")
    return report("bias_by_bin against np.argsort and np.add.reduceat", f"{ours / sums:.2f}", "<= 1", ours <= sums)


def import_time() -> bool:
    def start(code: str) -> float:
        command = [sys.executable, "-c", code]
        return seconds(lambda: subprocess.run(command, check=True), 10)

    numpy, ours = start("import numpy"), start("import numpy, calibrant")
    first = start("import numpy, calibrant as cb; cb.ece")
    print(
        f"\nstart of Python: import numpy {numpy * 1e3:.0f} ms, with calibrant {ours * 1e3:.0f} ms, "
        f"to the first cb.ece {first * 1e3:.0f} ms"
    )
    extra = (ours - numpy) * 1e3  # modules are loaded when a name is first used
    return report("import calibrant, beyond numpy's own", f"{extra:.0f} ms", "<= 60 ms", extra <= 60)


def main() -> None:
    print(
        f"calibrant {cb.__version__}, kernel {KERNEL}, numpy {np.__version__}, "
        f"scikit-learn {importlib.import_module('sklearn').__version__}"
    )
    results = [
        against_binomtest(),
        against_scikit_learn(),
        every_metric(),
        resampling_cost(),
        evaluation_cost(),
        drawing_cost(),
        calibrating_cost(),
        relabelling_cost(),
        at_ten_million(),
        binning_numbers(),
        import_time(),
    ]
    if not all(results):
        sys.exit("\nA target was missed.")


if __name__ == "__main__":
    main()
