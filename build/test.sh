#!/bin/bash
# What must pass for a change. -short leaves the long tests to make test-all.
. "$(dirname "$0")/lib.sh"

export SHORT=1
step lint build/test-lint.sh || exit
step unit build/test-unit.sh || exit
step server build/test-server.sh || exit
echo "make test: passed: ${took[*]} in all $SECONDS s"
