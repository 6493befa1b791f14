#!/usr/bin/env bash
# Builds the kernel with the address and undefined-behaviour sanitizers and runs its tests on it.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-sanitize
python3 -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --group test
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check . \
    --config-settings=cmake.define.CALIBRANT_SANITIZE=ON --config-settings=build-dir=build/sanitize
# Python itself is not instrumented, so the runtime is loaded first; Python's own leaks are not ours.
export LD_PRELOAD="$("${CXX:-c++}" -print-file-name=libasan.so):$("${CXX:-c++}" -print-file-name=libubsan.so)"
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 CALIBRANT_KERNEL=compiled
"$venv/bin/python" -m pytest -p no:cacheprovider -q tests/_kernels tests/inference/test_resampling.py tests/metrics/test_golden.py tests/tables
