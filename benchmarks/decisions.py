"""Compare a million decisions of the kernel with one call of `scipy.stats.binomtest` each.

Tests are drawn with n up to 10^6, at four levels of alpha; a third of the scores lie within a relative 1e-3 to 1e-12 of
a limit of the acceptance region. Run with ``make bench NAME=decisions``; about 20 minutes on two cores.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from scipy.stats import binomtest

from calibrant import _kernels
from calibrant._kernels.scipy_binomial import binomial_pvalue

ALPHAS = (0.001, 0.01, 0.05, 0.3)


def random_tests(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (k, n, p) with sizes of all orders of magnitude, common and rare events, and scores near the rate."""
    n = np.exp(rng.uniform(0, np.log(10**6), size)).astype(np.int64)
    p = np.where(rng.random(size) < 0.5, rng.random(size), 10.0 ** rng.uniform(-6, 0, size))
    k = rng.binomial(n, p)
    return k, n, np.clip(p + rng.normal(0, 2, size) * np.sqrt(p * (1 - p) / n), 0, 1)


def near_a_border(rng: np.random.Generator, k: np.ndarray, n: np.ndarray, alpha: float) -> np.ndarray:
    """Return scores near a limit of acceptance: bisection from the rate, then a step of 1e-3 to 1e-12."""
    accepted = np.clip(k / n, 1e-9, 1 - 1e-9)
    rejected = rng.integers(0, 2, k.size).astype(float)
    for _ in range(60):
        middle = (accepted + rejected) / 2
        reject = binomial_pvalue(k, n, middle) <= alpha
        accepted, rejected = np.where(reject, accepted, middle), np.where(reject, middle, rejected)
    away = 10.0 ** rng.uniform(-12, -3, k.size) * rng.choice([-1, 1], k.size)
    return np.clip(rejected * (1 + away), 0, 1)


def differences(job: tuple[int, int]) -> int:
    """Return the number of decisions of one chunk that differ."""
    seed, size = job
    rng = np.random.default_rng([2023, seed])
    alpha = ALPHAS[seed % len(ALPHAS)]
    k, n, p = random_tests(rng, size)
    p[::3] = near_a_border(rng, k[::3], n[::3], alpha)
    one = np.ones(size, dtype=np.int64)
    ours = _kernels.rejected(p, one, np.arange(size), n, k, alpha)
    scipys = [binomtest(*map(int, kn), float(q)).pvalue <= alpha for *kn, q in zip(k, n, p, strict=True)]
    return int((ours != np.array(scipys)).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=int, default=1_000_000)
    total, chunk = parser.parse_args().tests, 2000
    jobs = [(seed, min(chunk, total - done)) for seed, done in enumerate(range(0, total, chunk))]
    start, differ = time.perf_counter(), 0
    with ProcessPoolExecutor() as pool:
        for done, differing in enumerate(pool.map(differences, jobs), 1):
            differ += differing
            if sys.stderr.isatty() or done % 50 == 0 or done == len(jobs):
                print(
                    f"{sum(size for _, size in jobs[:done]):>9,} of {total:,} tests, {differ} differ", file=sys.stderr
                )
    print(
        f"kernel {_kernels.KERNEL}: {differ} of {total:,} decisions differ from scipy.stats.binomtest "
        f"({time.perf_counter() - start:.0f} s)"
    )
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
