import importlib.util
import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# make test-all loads the profile "thorough".
settings.register_profile("default", deadline=None, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("default")

ROOT = Path(__file__).parent

# A shell without job control lets programs in the background ignore Ctrl-C, which some tests send.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Modules that cannot be imported, and so have no examples to collect, without a library.
NEEDS = {
    "calibrant._kernels._core": ("_kernels/compiled.py",),  # which a pure build does not have
    "pyarrow": ("ingest/frames.py", "monitor"),
    "duckdb": ("evaluation/audit/file_audit.py", "ingest/files.py"),
    "matplotlib": (
        *("plots", "report", "evaluation/overview.py", "kinds/figures.py"),
        *(f"kinds/{path.parent.name}/figures.py" for path in (ROOT / "src/calibrant/kinds").glob("*/figures.py")),
    ),
    "torch": ("metrics/calibration_counter.py",),
    "sqlalchemy": ("monitor",),
    **dict.fromkeys(("starlette", "uvicorn", "prometheus_client"), ("monitor/service",)),
    **dict.fromkeys(("click", "rich"), ("cli", "__main__.py")),
    "sklearn": ("calibrators", "export"),
    "onnx": ("export/onnx_graph.py",),
}
collect_ignore = [
    f"src/calibrant/{path}"
    for library, paths in NEEDS.items()
    if importlib.util.find_spec(library) is None
    for path in paths
]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Look for tests and examples in files of tests only, not in the modules that they share."""
    if ROOT / "tests" in collection_path.parents and collection_path.suffix == ".py":
        return not collection_path.name.startswith("test_") or None
    return None


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
    """List what was skipped and why; make test prints the lists of all of its runs at the end."""
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        reasons[reason] = reasons.get(reason, 0) + 1
    lines = [f"{count:4d}  {reason}" for reason, count in sorted(reasons.items())] or ["nothing"]
    terminalreporter.section("what was skipped, and why")
    for line in lines:
        terminalreporter.write_line(line)
    path = os.environ.get("CALIBRANT_SKIPPED")
    if path and "PYTEST_XDIST_WORKER" not in os.environ:
        kernel = os.environ.get("CALIBRANT_KERNEL", "compiled")
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"skipped by {sys.prefix} with the {kernel} kernel:\n" + "\n".join(lines) + "\n")


def pytest_sessionfinish(session, exitstatus) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CALIBRANT_NO_SKIPS") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = 1
