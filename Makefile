# The project's commands. Each builds what it needs: python3.11+ and make are all a fresh machine has.
# They work from any folder (make -C path/to/checkout demo).
ROOT := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
ifneq ($(words $(ROOT)),1)
$(error this checkout lies in a folder with a space in its name, which make cannot work in)
endif
PYTHON ?= python3
VENV := $(ROOT)/.venv
NEXT := $(ROOT)/.venv-next
DISTRIBUTED := $(ROOT)/.venv-distributed
BIN := $(VENV)/bin
IN := cd $(ROOT) &&
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE # the tests start hundreds of programs: each would compile ours anew

.DEFAULT_GOAL := help
.PHONY: help demo test trials daemon check dev bench nightly fuzz fault-pairs exhaustive kills test-browser screenshots test-next test-distributed rehearsal rehearsal-kills lock format

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(ROOT)/Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 12

# A stamp rather than the folder: an installation that broke off is begun anew.
$(VENV)/.installed: $(ROOT)/requirements.lock
$(NEXT)/.installed: $(ROOT)/requirements-next.lock
$(DISTRIBUTED)/.installed: $(ROOT)/requirements-distributed.lock
$(VENV)/.installed $(NEXT)/.installed $(DISTRIBUTED)/.installed:
	@echo "installing $(notdir $<) into $(notdir $(@D)), once"
	@rm -rf "$(ROOT)/$(notdir $(@D))"
	@$(PYTHON) -c 'import sys; sys.exit("partner-sync needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --no-deps --require-hashes -r $<
	@$(@D)/bin/python -m pip install --quiet --no-deps --no-build-isolation -e $(ROOT)
	@touch $@

demo: $(VENV)/.installed ## the whole job on the embedded sandbox, in half a minute
	@$(IN) $(BIN)/partner-sync demo

# Two processes: most tests wait for servers, limits and subprocesses.
PROCESSES ?= 2
PYTEST = -m pytest -n $(PROCESSES) --dist worksteal
# The tests that meet DuckDB; the others, and the doors and ways to it, would say the same with any version.
MEETING := $(addprefix tests/,destinations docs/test_analysts.py reconciliation reports run warehouse)
test: $(VENV)/.installed ## the tests (about eight minutes on two cores)
	@$(IN) $(BIN)/python $(PYTEST)

trials: $(VENV)/.installed ## the tests that take long: every fault of the sandbox, kill -9, short tokens
	@$(IN) $(BIN)/python $(PYTEST) -m trial

daemon: $(VENV)/.installed ## nights by the clock in real processes: kill -9, lanes, secrets (some minutes)
	@$(IN) $(BIN)/python $(PYTEST) -m daemon tests/assets

check: $(VENV)/.installed ## format, lint, types, floors, Dagster's definitions, tests
	$(IN) $(BIN)/ruff format --check .
	$(IN) $(BIN)/ruff check .
	$(IN) $(BIN)/mypy
	$(IN) $(BIN)/lint-imports --no-cache
	$(IN) $(BIN)/dg check defs
	@$(MAKE) -C $(ROOT) test

dev: $(VENV)/.installed ## Dagster's UI and daemon beside a sandbox, on 127.0.0.1; NIGHTS=3 records three nights first
	@$(IN) $(BIN)/python -m assets.dev

bench: $(VENV)/.installed ## what docs/benchmarks.md reports, measured again
	$(IN) $(BIN)/python -m benchmarks

nightly: $(VENV)/.installed ## 20 runs of 300 requests on each path, none may meet a 429 (half an hour)
	$(IN) BENCH_RUNS=20 BENCH_SIDE_BY_SIDE=4 $(BIN)/python -m benchmarks rate lanes

fuzz: $(VENV)/.installed ## schemathesis against the sandbox's own description, both surfaces
	@$(IN) $(BIN)/python -m tests.fuzz

fault-pairs: $(VENV)/.installed ## every pair of the sandbox's faults against a synced home (half an hour)
	@$(IN) $(BIN)/python -m tests.fault_pairs

exhaustive: $(VENV)/.installed ## every schedule of changes of small lists against the page chain, some minutes
	@$(IN) $(BIN)/python -m tests.api.exhaustive

kills: $(VENV)/.installed ## 50 syncs, folds, replays, retentions and erasures each, killed with -9; a run that goes on after each
	@$(IN) $(BIN)/python -m tests.end_to_end.killing 50
	@$(IN) $(BIN)/python -m tests.end_to_end.killed_folds 50
	@$(IN) $(BIN)/python -m tests.end_to_end.killed_keeping 50

BROWSER = $(IN) $(BIN)/python -m tests.browser.chromium && $(1) $(BIN)/python -m pytest --timeout=900 tests/browser/watching.py tests/browser/reading.py
test-browser: $(VENV)/.installed ## Dagster's UI and the page of the reports in a real browser, clicked as an operator does (minutes; needs Debian's chromium)
	@$(call BROWSER,)

screenshots: $(VENV)/.installed ## the same, and its pictures into docs/screenshots
	@$(call BROWSER,SCREENSHOTS=docs/screenshots)

test-next: $(NEXT)/.installed ## the tests that meet DuckDB, on DuckDB 2.0.0
	@$(IN) $(NEXT)/bin/python $(PYTEST) $(MEETING)

# The suites that meet the ledger, on PostgreSQL, their archives in an object store; and what only several machines have.
SHARING := $(addprefix tests/,api distributed end_to_end/test_day.py end_to_end/test_erase_beside.py \
	end_to_end/test_nights.py end_to_end/test_stopped.py reconciliation/test_rules.py run/test_contact.py state warehouse)
test-distributed: $(DISTRIBUTED)/.installed ## the tests of several machines: PostgreSQL, an object store, a lake (minutes)
	@$(IN) TEST_STATE=postgresql TEST_ARCHIVE=s3 $(DISTRIBUTED)/bin/python $(PYTEST) $(SHARING)

rehearsal: $(DISTRIBUTED)/.installed ## one night past one machine on this machine: PostgreSQL, Redis, S3, two workers, twenty accounts (half an hour; LOOK=1 keeps the UI)
	@$(IN) $(DISTRIBUTED)/bin/python -m tests.distributed.rehearsal

rehearsal-kills: $(DISTRIBUTED)/.installed ## such nights again, killed with -9: a worker, the broker, PostgreSQL (a quarter of an hour)
	@$(IN) $(DISTRIBUTED)/bin/python -m tests.distributed.killing

format: $(VENV)/.installed ## let ruff write what check would refuse
	$(IN) $(BIN)/ruff format .
	$(IN) $(BIN)/ruff check --fix .

LOCK = $(IN) echo duckdb==$(1) | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock" --group dev $(3) --constraint - pyproject.toml -o $(2)
lock: $(VENV)/.installed ## resolve the three locks anew (needs the package registry)
	$(call LOCK,1.5.5,requirements.lock)
	$(call LOCK,2.0.0,requirements-next.lock)
	$(call LOCK,1.5.5,requirements-distributed.lock,--group distributed --extra distributed --constraint requirements.lock)
