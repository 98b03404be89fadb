# nearkv: each target installs what it needs into .venv, from PyPI alone. `make` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

# The Yosys that Amaranth carries writes all Verilog, so that the text never depends on the machine.
export AMARANTH_USE_YOSYS := builtin
export PYTHONHASHSEED := 0
# Hundreds of processes import the same modules: each is compiled once, whatever the caller's environment says.
export PYTHONDONTWRITEBYTECODE :=

# Where no C++ compiler is found, the one in the ziglang wheel serves.
CXX_FOUND := $(shell command -v c++ || command -v g++ || command -v clang++)
EXTRAS := dev$(if $(CXX_FOUND),,$(shell printf ',cxx'))

.PHONY: help install demo test soak bench formal waves lint types layers ci verilog area clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 12

install: $(VENV)/installed ## make .venv and install everything into it

$(VENV)/installed: pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python >= 3.11 wanted, no $(PYTHON) found: install python3 and python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python >= 3.11 wanted, %s is %s: make PYTHON=..." % (sys.executable, sys.version.split()[0]))'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module wanted, $(PYTHON) has none: install python3-venv" >&2; exit 1; }
	@$(if $(CXX_FOUND),true,echo "no C++ compiler found: installing the one in the ziglang wheel (400 MB$(comma) its first build takes two minutes)" >&2)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -e '.[$(EXTRAS)]'
	@touch $@

comma := ,

demo: install ## Verilog, simulated units beside the golden model, decode latency of PAM -> build/demo/
	$(BIN)/nearkv demo

test: install ## the whole suite: NumPy, Amaranth's simulator, cocotb under Verilator
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

soak: install ## 100,000 descriptors through both ends of the DMA, with faults; seeds and progress are printed
	$(BIN)/python -m tests.helpers.dma_soak $(DESCRIPTORS) $(SEED)

bench: install ## long runs of the RTL beside the golden model -> build/bench.json
	@mkdir -p build
	$(BIN)/python -m hw.benches > build/bench.json.part
	@mv build/bench.json.part build/bench.json
	@cat build/bench.json

formal: install ## proofs that blocks with streams lose, double and change nothing -> build/formal.json
	$(BIN)/python -m tests.formal

waves: install ## waveforms of the RTL that a test runs -> build/waves/: make waves TEST=node-id-or-k-expression
	@$(BIN)/python -m tests.helpers.waves '$(TEST)'

lint: install ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install ## pyright
	$(BIN)/pyright

layers: install ## import-linter: golden <- hw <- sim
	$(BIN)/lint-imports

ci: lint types layers test ## what continuous integration runs

verilog: install ## Verilog of every unit -> build/verilog/
	$(BIN)/nearkv verilog -o build/verilog

area: install ## synthesised area and delay of the smallest units beside tests/baselines/area.json -> build/area.json
	$(BIN)/nearkv area --baseline tests/baselines/area.json -o build/area.json

clean: ## remove builds and caches, keep .venv
	rm -rf build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
