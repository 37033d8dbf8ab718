# Every target makes .venv by itself, once, and again when pyproject.toml changes.
#
#   make demo      a polite crawl of a made-up web on this machine, judged by its server
#   make test      everything a change must pass; ends with pytest's summary   (ARGS="-k robots" narrows it)
#   make lint      style, types, layers
#   make bench     the crawler against a bare loop; see bench/README.md        (ARGS="--runs 1")
#   make docs      write the generated pages again
#   make clean     remove all that these made, .venv included

ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
endif
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench docs clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.installed
	@$(BIN)/comity demo $(ARGS)

test: lint
	@$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.tools
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo

format: $(VENV)/.tools
	@$(BIN)/ruff check --fix --quiet
	@$(BIN)/ruff format --quiet

bench: $(VENV)/.installed
	@$(BIN)/python bench/crawl.py $(ARGS)

docs: $(VENV)/.installed
	@$(BIN)/python docs/generate.py $(ARGS)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis dist
	find src tests bench docs -name __pycache__ -prune -exec rm -rf {} +

# Two stamps, so that a stranger's `make demo` does not wait for the linters.
$(VENV)/.installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "comity needs Python 3.11 or newer: none found. Name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PIP) --version >/dev/null 2>&1 || { echo "making $(VENV) with $(PYTHON)"; $(PYTHON) -m venv --clear $(VENV); }
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.tools: $(VENV)/.installed
	@$(PIP) install --editable '.[dev]'
	@touch $@
