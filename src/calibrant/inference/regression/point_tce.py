"""The test-based calibration error of point predictions with its null distribution."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._support.progress import progress_bar
from calibrant._support.random_streams import RandomState, generator
from calibrant._support.typing import Ints
from calibrant.inference.regression.bias_by_bin import bias_by_bin, fine_bins
from calibrant.tables.mean_table import MeanTable

__all__ = ["TestBasedError", "tce_with_null"]


@dataclass(frozen=True)
class TestBasedError:
    """TCE of point predictions, and its null distribution: its values without bias on rows of the same spread."""

    __test__ = False  # not a test case of pytest

    value: float
    expected: float
    low: float
    high: float
    pvalue: float
    n_resamples: int


def tce_with_null(
    table: MeanTable,
    cluster: Ints | None,
    *,
    alpha: float,
    level: float,
    n_resamples: int,
    random_state: RandomState,
    progress: bool | None,
) -> TestBasedError:
    """Return TCE and its null distribution: errors, centred in each bin, with a random sign per row or cluster."""
    # Frequency 2 means two rows, each with its own sign; the order of rows must not matter.
    repeats = np.ones(len(table), dtype=np.int64) if table.importance else table.n
    order = np.lexsort((table.mean, table.prediction))
    order = np.repeat(order, repeats[order])
    table = table.part(order)
    if not table.importance:
        table = replace(table, n=np.ones(order.size, dtype=np.int64), single=True)
    cluster = None if cluster is None else cluster[order]
    bins = fine_bins(table)
    found = bias_by_bin.of_table(table, bins=bins, alpha=alpha)
    partition = bins(table)
    n = partition.effective_n
    bias = found.per_bin["bias"][partition.labels]
    factor = np.sqrt(n / np.maximum(n - 1, 1))[partition.labels]
    error = factor * (table.mean - table.prediction + bias)
    rng = generator(random_state)
    drawn = np.empty(n_resamples)
    size = len(table) if cluster is None else int(cluster.max()) + 1
    for i in progress_bar(range(drawn.size), drawn.size, "TCE without bias", show=progress):
        sign = 2.0 * rng.integers(0, 2, size) - 1
        sign = sign if cluster is None else sign[cluster]
        again = replace(table, mean=table.prediction + sign * error)
        drawn[i] = bias_by_bin.of_table(again, bins=bins, alpha=alpha).tce
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    pvalue = (1 + np.count_nonzero(drawn >= found.tce - 1e-9)) / (1 + drawn.size)
    return TestBasedError(found.tce, float(drawn.mean()), float(low), float(high), float(pvalue), drawn.size)
