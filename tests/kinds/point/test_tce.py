"""Random signs of errors: sums over bins by hand, and TCE of each replicate as if computed by itself."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from kernel_results import agree
from numpy.random import SeedSequence

from calibrant import _kernels
from calibrant._kernels import reference_replicates
from calibrant._support.random_streams import Streams
from calibrant.inference import resampling
from calibrant.inference.regression.bias_by_bin import bias_by_bin, fine_bins
from calibrant.kinds.point.tce import SignedErrors, single_rows, tce_with_null
from calibrant.tables.mean_table import MeanTable

KERNELS = (_kernels, reference_replicates)


def signs(key, replicate, units):
    """By hand: unit i has bit i of stream 3, whose words come in chunks of 32 counters."""
    found = []
    for unit in range(units):
        chunk, word = divmod(unit // 64, 64)
        pair, place = divmod(word, 32)
        words = oracles.philox(key, 3, replicate, chunk * 32 + place)
        bits = words[2 * pair] | (words[2 * pair + 1] << 32)
        found.append(1.0 if bits >> (unit % 64) & 1 else -1.0)
    return np.array(found)


@pytest.mark.parametrize(("size", "bins", "units"), [(1, 1, None), (70, 3, None), (300, 9, 40), (4500, 20, None)])
def test_signed_sums_are_those_by_hand(size, bins, units):
    rng = np.random.default_rng(size)
    values = rng.standard_normal((size, 5))
    start = np.sort(np.append(0, rng.integers(0, size, bins - 1)))
    unit = None if units is None else rng.integers(0, units, size)
    for kernel in KERNELS:
        found = kernel.signed_sums(9, 1, 2, values, start, unit)
        for r in range(2):
            sign = signs(9, 1 + r, size if unit is None else int(unit.max()) + 1)
            sign = sign if unit is None else sign[unit]
            ends = np.append(start[1:], size)
            wanted = [(sign[a:b, None] * values[a:b]).sum(axis=0) for a, b in zip(start, ends, strict=True)]
            assert found[r] == pytest.approx(np.array(wanted), abs=1e-11)


@pytest.mark.parametrize("columns", [1, 4, 7])
@pytest.mark.parametrize("units", [None, 500])
def test_signed_sums_agree_on_both_kernels(columns, units):
    rng = np.random.default_rng(columns)
    values = rng.standard_normal((9000, columns))
    start = np.sort(np.concatenate([[0, 64, 64], rng.integers(0, 9000, 150)]))
    unit = None if units is None else rng.integers(0, units, 9000)
    ours, its = (kernel.signed_sums(2**63, 4, 3, values, start, unit) for kernel in KERNELS)
    assert agree(ours, its)


def outcomes(kind, size, rng):
    p = rng.standard_normal(size)
    y = p + rng.standard_normal(size)
    cases = {
        "rows": (y, p, {}),
        "ties": (y.round(), p.round(1), {}),
        "weights": (y, p, {"sample_weight": rng.random(size) + 0.1}),
        "frequencies": (y, p, {"frequency": rng.integers(1, 4, size)}),
        "claims": (np.where(rng.random(size) < 0.97, 0.0, np.exp(y)), np.where(rng.random(size) < 0.5, 0.0, p), {}),
        "one prediction": (np.where(rng.random(size) < 0.9, 0.0, np.exp(y)), np.full(size, 0.3), {}),
    }
    return cases[kind]


@pytest.mark.parametrize("size", [30, 2000])
@pytest.mark.parametrize("clusters", [False, True])
@pytest.mark.parametrize("kind", ["rows", "ties", "weights", "frequencies", "claims", "one prediction"])
def test_replicates_equal_those_computed_one_by_one(kind, clusters, size):
    rng = np.random.default_rng(size)
    y, p, options = outcomes(kind, size, rng)
    cluster = rng.integers(0, size // 3, size) if clusters else None
    table, cluster = single_rows(MeanTable.from_arrays(y, p, **options), cluster)
    bins = fine_bins(table)
    partition = bins(table)
    n = partition.effective_n
    bias = bias_by_bin(table, bins=bins).per_bin["bias"]
    error = np.sqrt(n / np.maximum(n - 1, 1))[partition.labels] * (
        table.mean - table.prediction + bias[partition.labels]
    )
    found = SignedErrors(partition, error, cluster, 0.05)(Streams(7, 2, 12))[:, 0]
    for r, value in enumerate(found):
        sign = reference_replicates.signs(7, 2 + r, len(table) if cluster is None else int(cluster.max()) + 1)
        sign = sign[: len(table)] if cluster is None else sign[cluster]
        again = replace(table, mean=table.prediction + sign * error)
        assert value == pytest.approx(bias_by_bin(again, bins=bins, alpha=0.05).tce, abs=1e-10)


def test_the_null_is_the_same_for_any_number_of_threads_and_order_of_rows(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.standard_normal(120_000).round(4)
    y = p + rng.standard_normal(p.size)
    mixed = rng.permutation(p.size)
    found = []
    for cores, order in ((1, slice(None)), (3, slice(None)), (1, mixed)):
        monkeypatch.setattr(resampling, "thread_count", lambda rows, work, cores=cores: cores)
        table = MeanTable.from_arrays(y[order], p[order])
        options = {"alpha": 0.05, "level": 0.95, "n_resamples": 40, "random_state": SeedSequence(1), "progress": False}
        found.append(tce_with_null(table, None, **options))
    assert found[0] == found[1] == found[2]
