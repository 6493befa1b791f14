"""A small file system, for tests of full disks."""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def small_disk(folder, size):
    """Mount a file system of `size` at a new folder, where that is permitted; else the test is skipped."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    permitted = os.name == "posix" and os.geteuid() == 0 and shutil.which("mount") is not None
    if not permitted or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
