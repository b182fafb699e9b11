#!/bin/bash
# Packs the module for this machine, looks into the packages, and installs them in a container of Debian 12 that runs systemd.
# Before that, the Go modules are installed from a local proxy. NIGHTLY=1 packs for both architectures, twice, and tries Debian
# 13, too.
. "$(dirname "$0")/lib.sh"
need_docker "$0"
[ "$(id -u)" = 0 ] || die 'only root can make trees of Debian.'
need 'rpm debootstrap lintian' rpm debootstrap lintian
build/test-install.sh

work=$(work_folder)
machine=gothrottle-trial-$$
cleanup() {
  umount -q "$work"/*/{proc,sys} || true
  "$DOCKER" rm --force "$machine-debian12" "$machine-debian13" >/dev/null 2>&1 || true
  "$DOCKER" rmi "$machine-debian12" "$machine-debian13" >/dev/null 2>&1 || true
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT

ARCH=$(dpkg --print-architecture)
[ -z "${NIGHTLY:-}" ] || ARCH='amd64 arm64'
export ARCH
date=$(source_date) # of both builds, even if there is a commit between them
SOURCE_DATE_EPOCH=$date build/package.sh
out=$PWD/build/out/packages

# twice  packs again in another folder, with an empty build cache and a strict umask, for one architecture. Only the tools are
# not built again.
twice() {
  mkdir "$work/again"
  tar --exclude=./.git --exclude=./build/out -c . | tar -x -C "$work/again"
  (umask 077 && ARCH=amd64 SOURCE_DATE_EPOCH=$date GOCACHE=$work/gocache TOOLS_GOCACHE=$(go env GOCACHE) "$work/again/build/package.sh" >/dev/null)
  diff -r -x '*arm64*' -x '*aarch64*' -x SHA256SUMS "$out" "$work/again/build/out/packages" || die 'two builds differ.'
  echo 'two builds in different folders are the same, byte by byte'
}
[ -z "${NIGHTLY:-}" ] || twice

# Every package installs these files with these modes, and the module of its architecture.
so=usr/lib/redis/modules/gothrottle.so
files="-rw-r--r-- usr/share/doc/gothrottle/CHANGELOG.md.gz
-rw-r--r-- usr/share/doc/gothrottle/changelog.gz
-rw-r--r-- usr/share/doc/gothrottle/copyright
-rw-r--r-- usr/share/gothrottle/gothrottle.conf
-rw-r--r-- usr/share/gothrottle/monitoring/alerts.yml
-rw-r--r-- usr/share/gothrottle/monitoring/dashboard.json
-rw-r--r-- usr/share/gothrottle/monitoring/exporter.lua
-rw-r--r-- usr/share/gothrottle/monitoring/prometheus.yml
-rw-r--r-- usr/share/gothrottle/systemd-drop-in.conf
-rw-r--r-- usr/share/man/man8/gothrottle-enable.8.gz
-rwxr-xr-x $so
-rwxr-xr-x usr/sbin/gothrottle-enable
lrwxrwxrwx usr/sbin/gothrottle-disable
lrwxrwxrwx usr/share/man/man8/gothrottle-disable.8.gz"
gateway=usr/bin/gothrottle-gateway
gateway_files="-rw-r----- etc/gothrottle-gateway/settings
-rw-r--r-- etc/gothrottle-gateway/rules/rules.yaml
-rw-r--r-- usr/lib/systemd/system/gothrottle-gateway.service
-rw-r--r-- usr/share/doc/gothrottle-gateway/CHANGELOG.md.gz
-rw-r--r-- usr/share/doc/gothrottle-gateway/changelog.gz
-rw-r--r-- usr/share/doc/gothrottle-gateway/copyright
-rw-r--r-- usr/share/doc/gothrottle-gateway/libraries.gz
-rw-r--r-- usr/share/gothrottle-gateway/Caddyfile
-rw-r--r-- usr/share/gothrottle-gateway/envoy.yaml
-rw-r--r-- usr/share/gothrottle-gateway/haproxy.cfg
-rw-r--r-- usr/share/gothrottle-gateway/haproxy.lua
-rw-r--r-- usr/share/gothrottle-gateway/nginx-costs.conf
-rw-r--r-- usr/share/gothrottle-gateway/nginx.conf
-rw-r--r-- usr/share/gothrottle-gateway/traefik.yaml
-rw-r--r-- usr/share/lintian/overrides/gothrottle-gateway
-rw-r--r-- usr/share/man/man8/gothrottle-gateway.8.gz
-rwxr-xr-x $gateway"

# same WHAT WANTED GOT
same() { [ "$2" = "$3" ] || die "$1: want '$2', got '$3'"; }

# look PACKAGE FILES BINARY MACHINE COMMAND ...  unpacks a package by a command that writes a tar archive.
look() {
  local folder=$work/look/$1
  mkdir -p "$folder"
  "${@:5}" <"$out/$1" | tar -xp -C "$folder"
  same "$1" "$2" "$(cd "$folder" && find . ! -type d -printf '%M %P\n' | LC_ALL=C sort)"
  readelf -h "$folder/$3" | grep -q "Machine: .*$4" || die "$1: the binary is not for $4."
}

# inspect ARCHITECTURE RPM'S-NAME MACHINE  looks into the packages of an architecture.
inspect() {
  local deb=gothrottle_${version}_$1.deb rpm=gothrottle-$version-1.$2.rpm name=gothrottle-$version-linux-$1 module glibc text
  look "$deb" "$files" "$so" "$3" dpkg-deb --fsys-tarfile /dev/stdin
  look "$rpm" "$files" "$so" "$3" sh -c 'rpm2archive - | gzip -d'
  look "$name.tar.gz" "$files" "$so" "$3" gzip -d
  look "gothrottle-gateway_${version}_$1.deb" "$gateway_files" "$gateway" "$3" dpkg-deb --fsys-tarfile /dev/stdin
  look "gothrottle-gateway-$version-1.$2.rpm" "$(grep -v lintian <<<"$gateway_files")" "$gateway" "$3" sh -c 'rpm2archive - | gzip -d'
  text=$(sha256sum <"$work/look/gothrottle-gateway_${version}_$1.deb/$gateway" | cut -d ' ' -f 1)
  grep -qF "$text" "$out/gothrottle-gateway-$version-linux-$1.cdx.json" || die "the gateway's SBOM is of another file."
  text=$(zgrep -c '^google.golang.org/grpc v\|Apache License' "$work/look/gothrottle-gateway_${version}_$1.deb/usr/share/doc/gothrottle-gateway/libraries.gz")
  [ "$text" -gt 3 ] || die 'the gateway lacks the licences of its libraries.'
  module=$work/look/$deb/$so
  # The packages demand exactly the C library that the module needs, and the module needs no other library.
  same "$1 needs" '' "$(readelf -d "$module" | grep NEEDED | grep -Ev '\[(libc.so.6|libpthread.so.0|ld-linux-aarch64.so.1)\]')"
  glibc=$(readelf -VW "$module" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
  same "$deb" "Version: $version"$'\n'"Depends: libc6 (>= ${glibc#GLIBC_})" "$(dpkg-deb -f "$out/$deb" Version Depends)"
  rpm -qp --requires "$out/$rpm" | grep -qxF "libc.so.6($glibc)(64bit)" || die "$rpm does not need $glibc."
  # The bill of materials has the module's checksum, the Go version that built it, and the C library.
  text=$(go version "$module" | sed 's/.*: go//')
  for text in "$(sha256sum <"$module" | cut -d ' ' -f 1)" "\"version\": \"$text\"" "$glibc"; do
    grep -qF "$text" "$out/$name.cdx.json" || die "$name.cdx.json lacks $text."
  done
}
lintian --allow-root --fail-on error,warning "$out"/*.deb
version=$(build/version.sh)
for arch in $ARCH; do
  case $arch in
  amd64) inspect amd64 x86_64 X86-64 ;;
  arm64) inspect arm64 aarch64 AArch64 ;;
  esac
done
(cd "$out" && sha256sum --check --quiet SHA256SUMS)
same 'files in SHA256SUMS' "$(find "$out" -type f | wc -l)" "$(($(wc -l <"$out/SHA256SUMS") + 1))"
grep -q '^- ' "$out/gothrottle-$version-notes.md" || die 'the notes of the release are empty.'
for text in Expat 'Permission is hereby granted' BSD-3-clause 'Redistributions of source code'; do
  grep -q "$text" "$work/look/gothrottle_${version}_${ARCH%% *}.deb/usr/share/doc/gothrottle/copyright" || die "the licences lack '$text'."
done

# rpm installs its package in an empty folder, and removes it.
file=$(echo "$out"/gothrottle-"$version"-1.*.rpm | cut -d ' ' -f 1)
rpm=(rpm --root "$work/rpm" --dbpath /db --nodeps --noscripts)
mkdir "$work/rpm"
rpm -K "$file" | grep -q 'digests OK' || die "$file is damaged."
"${rpm[@]}" --ignorearch -i "$file"
[ -x "$work/rpm/$so" ] || die 'rpm has not installed the module.'
"${rpm[@]}" -e gothrottle
[ ! -e "$work/rpm/${so%%/modules*}" ] || die 'rpm has left the module or a folder behind.'

# again DEB NEW  makes a package that differs from the first one in nothing but the version.
again() {
  local tree
  tree=$(mktemp -d -p "$work")
  dpkg-deb -R "$1" "$tree/deb"
  sed -i 's/^Version: .*/&+new/' "$tree/deb/DEBIAN/control"
  dpkg-deb --root-owner-group -b "$tree/deb" "$2" >/dev/null
}
arch=$(dpkg --print-architecture)
mkdir "$work/trial"
cp build/package-trial.sh "$work/trial/"
sed -n '/^    apt-get install/p; /^    gothrottle-enable/p; /^    redis-cli GO.THROTTLE/p' docs/install.md |
  sed "s/_amd64/_$arch/" >"$work/trial/page"
