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
# For which platforms images are built, such as linux/arm64, or linux/amd64,linux/arm64; empty: for this machine's.
IMAGE_PLATFORMS ?=
comma := ,
# How an image is built: a command that takes its name, the build context and further arguments of `docker build`.
# An image for several platforms cannot be kept by every Docker: buildx pushes it to the registry of its name.
IMAGE_BUILD ?= docker $(if $(findstring $(comma),$(IMAGE_PLATFORMS)),buildx build --push,build) --tag
# Images are called GRIS_IMAGES-dp-service:GRIS_TAG and so on, as in compose.yaml.
GRIS_IMAGES ?= gris
GRIS_TAG ?= latest
IMAGES := dp-service budget-service gateway gateway-catalogue tools
LOCKS := dp-service budget-service gateway tools
export DOCKER_BUILDKIT := 1

.PHONY: agents audit audit-packages bench bounded chaos check clean clients-check demo demo-two-servers docs explore format fuzz fuzz-wires go-client help images kills kubernetes-test locks notices one-row pinot-check pinot-failures pinot-real-time pinot-stream properties protos release release-check rolling sensitivity simulate superset-check tenants test test-fast test-long test-servers
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

# Where a library has no wheel for this machine, its rows are left out.
$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]' \
		|| $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dp]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

$(VENV)/.release: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[release]'
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

demo-two-servers: $(VENV)/.all ## true, plain and private counts of a table on which two servers of Pinot are silently wrong
	@$(BIN)/python -m examples.two_servers

# Without compiled files, each worker would rewrite the assertions of all tests anew.
unexport PYTHONDONTWRITEBYTECODE
# Workers of pytest, by themselves three more than processors; each takes whole files, and what is heavy in lanes, first.
WORKERS ?= auto
PROPERTIES ?= 10
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

# Builds each image from a folder, with a tag.
BUILD_IMAGES = for each in $(IMAGES); do \
	$(IMAGE_BUILD) $(GRIS_IMAGES)-$$each:$(2) $(1) --file $(1)/deploy/Dockerfile --target $$each \
		$(if $(IMAGE_PLATFORMS),--platform $(IMAGE_PLATFORMS)) || exit 1; \
	done
images: ## build the images, and make the secrets that compose.yaml mounts; IMAGE_PLATFORMS=linux/amd64,linux/arm64 GRIS_IMAGES=registry.example/gris pushes them for both
	@$(PYTHON) deploy/compose/prepare.py
	@$(call BUILD_IMAGES,.,$(GRIS_TAG))

# Brings images into the cluster's nodes, as `kind load docker-image` does; empty where the nodes pull them themselves.
KUBERNETES_LOAD ?=
kubernetes-test: $(VENV)/.dev ## deploy to the cluster of KUBECONFIG, ask, kill and restart pods, change the policy; deletes it again; with GRIS_TEST_DEPLOYMENT=production, =several-gateways or =regions instead of a trial; needs helm
ifneq ($(KUBERNETES_LOAD),)
	$(MAKE) images GRIS_IMAGES=gris GRIS_TAG=local
	@docker image inspect gris-pinot:local >/dev/null 2>&1 || $(IMAGE_BUILD) gris-pinot:local deploy/pinot
	$(KUBERNETES_LOAD) $(addsuffix :local,$(addprefix gris-,$(IMAGES) pinot))
endif
	GRIS_TEST_KUBERNETES=1 $(BIN)/python -m pytest tests/kubernetes -s --durations=0

# One lock for each image, for every platform, with the hash of every file; the index is not written into it.
LOCK = $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml
# What an operator's commands need; no pictures, frames or SQLAlchemy.
TOOLS = dp budget store redis postgres postgres-wire pinot duckdb gateway page cli mcp
locks: $(VENV)/.dev ## renew the pinned packages of the images
	$(LOCK) --extra dp --extra telemetry --output-file deploy/locks/dp-service.txt
	$(LOCK) --extra budget --extra redis --extra postgres --extra telemetry --output-file deploy/locks/budget-service.txt
	$(LOCK) --extra gateway --extra mcp --extra page --extra postgres-wire --extra pinot --extra postgres --extra telemetry --output-file deploy/locks/gateway.txt
	$(LOCK) $(addprefix --extra ,$(TOOLS)) --output-file deploy/locks/tools.txt

audit-packages: $(VENV)/.dev ## look the pinned packages of the images up among known vulnerabilities; needs PyPI
	@for each in $(LOCKS); do $(BIN)/pip-audit --strict --disable-pip --require-hashes --requirement deploy/locks/$$each.txt || exit 1; done

notices: $(VENV)/.release ## write dist/THIRD_PARTY_NOTICES and an SBOM of each image's packages; needs PyPI
	$(BIN)/python -m deploy.release.notices

