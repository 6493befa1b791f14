#!/usr/bin/env bash
# Builds the kernel with the address and undefined-behaviour sanitizers and runs its tests on it, in parts of a few minutes.
#     bash tools/sanitize.sh                 builds, and runs all parts
#     bash tools/sanitize.sh kernel tables   runs these parts with the last build
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-sanitize
declare -A parts=(
    [kernel]="tests/_kernels"
    [fuzz]="tests/fuzz/test_corpus.py -k kernel"
    [replicates]="tests/inference/test_resampling.py tests/inference/test_shared_draws.py tests/metrics/test_golden.py"
    [weights]="tests/inference/test_weighted_replicates.py tests/inference/multiclass/test_class_replicates.py"
    [tables]="tests/tables tests/ingest/test_row_counter.py"
)
if [ $# = 0 ]; then
    python3 -m venv --clear "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade pip
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --group test
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check . \
        --config-settings=cmake.define.CALIBRANT_SANITIZE=ON --config-settings=build-dir=build/sanitize
    set -- kernel fuzz replicates weights tables
fi
# Python itself is not instrumented, so the runtime is loaded first; Python's own leaks are not ours.
export LD_PRELOAD="$("${CXX:-c++}" -print-file-name=libasan.so):$("${CXX:-c++}" -print-file-name=libubsan.so)"
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 CALIBRANT_KERNEL=compiled
for part in "$@"; do
    echo "sanitize: $part"
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pytest -p no:cacheprovider -q -m "not slow" ${parts[$part]}
done
