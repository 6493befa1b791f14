"""The summary of fuzz jobs counts each kind of failure."""

import pytest

from tests.fuzz import jobs
from tests.fuzz.jobs import Summary, is_hang

DONE = "#4096\tpulse  cov: 5\nstat::number_of_executed_units: 4711\n"
FAILURES = {
    "hangs": "#88\tNEW\n==1== ERROR: libFuzzer: timeout after 20 seconds\n",
    "out_of_memory": "#88\tNEW\n==1== ERROR: libFuzzer: out-of-memory (used: 5000Mb; limit: 4096Mb)\n",
    "tracebacks": "#88\tNEW\n === Uncaught Python exception: ===\nKeyError: 'p'\nTraceback (most recent call last):\n",
    "differences": "#88\tNEW\n === Uncaught Python exception: ===\nDifferenceError: ('count', 1)\nTraceback ...\n",
    "crashes": "#88\tNEW\n==1== ERROR: libFuzzer: deadly signal\n",
}


def test_a_job_without_failures_counts_its_inputs():
    found = Summary.of_log(DONE, 0)
    assert found == Summary(inputs=4711)
    assert not found.failed


@pytest.mark.parametrize("kind", FAILURES)
def test_each_kind_of_failure_is_counted(kind):
    found = Summary.of_log(FAILURES[kind], 77)
    assert found == Summary(inputs=88, **{kind: 1})
    assert found.failed
    assert f"1 {kind}" in found.line("kernel", 1, 10)


def test_a_process_that_ends_without_a_word_is_a_crash():
    assert Summary.of_log("", -11) == Summary(crashes=1)


def test_jobs_add_up():
    parts = [Summary(inputs=3, hangs=1), Summary(inputs=4, differences=2)]
    assert Summary.total(parts) == Summary(inputs=7, hangs=1, differences=2)


def test_an_input_hangs_if_it_takes_long_by_the_processor(tmp_path, monkeypatch):
    (tmp_path / "quick").write_bytes(b"{}")
    assert not is_hang("specifications", str(tmp_path / "quick"))
    assert is_hang("specifications", str(tmp_path / "missing"))
    monkeypatch.setattr(jobs, "HANG", 1)
    monkeypatch.setattr(jobs, "PATIENCE", 0.01)  # as for an input that waits
    assert is_hang("specifications", str(tmp_path / "quick"))
