# Everything sets itself up in .venv; only Python 3.11+, git and make are needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
TESTS  := $(shell expr $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1) + 1)  # workers: some of them always wait for a disk or a process

.PHONY: all demo check test harnesses lint bench docs shown shots recording walk site claims package deb constraints clean
all: lint test

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "truekeep needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.ready-run: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.ready-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Setting up $(VENV) with the test tools ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.ready-run

demo: $(VENV)/.ready-run
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh demo/run.sh

check: lint  # the loop while you work: lint, types and the fast tests
	@$(BIN)/python -m pytest -n $(TESTS) --dist loadfile -m "not slow and not integration and not robustness"

test: $(VENV)/.ready-dev
	@$(BIN)/python -m pytest -n $(TESTS) --dist loadfile --no-loadscope-reorder

harnesses: $(VENV)/.ready-dev  # Claude Code, Codex and OpenClaw themselves, for the tests that use them
	@$(BIN)/python -m tests.support.harnesses

lint: $(VENV)/.ready-dev
	@$(BIN)/ruff check src tests bench tools
	@$(BIN)/ruff format --check src tests bench tools
	@$(BIN)/lint-imports
	@$(BIN)/mypy

bench: $(VENV)/.ready-dev
	@$(BIN)/python -m bench

docs: $(VENV)/.ready-dev
	@$(BIN)/python -m tools.reference docs

shown: docs  # what README.md and docs/ show, run again: outputs, and the shapes of --json
	@$(BIN)/python -m tools.shown

shots: $(VENV)/.ready-dev  # the pictures of docs/pages.md, by Chromium
	@$(BIN)/python -m tools.shots

recording: $(VENV)/.ready-dev  # the recording in README.md
	@$(BIN)/python -m tools.recording

walk: $(VENV)/.ready-dev  # docs/walk.md, from a walk through all of it; `make harnesses` first
	@$(BIN)/python -m tests.support.walk docs

site: $(VENV)/.ready-dev  # the documentation as a website, in build/site; every link is followed
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[site]'
	@$(BIN)/python -m tools.docs_site

claims: $(VENV)/.ready-run  # what our own documents say about this repository, checked by truekeep
	@$(BIN)/truekeep check

package: $(VENV)/.ready-dev  # the wheel and the sdist, in dist/; checked, and installed from the package index
	@rm -rf dist
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build -t sdist -t wheel -d dist
	@TRUEKEEP_TEST_INDEX=1 $(BIN)/python -m pytest tests/integration/test_package.py

deb: $(VENV)/.ready-dev  # a Debian package for this Debian's Python, in dist/
	@$(BIN)/python -m tools.deb

constraints: $(VENV)/.ready-dev  # the newest versions that fit pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@echo '# Versions that development and CI install; written by `make constraints`.' > constraints.txt
	@$(BIN)/uv pip compile --quiet --universal --upgrade --no-header --no-annotate --all-extras pyproject.toml >> constraints.txt

clean:
	rm -rf $(VENV) build dist demo-home .mypy_cache .ruff_cache .pytest_cache .hypothesis
