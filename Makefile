# Everything here needs python3 and pip, nothing else, and no root. Each target creates .venv and
# installs into it when something is missing.

PYTHON ?= python3
BIN := .venv/bin
RUNTIME := .venv/.runtime-installed
TOOLS := .venv/.tools-installed
# Hundreds of processes are started from here: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest --quiet --numprocesses auto --dist loadfile --no-loadscope-reorder
# Compilation is most of the tests' time; programs that run for milliseconds need no optimisation.
UNOPTIMISED := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false \
	--xla_cpu_parallel_codegen_split_count=1"

.DEFAULT_GOAL := help
.PHONY: help reproduce demo examples quick test fuzz certify check format docs bench package clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST)

$(RUNTIME): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(TOOLS): $(RUNTIME) requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.txt
	@touch $@

reproduce: $(RUNTIME) ## the paper's experiment, figures and claims, into reproduction/
	$(BIN)/cmdpax reproduce --out reproduction

demo: $(RUNTIME) ## solve two built-in CMDPs and print the tables
	@mkdir -p demo
	$(BIN)/cmdpax env make random --out demo/random.npz
	$(BIN)/cmdpax solve demo/random.npz
	$(BIN)/cmdpax env make queue --out demo/queue.npz
	$(BIN)/cmdpax solve demo/queue.npz

examples: $(RUNTIME) ## live systems and Gymnasium's toys, with pictures, into build/examples/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[gymnasium]'
	@mkdir -p build/examples
	for name in frozen_lake cliff_walking taxi service_queue; do \
		$(BIN)/python examples/$$name.py build/examples/$$name.png || exit 1; done

quick: $(TOOLS) ## the tests of the parts: no browser, cluster, other process or whole run
	$(UNOPTIMISED) $(PYTEST) -m "not (cluster or whole or browser or kills or exact)"

# Numbers are tested in programs that are compiled as users compile them, and what is around them
# (files, pages, processes, sentences) in programs that are compiled faster.
test: $(TOOLS) ## all tests and doctests; those of the page if chromium is there
	$(UNOPTIMISED) $(PYTEST) -m "not optimised"; first=$$?; \
	$(PYTEST) -m "optimised" && exit $$first

fuzz: $(TOOLS) ## hostile inputs for SECONDS=600, of SEED=…; failures are kept in build/fuzz/
	$(BIN)/python -m fuzzing --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

certify: $(TOOLS) ## planning on COUNT=5000 degenerate models from SEED=… on, verified exactly
	PYTHONPATH=tests $(BIN)/python tests/certified.py --count $(or $(COUNT),5000) $(if $(SEED),--seed $(SEED))

check: $(TOOLS) ## formatter, linter, types, import layers, spelling, tests, strict docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell src tests fuzzing benchmarks docs examples README.md CHANGELOG.md CONTRIBUTING.md
	$(MAKE) test
	$(MAKE) docs

format: $(TOOLS) ## format the code and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(TOOLS) ## the documentation site with the page of the paper's experiment, into site/
	$(BIN)/cmdpax reproduce --out build/reproduction
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(RUNTIME) ## the benchmarks of this machine's processor
	JAX_PLATFORMS=cpu $(BIN)/python benchmarks/planning.py
	JAX_PLATFORMS=cpu $(BIN)/python benchmarks/learning.py
	JAX_PLATFORMS=cpu $(BIN)/python benchmarks/agent_times.py
	JAX_PLATFORMS=cpu $(BIN)/python benchmarks/cluster.py --simulate

package: $(RUNTIME) ## build the wheel, install it alone, use it once
	rm -rf build/package && mkdir -p build/package
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/package .
	$(PYTHON) -m venv build/package/venv
	build/package/venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: build/package/cmdpax-*.whl
	build/package/venv/bin/cmdpax env make bandit --out build/package/bandit.json
	build/package/venv/bin/cmdpax solve build/package/bandit.json --json

clean: ## remove what the other targets made
	rm -rf .venv build demo reproduction dist site .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
