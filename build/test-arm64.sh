#!/bin/bash
# The module for arm64 on a machine of another kind: the Go tests and the black-box tests, both -short, with arm64 programs
# under qemu. The black-box tests run natively against a server of Debian for arm64. What -short leaves out needs many
# emulated servers at the same time, which keep each other from running, or does not depend on the processor.
. "$(dirname "$0")/lib.sh"
need_go
if [ "$(go env GOHOSTARCH)" = arm64 ]; then
  echo 'test-arm64: nothing to do. This machine is arm64, so make test has tested the module for arm64.'
  exit
fi

# Debian 12 has Redis 7.0, the oldest server that the module supports.
suite=bookworm
export QEMU_LD_PREFIX=$CACHE/arm64-$suite

need qemu-aarch64-static qemu-user-static
[ -d "$QEMU_LD_PREFIX" ] || unpack_package arm64 "$suite" - redis-server "$QEMU_LD_PREFIX"

GOARCH=arm64 build/module.sh
module=$PWD/build/out/arm64/gothrottle.so
# Some arm64 kernels have pages of 64 KiB. They map no segment with a smaller alignment.
readelf -lW "$module" | awk '$1 == "LOAD" { n++; small += $NF != "0x10000" } END { exit !n || small }' ||
  die "a segment of $module is not aligned to 64 KiB."
build/arm64-server.sh --version

# Not exported: the black-box tests themselves are compiled for this machine.
cc=$(GOARCH=arm64 && need_cross_cc && echo "$CC")
GOARCH=arm64 CGO_ENABLED=1 CC=$cc go test -count=1 -short -exec qemu-aarch64-static ./funnel/... ./commands ./cgo/...
GOTHROTTLE_MODULE=$module GOTHROTTLE_SERVER=$PWD/build/arm64-server.sh GOTHROTTLE_GOARCH=arm64 GOTHROTTLE_CC=$cc \
  go test -count=1 -timeout 40m -short ./tests
echo 'test-arm64: passed (Go tests and black-box tests on arm64)'
