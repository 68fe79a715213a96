# Sets up an environment of its own and runs the pipeline in it. `make help` lists the habits.
.DEFAULT_GOAL := run
.SHELLFLAGS := -eu -c
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
# The first of these that is there and runs; another one with `make PYTHON=...`.
PYTHON ?= $(firstword $(foreach python,python3.11 python3.12 python3.13 python3,$(shell \
	$(python) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' \
	2>/dev/null && echo $(python))))
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install --quiet

.PHONY: run env test gpu-check test-slurm lint trace-env publish lock clean help
run: env unlock ## set up, and run the main job with all cores (the default)
	$(BIN)/snakemake --cores all

env: $(VENV)/run.installed ## only set up

test: $(VENV)/test.installed lint ## set up, check the style and run the tests
	$(BIN)/python -m pytest

# On a machine with nothing but torch and triton: no environment is set up.
gpu-check: ## hold timing on a GPU against do_bench (OPTIONS='--traces FOLDER --fraction 0.05')
	PYTHONPATH=src $(PYTHON) -m atenbench.gpu_check $(OPTIONS)

# Not a part of `make test`: it changes /etc/slurm and runs for minutes, as root and with CI=true.
test-slurm: $(VENV)/slurm.installed ## run the pipeline through a real Slurm on this machine, and compare
	$(BIN)/python tests/slurm_cluster.py

lint: $(VENV)/test.installed ## check the style: ruff, mypy, snakefmt, snakemake --lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

.PHONY: unlock
unlock: env
	@if [ -n "$$(ls -A .snakemake/locks 2>/dev/null)" ]; then $(BIN)/python workflow/unlock.py; fi

# A stamp is written when all of a lock is installed: a set-up that was killed is done again.
$(VENV)/run.installed: requirements/run.lock
$(VENV)/test.installed: requirements/test.lock requirements/run.lock
$(VENV)/slurm.installed: requirements/slurm.lock requirements/run.lock
$(VENV)/%.installed: | $(BIN)/python
	@echo "Installing requirements/$*.lock into $(VENV)"
	$(PIP) -r requirements/$*.lock
	@touch $@

# Tracing has an environment of its own: torchvision wants another torch.
trace-env: .venv-trace/trace.installed ## set up the environment that `snakemake traces` uses
.venv-trace/trace.installed: requirements/trace.lock
	$(PYTHON) -m venv --clear .venv-trace
	.venv-trace/bin/python -m pip --disable-pip-version-check --no-input install --quiet -r $<
	@touch $@

# Debian's python without python3-venv has no ensurepip, but may have a pip that reaches in.
$(BIN)/python:
	@[ -n "$(PYTHON)" ] || { echo "No Python 3.11, 3.12 or 3.13 found; name one: make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv --clear $(VENV) || { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
	$(PYTHON) -m pip --python $@ install --quiet pip; }

publish: env unlock ## show what would change on the hub, and upload (REPO=owner/name [DRY_RUN=1])
	@[ -n "$(REPO)" ] || { echo "Name the data set: make publish REPO=owner/name"; exit 1; }
	$(BIN)/snakemake --cores all results/dataset/manifest.json
	PYTHONPATH=src $(BIN)/python -m atenbench.publish results/dataset $(REPO) $(if $(DRY_RUN),--dry-run)

lock: ## write the locks anew from pyproject.toml (needs the network)
	$(PYTHON) workflow/lock.py

clean: ## remove outputs and logs, keep the environment and what was measured
	rm -rf logs $(filter-out results/measurement_store,$(wildcard results/*))

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1 - /p' $(MAKEFILE_LIST)
