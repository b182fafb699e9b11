#!/bin/bash
# Builds the module and packs it into build/out/packages: .deb, .rpm, .tar.gz, the .zip for Redis Software, an SBOM, the
# script, the Node and Python packages, the notes of the release, and SHA256SUMS. The gateway has a .deb, an .rpm and an SBOM
# of its own. ARCH="amd64 arm64" packs for these; the default is the host's. The same sources and the same tools give the same bytes.
. "$(dirname "$0")/lib.sh"
need_go

archs=${ARCH:-$(go env GOHOSTARCH)}
VERSION=$(build/version.sh)
# The oldest C library that the module loads with. A test reads the true one from the module.
GLIBC=2.34
SOURCE_DATE_EPOCH=$(source_date)
export VERSION GLIBC SOURCE_DATE_EPOCH
time=$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)

out=$PWD/build/out/packages
tools=$PWD/build/out/tools
rm -rf "$out"
mkdir -p "$out" "$tools"
# TOOLS_GOCACHE: a test builds the module with an empty cache and need not build the tools and the gateway again.
GOCACHE=${TOOLS_GOCACHE:-$(go env GOCACHE)} GOARCH='' \
  go -C deploy build -buildvcs=false -o "$tools/" ./packaging/redis-software
nfpm=$(go_tool github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2)
cyclonedx=$(go_tool github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0)

# Debian's machine-readable form of the licences. The file holds Go's runtime and standard library. libraries.gz has the
# licences of other libraries.
copyright() {
  licence() { echo "License: $1" && sed 's/^$/./; s/^/ /' "$2"; }
  echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
  echo 'Upstream-Name: gothrottle'
  printf '\nFiles: *\nCopyright: %s\n' "$(sed -n 's/^Copyright (c) //p' LICENSE)"
  licence Expat LICENSE
  printf '\nFiles: %s\nCopyright: 2009 The Go Authors\n' "$1"
  echo 'Comment: Go'\''s runtime and standard library are part of this file.'
  licence BSD-3-clause "$(go env GOROOT)/LICENSE"
}

# Debian's form of a changelog.
changelog() {
  printf '%s (%s) stable; urgency=medium\n\n  * The changes are in CHANGELOG.md.gz.\n\n' "$1" "$VERSION"
  printf ' -- %s  %s\n' "$(sed -n 's/^maintainer: \(.*>\).*/\1/p' deploy/packaging/nfpm.yaml)" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
}

