"""Fail where a C++ compiler exists and yet the compiled kernel is not the one running."""

import os
import shutil
import sys

from calibrant._kernels import KERNEL

compiler = next(filter(None, map(shutil.which, [os.environ.get("CXX", "c++"), "g++", "clang++", "cl"])), None)
print(f"kernel: {KERNEL}; C++ compiler: {compiler or 'none'}")
if compiler and KERNEL != "compiled":
    sys.exit("A compiler exists, so the compiled kernel must run. Reinstall and read the build's output.")
