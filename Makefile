# make demo: from a fresh clone to a regressed operator.   make test: everything that CI checks.   make docs: the site, in site/.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint docs clean

demo: .venv/installed
	$(BIN)/python examples/demo.py

test: .venv/installed-dev lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'built: open site/index.html'

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo 'installing into .venv: torch and the rest, some minutes'
	$(BIN)/pip install -q -c constraints.txt -e .
	touch $@

.venv/installed-dev: pyproject.toml constraints.txt | .venv/bin/python
	@echo 'installing into .venv: torch, rivals and tools, some minutes'
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	touch $@ .venv/installed

clean:
	rm -rf .venv
