import importlib.util
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# make test-slow and make test-all load the profile "thorough".
settings.register_profile("default", deadline=None, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("default")

ROOT = Path(__file__).parent

# A shell without job control lets programs in the background ignore Ctrl-C, which some tests send.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A pure build has no compiled kernel to collect examples from.
collect_ignore_glob = ["tests/golden/make_*.py"]  # run by make oracles, where other libraries are
collect_ignore = [] if importlib.util.find_spec("calibrant._kernels._core") else ["src/calibrant/_kernels/compiled.py"]
# Examples with frames are pyarrow's.
collect_ignore += [] if importlib.util.find_spec("pyarrow") else ["src/calibrant/ingest/frames.py"]
# Files are read with DuckDB.
if not importlib.util.find_spec("duckdb"):
    collect_ignore += ["src/calibrant/evaluation/audit/file_audit.py", "src/calibrant/ingest/files.py"]
# Diagrams need matplotlib; the tests of tests/plots say so where they are skipped.
if not importlib.util.find_spec("matplotlib"):
    collect_ignore += ["src/calibrant/plots", "src/calibrant/report", "tests/visual", "tests/plots/displays.py"]
# The counter of tensors needs torch.
collect_ignore += [] if importlib.util.find_spec("torch") else ["src/calibrant/metrics/calibration_counter.py"]
# The monitor needs SQLAlchemy and pyarrow.
if not all(map(importlib.util.find_spec, ("sqlalchemy", "pyarrow"))):
    collect_ignore += ["src/calibrant/monitor"]
# The service needs Starlette and prometheus-client.
if not all(map(importlib.util.find_spec, ("starlette", "uvicorn", "prometheus_client"))):
    collect_ignore += ["src/calibrant/monitor/service"]
# The command line needs click and rich.
if not all(map(importlib.util.find_spec, ("click", "rich"))):
    collect_ignore += ["src/calibrant/cli", "src/calibrant/__main__.py"]
if not importlib.util.find_spec("sklearn"):
    collect_ignore += [
        "src/calibrant/calibrators",
        "src/calibrant/export",
    ]
elif not importlib.util.find_spec("onnx"):
    collect_ignore += ["src/calibrant/export/onnx_graph.py"]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data: CALIBRANT_DATA, or ../shared/data beside the project."""
    folder = Path(os.environ.get("CALIBRANT_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no real data: set CALIBRANT_DATA to its folder")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20231)


@pytest.fixture
def skewed(rng) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and 600 point predictions that spread too widely, with errors as prices have them."""
    p = rng.gamma(3, 2, 600)
    return 1 + 0.8 * p + rng.gamma(2, 1, 600) - 2, p


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items) -> None:
    """Keep the groups of pytest-xdist on one worker.

    xdist 3.8 adds the group to `_nodeid`, which pytest reads up to 9.1; pytest 9.2 has `_id` instead.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        named = vars(item).get("_nodeid")
        if named is not None and hasattr(item, "_id"):
            item._id = type(item._id).parse(named)


def pytest_terminal_summary(terminalreporter) -> None:
    """The list of what was skipped and why, in one place."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons: dict[str, int] = {}
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] = reasons.get(reason.removeprefix("Skipped: "), 0) + 1
    terminalreporter.section("what was skipped, and why")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count:4d}  {reason}")
    if not reasons:
        terminalreporter.write_line("nothing")


def pytest_sessionfinish(session, exitstatus) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CALIBRANT_NO_SKIPS") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = 1
