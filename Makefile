# Set-up and the few commands of daily work. `make` alone lists them.
#
#   PYTHON   the interpreter the environment is made from (3.11 or newer), and
#   VENV     where the environment is kept:                                make test PYTHON=python3.13 VENV=.venv-3.13
#   WORKERS  how many test processes run side by side:                     make test WORKERS=8
#   ARGS     further arguments for the command of most targets:            make test ARGS="-m 'not slow'"

PYTHON ?= python3
VENV := .venv
LOCK := requirements.lock
WORKERS := 2
ARGS :=

BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup servers rocq proofs demo docs examples test test-lowest test-newest simulate search fuzz coverage mutate trusted-lines lint format bench lock dist clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## install dpwindows and everything its tests need into .venv

demo: $(READY) ## the main job on real data: a private release of the New York flights of 2013, and its report
	$(BIN)/dpwindows demo $(ARGS)

docs: $(READY) ## the documentation as a site (build/site/index.html): notebooks run, and a broken link stops it
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site

test: $(READY) servers ## run all tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

examples: $(READY) $(VENV)-examples/.ready ## install dbt and Dagster beside it, and run the examples as tests
	$(BIN)/python -m pytest tests/examples $(ARGS)

QUICK := -m "not slow"

test-lowest: ## the quick tests with the lowest versions that pyproject.toml admits (Python 3.11 or 3.12)
	@$(MAKE) test VENV=$(VENV)-lowest LOCK=requirements-lowest.lock ARGS='$(QUICK) $(ARGS)'

test-newest: $(BIN)/python ## the quick tests with the newest versions that there are today
	@mkdir -p build
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) --upgrade -o build/newest.lock
	@$(MAKE) test VENV=$(VENV)-newest LOCK=build/newest.lock ARGS='$(QUICK) $(ARGS)'

# Bounds, measuring, budgets and ledgers.
TRUSTED := tests/kernel tests/ledger tests/ask/test_privacy.py

trusted: $(READY) ## the quick tests of what privacy rests on, in about a minute
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not slow" $(TRUSTED) $(ARGS)

coverage: $(READY) ## branch coverage of the files that a release is trusted for
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(TRUSTED) tests/stream tests/end_to_end/test_ledger.py $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

mutate: $(READY) ## change the trusted files in every small way, and see that their tests notice
	$(BIN)/python -m tests.mutants.automatic $(ARGS)

proofs: $(READY) rocq ## check the machine-readable proofs, and with them the integers of the README's releases
	$(BIN)/python proofs/check.py $(ARGS)

trusted-lines: $(READY) ## the trusted lines behind the release of the README (ARGS=--gains: what each strategy gains)
	$(BIN)/python benchmarks/trusted_lines.py $(ARGS)

fuzz: $(READY) ## feed 5,000 changed inputs to every reader (FUZZ_INPUTS=N for more or fewer)
	FUZZ_INPUTS=$${FUZZ_INPUTS:-5000} $(BIN)/python -m pytest -s tests/fuzz $(ARGS)

simulate: $(READY) servers ## crashes, power failures and old backups, at random (ARGS="--schedules 10000 --seed 7")
	$(BIN)/python -m tests.simulator --workers $(WORKERS) $(ARGS)

search: $(READY) servers ## all tests of Hypothesis, and kills, at random and fifteen times as many (SEARCH_TIMES=N for more)
	SEARCH_TIMES=$${SEARCH_TIMES:-15} $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "hypothesis or search" $(ARGS)

lint: $(READY) ## check style, format and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(READY) ## rewrite the files in the house's format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY) ## measure time and memory against exact counting
	$(BIN)/python benchmarks/scale.py $(ARGS)

UV_COMPILE = $(BIN)/uv pip compile --quiet --python $(BIN)/python --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-emit-find-links pyproject.toml
COMPILE = $(UV_COMPILE) --all-extras --group dev --group clickhouse --group docs

