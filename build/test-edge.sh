#!/bin/bash
# The black-box tests and chaos on servers at the edge: built from the newest source that Debian has, as they are, with
# jemalloc, which defragments, and with the address and undefined-behaviour sanitizers. PACKAGE is redis or valkey.
. "$(dirname "$0")/lib.sh"
build/module.sh
need 'dpkg-source make' dpkg-dev make
need 'lua5.1 lua5.4' lua5.1 lua5.4
package=${PACKAGE:-redis} work=$PWD/build/out/edge
rm -rf "$work"
own_apt "$work" "$(dpkg --print-architecture)" deb-src sid experimental
(cd "$work" && "${apt[@]}" source "$package")

export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:abort_on_error=1 \
  UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1
for sanitizer in '' address undefined; do
  cp -r "$work/$package"-*/ "$work/tree"
  options=(OPTIMIZATION=-O1 USE_SYSTEMD=no BUILD_WITH_MODULES=no ${sanitizer:+MALLOC=libc "SANITIZER=$sanitizer"})
  make -C "$work/tree/src" -j"$(nproc)" "$package-server" "$package-cli" "${options[@]}" >"$work/make.log" 2>&1 ||
    die "$package could not be built: $(tail -n 5 "$work/make.log")"
  server=$work/tree/src/$package-server
  "$server" --version
  GOTHROTTLE_SERVER=$server go test -count=1 -short -timeout 40m ./tests
  SERVER=$server build/test-chaos.sh
  rm -r "$work/tree"
done
