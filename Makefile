# Two commands do everything, set-up included: `make demo` and `make test`.
#
# PYTHON=python3.12   the Python to set up with (default: the one .venv is of, else python3)
# SYSTEM=no           forbids `make test` to install system packages, which it otherwise does as root on Debian
# CI=true             a test that is skipped without being expected to is a failure

VENV := .venv
BIN  := $(VENV)/bin
CORE := build/core
# An environment of another version is kept unless a version is asked for.
EXACTLY := $(if $(PYTHON),--exactly)
# Not only for speed: hundreds of processes are started by the tests, and each would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup ready demo check test unit lint types stub native sanitize package docs bench clean

help:            ## show this list
	@grep -E '^[a-z]+: .*##|^[a-z]+:  *##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

setup: ready     ## make .venv and build the native core into it; says what is missing on this machine
	@echo "set up: . $(BIN)/activate"

ready:
	@$(or $(PYTHON),python3) tools/set_up.py $(EXACTLY)

demo: ready      ## a search and rescue: three nodes, fusion in Spark, a page with pictures in out/demo
	@$(BIN)/ringcast demo

# What runs beside each other; what each says is shown at its end.
BESIDE = $(MAKE) --no-print-directory --output-sync=target PYTHON=
PYTEST = $(BIN)/python -m pytest --durations=10
# `make test` tries failed tests alone at its end; until then they are no failure of their run.
AGAIN = $(if $(LATER),|| [ $$? = 1 -a -s $$RINGCAST_FAILED ])

check: ready     ## while developing: ruff, mypy, unit, conformance and short fuzz tests
	@$(BESIDE) --jobs=4 short-tests $(UNIT_PARTS) types lint

# What computes (sanitizers, Spark) and what waits (nodes, links, browsers) side by side, the longest first. Sanitizers
# give way (nice). Five beside each other are not faster, and demonstrations then take longer than their tests wait.
test: ready      ## everything that CI runs
	@$(BIN)/python tools/system_tools.py
	@rm -rf build/skipped build/failed
	@echo "testing, four things beside each other, each shown when it ends: some minutes"
	@$(BESIDE) --keep-going --jobs=4 LATER=yes $(IN_TURN); status=$$?; \
	  $(BIN)/python tools/failed_beside_others.py build/failed || status=1; \
	  $(BIN)/python tools/untested.py build/skipped; exit $$status

SANITIZED := sanitize-addresses sanitize-threads
.PHONY: $(SANITIZED)
# Short runs, the longest first, so that no core is left with nothing to do while the last one goes on. Tests that share
# one session of Spark; programs that start their own; system tests in a lab network, of several nodes, of one; the rest.
SPARK_PROGRAMS := $(wildcard tests/spark/test_documented_*.py tests/spark/test_stream_restarts_*.py \
  tests/system/node/*/test_demo_search_and_rescue.py tests/system/node/*/test_pipeline_on_a_cluster.py)
LAB_TESTS    := $(wildcard tests/system/lab/*/test_*.py)
MESH_TESTS   := $(wildcard tests/system/mesh/*/test_*.py)
NODE_TESTS   := $(filter-out $(SPARK_PROGRAMS),$(wildcard tests/system/node/*/test_*.py))
UNIT_TESTS   := $(filter-out %/__pycache__,$(wildcard tests/unit/*))
UNIT_PARTS   := unit-tests-1 unit-tests-2 unit-tests-3
MESH_PARTS   := mesh-tests-1 mesh-tests-2
NODE_PARTS   := node-tests-1 node-tests-2 node-tests-3
# The part of a list that a target's name ends in: every second or third file, so that parts are about as long.
part = $(shell printf '%s\n' $(1) | awk 'NR % $(words $(2)) == $(lastword $(subst -, ,$@)) - 1')
PYTHON_TESTS := spark-tests spark-programs $(MESH_PARTS) $(NODE_PARTS) lab-tests other-tests $(UNIT_PARTS) short-tests
IN_TURN      := spark-tests sanitize-threads $(MESH_PARTS) lab-tests spark-programs sanitize-addresses \
  $(filter-out spark-% mesh-% lab-%,$(PYTHON_TESTS)) native lint types
.PHONY: $(PYTHON_TESTS)
$(PYTHON_TESTS): export RINGCAST_SKIPPED = build/skipped/$@
$(PYTHON_TESTS): export RINGCAST_FAILED = build/failed/$@
unit: ready      ## Python tests, unit to system
	@$(BESIDE) --jobs=4 $(PYTHON_TESTS)

spark-tests: ready
	@$(PYTEST) tests/spark $(patsubst %,--ignore=%,$(SPARK_PROGRAMS)) $(AGAIN)

spark-programs: ready
	@$(PYTEST) $(SPARK_PROGRAMS) $(AGAIN)

lab-tests: ready
	@$(PYTEST) $(LAB_TESTS) $(AGAIN)

$(MESH_PARTS): ready
	@$(PYTEST) $(call part,$(MESH_TESTS),$(MESH_PARTS)) $(AGAIN)

$(NODE_PARTS): ready
	@$(PYTEST) $(call part,$(NODE_TESTS),$(NODE_PARTS)) $(AGAIN)

$(UNIT_PARTS): ready
	@$(PYTEST) $(call part,$(UNIT_TESTS),$(UNIT_PARTS)) $(AGAIN)

short-tests: ready
	@$(PYTEST) tests/conformance tests/fuzz $(AGAIN)

# Whatever folder of tests is not named above.
other-tests: ready
	@$(PYTEST) tests $(patsubst %,--ignore=tests/%,system spark unit conformance fuzz) $(AGAIN)

lint: ready      ## ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: ready     ## mypy, strict on src/
	@$(BIN)/mypy

stub: ready      ## the stub file against the native module
	@$(BIN)/python -m pytest tests/unit/test_stub.py

NATIVE_TESTS = nice -n 10 env PATH="$(CURDIR)/$(BIN):$$PATH" CORE="$(CURDIR)/$(CORE)/libringcast_core.a" sh native/tests/run.sh

native: ready    ## C++ tests
	@$(NATIVE_TESTS) build/tests ""

sanitize: $(SANITIZED) ## C++ tests under address, undefined-behaviour and thread sanitizers

sanitize-addresses: ready
	@$(NATIVE_TESTS) build/asan address,undefined

sanitize-threads: ready
	@$(NATIVE_TESTS) build/tsan thread

package: ready   ## sdist and wheel into out/dist, each tried in an environment of its own
	@$(BIN)/python tools/try_package.py

docs: ready      ## the documentation as a site, in out/site
	@$(BIN)/python tools/build_docs.py

bench: ready     ## Ringcast beside its peers (installs them into .venv-peers)
	@bash bench/setup_peers.sh
	@$(BIN)/ringcast bench all

clean:           ## remove what was built
	rm -rf build .venv .venv-peers
