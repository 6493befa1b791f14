"""Modules that commands do not use are not loaded, and still work if something uses them."""

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from calibrant.cli.main import main
try:
    main(["evaluate", sys.argv[1], "--label", "y", "--score", "p"])
except SystemExit as stop:
    assert stop.code == 0
import numpy
assert "numpy.f2py" in sys.modules and "numpy.f2py.crackfortran" not in sys.modules
assert "numpy.testing._private" not in sys.modules
numpy.testing.assert_equal(numpy.ma.array([1, 2], mask=[False, True]).sum(), 1)
assert "numpy.testing._private" in sys.modules
assert callable(numpy.f2py.get_include)
"""


def test_a_command_loads_modules_of_numpy_that_only_scipy_names_at_their_first_use(tmp_path: Path) -> None:
    rows = "\n".join(f"{i % 2},{(i % 10) / 10 + 0.05}" for i in range(100))
    (tmp_path / "rows.csv").write_text(f"y,p\n{rows}\n")
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "rows.csv")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