# document TREE NAME FILE  adds what each package has: the licences of its file, the changelog and the manual page. The modes do
# not depend on the umask.
document() {
  local tree=$1 doc=$1/usr/share/doc/$2
  install -d "$doc"
  copyright "$3" >"$doc/copyright"
  gzip -9n <CHANGELOG.md >"$doc/CHANGELOG.md.gz"
  changelog "$2" | gzip -9n >"$doc/changelog.gz"
  find "$tree/usr/share/man" -type f -exec gzip -9n {} +
  chmod 0644 "$doc"/* "$tree"/usr/share/man/man8/*.gz
  find "$tree" -type d -exec chmod 0755 {} +
  find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# packages TREE CONFIG  makes the .deb and the .rpm of a tree.
packages() {
  local kind
  for kind in deb rpm; do
    TREE=$1 "$nfpm" package --config "$2" --packager "$kind" --target "$out/" >"$work/log" || die "$(cat "$work/log")"
  done
}

# install_files TREE SO  fills the tree that every package of the module installs.
install_files() {
  local tree=$1 so=$2
  install -D -m 0755 "$so" "$tree/usr/lib/redis/modules/gothrottle.so"
  install -D -m 0755 deploy/packaging/gothrottle-enable "$tree/usr/sbin/gothrottle-enable"
  ln -s gothrottle-enable "$tree/usr/sbin/gothrottle-disable"
  install -D -m 0644 deploy/packaging/gothrottle-enable.8 "$tree/usr/share/man/man8/gothrottle-enable.8"
  ln -s gothrottle-enable.8.gz "$tree/usr/share/man/man8/gothrottle-disable.8.gz"
  install -D -m 0644 deploy/packaging/gothrottle.conf "$tree/usr/share/gothrottle/gothrottle.conf"
  install -D -m 0644 deploy/systemd/gothrottle.conf "$tree/usr/share/gothrottle/systemd-drop-in.conf"
  for file in exporter.lua prometheus.yml alerts.yml dashboard.json; do
    install -D -m 0644 "deploy/monitoring/$file" "$tree/usr/share/gothrottle/monitoring/$file"
  done
  document "$tree" gothrottle usr/lib/redis/modules/gothrottle.so
}

pack_gateway() {
  local tree=$work/gateway-$ARCH
  GOCACHE=${TOOLS_GOCACHE:-$(go env GOCACHE)} GOARCH=$ARCH PROGRAM=$tree/usr/bin/gothrottle-gateway build/gateway.sh
  chmod 0755 "$tree/usr/bin/gothrottle-gateway"
  "$cyclonedx" bin -json -noserial -version "v$VERSION" "$tree/usr/bin/gothrottle-gateway" 2>"$work/log" |
    sed "s/^\( *\"timestamp\": \)\"[^\"]*\"/\1\"$time\"/" >"$out/gothrottle-gateway-$VERSION-linux-$ARCH.cdx.json" || die "$(cat "$work/log")"
  install -D -m 0644 deploy/systemd/gothrottle-gateway.service "$tree/usr/lib/systemd/system/gothrottle-gateway.service"
  install -D -m 0644 deploy/packaging/gateway/gothrottle-gateway.8 "$tree/usr/share/man/man8/gothrottle-gateway.8"
  for file in Caddyfile envoy.yaml haproxy.cfg haproxy.lua nginx-costs.conf nginx.conf traefik.yaml; do
    install -D -m 0644 "deploy/gateway/$file" "$tree/usr/share/gothrottle-gateway/$file"
  done
  install -d "$tree/usr/share/doc/gothrottle-gateway"
  libraries >"$work/libraries"
  gzip -9n <"$work/libraries" >"$tree/usr/share/doc/gothrottle-gateway/libraries.gz"
  document "$tree" gothrottle-gateway usr/bin/gothrottle-gateway
  packages "$tree" deploy/packaging/gateway/nfpm.yaml
}

pack() {
  local tree=$work/$ARCH name=gothrottle-$VERSION-linux-$ARCH so
  so=$(GOARCH=$ARCH build/module.sh | sed -n 's/^built //p')
  install_files "$tree" "$so"
  packages "$tree" deploy/packaging/nfpm.yaml
  # Without folders: the archive must not change the modes of folders that exist.
  (cd "$tree" && find usr ! -type d | sort | tar --files-from=- --format=gnu --owner=0 --group=0 --numeric-owner -c) |
    gzip -9n >"$out/$name.tar.gz"
  "$tools/redis-software" -module "$so" -version "$VERSION" -out "$out/gothrottle-redis-software-$VERSION-linux-$ARCH.zip"
  # The module has no other parts: a test of its imports sees to that.
  sed "s#{PATH}#$(go list -m)#; s/{VERSION}/$VERSION/; s/{ARCH}/$ARCH/; s/{GLIBC}/$GLIBC/
    s/{GO}/$(go version "$so" | sed 's/.*: go//')/
    s/{SHA256}/$(sha256sum <"$so" | cut -d ' ' -f 1)/; s/{TIME}/$time/" \
    deploy/packaging/sbom.json >"$out/$name.cdx.json"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for ARCH in $archs; do
  export ARCH
  pack
  pack_gateway
done
# The changelog's section of the version. Before a release it is still called Unreleased.
awk -v version="$VERSION" '/^## / { on = $2 == version || $2 == "Unreleased"; next } on' CHANGELOG.md >"$out/gothrottle-$VERSION-notes.md"
install -m 0644 script/gothrottle.lua "$out"
build/package-node.sh "$out" >/dev/null
build/package-python.sh "$out" >/dev/null
(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS && chmod 0644 ./*)
echo "packed $(cd "$out" && echo *)"