mkdir -p "$work/trial/build/out/packages"
cp "$out"/gothrottle_*_"$arch".deb "$work/trial/build/out/packages/"
cp "$out"/gothrottle_*_"$arch".deb "$work/trial/old.deb"
cp "$out"/gothrottle-gateway_*_"$arch".deb "$work/trial/gateway-old.deb"
again "$work/trial/old.deb" "$work/trial/new.deb"
again "$work/trial/gateway-old.deb" "$work/trial/gateway-new.deb"

# trial TREE SUITE SERVER ...  makes a tree of Debian, and of that a machine without a network, a container that runs systemd,
# and tries the package there.
trial() {
  local name=$machine-$1 servers=${*:3}
  bootstrap "$2" "systemd,${servers// /,}" "$work/$1"
  cp -a "$work/trial" "$work/$1/root/trial"
  tar -C "$work/$1" -c . | "$DOCKER" import - "$name" >/dev/null
  # systemd needs control groups of version 2, whatever this machine has.
  "$DOCKER" run --detach --name "$name" --network none --cgroupns private --tmpfs /run --tmpfs /tmp:exec --cap-add SYS_ADMIN --cap-add SYS_PTRACE \
    --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined "$name" \
    sh -c 'umount -R /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec /lib/systemd/systemd --unit=basic.target' >/dev/null
  for _ in {1..900}; do
    [[ ! $("$DOCKER" exec "$name" systemctl is-system-running 2>/dev/null) =~ running|degraded ]] || break
    sleep 0.2
  done
  timeout 1500 "$DOCKER" exec "$name" sh -c 'for server; do bash /root/trial/package-trial.sh "$server" /root/trial || exit; done' trial "${@:3}"
}
[ -z "${NIGHTLY:-}" ] || trial debian13 trixie redis-server valkey-server
trial debian12 bookworm redis-server
echo 'make test-packages: passed'
