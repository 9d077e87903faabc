# Two commands do everything, set-up included: `make demo` and `make test`.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORE   := build/core
STAMP  := $(VENV)/.ready
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
NATIVE_TESTS = nice -n 10 env PATH="$(CURDIR)/$(BIN):$$PATH" CORE="$(CURDIR)/$(CORE)/libringcast_core.a" sh native/tests/run.sh
NATIVE := $(shell find native -name '*.cpp' -o -name '*.hpp' 2>/dev/null)

.PHONY: help setup demo test unit lint types stub native sanitize bench clean

help:            ## show this list
	@grep -E '^[a-z]+: .*##|^[a-z]+:  *##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: $(STAMP)  ## build the native core and make .venv

$(STAMP): pyproject.toml constraints.txt CMakeLists.txt $(NATIVE)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "cannot make a virtual environment: install python3-venv (Debian: apt-get install python3-venv)"; exit 1; }
	@command -v c++ >/dev/null || { echo "no C++ compiler: install g++ (Debian: apt-get install g++)"; exit 1; }
	@echo "setting up (a minute or two the first time)"
	@$(PIP) -c constraints.txt scikit-build-core nanobind ninja cmake
	@$(BIN)/python tools/requirements.py dev > $(VENV)/requirements.txt
	@$(PIP) -c constraints.txt -r $(VENV)/requirements.txt
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) --no-deps --no-build-isolation --config-settings=build-dir=$(CORE) --editable .
	@touch $@

demo: setup      ## a search and rescue: three nodes, fusion in Spark, a page with pictures in out/demo
	@$(BIN)/ringcast demo

# Most tests wait most of the time, so that four things at once keep two cores busy. What each says is shown at its end.
BESIDE = @$(MAKE) --no-print-directory --jobs=4 --output-sync=target

test: setup      ## everything that CI runs
	@echo "testing: Spark, system, the other Python tests, and beside them ruff, mypy and the native tests"
	$(BESIDE) spark-tests mesh-tests system-tests other-tests lint types native sanitize

unit: setup      ## Python tests, unit to system
	$(BESIDE) spark-tests mesh-tests system-tests other-tests

# One session of Spark for all that need one; system tests of several nodes; those of one; the rest.
SPARK_TESTS := tests/spark tests/system/test_demo_search_and_rescue.py tests/system/test_pipeline_on_a_cluster.py
MESH_TESTS  := $(wildcard tests/system/test_mesh_*.py)
.PHONY: spark-tests mesh-tests system-tests other-tests
spark-tests: setup
	@$(BIN)/python -m pytest $(SPARK_TESTS)

mesh-tests: setup
	@$(BIN)/python -m pytest $(MESH_TESTS)

system-tests: setup
	@$(BIN)/python -m pytest tests/system $(SPARK_TESTS:%=--ignore=%) $(MESH_TESTS:%=--ignore=%)

other-tests: setup
	@$(BIN)/python -m pytest --ignore=tests/system --ignore=tests/spark

lint: setup      ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup     ## mypy, strict on src/
	$(BIN)/mypy

stub: setup      ## the stub file against the native module
	$(BIN)/python -m pytest tests/unit/test_stub.py

native: setup    ## C++ tests
	@$(NATIVE_TESTS) build/tests ""

sanitize: setup  ## C++ tests under address, undefined-behaviour and thread sanitizers
	@$(NATIVE_TESTS) build/asan address,undefined
	@$(NATIVE_TESTS) build/tsan thread

bench: setup     ## Ringcast beside its peers (installs them into .venv-peers)
	@bash bench/setup_peers.sh
	@$(BIN)/ringcast bench all

clean:           ## remove what was built
	rm -rf build .venv .venv-peers
