#!/bin/bash
# edge-server.sh PACKAGE [SANITIZER]  builds a server from the newest source that Debian has: the package is redis or valkey.
# SANITIZER is address or undefined; without it the server has jemalloc, which defragments. The last line of the output is the
# server's path. A server with the address sanitizer needs ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0.
. "$(dirname "$0")/lib.sh"
package=${1:?PACKAGE is missing} sanitizer=${2:-}
need_cc
need 'dpkg-source make' dpkg-dev make
work=$PWD/build/out/edge/$package${sanitizer:+-$sanitizer}
rm -rf "$work"
own_apt "$work" "$(dpkg --print-architecture)" deb-src sid experimental
(cd "$work" && "${apt[@]}" source "$package") >&2
source=$(find "$work" -mindepth 1 -maxdepth 1 -type d -name "$package-*")
options=(OPTIMIZATION=-O1 USE_SYSTEMD=no BUILD_WITH_MODULES=no)
[ -z "$sanitizer" ] || options+=(MALLOC=libc "SANITIZER=$sanitizer")
make -C "$source/src" -j"$(nproc)" "$package-server" "$package-cli" "${options[@]}" >"$work/make.log" 2>&1 ||
  die "$package could not be built: $(tail -n 5 "$work/make.log")"
echo "$source/src/$package-server"
