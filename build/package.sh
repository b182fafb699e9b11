#!/bin/bash
# Builds the module and packs it into build/out/packages: .deb, .rpm, .tar.gz, the .zip for Redis Software, an SBOM, and
# SHA256SUMS. ARCH="amd64 arm64" packs for these; the default is the host's. The same sources and the same tools give
# the same bytes.
. "$(dirname "$0")/lib.sh"
need_go

archs=${ARCH:-$(go env GOHOSTARCH)}
VERSION=$(build/version.sh)
# The oldest C library that the module loads with. A test reads the true one from the module.
GLIBC=2.34
SOURCE_DATE_EPOCH=$(source_date)
export VERSION GLIBC SOURCE_DATE_EPOCH

out=$PWD/build/out/packages
tools=$PWD/build/out/tools
rm -rf "$out"
mkdir -p "$out" "$tools"
# TOOLS_GOCACHE: a test builds the module with an empty cache and need not build the tools again.
GOCACHE=${TOOLS_GOCACHE:-$(go env GOCACHE)} GOARCH='' \
  go -C deploy build -buildvcs=false -o "$tools/" ./packaging/redis-software
nfpm=$(go_tool github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2)

# Debian's machine-readable form of the licences. The module holds Go's runtime and standard library.
copyright() {
  licence() { echo "License: $1" && sed 's/^$/./; s/^/ /' "$2"; }
  echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
  echo 'Upstream-Name: gothrottle'
  printf '\nFiles: *\nCopyright: %s\n' "$(sed -n 's/^Copyright (c) //p' LICENSE)"
  licence Expat LICENSE
  printf '\nFiles: usr/lib/redis/modules/gothrottle.so\nCopyright: 2009 The Go Authors\n'
  echo 'Comment: Go'\''s runtime and standard library are part of this file.'
  licence BSD-3-clause "$(go env GOROOT)/LICENSE"
}

# Debian's form of a changelog.
changelog() {
  printf 'gothrottle (%s) stable; urgency=medium\n\n  * The changes are in CHANGELOG.md.gz.\n\n' "$VERSION"
  printf ' -- %s  %s\n' "$(sed -n 's/^maintainer: \(.*>\).*/\1/p' deploy/packaging/nfpm.yaml)" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
}

# install_files TREE SO  fills the tree that every package installs. The modes do not depend on the umask.
install_files() {
  local tree=$1 so=$2 doc=$1/usr/share/doc/gothrottle
  install -D -m 0755 "$so" "$tree/usr/lib/redis/modules/gothrottle.so"
  install -D -m 0755 deploy/packaging/gothrottle-enable "$tree/usr/sbin/gothrottle-enable"
  ln -s gothrottle-enable "$tree/usr/sbin/gothrottle-disable"
  install -d "$tree/usr/share/man/man8"
  gzip -9n <deploy/packaging/gothrottle-enable.8 >"$tree/usr/share/man/man8/gothrottle-enable.8.gz"
  ln -s gothrottle-enable.8.gz "$tree/usr/share/man/man8/gothrottle-disable.8.gz"
  install -D -m 0644 deploy/packaging/gothrottle.conf "$tree/usr/share/gothrottle/gothrottle.conf"
  install -D -m 0644 deploy/systemd/gothrottle.conf "$tree/usr/share/gothrottle/systemd-drop-in.conf"
  for file in exporter.lua prometheus.yml alerts.yml dashboard.json; do
    install -D -m 0644 "deploy/monitoring/$file" "$tree/usr/share/gothrottle/monitoring/$file"
  done
  install -D -m 0644 deploy/packaging/README "$doc/README"
  copyright >"$doc/copyright"
  gzip -9n <CHANGELOG.md >"$doc/CHANGELOG.md.gz"
  changelog | gzip -9n >"$doc/changelog.gz"
  chmod 0644 "$doc"/* "$tree"/usr/share/man/man8/gothrottle-enable.8.gz
  find "$tree" -type d -exec chmod 0755 {} +
  find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

pack() {
  local tree=$work/$ARCH name=gothrottle-$VERSION-linux-$ARCH so kind
  so=$(GOARCH=$ARCH build/module.sh | sed -n 's/^built //p')
  install_files "$tree" "$so"
  for kind in deb rpm; do
    TREE=$tree "$nfpm" package --config deploy/packaging/nfpm.yaml --packager "$kind" --target "$out/" >"$work/log" ||
      die "$(cat "$work/log")"
  done
  # Without folders: the archive must not change the modes of folders that exist.
  (cd "$tree" && find usr ! -type d | sort | tar --files-from=- --format=gnu --owner=0 --group=0 --numeric-owner -c) |
    gzip -9n >"$out/$name.tar.gz"
  "$tools/redis-software" -module "$so" -version "$VERSION" -out "$out/gothrottle-redis-software-$VERSION-linux-$ARCH.zip"
  # The module has no other parts: a test of its imports sees to that.
  sed "s#{PATH}#$(go list -m)#; s/{VERSION}/$VERSION/; s/{ARCH}/$ARCH/; s/{GLIBC}/$GLIBC/
    s/{GO}/$(go version "$so" | sed 's/.*: go//')/
    s/{SHA256}/$(sha256sum <"$so" | cut -d ' ' -f 1)/; s/{TIME}/$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)/" \
    deploy/packaging/sbom.json >"$out/$name.cdx.json"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for ARCH in $archs; do
  export ARCH
  pack
done
(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS && chmod 0644 ./*)
echo "packed $(cd "$out" && echo *)"
