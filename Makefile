# Two commands do everything, set-up included: `make demo` and `make test`.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
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
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt scikit-build-core nanobind ninja cmake
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	  --no-build-isolation --editable '.[dev]'
	@touch $@

demo: setup      ## a search and rescue: three nodes, fusion in Spark, a page with pictures in out/demo
	@$(BIN)/ringcast demo

test: setup lint types stub unit native sanitize  ## everything that CI runs

unit: setup      ## Python tests, unit to system; those of Spark beside the others, which mostly wait
	@sh tests/run.sh $(BIN)/python

lint: setup      ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup     ## mypy, strict on src/
	$(BIN)/mypy

stub: setup      ## the stub file against the native module
	$(BIN)/python -m pytest tests/unit/test_stub.py

native: setup    ## C++ tests
	@CMAKE="$(CURDIR)/$(BIN)/cmake" CTEST="$(CURDIR)/$(BIN)/ctest" sh native/tests/run.sh build/tests ""

sanitize: setup  ## C++ tests under address, undefined-behaviour and thread sanitizers
	@CMAKE="$(CURDIR)/$(BIN)/cmake" CTEST="$(CURDIR)/$(BIN)/ctest" sh native/tests/run.sh build/asan address,undefined
	@CMAKE="$(CURDIR)/$(BIN)/cmake" CTEST="$(CURDIR)/$(BIN)/ctest" sh native/tests/run.sh build/tsan thread

bench: setup     ## Ringcast beside its peers (installs them into .venv-peers)
	@bash bench/setup_peers.sh
	@$(BIN)/ringcast bench all

clean:           ## remove what was built
	rm -rf build .venv .venv-peers
