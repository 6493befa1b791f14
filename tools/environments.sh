#!/usr/bin/env bash
# Runs tests and programs that need an environment of their own: make env NAME=lowest PYTHON=python3.12.
# Each environment is a function below; without a name they are listed.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# What differs between Pythons: the kernel, readers of columns, metrics, inference, calibrators, files, the command line.
BETWEEN_PYTHONS="tests/_kernels tests/_support tests/tables tests/metrics tests/ingest tests/inference tests/calibrators tests/export tests/evaluation
    tests/json_schemas tests/cli/test_check.py tests/cli/test_evaluate.py tests/test_package.py src/calibrant"
# Libraries for these tests; notebooks, browsers and documentation are tested once, by make test.
FOR_TESTS="--group test --group frames --group databases --group service --group schemas --group shipping --group boosting"
# The oldest versions that pyproject.toml allows.
OLDEST="duckdb==1.2.0 pyarrow==17.0.0 numpy==2.0.0"

# Makes an empty environment with a new pip; sets python and pip.
new() {
    "$PYTHON" -m venv --clear "$1"
    python="$1/bin/python"
    pip="$python -m pip install --quiet --disable-pip-version-check"
    $pip --upgrade pip
}

corruption() {  # read damaged files by each command, with the newest and the oldest libraries (20 minutes; RESUME=1 goes on)
    [ -n "${RESUME:-}" ] || rm -f docs/studies/corruption.csv
    make --no-print-directory .venv/dev.stamp
    .venv/bin/python -m tests.ingest.damaged_files docs/studies/corruption.csv
    new .venv-oldest
    $pip ".[sklearn,cli]" $OLDEST --group test
    "$python" -m tests.ingest.damaged_files docs/studies/corruption.csv
}

# MLflow, dbt and others restrict the versions of libraries.
integrations() {  # test MLflow, scikit-learn, Lightning, Hugging Face evaluate, dbt, R and Airflow
    new .venv-integrations
    $pip --editable ".[sklearn,plot,cli,serve,mlflow]" "${TORCH:-torch}" --group dev --group integrations
    "$python" -m pytest tests/integrations --deselect=tests/integrations/test_examples.py::test_airflow_runs_the_example
    new .venv-airflow
    $pip --editable ".[sklearn,cli]" --group test --group airflow
    "$python" -m pytest tests/integrations/test_examples.py -k airflow
}

# uv takes the lowest version of each direct dependency of the package; the tools that test it are the newest ones. Old versions use
# functions of their own dependencies that are deprecated by now, so these warnings are no errors here.
lowest() {  # run the tests with the lowest versions of all dependencies (25 minutes)
    new .venv-lowest
    $pip uv
    local uv=".venv-lowest/bin/uv pip"
    $uv install --quiet --python "$python" --resolution lowest-direct ".[sklearn,lightgbm,plot,cli,serve,onnx,postgresql]"
    $uv freeze --python "$python" | grep -v '^calibrant' > .venv-lowest/constraints.txt
    $uv install --quiet --python "$python" --constraints .venv-lowest/constraints.txt $FOR_TESTS
    "$python" tools/lowest_versions.py
    "$python" -m pytest -n auto --dist loadgroup -m "not slow" -W ignore::DeprecationWarning -W ignore::FutureWarning tests src/calibrant
}

oracles() {  # write the golden values of other implementations to tests/golden; the last ones need R
    new .venv-oracles
    $pip --group oracles
    for name in scores calibrators multiclass conformance multicalibration; do "$python" "tests/golden/make_$name.py"; done
    command -v Rscript > /dev/null || {
        echo "The other golden values need R with rms, sandwich, jsonlite, goftest and rpart (Debian: r-cran-rms r-cran-goftest r-cran-rpart)."
        exit 1
    }
    for name in val_prob curves rpart numbers; do "$python" "tests/golden/make_$name.py"; done
}

sanitize() {  # run the tests of the kernel under the address and undefined-behaviour sanitizers
    new .venv-sanitize
    $pip --group test
    $pip . --config-settings=cmake.define.CALIBRANT_SANITIZE=ON --config-settings=build-dir=build/sanitize
    # Python itself is not instrumented, so the runtime is loaded first; Python's own leaks are not ours.
    local compiler=${CXX:-c++}
    export LD_PRELOAD="$("$compiler" -print-file-name=libasan.so):$("$compiler" -print-file-name=libubsan.so)"
    export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 CALIBRANT_KERNEL=compiled
    # In parts of a few minutes, because sanitizers keep the memory of each.
    for part in tests/_kernels "tests/fuzz/test_corpus.py -k kernel" \
        "tests/inference/test_resampling.py tests/inference/test_table_replicates.py tests/metrics/test_metrics_golden.py" \
        "tests/kinds/multiclass/test_sample.py tests/kinds/distribution/test_sample.py" \
        "tests/tables tests/ingest/test_table_counter.py"; do
        echo "sanitize: $part"
        "$python" -m pytest -p no:cacheprovider -q -m "not slow" $part
    done
}

threads() {  # run the tests of the kernel and of threads, for a Python without the GIL: PYTHON=python3.14t
    new .venv-threads
    $pip . --group test
    "$python" tools/check_kernel.py --expect compiled
    "$python" -m pytest -q -m "not slow" tests/_kernels tests/tables tests/metrics tests/test_package.py
    "$python" -m benchmarks threads
}

wheel() {  # install the wheel of this Python into an empty environment and run the tests (10 minutes)
    make --no-print-directory wheel PYTHON="$PYTHON"
    new .venv-wheel
    $pip --no-index --no-deps --find-links dist calibrant
    $pip "calibrant[sklearn,plot,cli,serve,onnx]" $FOR_TESTS
    "$python" tools/check_kernel.py --expect compiled
    "$python" -m pytest -n auto --dist loadgroup -m "not slow" --junit-xml build/wheel-tests.xml $BETWEEN_PYTHONS
    "$python" tools/wheel_report.py dist build/wheel-tests.xml --write docs/studies/wheels.csv
}

if [ $# = 0 ]; then
    sed -nE 's/^([a-z]+)\(\) \{  # (.*)$/\1\t\2/p' "$0" | expand -t 16
    exit
fi
if [ "$(type -t "$1")" != function ] || [ "$1" = new ]; then
    echo "no environment is named $1; make env lists them" >&2
    exit 2
fi
"$1"
