"""Size of the paired test of `compare` with `time`, beside Diebold-Mariano tests with HAC variances.

Two point forecasts are equally good. In "loss differences" the difference of the squared errors is a Gaussian AR(1)
process; in "errors" the errors of both forecasts are independent AR(1) processes, so that the difference of their
squares has the autocorrelation of the table and heavier tails. The test of `compare` is the t test of the sums of
blocks of times. Beside it stand the tests of Diebold and Mariano (1995) with the correction by Harvey, Leybourne and
Newbold (1997): with Bartlett weights and the bandwidth of Andrews (1991), with Bartlett weights and the rule
4 (n / 100)^(2/9), and with n^(1/3) lags of weight 1, as published; and the t test that ignores the order. Results are
stored in docs/studies/diebold_mariano.csv.
"""

import csv

import numpy as np
from scipy.signal import lfilter
from scipy.stats import t as student

from calibrant.inference.paired import mean_difference
from calibrant.inference.time_blocks import in_time_blocks
from calibrant.kinds.point.sample import errors
from calibrant.tables.mean_table import check_means
from calibrant.tables.rows import Rows
from research.studies.designs import RESULTS

SETS = {100: 2_000, 500: 2_000, 5_000: 500}
CORRELATIONS = (0.0, 0.3, 0.6, 0.9)
ALPHA = 0.05
COLUMNS = (
    "design",
    "rows",
    "autocorrelation",
    "data sets",
    "compare",
    "HLN, Andrews",
    "HLN, fixed",
    "HLN, n^(1/3) lags",
)
COLUMNS += ("ignoring order", "mean number of blocks", "refused")

Array = np.ndarray


def autoregressive(rng: np.random.Generator, size: int, r: float) -> Array:
    """Return a stationary AR(1) process with variance 1."""
    start = 200
    return lfilter([1.0], [1.0, -r], rng.normal(size=size + start))[start:] * np.sqrt(1 - r**2)


def forecast_errors(rng: np.random.Generator, design: str, size: int, r: float) -> tuple[Array, Array]:
    if design == "errors":
        return autoregressive(rng, size, np.sqrt(r)), autoregressive(rng, size, np.sqrt(r))
    level, difference = 10 + rng.normal(size=size), autoregressive(rng, size, r)
    sign = rng.choice([-1.0, 1.0], size)
    one, other = (sign * np.sqrt(np.maximum(level + way * difference / 2, 0.01)) for way in (1, -1))
    return one, other


def hln(difference: Array, horizon: int, bartlett: bool) -> float:
    """Return the p-value with `horizon` - 1 autocovariances; 1 where the variance is not positive."""
    n, centred = difference.size, difference - difference.mean()
    lags = np.arange(1, horizon)
    weight = 1 - lags / horizon if bartlett else np.ones(lags.size)
    covariances = np.array([centred[k:] @ centred[: n - k] for k in lags]) / n
    variance = (centred @ centred / n + 2 * weight @ covariances) / n
    if not variance > 0:
        return 1.0
    correction = (n + 1 - 2 * horizon + horizon * (horizon - 1) / n) / n
    return float(2 * student.sf(abs(difference.mean()) * np.sqrt(correction / variance), n - 1))


def andrews(difference: Array) -> int:
    """Return the number of autocovariances of Andrews' rule for an AR(1) process, plus 1."""
    centred = difference - difference.mean()
    r = np.clip(centred[1:] @ centred[:-1] / (centred @ centred), -0.97, 0.97)
    curvature = 4 * r**2 / (1 - r**2) ** 2
    return int(np.ceil(1.1447 * (curvature * difference.size) ** (1 / 3))) + 1


def data_set(design: str, size: int, r: float, seed: int) -> Array:
    """Return whether each test rejects, the number of blocks, and whether `compare` refuses so few."""
    rng = np.random.default_rng([size, int(10 * r), seed])
    one, other = forecast_errors(rng, design, size, r)
    rows = Rows.read(np.zeros(size), {"a": -one, "b": -other}, time=np.arange(size))
    blocks, found = in_time_blocks(rows, check_means, errors)
    assert found is not None
    difference = one**2 - other**2
    pvalues = [
        1.0 if found.n_blocks < 10 else mean_difference(one**2, other**2, cluster=blocks.cluster_codes).pvalue,
        hln(difference, andrews(difference), bartlett=True),
        hln(difference, int(4 * (size / 100) ** (2 / 9)) + 1, bartlett=True),
        hln(difference, int(size ** (1 / 3)) + 1, bartlett=False),
        mean_difference(one**2, other**2).pvalue,
    ]
    return np.array([*(p <= ALPHA for p in pvalues), found.n_blocks, found.n_blocks < 10], dtype=float)


def main() -> None:
    lines = []
    for design in ("loss differences", "errors"):
        for size, sets in SETS.items():
            for r in CORRELATIONS:
                mean = np.mean([data_set(design, size, r, seed) for seed in range(sets)], axis=0)
                shares = [f"{share:.3f}" for share in mean[:5]]
                lines.append((design, f"{size:,}", r, f"{sets:,}", *shares, f"{mean[5]:.0f}", f"{mean[6]:.3f}"))
                print(*lines[-1], sep=" | ", flush=True)
    with (RESULTS / "diebold_mariano.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *lines])


if __name__ == "__main__":
    main()
