# The two commands that matter: `make run` and `make test`. Everything works on a fresh clone.
# PYTHON=/path/to/python3 picks the interpreter that runs the set-up.

SHELL := /bin/sh
PYTHON ?= python3
BIN := .venv/bin
IN_PARALLEL = -n logical --maxprocesses=4 --dist=loadfile --no-loadscope-reorder
TEMPLATES = find templates -name '*.html' -print0

.DEFAULT_GOAL := help
.PHONY: help setup setup-tests run test check format messages screenshots clean-state

help:  ## List these commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

setup:  ## Create .venv and install the pinned packages (at once when that is done)
	@"$(PYTHON)" scripts/setup.py

setup-tests:  ## The same with what the tests need, a Chromium included
	@"$(PYTHON)" scripts/setup.py --tests

run: setup  ## Set up, then start everything; Ctrl+C stops it
	@exec "$(BIN)/python" manage.py up

test: setup-tests check  ## Set up, check, and run every test
	@"$(BIN)/python" -m pytest --ignore=tests/architecture $(IN_PARALLEL)

check: setup-tests  ## Format, lint, types, import contracts, templates, sizes
	"$(BIN)/ruff" format --check .
	"$(BIN)/ruff" check .
	"$(BIN)/mypy"
	"$(BIN)/lint-imports"
	@$(TEMPLATES) | xargs -0 -r "$(BIN)/djade" --target-version 5.2 --check
	"$(BIN)/djlint" templates --lint --quiet
	"$(BIN)/python" -m pytest tests/architecture

format:  ## Mend what can be mended by itself
	"$(BIN)/ruff" format .
	"$(BIN)/ruff" check --fix .
	@$(TEMPLATES) | xargs -0 -r "$(BIN)/djade" --target-version 5.2

messages: setup-tests  ## Bring the catalogues of translated texts in step with the code
	@"$(BIN)/python" scripts/messages.py

screenshots: setup-tests  ## Photograph every page into var/screenshots
	@"$(BIN)/python" -m pytest tests/browser

clean-state:  ## Delete the database, runs and models in var/ (asks first)
	@"$(BIN)/python" scripts/clean_state.py