release-check: $(VENV)/.release ## whether this checkout can be released; leaves in dist/ what was checked; needs PyPI
	@$(BIN)/python -m deploy.release

# A private key of ssh-keygen, or the public one of a key that ssh-agent holds.
SIGNING_KEY ?=
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
release: ## all that a release publishes, checked, and signed by SIGNING_KEY=~/.ssh/id_ed25519, in dist/; needs PyPI, Docker, helm and ssh-keygen
	@test -n "$(SIGNING_KEY)" || { echo "make release SIGNING_KEY=FILE: FILE is the key that signs"; exit 2; }
	@$(MAKE) --silent --no-print-directory $(VENV)/.release
	@$(BIN)/python -m deploy.release.readiness "$(SIGNING_KEY)" "$(IMAGE_PLATFORMS)"
	@$(MAKE) --no-print-directory release-check
# From the source distribution: a checkout also holds what is not in the repository, such as keys and ledgers.
	@( context=$$(mktemp -d) && trap 'rm -rf "$$context"' EXIT \
		&& tar -xzf dist/gris_dp-$(VERSION).tar.gz -C "$$context" --strip-components 1 \
		&& $(call BUILD_IMAGES,"$$context",$(VERSION)) ) \
		|| { rm -rf dist; echo "FAIL  an image is not built: Docker says why above. Nothing is left in dist/"; exit 1; }
	@$(BIN)/python -m deploy.release.signing "$(SIGNING_KEY)" $(GRIS_IMAGES) $(IMAGES)

audit: $(VENV)/.dev ## ask two neighbouring tables the same questions 10,000 times and bound the privacy loss
	$(BIN)/python -m tests.campaigns.audit

pinot-stream: $(VENV)/.dev ## kill a server of Pinot again and again under thousands of questions, for about a quarter of an hour
	$(BIN)/python -m tests.campaigns.pinot_stream

pinot-failures: $(VENV)/.dev ## servers and brokers of a real Pinot that load, lag behind, are replaced or die, one after the other
	GRIS_TEST_PINOT_FAILURES=1 GRIS_TEST_LONG=1 $(BIN)/python -m pytest tests/pinot/failures

pinot-real-time: $(VENV)/.dev ## tables of a real Pinot that take in a stream from Kafka, whose segments are completed and removed and whose servers die
	GRIS_TEST_PINOT_FAILURES=1 GRIS_TEST_LONG=1 $(BIN)/python -m pytest -s tests/pinot/test_real_time_tables.py tests/pinot/failures/test_stream_failures.py

pinot-check: $(VENV)/.dev ## a table of what holds on your Pinot, of any version: PINOT_BROKER=URL PINOT_CONTROLLER=URL PINOT_KAFKA=HOST:PORT PINOT_TABLE=events; makes tables of its own and removes them
	@$(BIN)/python -m tests.campaigns.pinot_check $(if $(PINOT_BROKER),--broker '$(PINOT_BROKER)') $(if $(PINOT_CONTROLLER),--controller '$(PINOT_CONTROLLER)') $(if $(PINOT_KAFKA),--kafka '$(PINOT_KAFKA)') $(if $(PINOT_TABLE),--table '$(PINOT_TABLE)')

chaos: $(VENV)/.dev ## kill the budget service and its store 60 times each under load, for every store; CHAOS="--store redis --seed 2"
	$(BIN)/python -m tests.campaigns.chaos $(CHAOS)

agents: $(VENV)/.dev ## a hostile agent asks 500 questions at a real gateway; agents spend whole budgets on one member; AGENTS="--games 1000"
	$(BIN)/python -m tests.campaigns.agents $(AGENTS)

kills: $(VENV)/.dev ## kill -9 gateways, services and stores for ten minutes each under questions on changing rows; KILLS="--store postgres --minutes 30"
	$(BIN)/python -m tests.campaigns.kills $(KILLS)

# Superset pins older packages than Gris needs elsewhere, so it has an environment of its own. Of its packages
# 6.1.0 uses two without asking for them, and breaks with later versions of flask-caching.
SUPERSET := build/superset
CHROMIUM ?= $(shell command -v chromium)
$(SUPERSET)/.ready: pyproject.toml Makefile | $(VENV)/.dev
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(SUPERSET)
	$(BIN)/uv pip install --quiet --python $(SUPERSET)/bin/python 'apache-superset==6.1.0' cachetools rich playwright 'flask-caching<2.4' pinotdb==$(PINOTDB_VERSION) psycopg2-binary==$(PSYCOPG2_VERSION) --editable '.[sqlalchemy]'
	@touch $@

superset-check: $(SUPERSET)/.ready ## a real Apache Superset asks a gateway: database, charts, refusals; with Chromium it leaves pictures in build/superset-pictures
	$(BIN)/python -m tests.campaigns.superset --programs $(SUPERSET)/bin $(if $(CHROMIUM),--chromium $(CHROMIUM))

# Clients of Pinot and PostgreSQL as registries have them, outside of $(VENV); versions of Java and Go are in their files.
CLIENTS := build/clients
PINOTDB_VERSION := 9.2.2
PSYCOPG2_VERSION := 2.9.13
NPM_CLIENT_VERSION := 0.3.0
POSTGRES_CLIENTS := 'psycopg[binary]==3.3.9' psycopg2-binary==$(PSYCOPG2_VERSION) asyncpg==0.32.0
$(CLIENTS)/.ready: tests/campaigns/clients/pom.xml $(wildcard tests/campaigns/clients/go/*) Makefile | $(VENV)/.dev
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(CLIENTS)/python
	$(BIN)/uv pip install --quiet --python $(CLIENTS)/python/bin/python 'pinotdb[sqlalchemy]==$(PINOTDB_VERSION)' $(POSTGRES_CLIENTS) pandas
	! command -v mvn >/dev/null || mvn --quiet --file $< dependency:copy-dependencies -DoutputDirectory=$(abspath $(CLIENTS)/java)
	! command -v npm >/dev/null || npm install --silent --no-save --no-package-lock --prefix $(CLIENTS)/node pinot-client@$(NPM_CLIENT_VERSION) pg@8.23.1 postgres@3.4.9
	! command -v go >/dev/null || go build -C tests/campaigns/clients/go -o $(abspath $(CLIENTS)/go/ask) .
	@if command -v mvn && command -v npm && command -v go; then touch $@; fi >/dev/null

clients-check: $(CLIENTS)/.ready $(SUPERSET)/.ready ## clients of Pinot and PostgreSQL, Superset as both, ask a gateway; a table of what each did, and pictures as superset-check
	$(BIN)/python -m tests.campaigns.clients --installed $(CLIENTS) --superset $(SUPERSET)/bin $(if $(CHROMIUM),--chromium $(CHROMIUM))

SEEDS ?= 1000
simulate: $(VENV)/.dev ## SEEDS=10000 histories of three regions and a home, with cuts, crashes, pauses and skewed clocks; a seed that fails is printed
	$(BIN)/python -m tests.campaigns.regions --seeds $(SEEDS)

rolling: $(VENV)/.dev ## restart two replicas of each service in turn, 40 times, under load; ROLLING="--rounds 50"
	$(BIN)/python -m tests.campaigns.rolling $(ROLLING)

sensitivity: $(VENV)/.dev ## 60,000 questions of 10,000 random tables: one member changes no more than is promised and charged; SENSITIVITY="--seed 2"
	$(BIN)/python -m tests.campaigns.sensitivity $(SENSITIVITY)

tenants: $(VENV)/.dev ## 100,000 questions of 50 tenants at a gateway: each is answered and refused as if there were nothing else; TENANTS="--seed 2"
	$(BIN)/python -m tests.campaigns.tenants $(TENANTS)

bounded: $(VENV)/.dev ## the worst of every mechanism for bounded contributions over all small member-level data sets, beside its promise
	$(BIN)/python -m tests.mechanisms.bounded

explore: $(VENV)/.dev ## every interleaving of small worlds of the ledger, by the real rules: states, edges, depth, seconds; EXPLORE="--world shared"
	$(BIN)/python -m tests.budget.exploration $(EXPLORE)

fuzz: $(VENV)/.dev ## 100,000 mutated SQL texts: none means anything but its structured form, no refusal repeats a literal
	$(BIN)/python -m tests.campaigns.fuzz

fuzz-wires: $(VENV)/.dev ## 100,000 mutated messages of PostgreSQL, then requests of HTTP, at a real gateway: it lives, stays small, charges, logs and fails at none of them; WIRES="--port broker --seed 2"
	$(BIN)/python -m tests.campaigns.wires $(WIRES)

one-row: $(VENV)/.dev ## every form of condition beside one odd row at a time, on DuckDB, Spark and Pinot: no error, the same rows; ONE_ROW="--engine duckdb --together"
	$(BIN)/python -m tests.campaigns.one_row $(ONE_ROW)

properties: $(VENV)/.dev ## every property test on ten times as many examples as `make test`; PROPERTIES=100: a hundred times
	GRIS_TEST_EXAMPLES=$(PROPERTIES) $(BIN)/python -m pytest --numprocesses $(WORKERS) -m hypothesis

bench: $(VENV)/.dev $(VENV)/.bench ## one of the benchmarks that bench/README.md lists: NAME=budget BENCH="--store sqlite"
	$(BIN)/python -m bench $(NAME) $(BENCH)

go-client: node_modules/.bin/buf ## build examples/go/ask, the client in Go; needs Go 1.24 or newer
	cd examples/go && ../../node_modules/.bin/buf generate ../../protos && go build -o ask .

clean: ## remove what make has set up
	rm -rf $(VENV) node_modules .gris build dist
