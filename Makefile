# The project's commands. A fresh machine needs python3.11 or newer and make; the first command
# installs the rest into .venv. They work from any folder: make -C path/to/checkout demo
ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
ifneq ($(words $(ROOT)),1)
$(error make does not work in a folder with a space in its name)
endif
PYTHON ?= python3
VENV := $(ROOT)/.venv
BIN := $(VENV)/bin
CLUSTER := $(ROOT)/.venv-cluster
IN := cd $(ROOT) &&
LOCKED := --quiet --no-deps --require-hashes -r
PARALLEL := pytest -n 2 --dist worksteal
PYTEST := $(BIN)/python -m $(PARALLEL)
EXAMPLES ?= 100
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE # tests start many programs; each would compile the code again

.DEFAULT_GOAL := help
.PHONY: help cluster demo examples test test-long test-ci lint test-all test-bucket test-cluster rehearsal test-slow check dev bench fuzz format lock

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(ROOT)/Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(VENV)/.installed: $(ROOT)/requirements.lock
$(CLUSTER)/.installed: $(ROOT)/requirements-rehearsal.lock

# A stamp instead of the folder: an interrupted installation starts again.
# uv needs a quarter of pip's time. It does not read pip's configuration; then pip does it all.
$(VENV)/.installed $(CLUSTER)/.installed:
	@echo "installing $(notdir $<) into $(notdir $(@D)), once"
	@rm -rf "$(@D)"
	@$(PYTHON) -c 'import sys; sys.exit("partner-sync needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(@D)
	@awk '/^[^ #]/ { uv = /^uv==/ } uv' $< > $(@D)/uv.lock
	@{ $(@D)/bin/python -m pip install $(LOCKED) $(@D)/uv.lock && \
	   $(@D)/bin/uv pip install --python $(@D)/bin/python $(LOCKED) $<; } || \
	   $(@D)/bin/python -m pip install $(LOCKED) $<
	@$(@D)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e $(ROOT)
	@touch $@

cluster: $(CLUSTER)/.installed ## install what several machines need, and the tests of it

demo: $(VENV)/.installed ## the whole pipeline on the embedded sandbox, in half a minute
	@$(IN) $(BIN)/partner-sync demo

examples: $(VENV)/.installed ## write examples/ again: working paper, journal, statement, report
	@$(IN) $(BIN)/python -m tests.examples.make

test: $(VENV)/.installed ## the tests (two minutes on two cores)
	@$(IN) $(PYTEST) -m "not long and not slow"

# With four processes, as some tests wait for a limit or a daemon.
test-long: $(VENV)/.installed ## the longer tests, in a browser, too (ten minutes)
	-@$(IN) $(BIN)/python -m tests.browser.install
	@$(IN) $(PYTEST) -n 4 -m "long and not slow" --durations=20

# As one run: processes start once, and short tests fill the time in which long ones wait. In a
# fresh clone, one process compiles what all import: four at once would do it four times.
test-ci: $(VENV)/.installed
	-@$(IN) $(BIN)/python -m tests.browser.install
	-@$(IN) $(BIN)/python -m pytest --collect-only -qq -m "not slow" > /dev/null
	@$(IN) $(PYTEST) -n 4 -m "not slow" --durations=20

test-all: $(VENV)/.installed ## the tests that `make test` leaves out (half an hour)
	-@$(IN) $(BIN)/python -m tests.office.install
	@$(MAKE) -C $(ROOT) test-long test-bucket test-cluster

test-bucket: $(CLUSTER)/.installed ## files in a bucket, on an S3 server and PostgreSQL (minutes)
	@$(IN) $(CLUSTER)/bin/python -m $(PARALLEL) -m "bucket and not slow" tests/files
	@$(IN) HOMES=bucket $(CLUSTER)/bin/python -m $(PARALLEL) -m "not slow" tests/end_to_end

test-cluster: $(CLUSTER)/.installed ## two workers on this machine, one is killed; deploy/ is checked
	@$(IN) $(CLUSTER)/bin/python -m pytest -m "cluster and not slow" tests/cluster

rehearsal: $(CLUSTER)/.installed ## nights and faults on two workers (eight minutes, alone)
	@$(IN) $(CLUSTER)/bin/python -m pytest -m "cluster and slow" tests/cluster

# The slowest tests; then 300 changes that a test should notice.
test-slow: $(VENV)/.installed $(CLUSTER)/.installed ## hours
	@$(IN) $(PYTEST) -m slow
	@$(IN) $(CLUSTER)/bin/python -m $(PARALLEL) -m "bucket and slow" tests/files
	@$(IN) $(BIN)/python -m tests.mutate

check: lint test ## format, lint, types, layers, tests

lint: $(VENV)/.installed ## format, lint, types, layers
	$(IN) $(BIN)/ruff format --check .
	$(IN) $(BIN)/ruff check .
	$(IN) $(BIN)/mypy
	$(IN) $(BIN)/lint-imports --no-cache

dev: $(VENV)/.installed ## Dagster's UI and daemon beside a sandbox, on 127.0.0.1
	@$(IN) $(BIN)/python -m assets.dev

bench: $(VENV)/.installed ## measure again what docs/benchmarks.md reports
	$(IN) $(BIN)/python -m benchmarks

fuzz: $(VENV)/.installed ## schemathesis against the sandbox's own description; EXAMPLES=100
	@$(IN) $(BIN)/python -m tests.fuzz $(EXAMPLES)

format: $(VENV)/.installed ## let ruff correct what it can
	$(IN) $(BIN)/ruff format .
	$(IN) $(BIN)/ruff check --fix .

# Three: what `make demo` and `make test` need; what the image in deploy/ has; the rehearsal. Each
# begins with the versions of the one before. dagster-celery names an exact version of dagster.
RESOLVE := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock" --constraint - pyproject.toml
lock: $(VENV)/.installed ## resolve the three lock files again (needs the package registry)
	$(IN) echo duckdb==1.5.5 | $(RESOLVE) --group dev -o requirements.lock
	$(IN) cp requirements.lock requirements-cluster.lock
	$(IN) echo duckdb==1.5.5 | $(RESOLVE) --extra cluster -o requirements-cluster.lock
	$(IN) cp requirements-cluster.lock requirements-rehearsal.lock
	$(IN) echo duckdb==1.5.5 | $(RESOLVE) --extra cluster --group dev --group rehearsal \
		-o requirements-rehearsal.lock
