# The logic is in build/*.sh. Make passes PORT=, IMAGE= and the like on; build/lib.sh and build/run.sh have the defaults.
.DEFAULT_GOAL := help
.PHONY: help build run test test-all test-unit test-server test-chaos soak test-docker test-examples test-sim test-languages test-monitoring test-failover test-memory test-servers lint bench bench-scaling bench-client pictures image package test-packages playground test-playground playground-pictures rename clean

help: ## show this list
	@echo 'gothrottle: rate limiting inside Redis and Valkey. Targets:'
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r t h; do printf '  make %-19s %s\n' "$$t" "$$h"; done

build: ## build the module: build/out/gothrottle.so
	@build/module.sh

run: ## start a server with the module on 127.0.0.1 (PORT=6379)
	@build/run.sh

test: ## what must pass for a change: lint, test-unit, test-server, and test-docker if a Docker engine answers
	@build/test.sh

test-all: ## make test, then what is slow: packages, arm64, what deploy/ ships (needs root and Debian)
	@build/test-all.sh

test-unit: ## tests of the Go packages, also with the race and address checkers
	@build/test-unit.sh

test-server: ## black-box tests against a local redis-server or valkey-server
	@build/test-server.sh

test-chaos: ## random calls, clocks and faults, held to exact models (CHAOS_SECONDS=120, SERVER="a b", SEED=1)
	@build/test-chaos.sh

soak: ## test-chaos for MINUTES=60, with a table at the end (SERVER=, SEED=)
	@build/soak.sh

test-docker: ## the tests of test-server against the Docker image (needs a Docker engine)
	@build/docker-engine.sh run build/test-docker.sh

test-examples: ## the examples of the Go client, also against a local server
	@build/test-examples.sh

test-sim: ## simulate a master, replicas and clients in one process (SEED=, STEPS=)
	@build/test-sim.sh

test-languages: ## the examples in other languages, against a local server (needs Debian's packages of them)
	@build/test-languages.sh

test-monitoring: ## what Prometheus and Grafana load, with real programs (needs Debian's prometheus and exporter)
	@build/test-monitoring.sh

test-failover: ## failovers under load, with partitions (needs root; FAILOVERS=n, SEED=n, FIGURES=1)
	@build/test-failover.sh

test-memory: ## memory, threads and forks of a real server, under valgrind too (LONG=1 for the long run, MINUTES=60, CALLS=2000, FORKS=200)
	@build/test-memory.sh

test-servers: ## the tests of test-server on all servers of build/servers.txt (needs Debian)
	@build/test-servers.sh

lint: ## gofmt, go vet, go mod tidy, shell and C syntax
	@build/lint.sh

bench: ## measure what calls cost: docs/benchmarks.md (SERVER="a b", ROUNDS=, ONLY=, QUICK=1, PEER=other.so, PEER_CMD=)
	@build/bench.sh

bench-scaling: ## measure clusters and I/O threads: the figures of docs/scaling.md (SERVER="a b", ROUNDS=, QUICK=1)
	@SCALING=1 build/bench.sh

bench-client: ## measure the Go client beside others: the figures of docs/go.md (SERVER=, ROUNDS=, QUICK=1)
	@CLIENT=1 build/bench.sh

pictures: ## draw the pictures of docs/choosing.md
	@go -C bench run ./choosing ../docs

image: ## build the Docker images (IMAGE=gothrottle:dev, INIT=gothrottle-init:dev, GO_IMAGE=, SERVER_IMAGE=, INIT_IMAGE=)
	@build/docker-engine.sh run build/image.sh

package: ## build .deb, .rpm and .tar.gz for amd64 and arm64: build/out/packages
	@build/package.sh

test-packages: ## install the packages in trees of Debian 12 and 13 that run systemd (needs root)
	@build/test-packages.sh

playground: ## serve a page that shows limiters at work, on 127.0.0.1 (LISTEN=, ADDR=host:port to watch a server, ARGS=)
	@build/playground.sh

test-playground: ## the playground, in headless Chromium (needs chromium and npm)
	@build/test-playground.sh

playground-pictures: ## draw the pictures of docs/playground.md
	@build/test-playground.sh -run Pictures -pictures pictures

rename: ## change the path of the Go modules (MODULE=example.com/x)
	@build/rename.sh

clean: ## remove what was built
	rm -rf build/out
