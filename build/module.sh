#!/bin/bash
# Builds the module: build/out/gothrottle.so. GOARCH=arm64 or amd64 on a machine of the other kind builds
# build/out/GOARCH/gothrottle.so.
. "$(dirname "$0")/lib.sh"
need_go
out=build/out
if [ -n "${GOARCH:-}" ] && [ "$GOARCH" != "$(go env GOHOSTARCH)" ]; then
  out=build/out/$GOARCH
  need_cross_cc
fi
need_cc

mkdir -p "$out"
new=$out/new.$$ # two builds may run at the same time
# -buildvcs=false: git does not answer in a clone that another user owns, and then the build would fail.
# All addresses are resolved at the load, and their table is read-only after it (BIND_NOW, RELRO).
# -funcalign: each function of Go begins at a pair of cache lines. A call then runs through fewer lines, and more of them
# share few places in the processor's cache: see docs/benchmarks.md.
# -buildid=: Go's build id would depend on the path of exports.map, and so on the folder of the repository. The linker
# still writes a build id, which depends on the contents only.
CGO_ENABLED=1 go build -buildmode=c-shared -buildvcs=false -trimpath -ldflags "-s -w -funcalign=128 -buildid= \"-extldflags=\
-Wl,-z,relro,-z,now,-z,noexecstack '-Wl,--version-script=$PWD/cgo/exports.map'\"" -o "$new.so" ./module
rm -f "$new.h"
# Go writes the file with mode 0644. The server loads only files that may be executed.
chmod 0755 "$new.so"
# The file is renamed and never overwritten, because a running server has the old file mapped.
mv -f "$new.so" "$out/gothrottle.so"
echo "built $out/gothrottle.so"
