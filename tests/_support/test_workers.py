"""Threads: their number follows affinity and quota, and results keep their order."""

import os
import threading

import pytest

from calibrant._support import workers
from calibrant._support.workers import available_cores, map_in_threads


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 4), ("150000 100000", 2), ("50000 100000", 1), ("800000 100000", 4), ("rubbish", 4), (None, 4)],
)
def test_the_cores_are_those_of_affinity_and_quota(monkeypatch, tmp_path, quota, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    path = tmp_path / "cpu.max"
    if quota is not None:
        path.write_text(quota + "\n")
    monkeypatch.setattr(workers, "_QUOTA", path)
    assert available_cores() == cores


@pytest.mark.parametrize("threads", [1, 3])
def test_results_keep_their_order(threads):
    assert list(map_in_threads(lambda x: x**2, range(50), threads)) == [x**2 for x in range(50)]


def test_work_that_has_not_begun_is_dropped_after_an_error():
    begun, first = [], threading.Event()

    def work(item):
        begun.append(item)
        if item == 0:
            first.set()
            raise KeyError("stop")
        first.wait()

    with pytest.raises(KeyError, match="stop"):
        list(map_in_threads(work, range(10_000), 2))
    assert len(begun) < 10_000
