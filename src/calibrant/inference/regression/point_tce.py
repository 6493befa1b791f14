"""The test-based calibration error of point predictions with its null distribution."""

from dataclasses import dataclass, replace

import numpy as np

from calibrant._support.arrays import Ints
from calibrant._support.random_streams import RandomState, seed_sequence
from calibrant.inference.regression.bias_by_bin import bias_by_bin, fine_bins
from calibrant.inference.regression.signed_errors import SignedErrors
from calibrant.inference.resampling import THREADS_FROM, map_blocks
from calibrant.tables.mean_table import MeanTable
from calibrant.tables.rows import repeated_rows

__all__ = ["TestBasedError", "single_rows", "tce_with_null"]

_ROWS_PER_WORK = 16  # rows with random signs that cost as much as one row of another replicate


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
    table, cluster = single_rows(table, cluster)
    bins = fine_bins(table)
    found = bias_by_bin.of_table(table, bins=bins, alpha=alpha)
    partition = bins(table)
    n = partition.effective_n
    bias = found.per_bin["bias"][partition.labels]
    factor = np.sqrt(n / np.maximum(n - 1, 1))[partition.labels]
    error = factor * (table.mean - table.prediction + bias)
    drawn = map_blocks(
        SignedErrors(partition, error, cluster, alpha),
        purpose="null",
        n_resamples=n_resamples,
        seed=seed_sequence(random_state),
        rows=len(table) / _ROWS_PER_WORK,
        threads=len(table) >= THREADS_FROM,
        show=progress,
    )[:, 0]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    pvalue = (1 + np.count_nonzero(drawn >= found.tce - 1e-9)) / (1 + drawn.size)
    return TestBasedError(found.tce, float(drawn.mean()), float(low), float(high), float(pvalue), drawn.size)


def single_rows(table: MeanTable, cluster: Ints | None) -> tuple[MeanTable, Ints | None]:
    """Return single rows in an order that does not depend on that of the data, and their clusters.

    Frequency 2 means two rows, each with its own sign.
    """
    if table.single and cluster is None:
        return table.in_order(), None
    order = np.lexsort((table.mean, table.prediction))
    if not table.importance:
        order = order[repeated_rows(table.n[order], "tested")]
    table = table.part(order)
    if not table.importance:
        table = replace(table, n=np.ones(order.size, dtype=np.int64), single=True)
    return table, None if cluster is None else cluster[order]
