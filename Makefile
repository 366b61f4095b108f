# `make demo` and `make test` do all the set-up that they need. Nothing else is required than Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# On Linux, PyPI's torch is the CUDA build, of several GB. PyTorch's own index has the CPU build, which counts as the newer of
# the two; where that index cannot be reached, pip takes what it finds. For CUDA: make demo PIP_ARGS=
CPU_INDEX := https://download.pytorch.org/whl/cpu
PIP_ARGS ?= $(shell $(PYTHON) -c 'from urllib.request import urlopen; urlopen("$(CPU_INDEX)/torch/", timeout=10)' \
	2>/dev/null && echo --extra-index-url $(CPU_INDEX))
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(PIP_ARGS)

.PHONY: demo test test-fast check docs format clean

demo: $(VENV)/.demo
	$(BIN)/foresail demo

test: check
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m "not soak and not ray"
	OMP_NUM_THREADS=1 $(BIN)/pytest -m "ray and not soak"

test-fast: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 -m "not soak and not slow and not ray"

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/sphinx-build -q -W --keep-going docs site

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -q -W --keep-going docs site
	@echo "site/index.html"

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Foresail needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e ".[demo,page]"
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) -e ".[demo,optuna,image,page,dev]"
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
