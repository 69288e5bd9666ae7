# make demo: from a fresh clone to regressed operators.   make docs: the site, in site/.
# make quick: the tests to run between edits, at most 2 minutes.   make test: lint, types and all tests.
# make wheel-test: build the wheel, install it outside the repository and use it.   CI: test, wheel-test.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo quick test lint wheel-test docs paper clean

demo: .venv/installed
	$(BIN)/python examples/demo.py

quick: .venv/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not results"

test: .venv/installed-dev lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

wheel-test: .venv/installed-dev
	$(BIN)/python tests/check_wheel.py

# Every table and figure of the paper, into results/. With QUICK=1 everything small, into results/NAME-quick.
paper: .venv/installed-dev
	for experiment in adr burgers climate images; do \
		$(BIN)/transduce reproduce $$experiment $(if $(QUICK),--quick) || exit 1; \
	done

docs: .venv/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'built: open site/index.html'

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo 'installing into .venv: torch and the rest, some minutes'
	$(BIN)/pip install -q -c constraints.txt -e '.[demo]'
	touch $@

.venv/installed-dev: pyproject.toml constraints.txt | .venv/bin/python
	@echo 'installing into .venv: torch, baselines and tools, some minutes'
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	touch $@ .venv/installed

clean:
	rm -rf .venv
