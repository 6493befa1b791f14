# make demo and make test are all a newcomer needs; both set up everything they use.
PYTHON ?= python3
VENV ?= .venv
CORE ?= .venv-core
BIN := $(VENV)/bin
KERNEL_SOURCES := $(wildcard src/calibrant/_kernels/cpp/*) CMakeLists.txt
export CALIBRANT_DATA ?= $(wildcard $(abspath ../shared/data))
# torch is large and runs when found; make test-all installs this build of it.
TORCH ?= torch==2.13.0
# The instructions that numpy 1.24 must do without for the fits of 2023.
AVX512 := AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL
# Tests of kernels' results that need libraries which the core environment, with the same reference kernel, has not.
WITH_LIBRARIES := tests/calibrators tests/metrics/test_multiclass.py src/calibrant/calibrators
PIP := -m pip install --quiet --disable-pip-version-check

.PHONY: reproduce reproduce-quick reproduce-costs reproduce-forests reproduce-embeddings reproduce-fit gallery demo test test-all test-reference test-core lint types docs bench bench-decisions bench-files bench-spark study study-calibrators study-costs study-numbers oracles sanitize clean

demo: $(VENV)/demo.stamp  ## the command line on two models of handwritten digits
	$(BIN)/calibrant demo --folder build/demo --force

test: lint types $(VENV)/dev.stamp $(if $(shell command -v java),$(VENV)/spark.stamp) docs  ## everything CI checks
	$(BIN)/python tools/check_kernel.py
	$(BIN)/python -m pytest -n auto --dist loadgroup
	$(MAKE) --no-print-directory reproduce-quick
	$(MAKE) --no-print-directory test-reference
	$(MAKE) --no-print-directory test-core

test-reference: $(VENV)/dev.stamp  ## what make test-core cannot run, on the reference kernel
	CALIBRANT_KERNEL=reference $(BIN)/python -m pytest -n auto $(WITH_LIBRARIES)

test-core: $(CORE)/stamp  ## the same tests with no compiler and no optional library
	$(CORE)/bin/python tools/check_kernel.py --expect reference
	$(CORE)/bin/python -m pytest -n auto

test-all: $(VENV)/spark.stamp  ## install what make test can do without, and fail on any skip
	bash tools/install_servers.sh
	npm install --silent --prefix build/npm axe-core@4
	$(BIN)/python $(PIP) "$(TORCH)" "dask[dataframe]" "ibis-framework[duckdb]"
	$(MAKE) --no-print-directory lint types docs
	CALIBRANT_NO_SKIPS=1 $(BIN)/python -m pytest -n auto --dist loadgroup

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports

types: $(VENV)/dev.stamp
	$(BIN)/mypy

docs: $(VENV)/dev.stamp  ## build the documentation; its examples run
	$(BIN)/sphinx-build -W -q -b doctest docs docs/_build/doctest
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "documentation: docs/_build/html/index.html"

gallery: $(VENV)/dev.stamp  ## render every diagram on real data and on hard cases, and those of the documentation
	$(BIN)/python -m tests.visual --docs
	$(BIN)/python -m tests.visual

reproduce: $(VENV)/dev.stamp  ## the tables, figures and examples of the three papers beside ours; pages go to docs/reproduction
	bash -o pipefail -c '$(BIN)/python -m research.reproduction | tee docs/reproduction/log.txt'
	$(BIN)/python -m research.reproduction.bella
	$(BIN)/python -m research.reproduction.costs

reproduce-quick: $(VENV)/dev.stamp  ## the tables alone, compared in seconds
	$(BIN)/python -m research.reproduction --check
	$(BIN)/python -m research.reproduction.bella --check
	$(BIN)/python -m research.reproduction.costs --quick

reproduce-costs: $(VENV)/dev.stamp  ## the experiments of Yang & Bi, 100 splits each (a day on two cores; stop and go on at will)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 bash -o pipefail -c '$(BIN)/python -m research.reproduction.costs --run | tee -a docs/reproduction/costs/log.txt'

reproduce-forests:  ## forests of R's randomForest on the sets of Yang & Bi (15 minutes)
	Rscript research/reproduction/costs/forests.R "$(CALIBRANT_DATA)" 20 Cancer CTG Churn > research/reproduction/results/forests.csv
	Rscript research/reproduction/costs/forests.R "$(CALIBRANT_DATA)" 5 Default Bank | tail -n +2 >> research/reproduction/results/forests.csv

reproduce-embeddings:  ## embeddings of reviews, for the rows of Yang & Bi on sentiment (torch, 5 minutes)
	$(PYTHON) -m venv .venv-embeddings
	.venv-embeddings/bin/python $(PIP) --upgrade pip
	.venv-embeddings/bin/python $(PIP) --group embeddings
	.venv-embeddings/bin/python -m research.reproduction.costs.embed

reproduce-fit:  ## fit the models of the UCI tables again, with the scikit-learn of 2023 (20 minutes)
	$(PYTHON) -m venv .venv-2023
	.venv-2023/bin/python $(PIP) --group fits-of-2023
	OPENBLAS_CORETYPE=Haswell NPY_DISABLE_CPU_FEATURES="$(AVX512)" .venv-2023/bin/python -m research.reproduction.uci_fit "$(or $(CALIBRANT_DATA),build/data)" research/reproduction/predictions

bench: $(VENV)/dev.stamp  ## speed against peers, side by side in one process
	$(BIN)/python benchmarks/speed.py

bench-spark: $(VENV)/spark.stamp  ## 100,000,000 rows on a Spark cluster on loopback: time, shuffle, memory (10 minutes, 1 GB of disk)
	$(BIN)/python benchmarks/spark.py

bench-files: $(VENV)/dev.stamp  ## 100,000,000 rows in a Parquet file: time and memory (5 minutes, 0.8 GB of disk)
	$(BIN)/python benchmarks/files.py

bench-decisions: $(VENV)/dev.stamp  ## 1,000,000 decisions against scipy's, one by one (20 minutes)
	$(BIN)/python benchmarks/decisions.py

study: $(VENV)/dev.stamp  ## simulations behind verdicts, intervals and comparisons (hours; resumable); tables go to docs/studies
	OMP_NUM_THREADS=1 $(BIN)/python -W ignore -m research.studies.verdicts
	OMP_NUM_THREADS=1 $(BIN)/python -m research.studies.failures
	OMP_NUM_THREADS=1 $(BIN)/python -m research.studies.comparisons
	OMP_NUM_THREADS=1 $(BIN)/python -m research.studies.coverage
	OMP_NUM_THREADS=1 $(BIN)/python -m research.studies.planning
	OMP_NUM_THREADS=1 $(BIN)/python -m research.studies.sizes
	OMP_NUM_THREADS=1 $(BIN)/python -m research.studies.readings
	OMP_NUM_THREADS=1 $(BIN)/python -m research.studies.few_events

study-calibrators: $(VENV)/dev.stamp  ## every calibrator on eight real data sets (5 minutes); tables go to docs/studies
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m studies.calibrators

study-costs: $(VENV)/dev.stamp  ## the worked example of docs/costs, a model of credit defaults; its output goes to docs/studies
	$(BIN)/python -m studies.credit

study-numbers: $(VENV)/dev.stamp  ## recalibrators of numbers and distributions on real data, sizes of their tests (30 minutes)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m studies.number_models
	OMP_NUM_THREADS=1 $(BIN)/python -m research.studies.number_sizes

oracles:  ## freeze the values of other implementations again, in an environment of their own
	$(PYTHON) -m venv .venv-oracles
	.venv-oracles/bin/python $(PIP) --upgrade pip
	.venv-oracles/bin/python $(PIP) --group oracles
	.venv-oracles/bin/python tests/golden/make_scores.py
	.venv-oracles/bin/python tests/golden/make_calibrators.py
	.venv-oracles/bin/python tests/golden/make_conformance.py
	@command -v Rscript > /dev/null || { echo "make oracles needs R with rms, goftest and rpart (Debian: r-cran-rms r-cran-goftest r-cran-rpart)"; exit 1; }
	.venv-oracles/bin/python tests/golden/make_val_prob.py
	.venv-oracles/bin/python tests/golden/make_rpart.py
	.venv-oracles/bin/python tests/golden/make_numbers.py

sanitize:  ## run the kernel's tests under the address and undefined-behaviour sanitizers
	bash tools/sanitize.sh

clean:
	rm -rf $(VENV) $(CORE) .venv-sanitize .venv-oracles .venv-embeddings .venv-2023 build dist docs/_build

$(VENV)/base.stamp:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --upgrade pip
	touch $@

$(VENV)/demo.stamp: $(VENV)/base.stamp pyproject.toml $(KERNEL_SOURCES)
	$(BIN)/python $(PIP) --editable ".[sklearn,plot,cli]"
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
