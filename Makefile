# Everything a developer or CI does. `make help` lists it.

.DEFAULT_GOAL := help
# What a target prints on stdout is its result (`make demo ARGS=--json | jq`), so make keeps quiet.
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
# Options for the binary: make demo ARGS=--json
ARGS ?=

PROGRAMS := redis-server:redis-server:redis redis-cli:redis-tools:redis redis-benchmark:redis-tools:redis
TEST_PROGRAMS := nginx:nginx-light:nginx haproxy:haproxy:haproxy

.PHONY: help setup setup-test build demo rehearse test soak lint bench clean

SEED ?= 7
MINUTES ?= 10

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Installs only what is missing; needs no root where nothing is. PROGRAM:PACKAGE of apt:PACKAGE of brew.
define install
	@{ \
	  command -v $(CARGO) >/dev/null || { echo 'Rust is missing: install it with rustup, then run make again' ; exit 1; }; \
	  apt=; brew=; for entry in $(1); do \
	    program=$${entry%%:*}; packages=$${entry#*:}; \
	    command -v $$program >/dev/null || [ -x /usr/sbin/$$program ] || { apt="$$apt $${packages%%:*}"; brew="$$brew $${packages##*:}"; }; \
	  done; \
	  if [ -n "$$apt" ]; then \
	    echo "installing:$$apt"; \
	    if command -v apt-get >/dev/null; then \
	      if [ "$$(id -u)" = 0 ]; then as_root=env; \
	      elif sudo -n true 2>/dev/null; then as_root='sudo -n env'; \
	      else echo "needs root: sudo apt-get install$$apt"; exit 1; fi; \
	      $$as_root apt-get update -q && $$as_root DEBIAN_FRONTEND=noninteractive \
	        apt-get install -q -y --no-install-recommends $$apt || exit 1; \
	    elif command -v brew >/dev/null; then brew install $$brew || exit 1; \
	    else echo "no apt-get and no brew here: install these yourself:$$apt"; exit 1; fi; \
	  fi; \
	  version=$$(redis-server --version | sed -n 's/.* v=\([0-9]*\)\..*/\1/p'); \
	  [ "$${version:-0}" -ge 7 ] || { echo "redis-server is too old: Paceline needs 7.0 or later"; exit 1; }; \
	} >&2
endef

setup: ## Install what demo and bench need besides Rust: redis-server, redis-cli, redis-benchmark
	$(call install,$(PROGRAMS))

setup-test: ## Install what tests need beside that: nginx and haproxy, as limiters that others wrote
	$(call install,$(PROGRAMS) $(TEST_PROGRAMS))

build: ## Build the release binary, target/release/paceline
	@$(CARGO) build --release --package paceline-cli --bin paceline

demo: setup ## Send 3,500 jobs through a provider that says 429 (ARGS=--json for machines)
	@$(CARGO) run --release --package paceline-cli --bin paceline -- demo $(ARGS)

rehearse: setup ## Rehearse three launches with three seeds each: medians next to a naive sender (about fifteen minutes)
	@$(CARGO) run --release --package paceline-cli --bin paceline -- rehearse --scenarios known,unknown,moving --seeds 3 $(ARGS)

# The binary is built first, because some tests run it as a process of its own. Not nextest: it runs every test in a
# process of its own, and the store's tests share one Redis and one cluster per process.
test: setup-test ## Run every test
	$(CARGO) build --workspace --all-targets
	$(CARGO) test --workspace

soak: setup-test ## Everything that can go wrong at once, from a seed, for as long as you like (SEED=7 MINUTES=10)
	@SEED=$(SEED) MINUTES=$(MINUTES) $(CARGO) test --workspace --test faults -- --nocapture soak

lint: ## Check format and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

bench: setup ## Measure jobs per second next to redis-benchmark (ARGS=--json for machines)
	@$(CARGO) run --release --package paceline-cli --bin paceline -- bench $(ARGS)

clean: ## Remove what was built; the private Redis in .paceline stays
	$(CARGO) clean
