# One place for the commands that people and CI run. `make help` lists them.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
EXTRAS ?= test

.PHONY: help install dev test check format lint types floors unit promtool generated bench demo

help: ## Lists the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

install: $(BIN)/python ## Installs the project and what its tests need into .venv
	$(BIN)/pip install --quiet --editable '.[$(EXTRAS)]'

dev: ## Installs the linters too
	$(MAKE) install EXTRAS=$(EXTRAS),dev

test: install ## Installs what the tests need and runs them all
	$(BIN)/pytest -n auto

check: dev format lint types floors unit promtool generated ## Everything that must be green before a change lands

format: ## Code format
	$(BIN)/ruff format --check .

lint: ## Lint
	$(BIN)/ruff check .

types: ## Types, strict on the pure floors
	$(BIN)/mypy

floors: ## Which floor may import which
	$(BIN)/lint-imports

unit: ## Tests, without installing anything
	$(BIN)/pytest -n auto

promtool: ## Rule files and their unit tests, by the real promtool
	promtool check rules --lint=all --lint-fatal alert_rules/rules/*.yaml alert_rules/rules/optional/*.yaml
	promtool test rules alert_rules/tests/*.yaml alert_rules/tests/recording/*.yaml

generated: ## Regenerates every generated file; a difference is an error
	$(BIN)/python docs/build.py --check
	$(BIN)/python -m gpuwatch_dashboards build --check
	$(BIN)/python -m gpuwatch_dashboards rules --check

bench: ## Benchmarks: seconds per stage and ratios against the slow references
	$(BIN)/python -m bench.evaluate
	$(BIN)/python -m bench.index
	$(BIN)/python -m bench.what_if
	$(BIN)/python -m bench.replay

demo: install ## The whole product on generated data
	$(BIN)/gpuwatch demo
