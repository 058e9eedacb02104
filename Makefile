# Two commands are all that anyone needs: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# By path, so that a script beside a clone named "poem" imports the package and not the folder.
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python --config-settings editable_mode=compat --editable

.PHONY: help demo test test-oldest test-pythons bench clean

help:
	@echo "make demo   install poem into $(VENV) and run its demo (about a minute)"
	@echo "make test   install the dev tools and run ruff, mypy, the import contract and pytest"
	@echo "make test-oldest   run the quick tests on a wheel, with the lowest versions of all dependencies"
	@echo "make test-pythons  run them on Python 3.12 and 3.13, with the newest versions, where these are installed"
	@echo "make bench  install the benchmark tools and print every figure in docs/speed.md"
	@echo "make clean  remove $(VENV) and caches"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "poem needs Python 3.11 or newer; set PYTHON=python3.11 or newer"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(INSTALL) .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(INSTALL) '.[dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.bench: $(BIN)/python pyproject.toml
	$(INSTALL) '.[bench]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/poem demo

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

test-oldest: $(VENV)/.dev
	.ci/quick $(BIN)/uv 3.11 lowest-direct

test-pythons: $(VENV)/.dev
	.ci/quick $(BIN)/uv 3.12 highest
	.ci/quick $(BIN)/uv 3.13 highest

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
