#!/bin/bash
# The black-box tests and chaos on servers at the edge: built from the newest source that Debian has, as they are and with the
# address and undefined-behaviour sanitizers. PACKAGE is redis or valkey.
. "$(dirname "$0")/lib.sh"
build/module.sh
export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:abort_on_error=1 \
  UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1
for sanitizer in '' address undefined; do
  server=$(build/edge-server.sh "${PACKAGE:-redis}" $sanitizer | tail -n 1)
  "$server" --version
  # A server with the address sanitizer cannot start under ulimit -v.
  GOTHROTTLE_SERVER=$server go test -count=1 -short -timeout 40m -skip "${sanitizer:+addressSpace}" ./tests
  SERVER=$server build/test-chaos.sh
done
