"""Threads: their number follows affinity and quota, and results keep their order."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from calibrant._support import workers
from calibrant._support.workers import available_cores, map_ahead, map_in_threads, run_together, thread_count


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


@pytest.mark.parametrize(("rows", "cores"), [(100, 4), (1_000_000, 1), (1_000_000, 2)])
def test_two_functions_return_their_results_and_run_at_once_where_rows_and_cores_are_many(monkeypatch, rows, cores):
    monkeypatch.setattr(workers, "available_cores", lambda: cores)
    both = threading.Barrier(2 if rows > 100 and cores > 1 else 1)
    assert run_together(lambda: (both.wait(10), 1)[1], lambda: (both.wait(10), "two")[1], rows=rows) == (1, "two")


@pytest.mark.parametrize(("rows", "cores"), [(1e6, 4), (1e6, 1), (10, 4)])
def test_three_pieces_return_their_results_in_order(monkeypatch, rows, cores):
    monkeypatch.setattr(workers, "available_cores", lambda: cores)
    all_three = threading.Barrier(3 if rows > 100 and cores > 1 else 1)
    pieces = [lambda name=name: (all_three.wait(10), name)[1] for name in "abc"]
    assert run_together(*pieces, rows=rows) == ("a", "b", "c")


def test_few_rows_have_one_thread_and_many_have_one_for_each_core(monkeypatch):
    monkeypatch.setattr(workers, "available_cores", lambda: 12)
    assert [thread_count(rows) for rows in (99_999, 100_000)] == [1, 12]
    assert [thread_count(rows, "kernel") for rows in (9_999, 10_000)] == [1, 12]
    assert [thread_count(rows, "memory") for rows in (2**21 - 1, 2**21)] == [1, 12]


def test_pieces_that_run_beside_others_leave_cores_to_them(monkeypatch):
    monkeypatch.setattr(workers, "available_cores", lambda: 16)
    counts = []

    def count():
        counts.append(thread_count(1e6, "kernel"))

    run_together(count, lambda: run_together(count, count, rows=1e6), rows=1e6)
    count()
    assert sorted(counts) == [12, 12, 14, 16]
    monkeypatch.setattr(workers, "available_cores", lambda: 3)
    run_together(count, count, rows=1e6)
    assert counts[4:] == [3, 3]


@pytest.mark.parametrize(("threads", "ahead"), [(1, 0), (1, 3), (3, 2), (2, 100)])
def test_items_are_started_ahead_and_finished_in_order(threads, ahead):
    begun, finished, caller = [], [], threading.current_thread()

    def start(item, submit):
        assert threading.current_thread() is caller
        begun.append(item)
        square = submit(lambda: (threading.current_thread(), item**2))

        def finish():
            thread, value = square()
            assert thread is not caller
            finished.append(item)
            return value, len(begun)

        return finish

    found = list(map_ahead(start, range(20), threads, ahead))
    assert [value for value, _ in found] == [x**2 for x in range(20)]
    assert [count for _, count in found] == [min(item + ahead + 1, 20) for item in range(20)]
    assert begun == finished == list(range(20))


def test_an_error_of_submitted_work_is_raised_and_drops_the_rest():
    begun = []

    def work(item):
        begun.append(item)
        if item == 3:
            raise KeyError("stop")

    def start(item, submit):
        return submit(lambda: work(item))

    with pytest.raises(KeyError, match="stop"):
        list(map_ahead(start, range(10_000), 2, 4))
    assert len(begun) <= 9


def test_an_error_is_raised_in_the_turn_of_its_item():
    """The fifth item cannot be started, the third one not finished."""

    def start(item, submit):
        if item == 5:
            raise KeyError("start")
        return submit(lambda: 1 / (item - 3))

    found = map_ahead(start, range(10), 2, 4)
    assert [next(found) for _ in range(3)] == [-1 / 3, -0.5, -1]
    with pytest.raises(ZeroDivisionError):
        next(found)
    with pytest.raises(KeyError, match="start"):
        list(map_ahead(start, [4, 5, 6], 1, 0))


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


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interruption_drops_the_work_of_pools_inside_a_pool():
    begun, all_began = [], threading.Event()

    def inner(item):
        begun.append(item)
        if len(begun) > 20:
            all_began.set()
        time.sleep(0.005)

    def outer(item):
        return list(map_in_threads(inner, range(10_000), item))

    def interrupt():
        all_began.wait()
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        list(map_in_threads(outer, [1, 2, 1, 2], 2))
    time.sleep(0.1)  # work that has begun
    count = len(begun)
    time.sleep(0.1)
    assert len(begun) == count < 1000


# Each begins with a small call, so that nothing is imported while it is interrupted.
_INTERRUPTED = """
import sys, time
import numpy as np
import calibrant as cb
from calibrant import regression as rg
rng = np.random.default_rng(0)
p = rng.random(1_000_000)
y = (rng.random(p.size) < p).astype(int)
m = rng.standard_normal(p.size)
def scan(y1, p1):
    import pathlib, pyarrow as pa, pyarrow.csv
    for rows in (2000, p.size):  # both before it is interrupted
        if not pathlib.Path(f"rows-{rows}.csv").exists():
            pyarrow.csv.write_csv(pa.table({"y": y[:rows], "p": p[:rows]}), f"rows-{rows}.csv")
    cb.scan(f"rows-{len(y1)}.csv", y="y", p="p")
def work(rows, group, resamples):
    y1, p1, m1 = y[:rows], p[:rows], m[:rows]
    WORK
work(2000, 2, 19)
print("begin", flush=True)
try:
    while True:
        work(p.size, GROUPS, 499)
except KeyboardInterrupt:
    print(time.time(), flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("work", "groups"),
    [
        ("cb.evaluate(y1, p1, n_resamples=resamples)", 1),
        ("cb.evaluate(y1, p1, by=np.arange(rows) % group, n_resamples=resamples)", 4),
        ("cb.evaluate(y1, p1, by=np.arange(rows) % group, n_resamples=resamples)", 1000),
        ("cb.compare(y1, {'a': p1, 'b': p1**1.1}, n_resamples=resamples)", 1),
        ("rg.evaluate(m1 + p1, rg.Gaussian(m1, np.ones(rows)), n_resamples=resamples)", 1),
        ("cb.audit(y1, p1, {'a': np.arange(rows) % 7, 'b': m1})", 1),
        ("scan(y1, p1)", 1),
    ],
    ids=["evaluate", "large groups", "many groups", "compare", "regression", "audit", "scan"],
)
def test_an_interruption_takes_effect_at_once(tmp_path, work, groups):
    if "scan" in work:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    code = _INTERRUPTED.replace("WORK", work).replace("GROUPS", str(groups))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert child.stdout.readline() == "begin\n"
    time.sleep(0.7)
    sent = time.time()
    child.send_signal(signal.SIGINT)
    try:
        output, _ = child.communicate(timeout=20)
    except subprocess.TimeoutExpired:  # seen once in a scan, on a busy machine: the first interruption was lost
        sent = time.time()
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=20)
    assert child.returncode == 0
    assert float(output) - sent < 2
    assert time.time() - sent < 4
