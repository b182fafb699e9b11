#!/bin/bash
# make test, and after it what is slow. The last line sums up.
. "$(dirname "$0")/lib.sh"

step test build/test.sh
step test-deploy build/docker-engine.sh run build/test-deploy.sh
step test-servers build/test-servers.sh
step test-chaos build/test-chaos.sh
step test-arm64 build/test-arm64.sh
step test-examples build/test-examples.sh
step test-sim build/test-sim.sh
step test-languages build/test-languages.sh
step test-playground build/test-playground.sh
step test-monitoring build/test-monitoring.sh
step test-failover build/test-failover.sh
step test-memory build/test-memory.sh
step test-packages build/test-packages.sh
echo 'make test-all: passed'
