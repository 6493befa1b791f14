"""Threads that share tables get identical results, with and without the GIL."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import calibrant as cb
from calibrant import _kernels

THREADS = 8


def measure(table, n_resamples=99):
    """Results of all parts of the kernel, as plain data."""
    halves = cb.ScoreTable.from_counts(table.score, table.n, table.k)
    return {
        "values": [cb.ece(table), cb.metrics.ace(table), cb.tce(table), cb.brier(table), cb.metrics.smooth_ece(table)],
        "sum": (table + halves).k.tolist(),
        "bins": cb.bins.PAVABC()(table).start.tolist(),
        "breakdown": cb.TCE()(table).to_dict(),
        "interval": cb.interval("tce", table, n_resamples=n_resamples, random_state=3).to_dict(),
        "null": cb.null("ace", table, n_resamples=n_resamples, random_state=3).to_dict(),
        "verdict": cb.evaluate(table, n_resamples=39, random_state=3).to_dict(),
    }


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(5000), 3)
    return (rng.random(5000) < p**1.1).astype(np.int64), p


def test_eight_threads_on_one_table_get_identical_results(rows):
    expected = measure(cb.ScoreTable.from_arrays(*rows))
    shared = cb.ScoreTable.from_arrays(*rows)  # nothing of it is cached yet
    together = threading.Barrier(THREADS)

    def work(_):
        together.wait()
        return measure(shared)

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(work, range(THREADS)))
    assert all(each == expected for each in found)


def test_threads_that_count_and_free_memory_get_identical_tables(rows):
    """The pool of memory is the one thing that calls of the kernel share."""
    y, p = (np.tile(column, 20) for column in rows)
    expected = cb.ScoreTable.from_arrays(y, p)
    together = threading.Barrier(THREADS)

    def work(i):
        together.wait()
        for _ in range(5):
            if i % 4 == 0:
                _kernels.free_memory()
            if cb.ScoreTable.from_arrays(y, p) != expected:
                return False
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        assert all(pool.map(work, range(THREADS)))


def test_the_kernel_keeps_the_gil_disabled():
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("this Python has the GIL")
    assert cb.ece([0, 1], [0.2, 0.7]) == pytest.approx(0.25)
    assert _kernels.KERNEL in ("compiled", "reference")
    assert not sys._is_gil_enabled()
