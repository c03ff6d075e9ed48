# `make demo` and `make test` do all set-up: they make a virtual environment in .venv and install relaylang with its extras.
VENV ?= .venv
export RELAY_SHARED ?= $(abspath ../shared)
BIN = $(VENV)/bin
TESTS ?= tests
JOBS ?= 2
# The tests start Python hundreds of times: it keeps its compiled modules, whatever the caller's environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: tvm-suite bare peers consistency sweeps searches test-all bench-typing conformance pass-conformance docs help demo test setup lint bench-text bench-interpreter bench-passes bench-import bench-cpu bench-tune bench-vm bench-npu bench-quantize fuzz-vm fuzz-npu bench-compile clean generated

help:
	@echo "make demo               install into $(VENV) and show every stage on examples/"
	@echo "make test               install into $(VENV) and run the tests (TESTS=tests/cli runs some of them)"
	@echo "make sweeps             run the long searches for differences, which make test omits"
	@echo "make searches           run the cases of sweeps that take hours together"
	@echo "make test-all           run make test, make sweeps, make searches"
	@echo "make bare               run make demo and make test in a bare Debian (SUITE=sid; needs root and debootstrap)"
	@echo "make peers              install the runtimes that tests of importers compare with, and download real networks"
	@echo "make lint               run ruff, and mypy on the installed package"
	@echo "make generated          write the editors' grammar, generated pages of docs/ and README's picture"
	@echo "make tvm-suite          run TVM 0.16's own tests of Relay through relaylang.tvm (RELAY_TVM_TESTS=tvm/tests/python/relay)"
	@echo "make docs               build the documentation into build/docs"
	@echo "make consistency        run every operator with every element type, interpreted and compiled"
	@echo "make conformance        compare every type relation with TVM's, live or recorded"
	@echo "make pass-conformance   compare every pass and analysis with TVM's, about twenty minutes"
	@echo "make bench-text         time the reader, checker and printer"
	@echo "make bench-typing       time type inference"
	@echo "make bench-passes       time the passes"
	@echo "make bench-import       time the importers on real networks, and compare outputs with their runtimes"
	@echo "make bench-cpu          time compiled networks beside onnxruntime and OpenVINO (ROUNDS=7, MARCH=x86-64-v3; after make peers)"
	@echo "make bench-compile      time the compilation of 100 to 10 000 small calls"
	@echo "make bench-tune         search schedules of kernels, and compare them with the defaults (TRIALS=300, MARCH=x86-64-v3, NAMES=dense)"
	@echo "make bench-vm           time programs with control flow on the VM, beside TVM's VM where RELAY_ORACLE names one (NAMES=decoder)"
	@echo "make bench-quantize     compare quantised networks with onnxruntime's quantiser (installs scikit-learn)"
	@echo "make bench-npu          compile networks for the Ethos-U, beside Vela's compilation of the same files"
	@echo "make fuzz-vm            run random programs on the VM, some as C, and in the interpreter (COUNT=1000, SEED=0)"
	@echo "make fuzz-npu           run random regions in the simulator of the Ethos-U and in the interpreter (COUNT=1000, SEED=0)"
	@echo "make bench-interpreter  time the evaluator and A-normal form"
	@echo "make clean              remove $(VENV) and caches"
	@echo
	@echo "PYTHON=python3.12       select the Python of $(VENV)"
	@echo "RELAY_SHARED=DIR        name the folder of the shared test data"
	@echo "RELAY_ORACLE=PYTHON     name a Python with TVM 0.16, for comparisons and benchmarks"

setup:
	@scripts/setup.sh $(VENV)

demo: setup
	@$(BIN)/python scripts/demo.py

test: setup
	@$(BIN)/pytest -n $(JOBS) -m "not sweep" $(TESTS)

sweeps: setup
	@$(BIN)/pytest -n $(JOBS) -m "sweep and not search" $(TESTS)

searches: setup
	@$(BIN)/pytest -n $(JOBS) -m search $(TESTS)

test-all: test sweeps searches

bare:
	@scripts/bare.sh

peers: setup
	@$(BIN)/python scripts/peers.py

lint: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'relaylang[dev]'
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@cd $(VENV) && bin/mypy --config-file $(CURDIR)/pyproject.toml -p relaylang

generated: setup
	@$(BIN)/python scripts/editors.py
	@$(BIN)/python scripts/diagnostics_page.py
	@$(BIN)/python scripts/mistakes_page.py
	@$(BIN)/python scripts/importers_pages.py
	@$(BIN)/python scripts/picture.py
	@$(BIN)/python scripts/tvm_page.py
	@$(BIN)/python scripts/vta_page.py

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

tvm-suite: setup
	@$(BIN)/python scripts/tvm_suite.py --jobs $(JOBS) $(FILES)

docs: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'relaylang[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo build/docs/index.html

bench-text: setup
	@$(BIN)/python benchmarks/text.py $(if $(WRITE),--write)

bench-passes: setup
	@$(BIN)/python benchmarks/passes.py $(if $(WRITE),--write)

bench-import: setup
	@$(BIN)/python benchmarks/importers.py $(if $(WRITE),--write)

bench-cpu: setup
	@$(BIN)/python benchmarks/cpu.py $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(MARCH),--march $(MARCH)) $(if $(WRITE),--write) $(NAMES)

bench-compile: setup
	@$(BIN)/python benchmarks/compile.py $(if $(WRITE),--write)

bench-tune: setup
	@$(BIN)/python benchmarks/tune.py $(if $(TRIALS),--trials $(TRIALS)) $(if $(MARCH),--march $(MARCH)) $(if $(WRITE),--write) $(NAMES)

bench-vm: setup
	@$(BIN)/python benchmarks/vm.py $(if $(WRITE),--write) $(NAMES)

bench-quantize: setup
	@$(BIN)/python -c "import sklearn" 2>/dev/null || $(BIN)/python -m pip install --quiet scikit-learn
	@$(BIN)/python benchmarks/quantize.py $(if $(WRITE),--write)

bench-npu: setup
	@$(BIN)/python benchmarks/npu.py $(if $(WRITE),--write)

fuzz-vm: setup
	@$(BIN)/python -m fuzz.vm --count $(or $(COUNT),1000) --seed $(or $(SEED),0)

fuzz-npu: setup
	@$(BIN)/python -m fuzz.npu --count $(or $(COUNT),1000) --seed $(or $(SEED),0)

bench-interpreter: setup
	@$(BIN)/python benchmarks/interpreter.py --long $(if $(WRITE),--write)

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
