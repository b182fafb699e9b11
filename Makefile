# The logic is in build/*.sh. Make passes PORT=, IMAGE= and the like on; build/lib.sh and build/run.sh have the defaults.
.DEFAULT_GOAL := help
.PHONY: help build run gateway test test-all planted bench bench-client image package playground rename clean

help: ## show this list
	@echo 'gothrottle: rate limiting inside Redis and Valkey. Targets:'
	@sed -n 's/%/PART/; s/^\([a-zA-Z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r t h; do printf '  make %-13s %s\n' "$$t" "$$h"; done

build: ## build the module: build/out/gothrottle.so
	@build/module.sh

run: ## start a server on 127.0.0.1 (PORT=6379; SCRIPT=1: bare)
	@build/run.sh

gateway: ## start a server and the gateway for Envoy, nginx and others
	@build/gateway.sh run

test: ## what must pass for a change
	@build/test.sh

test-all: ## what a submission must pass, 25 minutes (ONLY="chaos")
	@build/test-all.sh

test-%: ## one part, or test-nightly: build/test-PART.sh
	@build/$@.sh

planted: ## put defects into copies, and show what finds them (ONLY=)
	@build/planted.sh

bench: ## measure what calls cost: docs/benchmarks.md (QUICK=1: a table, in a minute)
	@build/bench.sh

bench-client: ## measure the Go and Node clients beside others: docs/go.md
	@build/bench.sh client

image: ## build the Docker images (IMAGE=gothrottle:dev)
	@build/image.sh

package: ## build .deb, .rpm, .tar.gz and .zip (ARCH=arm64)
	@build/package.sh

playground: ## serve a page with limiters at work (LISTEN=127.0.0.1:8080)
	@build/playground.sh

rename: ## change the path of the Go modules (MODULE=example.com/x)
	@build/rename.sh

clean: ## remove what was built
	rm -rf build/out
