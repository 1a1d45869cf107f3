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

.PHONY: check clean demo docs format images protos setup test test-all
setup: $(VENV)/.dev node_modules/.bin/buf ## set up everything that developing needs

# Each environment is set up once for each version of these files; by uv where it is, in a third of the time.
PACKAGES := pyproject.toml deploy/locks/development.constraints
UV := $(shell command -v uv)
INSTALL = $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,$(BIN)/pip install --quiet) --constraint deploy/locks/development.constraints --editable

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Gris needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(if $(UV),,$(BIN)/pip install --quiet 'pip>=25.1')
	@echo "Setting up $(VENV): a few minutes the first time"

$(VENV)/.demo: $(PACKAGES) | $(VENV)/bin/python
	$(INSTALL) '.[demo]'
	@touch $@

$(VENV)/.test: $(PACKAGES) | $(VENV)/bin/python
	$(INSTALL) '.[all,telemetry]' --group test
	@touch $@ $(VENV)/.demo

$(VENV)/.test-all: $(PACKAGES) | $(VENV)/bin/python
	$(INSTALL) '.[all,spark,telemetry]' --group test-all
	@touch $@ $(VENV)/.demo $(VENV)/.test

$(VENV)/.dev: $(PACKAGES) | $(VENV)/bin/python
	$(INSTALL) '.[all,spark,telemetry]' --group dev
	@touch $@ $(VENV)/.demo $(VENV)/.test $(VENV)/.test-all

$(VENV)/.docs: $(PACKAGES) | $(VENV)/bin/python
	$(INSTALL) '.[all]' --group docs
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

demo: $(VENV)/.demo ## ask private questions of real data; ENGINE=pinot: on a real Apache Pinot, yours (PINOT_BROKER, PINOT_CONTROLLER) or one that it starts
ifeq ($(ENGINE)$(PINOT_BROKER),pinot)
	@$(BIN)/python -m examples.demo_on_pinot
else
	@$(BIN)/gris demo --engine $(ENGINE)
endif

# Without compiled files, each worker would rewrite the assertions of all tests anew.
unexport PYTHONDONTWRITEBYTECODE
# Workers of pytest, by themselves one a processor; each takes whole files.
WORKERS ?= logical
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile
test: $(VENV)/.test ## run all tests that need no server, and one way through each process and face
	$(PYTEST) -m "not all"

# Which of them, as an expression of markers: ONLY="redis or postgres".
ONLY ?=
test-all: $(VENV)/.test-all ## run all tests; those that need Redis, PostgreSQL, Java, Chromium or Docker say what is missing
	$(PYTEST) --no-loadscope-reorder -rfEs $(if $(ONLY),-m "$(ONLY)")

check: $(VENV)/.dev node_modules/.bin/buf ## lint, types, import rules, protos, Kubernetes manifests and what the chart makes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest tests/test_limits.py tests/test_extras.py
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
