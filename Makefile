# make demo, make check and make test are all a newcomer needs; each installs what it uses. make help lists the rest.
PYTHON ?= python3
VENV ?= $(if $(LOCKED),.venv-locked,.venv)
CORE ?= .venv-core
BIN := $(VENV)/bin
KERNEL_SOURCES := $(wildcard src/calibrant/_kernels/cpp/*) CMakeLists.txt
export CALIBRANT_DATA ?= $(wildcard $(abspath ../shared/data))
# torch is large; tests use it where it is installed, and make test-all installs this build.
export TORCH ?= torch==2.13.0
# make check: laws, contracts and golden values of the kernel, the readers, the metrics and every kind of forecast.
FAST := tests/_kernels tests/_support tests/tables tests/metrics/test_metrics_golden.py tests/metrics/test_bins.py tests/metrics/test_registry.py \
	tests/metrics/test_multiclass.py tests/evaluation/test_evaluate_kinds.py tests/test_inputs.py tests/test_options.py tests/test_package.py tests/test_structure.py
# What can differ without optional libraries and on the reference kernel: imports, readers of columns, tables, metrics, an
# evaluation of each kind and the examples. Files of _support that check options, locks and texts run once, with all libraries.
WITHOUT_LIBRARIES := tests/_kernels tests/test_inputs.py tests/_support/test_errors.py tests/tables tests/metrics tests/ingest \
	tests/evaluation/test_evaluate_kinds.py::test_each_kind_has_a_verdict_metrics_tests_and_groups tests/test_package.py src/calibrant
# Tests on the reference kernel that need scikit-learn: laws and golden values of each calibrator, which call each function of
# the kernel that calibrators use. Wrappers of models, folds, cost rules and scikit-learn's checks of the interface call no other.
WITH_LIBRARIES := tests/calibrators/test_calibrators.py tests/calibrators/test_multiclass_calibrators.py tests/metrics/test_multiclass.py src/calibrant/calibrators
PYTEST := -m pytest -n auto --dist loadgroup
# pytest-xdist runs one process per core: threads of BLAS and OpenMP beside them only wait for each other.
check test test-all: export OMP_NUM_THREADS := 1
check test test-all: export OPENBLAS_NUM_THREADS := 1
# Each run of pytest adds what it skips, and why, to this file; make test ends with it.
SKIPPED := build/skipped.txt
test test-all: export CALIBRANT_SKIPPED := $(abspath $(SKIPPED))
# Keep the output of each of several parallel targets together, where make can (4.0 on).
TOGETHER := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
PIP := -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo check test test-all env lint types docs reproduce study bench kill fuzz pictures wheel clean

help:  ## list these targets; NAME=... chooses one of several programs, and without it they are listed
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/demo.stamp  ## run the command line on two models of handwritten digits
	$(BIN)/calibrant demo --folder build/demo --force

check: lint types  ## lint, types and the fast tests (under two minutes): run it before each commit
	$(BIN)/python -m pytest -q -n auto -m "not slow" $(FAST)

test: $(VENV)/dev.stamp $(if $(shell command -v java),$(VENV)/spark.stamp)  ## everything that CI checks (12 minutes on two cores); LOCKED=1 installs the versions of the lock
	mkdir -p build && rm -f $(SKIPPED)
	$(BIN)/python tools/check_kernel.py
	$(MAKE) --no-print-directory --jobs=2 $(TOGETHER) docs $(CORE)/stamp types lint
	$(BIN)/python -m research --check
	$(BIN)/python $(PYTEST) -m "not slow"
	CALIBRANT_KERNEL=reference $(BIN)/python $(PYTEST) -m "not slow" $(WITH_LIBRARIES)
	$(CORE)/bin/python -W ignore tools/check_kernel.py --expect reference
	CALIBRANT_KERNEL=reference $(CORE)/bin/python $(PYTEST) -m "not slow" $(WITHOUT_LIBRARIES)
	@cat $(SKIPPED)

test-all: $(VENV)/spark.stamp  ## install all optional servers and libraries, run all tests, simulations too, and fail on any skip
	bash tools/install_servers.sh
	npm install --silent --prefix build/npm axe-core@4
	$(BIN)/python $(PIP) "$(TORCH)" "dask[dataframe]" "ibis-framework[duckdb]"
	$(MAKE) --no-print-directory lint types docs
	CALIBRANT_NO_SKIPS=1 $(BIN)/python $(PYTEST) --hypothesis-profile=thorough --ignore=tests/integrations
	CALIBRANT_NO_SKIPS=1 bash tools/environments.sh integrations

env:  ## run what needs an environment of its own: NAME=lowest, wheel, sanitize and others
	@PYTHON=$(PYTHON) bash tools/environments.sh $(NAME)

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

reproduce: $(VENV)/dev.stamp  ## reproduce the tables, figures and examples of the three papers (20 minutes); pages go to docs/reproduction
	$(BIN)/python -m research reproduction

study: $(VENV)/dev.stamp  ## run a simulation study or a study of real data: NAME=audit; tables go to docs/studies
	$(BIN)/python -m research $(NAME)

bench: $(VENV)/dev.stamp $(if $(filter spark,$(NAME)),$(VENV)/spark.stamp)  ## run a benchmark: NAME=files
	$(BIN)/python -m benchmarks $(NAME)

kill: $(VENV)/dev.stamp  ## kill or interrupt processes at random moments and count what is lost: NAME=monitor
	$(BIN)/python -m tools.kill $(NAME)

fuzz: $(VENV)/dev.stamp  ## run the fuzz targets with atheris, or one: NAME=kernel SECONDS=1800 JOBS=1
	$(BIN)/python $(PIP) --group fuzz
	$(BIN)/python -m tests.fuzz $(NAME) --seconds $(or $(SECONDS),1800) --jobs $(or $(JOBS),1)

pictures: $(VENV)/dev.stamp  ## draw the gallery of diagrams or the pictures of the documentation: NAME=gallery
	$(BIN)/python -m tests.visual $(NAME)

wheel: .venv-build/bin/python  ## build the source distribution and the wheel of this Python into dist; it fails without a compiler
	CALIBRANT_KERNEL_REQUIRED=1 .venv-build/bin/python -m build --outdir dist .

clean:  ## remove environments and build folders
	rm -rf .venv .venv-* build dist docs/_build docs/reference/generated
	find docs/gallery docs/tutorials -mindepth 1 -maxdepth 1 ! -name sources -exec rm -rf {} +

$(VENV)/base.stamp:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --upgrade pip
	touch $@

$(VENV)/demo.stamp: $(VENV)/base.stamp pyproject.toml $(KERNEL_SOURCES)
ifdef LOCKED
	$(BIN)/python $(PIP) --require-hashes --requirement requirements-dev.lock
	$(BIN)/python $(PIP) --no-deps --no-build-isolation --editable .
else
	$(BIN)/python $(PIP) --editable ".[sklearn,plot,cli,serve]"
endif
	touch $@

$(VENV)/dev.stamp: $(VENV)/demo.stamp
	$(if $(LOCKED),,$(BIN)/python $(PIP) --group dev)
	touch $@

# Spark is large, and is tested where there is Java to run it.
$(VENV)/spark.stamp: $(VENV)/dev.stamp
	$(if $(LOCKED),,$(BIN)/python $(PIP) --group spark)
	touch $@

# CXX names no compiler, so this build must fall back to the pure wheel.
$(CORE)/stamp: pyproject.toml $(KERNEL_SOURCES) $(shell find src -name '*.py')
	$(PYTHON) -m venv --clear $(CORE)
	$(CORE)/bin/python $(PIP) --upgrade pip
	CXX=/nonexistent/c++ CC=/nonexistent/cc $(CORE)/bin/python $(PIP) .
	$(CORE)/bin/python $(PIP) --group test
	touch $@

# The wheel is that of PYTHON, so the environment is made anew.
.PHONY: .venv-build/bin/python
.venv-build/bin/python:
	$(PYTHON) -m venv --clear .venv-build
	.venv-build/bin/python $(PIP) --upgrade pip build
