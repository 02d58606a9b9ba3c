# Every target sets up what it needs in .venv on first use and works offline after that.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
-include local/.env
ifneq ($(wildcard local/.virtual-key),)
LLMAO_KEY ?= $(shell cat local/.virtual-key)
endif
export

ROOT_FLAG = $(if $(ROOT),--root $(ROOT),$(if $(MEMORY_ROOT),--root $(MEMORY_ROOT)))
SESSION_FLAGS = $(if $(HARNESS),--harness $(HARNESS)) $(if $(AUTH),--auth $(AUTH)) $(if $(PROVIDER),--provider $(PROVIDER)) \
  $(if $(MODEL),--model $(MODEL)) $(if $(SUBAGENTS),--subagents $(SUBAGENTS)) $(if $(BACKEND),--backend $(BACKEND)) \
  $(if $(DOMAIN),--domain $(DOMAIN)) $(if $(SERVER_AUTH),--server-auth $(SERVER_AUTH)) \
  $(if $(SERVER_PROVIDER),--server-provider $(SERVER_PROVIDER))
LAUNCH_FLAGS = $(SESSION_FLAGS) $(if $(PROMPT),--prompt "$$PROMPT") $(if $(ARGS),-- $(ARGS))
WORK_FLAGS = $(SESSION_FLAGS) $(if $(ARGS),-- $(ARGS))
export PROMPT
export QUERY

REAL_HARNESSES ?= claude codex
# More tests at once than two cores have, since many wait for a program to start, end or give up.
AT_ONCE = -n 4 --dist worksteal

.PHONY: help gateway local-up local-key local-memory local-spend local-down local-logs oracle setup demo launch work usage savings check fmt test test-real test-other bench bench-peers harnesses image unpack wheel-check
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(READY): requirements/dev.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing pinned packages into $(VENV) (once) …" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(READY) ## make the virtual environment
	@if command -v cc >/dev/null && test -e /usr/include/sys/capability.h; then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/prctl.txt \
	    || echo "python-prctl did not build; amem's own implementation is used" >&2; fi

demo: $(READY) ## the main job on the embedded provider: seed, run an agent confined, show what it left
	@$(BIN)/python scripts/demo.py

launch: $(READY) ## a harness in the sandbox: HARNESS= [AUTH PROVIDER MODEL PROMPT ARGS SUBAGENTS BACKEND SERVER_AUTH SERVER_PROVIDER]
	@$(BIN)/amem $(ROOT_FLAG) launch $(LAUNCH_FLAGS)

work: $(READY) ## a harness on the next task: HARNESS= [AUTH PROVIDER MODEL ARGS SUBAGENTS BACKEND] [LOOP=1]
	@$(BIN)/amem $(ROOT_FLAG) work $(if $(LOOP),--loop) $(WORK_FLAGS)

usage: $(READY) ## tokens by destination and model
	@$(BIN)/amem $(ROOT_FLAG) usage $(ARGS)

savings: $(READY) ## what the memory saves, measured on this root [QUERY=]
	@$(BIN)/amem $(ROOT_FLAG) savings $(if $(QUERY),--query "$$QUERY") $(ARGS)

check: $(READY) ## formatting, lint, types, import contracts, file names
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@said=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$said" >&2; exit 1; }
	@$(BIN)/python scripts/check-names.py

fmt: $(READY) ## format the code
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --quiet --fix .

test: $(READY) ## every test that needs no download beyond Python packages
	@$(BIN)/python -m compileall -q amem egress harnesses ledger policy sandbox
	@$(BIN)/python -m pytest -q $(AT_ONCE) -m "not real_harness and not real"

build/gateway/bin/litellm: requirements/gateway.txt
	@$(PYTHON) -m venv build/gateway
	@echo "installing LiteLLM into build/gateway (once) …" >&2
	@build/gateway/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/gateway.txt
	@touch $@

gateway: build/gateway/bin/litellm ## install a real LiteLLM, in an environment of its own

local-up: ## start the local gateway: LiteLLM over PostgreSQL, on 127.0.0.1:4000 [CONTAINERS=yes|no]
	@$(PYTHON) scripts/local-gateway.py up

local-key: ## mint a virtual key of the local gateway into local/.virtual-key
	@$(PYTHON) scripts/local-gateway.py key

local-memory: $(READY) ## make the memory's root at MEMORY_ROOT, if it is not there
	@$(PYTHON) scripts/local-gateway.py memory

local-spend: ## print LiteLLM's spend log as JSON, for amem cost --reconcile
	@$(PYTHON) scripts/local-gateway.py spend

local-down: ## stop the local gateway; its keys and spend are kept
	@$(PYTHON) scripts/local-gateway.py down

local-logs: ## follow LiteLLM's log
	@$(PYTHON) scripts/local-gateway.py logs

build/oracle/lib/opa_bindings: scripts/fetch-oracle.sh | $(READY)
	@echo "installing the policy oracle (OPA) into build/oracle (once) …" >&2
	@PYTHON=$(BIN)/python sh scripts/fetch-oracle.sh
	@touch $@

oracle: build/oracle/lib/opa_bindings ## install OPA, which the policy tests compare with

test-real: $(READY) build/gateway/bin/litellm ## tests on real harness programs, gateways, databases and browsers
	@$(BIN)/python scripts/install-harnesses.py $(REAL_HARNESSES)
	@$(BIN)/python -m pytest -q $(AT_ONCE) -m "real_harness or real" $$(grep -rlE --include='*.py' 'mark\.real(_harness)?\b' tests | sort)

test-other: ## the sandbox's tests on another Debian's Python and C library, as root [SUITE=sid TESTS=tests/launch]
	@sh scripts/test-other.sh $(or $(SUITE),trixie) $(TESTS)

bench: $(READY) ## the benchmark table (ONLY=P1,P4)
	@$(BIN)/python scripts/bench.py $(if $(ONLY),--only $(ONLY))

bench-peers: $(READY) ## install what the benchmarks compare with
	@$(BIN)/python scripts/bench-peers.py

harnesses: $(READY) ## install the pinned harness programs (HARNESS=claude,codex for some)
	@$(BIN)/python scripts/install-harnesses.py $(if $(HARNESS),$(HARNESS))

image: $(READY) ## build the harness image without a container runtime (HARNESS=claude,codex for some)
	@$(BIN)/python scripts/build-image.py

unpack: $(READY) ## put the harness image under the root (FROM=wslc|podman|docker|FILE)
	@$(BIN)/amem $(ROOT_FLAG) image unpack $(if $(FROM),--from $(FROM),$(addprefix --from ,$(wildcard build/image/amem-image.tar)))

wheel-check: $(READY) ## build the wheel and try it in an environment of its own
	@$(BIN)/python scripts/wheel-check.py
