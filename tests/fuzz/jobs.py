"""Jobs of a fuzz target: processes that atheris drives, started again after a failure, and what they found."""

import gc
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from importlib import import_module
from inspect import isfunction
from pathlib import Path

from tests.fuzz.targets import CORPUS

MOST_FAILURES = 5  # of one job
HANG = 20  # seconds
PATIENCE = 10  # times as many seconds of the clock: other work may take most of the processor
SLICE = 60  # seconds of one process: atheris keeps the arrays that instrumented comparisons return
_EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)", re.MULTILINE)
_WRITTEN = re.compile(r"Test unit written to (.+)$", re.MULTILINE)
_LAST_COUNT = re.compile(r"^#(\d+)\s", re.MULTILINE)
_RAISED = ("Uncaught Python exception", "Traceback (most recent call last)")
_DIFFERENCE = "DifferenceError: "


@dataclass(frozen=True)
class Summary:
    """Number of inputs, and of those that failed, by kind."""

    inputs: int = 0
    crashes: int = 0
    hangs: int = 0
    tracebacks: int = 0
    differences: int = 0
    out_of_memory: int = 0

    @classmethod
    def total(cls, parts: Iterable["Summary"]) -> "Summary":
        return cls(*map(sum, zip(*map(astuple, parts), strict=True)))

    @classmethod
    def of_log(cls, text: str, code: int) -> "Summary":
        """Return what one process found, from what it printed and its exit code."""
        counts = _EXECUTED.findall(text) or _LAST_COUNT.findall(text)
        found = cls(inputs=int(counts[-1]) if counts else 0)
        if code == 0:
            return found
        if "ERROR: libFuzzer: timeout" in text:
            return replace(found, hangs=1)
        if "ERROR: libFuzzer: out-of-memory" in text:
            return replace(found, out_of_memory=1)
        if not any(each in text for each in _RAISED):
            return replace(found, crashes=1)
        return replace(found, differences=1) if _DIFFERENCE in text else replace(found, tracebacks=1)

    @property
    def failed(self) -> bool:
        return any(astuple(self)[1:])

    def line(self, target: str, jobs: int, seconds: int) -> str:
        failures = ", ".join(f"{count} {kind}" for kind, count in list(asdict(self).items())[1:])
        return f"fuzz {target}: {self.inputs:,} inputs in {jobs} x {seconds} s: {failures}"


def run_jobs(target: str, folders: list[Path], seconds: int, memory: int, seed: int) -> list[Summary]:
    """Run one job per folder, all at the same time."""
    with ThreadPoolExecutor(len(folders)) as pool:
        run = partial(_run_job, target, seconds=seconds, memory=memory)
        return list(pool.map(run, folders, [seed and seed + i for i in range(len(folders))]))


def _run_job(target: str, folder: Path, seed: int, *, seconds: int, memory: int) -> Summary:
    """Run a job until its time is over: one process after another, also after a failure."""
    folder.mkdir(parents=True, exist_ok=True)
    found, end = Summary(), time.monotonic() + seconds
    with (folder / f"{target}.log").open("w+b") as log:
        while (left := round(end - time.monotonic())) > 0 or not found.inputs:
            options = ["--job", f"--seconds={min(max(left, 1), SLICE)}", f"--folder={folder}", f"--memory={memory}"]
            start = log.seek(0, 2)
            command = [sys.executable, "-m", "tests.fuzz", target, *options, f"--seed={seed}"]
            code = subprocess.run(command, check=False, stdout=log, stderr=subprocess.STDOUT).returncode
            log.seek(start)
            text = log.read().decode(errors="replace")
            part = Summary.of_log(text, code)
            if part.hangs and not any(is_hang(target, path) for path in _WRITTEN.findall(text)):
                part = replace(part, hangs=0)
            found = Summary.total([found, part])
            if sum(astuple(found)[1:]) >= MOST_FAILURES:
                break
    return found


def is_hang(target: str, path: str) -> bool:
    """Return whether an input that took long by the clock also does by the processor, waits, or fails."""
    limit = f"resource.setrlimit(resource.RLIMIT_CPU, ({HANG}, {HANG}))"
    code = f"import resource; {limit}; from tests.fuzz.{target} import run; run(open({path!r}, 'rb').read())"
    try:
        return subprocess.run([sys.executable, "-c", code], check=False, timeout=PATIENCE * HANG).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def fuzz(target: str, folder: Path, seconds: int, memory: int, seed: int) -> None:
    """Run a target in this process; atheris ends it."""
    import atheris
    import pyarrow as pa

    pa.set_cpu_count(1)
    module = import_module(f"tests.fuzz.{target}")
    corpus, failures = folder / target, folder / "failures"
    for each in (corpus, failures):
        each.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(module.seeds()):
        (corpus / f"seed-{number}").write_bytes(data)
        module.run(data)  # imports what is imported late
    # The hook of atheris on imports does not see packages that are installed in place.
    for each in gc.get_objects():
        if isfunction(each) and str(each.__module__).startswith("calibrant."):
            atheris.instrument_func(each)
    flags = (
        *(f"-max_total_time={seconds}", f"-rss_limit_mb={memory}", f"-artifact_prefix={failures}/{target}-"),
        *(f"-timeout={HANG}", f"-seed={seed}", "-max_len=4096", "-print_final_stats=1", "-verbosity=1"),
    )
    atheris.Setup([sys.argv[0], *flags, str(corpus), str(CORPUS / target)], module.run)
    atheris.Fuzz()
