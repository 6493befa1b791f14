"""Fail if the wrong kernel is in use: the compiled one is expected with a C++ compiler, or the one given."""

import os
import shutil
import sys

from calibrant._kernels import KERNEL

compiler = next(filter(None, map(shutil.which, [os.environ.get("CXX", "c++"), "g++", "clang++", "cl"])), None)
expected = sys.argv[2] if sys.argv[1:2] == ["--expect"] else "compiled" if compiler else "reference"
print(f"kernel: {KERNEL}; C++ compiler: {compiler or 'none'}")
if expected != KERNEL:
    sys.exit(f"The {expected} kernel must run here. Reinstall and read the build's output.")
