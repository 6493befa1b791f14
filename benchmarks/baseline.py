"""Another commit of calibrant, built in a folder of its own, to be measured beside this one."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["COMMIT", "build"]

COMMIT = "84770d4"
_ROOT = Path(__file__).parent.parent
_FOLDER = _ROOT / "build" / "baseline"


def build(commit: str = COMMIT) -> Path:
    """Return the folder with the package of a commit; it is built once, with the libraries of this environment."""
    folder = _FOLDER / commit
    if (folder / "calibrant" / "__init__.py").exists():
        return folder
    source = _FOLDER / f"{commit}-source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit], cwd=_ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
    print(f"building {commit} in {folder.relative_to(_ROOT)} ...", flush=True)
    isolation = (
        [] if find_spec("scikit_build_core") is None or find_spec("nanobind") is None else ["--no-build-isolation"]
    )
    options = ["--quiet", "--no-deps", *isolation, "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True)
    if not list((folder / "calibrant").rglob("_core*.so")) and not list((folder / "calibrant").rglob("_core*.pyd")):
        raise SystemExit(f"{commit} was built without its compiled kernel, so it would not be a fair comparison.")
    return folder
