# `make demo` and `make test` do all set-up: a virtual environment of their own in .venv, relaylang and its extras in it.
VENV ?= .venv
export RELAY_SHARED ?= $(abspath ../shared)
BIN = $(VENV)/bin
TESTS ?= tests
JOBS ?= 2

.PHONY: bare consistency sweeps test-all bench-typing conformance pass-conformance docs help demo test setup lint bench-text bench-interpreter bench-passes clean

help:
	@echo "make demo        install into $(VENV) and show the toolchain at work on examples/"
	@echo "make test        install into $(VENV) and run the tests (TESTS=tests/cli for some of them)"
	@echo "make sweeps      the long searches for differences that make test leaves out"
	@echo "make test-all    make test, then make sweeps"
	@echo "make bare        make demo and make test in a bare Debian (SUITE=, needs root and debootstrap)"
	@echo "make lint        ruff and mypy on the installed package"
	@echo "make consistency run every operator with every element type: the value has the inferred type, compiled or not"
	@echo "make conformance compare every operator's type relation with TVM's (RELAY_ORACLE=PYTHON that has TVM; else with what is recorded)"
	@echo "make pass-conformance compare every pass and analysis with TVM's (RELAY_ORACLE=PYTHON that has TVM; some twenty minutes)"
	@echo "make bench-typing  time type inference (RELAY_ORACLE=PYTHON beside TVM 0.16)"
	@echo "make bench-text  time the reader, checker and printer"
	@echo "make bench-passes  time the passes (RELAY_ORACLE=PYTHON beside TVM 0.16)"
	@echo "make bench-interpreter  time the evaluator and A-normal form (RELAY_ORACLE=PYTHON beside TVM 0.16)"
	@echo "make clean       remove $(VENV) and caches"
	@echo "PYTHON=python3.12 chooses the Python for $(VENV); RELAY_SHARED=DIR says where the shared test data lies"

setup:
	@scripts/setup.sh $(VENV)

demo: setup
	@$(BIN)/python scripts/demo.py

test: setup
	@$(BIN)/pytest -n $(JOBS) -m "not sweep" $(TESTS)

sweeps: setup
	@$(BIN)/pytest -n $(JOBS) -m sweep $(TESTS)

test-all: test sweeps

bare:
	@scripts/bare.sh

lint: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'relaylang[dev]'
	@$(BIN)/ruff check .
	@cd $(VENV) && bin/mypy --config-file ../pyproject.toml -p relaylang

bench-typing: setup
	@$(BIN)/python benchmarks/typecheck.py $(if $(WRITE),--write)

conformance: setup
	@$(BIN)/python -m tests.conformance.record

consistency: setup
	@$(BIN)/pytest -n $(JOBS) tests/consistency
	@if [ -n "$$RELAY_ORACLE" ]; then $(BIN)/python -m tests.conformance.attributes.record; fi

pass-conformance: setup
	@$(BIN)/python -m tests.conformance.layouts.record
	@$(BIN)/python -m tests.conformance.passes.record

docs: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'relaylang[docs]'
	@$(BIN)/mkdocs build --quiet
	@echo build/docs/index.html

bench-text: setup
	@$(BIN)/python benchmarks/text.py $(if $(WRITE),--write)

bench-passes: setup
	@$(BIN)/python benchmarks/passes.py $(if $(WRITE),--write)

bench-interpreter: setup
	@$(BIN)/python benchmarks/interpreter.py --long $(if $(WRITE),--write)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