lock: $(BIN)/python ## compile all locks anew (ARGS=--upgrade for the newest versions)
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) $(ARGS) -o requirements.lock
	$(COMPILE) --resolution lowest-direct $(ARGS) -o requirements-lowest.lock
	$(UV_COMPILE) --group examples $(ARGS) -o requirements-examples.lock
	@! grep -nE '://|file:|--(extra-)?index|--find-links' requirements.lock requirements-lowest.lock requirements-examples.lock

dist: $(READY) ## build wheel and sdist from the last commit into dist/, and run the README from them on every Python
	$(BIN)/python -m tests.distribution $(ARGS)

clean: ## remove the environment and everything made by the commands above
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest $(VENV)-examples build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The tests run a PostgreSQL server and Spark of their own, compile a small library and open pages in Chromium. What
# these need is installed where that can be done.
servers:
	@missing=; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || missing=postgresql; \
	java=$${JAVA_HOME:+$$JAVA_HOME/bin/}java; \
	version=$$("$$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p'); \
	[ "$${version:-0}" -ge 17 ] || missing="$$missing java"; \
	printf '\043include <stdio.h>\n' | $${CC:-cc} -E -x c - >/dev/null 2>&1 || missing="$$missing gcc libc6-dev"; \
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
		|| missing="$$missing chromium"; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ]; then as_root=; else as_root=sudo; fi; \
	if command -v apt-get >/dev/null && { [ -z "$$as_root" ] || command -v sudo >/dev/null; }; then \
		$$as_root apt-get update -qq; \
		apt-cache show openjdk-17-jre-headless >/dev/null 2>&1 && java=openjdk-17-jre-headless || java=default-jre-headless; \
		packages=$$(echo $$missing | sed "s/java/$$java/"); \
		echo "the tests need what is missing here: installing $$packages"; \
		$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$packages >/dev/null && exit 0; \
	fi; \
	echo "the tests need PostgreSQL 14 or newer (initdb and pg_ctl), a Java runtime, version 17 or newer (java, or" \
		"JAVA_HOME), a C compiler (cc) and Chromium; missing here:" $$missing". On Debian and Ubuntu these are the" \
		"packages postgresql, openjdk-17-jre-headless, gcc, libc6-dev and chromium" >&2; exit 1

# Rocq 8.16 or newer, under its earlier name: what checks the proofs.
rocq:
	@command -v coqc >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ]; then as_root=; else as_root=sudo; fi; \
	if command -v apt-get >/dev/null && { [ -z "$$as_root" ] || command -v sudo >/dev/null; }; then \
		echo "the proofs need what is missing here: installing coq"; \
		$$as_root apt-get update -qq; \
		$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends coq >/dev/null && exit 0; \
	fi; \
	echo "the proofs need Rocq 8.16 or newer (coqc). On Debian and Ubuntu it is the package coq" >&2; exit 1

# The locks are whole. Where pyproject.toml overrides what a library asks for, pip would refuse them. What is loaded is
# compiled then: most of what is installed never is.
$(READY): $(LOCK) pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --no-compile --no-deps \
		--require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

# In an environment of their own, whose locks could not be one with that of the tests.
$(VENV)-examples/.ready: requirements-examples.lock pyproject.toml
	$(MAKE) --no-print-directory setup VENV=$(VENV)-examples LOCK=requirements-examples.lock

# Debian and Ubuntu ship python3 without the part that makes environments: it is installed where that can be done.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "dpwindows needs Python 3.11 or newer, and '$(PYTHON)' is not: name another with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) >/dev/null 2>&1 || { \
		rm -rf $(VENV); \
		if [ "$$(id -u)" = 0 ]; then as_root=; else as_root=sudo; fi; \
		if command -v apt-get >/dev/null && { [ -z "$$as_root" ] || command -v sudo >/dev/null; }; then \
			package=$$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
			echo "'$(PYTHON) -m venv' does not work here: installing $$package"; \
			$$as_root apt-get update -qq; \
			$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$package >/dev/null; \
		fi; \
		$(PYTHON) -m venv --clear $(VENV); } || { \
		rm -rf $(VENV); \
		echo "no environment could be made with '$(PYTHON) -m venv $(VENV)': install Python's venv module" \
			"(Debian and Ubuntu: the package python3-venv), or name another interpreter with PYTHON=..." >&2; exit 1; }
