# Everything from nothing but python3: each target makes .venv when it is missing or older than pyproject.toml,
# after tests/system_packages.sh has seen to what pip and npm cannot bring (make test WITHOUT=chromium skips its tests).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what it imports, and keeps it: a fraction of what is installed.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
DEMO_ARGS ?=
# The ONNX Runtime of `make demo`, an extra of pyproject.toml: cpu, or cuda for an NVIDIA GPU.
RUNTIME ?= cpu

export PYTHON WITHOUT
# Tests start a box in hundreds of processes: half of such a start is compiling, unless that is kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: bench fuzz faults demo test check lint ruff types layers page-lint pure unit page page-tools page-tests lock image-check clean packages-demo packages-test
.DEFAULT_GOAL := demo

packages-demo packages-test:
	@sh tests/system_packages.sh $(@:packages-%=%)

# The user's environment and the developer's: the same folder, marked by what is installed in it.
# The packages of ONNX Runtime overwrite each other: another one than the wanted goes before it comes.
$(VENV)/.edgebox-cpu $(VENV)/.edgebox-cuda: $(VENV)/.edgebox-%: pyproject.toml hatch_build.py webui/package.json | packages-demo
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	rm -f $(VENV)/.edgebox*
	! $(BIN)/python -m pip show --quiet $(if $(filter cuda,$*),onnxruntime,onnxruntime-gpu) 2>/dev/null \
		|| $(BIN)/python -m pip uninstall --quiet --yes onnxruntime onnxruntime-gpu
	$(PIP_INSTALL) -e '.[$*]'
	touch $@

# What builds edgebox, Node with it: the page's tests need nothing else of the developer's environment.
BUILD_REQUIRES = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])
$(VENV)/.edgebox-build: $(VENV)/.edgebox-cpu
	$(BIN)/python -c '$(BUILD_REQUIRES)' | xargs $(PIP_INSTALL)
	touch $@

# The developer's has the ONNX Runtime for CPUs.
$(VENV)/.edgebox-dev: $(VENV)/.edgebox-build client/pyproject.toml client/hatch_build.py
	$(PIP_INSTALL) -e '.[dev]' -e client
	touch $@

demo: packages-demo $(VENV)/.edgebox-$(RUNTIME) page
	$(BIN)/edgebox demo $(DEMO_ARGS)

# The page is built by the wheel's build hook; this refreshes it after a change of its sources.
page: $(VENV)/.edgebox-$(RUNTIME)
	@$(BIN)/python hatch_build.py

# What takes one core runs beside the rest: the page's tests while packages are installed, and types beside the tests of
# the box, which mostly keep the other cores busy. The page is built before: installing builds one that is stale, too.
test: packages-test $(VENV)/.edgebox-build page
	@$(MAKE) --no-print-directory --jobs 2 page-tests unit types layers

# The tools of the page's tests, some of which tests of the box use, too; building needs none of them.
page-tools: $(VENV)/.edgebox-build
	@$(BIN)/python webui/node.py tools

page-tests: page-tools
	$(BIN)/python webui/node.py npm test

lint: ruff types layers page-lint

ruff: $(VENV)/.edgebox-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.edgebox-dev
	$(BIN)/mypy

layers: $(VENV)/.edgebox-dev
	$(BIN)/lint-imports

page-lint: $(VENV)/.edgebox-dev
	$(BIN)/python webui/node.py npm run lint

# What to run before each commit: in a minute or so, side by side, with neither a server nor a browser.
check: $(VENV)/.edgebox-dev
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint pure

# The pure packages, but for what only shows over thousands of requests (marked as long), and a browser.
PURE := $(addprefix tests/,domain link planning scheduling simulation vision scene config commands/test_plan.py)
pure: $(VENV)/.edgebox-dev
	$(BIN)/pytest --numprocesses auto --dist worksteal -m 'not long' $(PURE) --ignore=tests/link/test_sender_in_browser.py

# Three processes more than there are cores: tests wait more than half of their time. In a new tree one process compiles
# all tests first, beside mypy: all of them would begin with that at once, each for itself.
WORKERS := $(shell $(PYTHON) -c 'import os; print(3 + (os.cpu_count() or 1))')
unit: $(VENV)/.edgebox-dev page-tools ruff
	@[ -d tests/end_to_end/__pycache__ ] || $(BIN)/pytest --collect-only >/dev/null || true  # errors are the next line's
	$(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal

# Locks what the images install: exact versions with their hashes, for every platform.
LOCK = $(BIN)/uv pip compile pyproject.toml --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file
lock: $(VENV)/.edgebox-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(LOCK) requirements/cpu.txt --extra cpu --extra mqtt --extra tls
	$(LOCK) requirements/cuda.txt --extra cuda --extra mqtt --extra tls
	$(LOCK) requirements/jetson.txt --extra cpu --extra mqtt --extra tls --no-emit-package onnxruntime
	$(LOCK) requirements/camera.txt --extra camera
	$(LOCK) requirements/ray.txt --extra ray --constraint requirements/cpu.txt
	$(LOCK) requirements/onvif.txt --extra onvif --constraint requirements/cpu.txt --constraint requirements/ray.txt
	$(LOCK) requirements/zmq.txt --extra zmq --constraint requirements/cpu.txt --constraint requirements/ray.txt

# What the Docker images do, without Docker: needs Linux, root, debootstrap, and registries in reach (docs/how-to/docker.md).
IMAGE_ARGS ?= --build-arg REQUIREMENTS=cpu
image-check: $(VENV)/.edgebox-dev
	$(BIN)/python -m tests.docker.verify $(IMAGE_ARGS)

# Fuzzes every reader of others' bytes for so long each, or those that are named: make fuzz SECONDS=600 FUZZ=jpeg.
SECONDS ?= 60
FUZZ ?= camera_message frame_header v2_body configuration scenario jpeg model_file
fuzz: $(VENV)/.edgebox-dev
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fuzz]'
	@for name in $(FUZZ); do $(BIN)/python -m tests.fuzz $$name $(SECONDS) || exit 1; done

# Compares the important ratios with the committed ones, in five minutes; --update commits what is measured now.
BENCH_ARGS ?=
bench: $(VENV)/.edgebox-dev
	$(BIN)/python -m benchmarks.regression $(BENCH_ARGS)

# Breaks executors, links, cameras, memory and the planner at random, under virtual time.
EVENTS ?= 10000000
faults: $(VENV)/.edgebox-$(RUNTIME)
	$(BIN)/edgebox simulate faults --events $(EVENTS)

clean:
	rm -rf $(VENV) edgebox/web/page webui/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
