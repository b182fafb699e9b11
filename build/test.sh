#!/bin/bash
# What must pass, in order. The last line sums up.
. "$(dirname "$0")/lib.sh"

step lint build/lint.sh
step test-unit build/test-unit.sh
step test-server build/test-server.sh
if docker_required || why=$(build/docker-engine.sh check); then
  step test-docker build/docker-engine.sh run build/test-docker.sh
  echo 'make test: passed (lint, unit, server, Docker)'
else
  echo "make test: passed (lint, unit, server); the Docker part was NOT run: $why"
fi
