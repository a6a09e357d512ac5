# The two commands: `make serve` and `make test`. `make help` lists the others.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
PYTHON ?= python3.11
HOST ?= 127.0.0.1
PORT ?= 8000
BIN := .venv/bin

.PHONY: help setup data engines serve test check fix clean
help:           ## List the commands
	@grep -E '^[a-z-]+: .*##' Makefile | sed -E 's/: .*## /\t/' | expand -t 12

setup: .venv/.stamp  ## Make the environment

.venv/.stamp: requirements-dev.lock pyproject.toml
	@scripts/environment $(PYTHON)

data: setup     ## Mine the pinned releases into the database (a second run does nothing)
	@$(BIN)/errata ingest

engines: setup  ## Install the check engines that are served by default (a second run does nothing)
	@$(BIN)/errata engine install

serve: setup    ## Set everything up and serve on http://$(HOST):$(PORT)
	@HOST=$(HOST) PORT=$(PORT) scripts/start

check: setup    ## Format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

fix: setup      ## Apply formatter and safe lint fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

test: check data engines  ## The whole gate
	@scripts/browser
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --ignore=tests/browser --ignore=tests/attack $(T)
	@$(BIN)/python -m pytest tests/attack   # alone: they watch processes, folders and sockets
	@$(BIN)/python -m pytest tests/browser  # of their own: the browser's driver keeps an event loop running

clean:          ## Remove what was built, database included
	rm -rf .venv var
