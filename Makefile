# Everything from nothing but python3: each target makes .venv when it is missing or older than pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_ARGS ?=

.PHONY: demo test lint unit page clean
.DEFAULT_GOAL := demo

# The user's environment and the developer's: the same folder, marked by what is installed in it.
$(VENV)/.edgebox: pyproject.toml hatch_build.py webui/package.json
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.edgebox-dev: $(VENV)/.edgebox
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(VENV)/.edgebox page
	$(BIN)/edgebox demo $(DEMO_ARGS)

# The page is built by the wheel's build hook; this refreshes it after a change of its sources.
page: $(VENV)/.edgebox
	@$(BIN)/python hatch_build.py

test: $(VENV)/.edgebox-dev page lint unit
	$(BIN)/python webui/node.py npm test

lint: $(VENV)/.edgebox-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests that measure how long things take, or stream at a pace, have the cores to themselves; all others share them.
ALONE := $(addprefix tests/,benchmarks camera test_cli.py test_demo.py \
	$(addsuffix .py,$(addprefix end_to_end/test_,browser_camera deadlines sampling streaming viewers)))
unit: $(VENV)/.edgebox-dev
	$(BIN)/pytest --numprocesses auto $(addprefix --ignore=,$(ALONE))
	$(BIN)/pytest $(ALONE)

clean:
	rm -rf $(VENV) edgebox/web/page webui/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis
