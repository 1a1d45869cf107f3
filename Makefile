# `make demo` and `make test` need nothing but Python 3.11 or newer; they set up everything else.
PYTHON ?= python3
VENV ?= .venv
ENGINE ?= duckdb
AGAINST ?= main
BUF_VERSION := 1.75.0
BIN := $(VENV)/bin

.PHONY: audit bench-budget bench-domains bench-mechanisms bench-noise bench-path bench-timing chaos check clean demo demo-two-servers format fuzz go-client help pinot-stream protos rolling test
help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# Each environment is set up once for each version of pyproject.toml.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Gris needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.all: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[all]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.all

# Where a library has no wheel for this machine, its rows are left out.
$(VENV)/.bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]' \
		|| $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dp]'
	@touch $@

# One tool from npm, at one version; a package of its own would say no more than this line.
node_modules/.bin/buf: Makefile
	npm install --silent --no-save --no-package-lock @bufbuild/buf@$(BUF_VERSION)
	@touch $@

demo: $(VENV)/.all ## ask private questions of real data; ENGINE=pinot: on a real Apache Pinot, yours (PINOT_BROKER, PINOT_CONTROLLER) or one that it starts
ifeq ($(ENGINE)$(PINOT_BROKER),pinot)
	@$(BIN)/python -m examples.demo_on_pinot
else
	@$(BIN)/gris demo --engine $(ENGINE)
endif

demo-two-servers: $(VENV)/.all ## true, plain and private counts of a table on which two servers of Pinot are silently wrong
	@$(BIN)/python -m examples.two_servers

test: $(VENV)/.dev ## run the tests; parts that need Redis, PostgreSQL, Java or Docker say what to install
	$(BIN)/python -m pytest

check: $(VENV)/.dev node_modules/.bin/buf ## lint, types, import rules, protos
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cd protos && ../node_modules/.bin/buf lint
# Nothing that clients are built on may be taken away; a checkout without the branch has nothing to compare with.
	@! git show-ref --quiet refs/heads/$(AGAINST) || (cd protos && set -x && ../node_modules/.bin/buf breaking --against "$$(git rev-parse --git-common-dir)#branch=$(AGAINST),subdir=protos")
	$(BIN)/python protos/generate.py --check

format: $(VENV)/.dev ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

protos: $(VENV)/.dev ## write protos/generated and docs/api
	$(BIN)/python protos/generate.py

audit: $(VENV)/.dev ## ask two neighbouring tables the same questions 10,000 times and bound the privacy loss
	$(BIN)/python -m tests.audit

pinot-stream: $(VENV)/.dev ## kill a server of Pinot again and again under thousands of questions, for about a quarter of an hour
	$(BIN)/python -m tests.pinot.stream

chaos: $(VENV)/.dev ## kill the budget service and its store 60 times each under load, for every store; CHAOS="--store redis --seed 2"
	$(BIN)/python -m tests.chaos $(CHAOS)

rolling: $(VENV)/.dev ## restart two replicas of each service in turn, 40 times, under load; ROLLING="--rounds 50"
	$(BIN)/python -m tests.rolling $(ROLLING)

fuzz: $(VENV)/.dev ## 100,000 mutated SQL texts: none means anything but its structured form, no refusal repeats a literal
	$(BIN)/python -m tests.fuzz

bench-path: $(VENV)/.dev ## a private top 10 beside the same query alone; ENGINE=pinot asks PINOT_BROKER
	$(BIN)/python -m bench.path --engine $(ENGINE)

bench-noise: $(VENV)/.bench ## exact noise beside numpy, OpenDP and PyDP, and memory at 10^7
	$(BIN)/python -m bench.noise

bench-mechanisms: $(VENV)/.dev ## every mechanism, served or published elsewhere, on one histogram
	$(BIN)/python -m bench.mechanisms

bench-timing: $(VENV)/.dev ## the time of a release over flat, empty, tied, Zipf and huge histograms, as ratios
	$(BIN)/python -m bench.timing

bench-domains: $(VENV)/.dev ## pairs per second and memory of private domain discovery; BENCH="--pairs 100000000"
	$(BIN)/python -m bench.domains $(BENCH)

bench-budget: $(VENV)/.dev ## charges of the ledger beside an empty echo on the same server; BENCH="--store sqlite"
	$(BIN)/python -m bench.budget $(BENCH)

go-client: node_modules/.bin/buf ## build examples/go/ask, the client in Go; needs Go 1.24 or newer
	cd examples/go && ../../node_modules/.bin/buf generate ../../protos && go build -o ask .

clean: ## remove what make has set up
	rm -rf $(VENV) node_modules .gris
