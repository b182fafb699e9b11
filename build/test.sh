#!/bin/bash
# What must pass for a change. -short leaves the long tests to make test-all.
. "$(dirname "$0")/lib.sh"

export SHORT=1
step lint build/test-lint.sh
step unit build/test-unit.sh
step server build/test-server.sh
echo "make test: passed: ${took[*]} in all $SECONDS s"
