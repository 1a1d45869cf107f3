# `make demo` and `make test` need nothing but Python 3.11 or newer; they set up everything else.
PYTHON ?= python3
VENV ?= .venv
ENGINE ?= duckdb
AGAINST ?= $(shell git describe --tags --abbrev=0 2>/dev/null)
BUF_VERSION := 1.75.0
AXE_VERSION := 4.14.1
MERMAID_VERSION := 11.17.2
IFRAME_WORKER_VERSION := 1.0.4
BIN := $(VENV)/bin
# Images are called GRIS_IMAGES-dp-service:GRIS_TAG and so on, as in compose.yaml; deploy/images.sh has more settings.
GRIS_TAG ?= latest

.PHONY: check clean demo docs format help images protos test test-fast test-long test-servers
help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# Each environment is set up once for each version of pyproject.toml.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Gris needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.all: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV): a few minutes the first time"
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[all]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	@echo "Setting up $(VENV): a few minutes the first time"
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.all

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

# The two scripts that the site's theme would load from another host: pictures, and the search of a site without a server.
node_modules/.site/iframe-worker.js: Makefile
	@mkdir -p $(@D)
	cd $(@D) && npm pack --silent mermaid@$(MERMAID_VERSION) iframe-worker@$(IFRAME_WORKER_VERSION) >/dev/null
	cd $(@D) && tar -xzOf mermaid-$(MERMAID_VERSION).tgz package/dist/mermaid.min.js >mermaid.min.js
	cd $(@D) && tar -xzOf iframe-worker-$(IFRAME_WORKER_VERSION).tgz package/shim/index.js >iframe-worker.js
	@rm $(@D)/*.tgz

# What is from npm, each at one version and all in one command: a second one would take away what the first has brought.
node_modules/.bin/buf: Makefile
	npm install --silent --no-save --no-package-lock @bufbuild/buf@$(BUF_VERSION) axe-core@$(AXE_VERSION)
	@touch $@

demo: $(VENV)/.all ## ask private questions of real data; ENGINE=pinot: on a real Apache Pinot, yours (PINOT_BROKER, PINOT_CONTROLLER) or one that it starts
ifeq ($(ENGINE)$(PINOT_BROKER),pinot)
	@$(BIN)/python -m examples.demo_on_pinot
else
	@$(BIN)/gris demo --engine $(ENGINE)
endif

# Without compiled files, each worker would rewrite the assertions of all tests anew.
unexport PYTHONDONTWRITEBYTECODE
# Workers of pytest, by themselves three more than processors; each takes whole files, and what is heavy in lanes, first.
WORKERS ?= auto
test: $(VENV)/.dev ## run all tests; parts that need Redis, PostgreSQL, Java or Docker say what to install
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

# Docker is left to you: its daemon changes a machine more than a package does.
test-servers: ## install what skipped parts of `make test` need (Redis, PostgreSQL, Java, Chromium, axe), by apt, Homebrew or conda
	@set -eu; if command -v apt-get >/dev/null; then \
		sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); $$sudo apt-get update -qq; \
		$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
			redis-server postgresql openjdk-17-jdk-headless maven chromium $$(command -v npm >/dev/null || echo npm); \
	elif command -v brew >/dev/null; then brew install redis postgresql openjdk@17 maven node; brew install --cask chromium; \
	elif command -v conda >/dev/null; then \
		conda install -y -c conda-forge redis-server postgresql openjdk=17 maven nodejs; \
	else echo "expected apt-get, brew or conda; without them install Redis, PostgreSQL, a JDK 17, Maven, Chromium and npm"; exit 2; fi
	@$(MAKE) --silent node_modules/.bin/buf

test-long: $(VENV)/.dev ## larger versions of cases that `make test` runs small
	GRIS_TEST_LONG=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) -m long

test-fast: $(VENV)/.dev ## run the tests that need no other process: the loop of every day
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal -m "not process and not slow"

check: $(VENV)/.dev node_modules/.bin/buf ## lint, types, import rules, protos, Kubernetes manifests and what the chart makes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest tests/test_limits.py
	cd protos && ../node_modules/.bin/buf lint
# Nothing that clients of a release are built on may be taken away; before the first one there is nothing to compare with.
	@test -z "$(AGAINST)" || (cd protos && set -x && ../node_modules/.bin/buf breaking --against "$$(git rev-parse --git-common-dir)#tag=$(AGAINST),subdir=protos")
	$(BIN)/python protos/generate.py --check
	$(BIN)/python -m deploy.kubernetes.validate

# Not --quiet: then MkDocs counts no warnings, and nothing fails.
docs: $(VENV)/.dev $(VENV)/.docs node_modules/.site/iframe-worker.js ## build the documentation site into build/site; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

format: $(VENV)/.dev ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

protos: $(VENV)/.dev ## write protos/generated
	$(BIN)/python protos/generate.py

images: ## build the images, and make the secrets that compose.yaml mounts; IMAGE_PLATFORMS=linux/amd64,linux/arm64 GRIS_IMAGES=registry.example/gris pushes them for both
	@$(PYTHON) deploy/compose/prepare.py
	@deploy/images.sh . $(GRIS_TAG)

clean: ## remove what make has set up
	rm -rf $(VENV) node_modules .gris build dist
