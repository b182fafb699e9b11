# shellcheck shell=bash
# What more than one script needs. The scripts beside this file source it, and they all run in the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

IMAGE=${IMAGE:-gothrottle:dev}
INIT=${INIT:-gothrottle-init:dev}
GATEWAY=${GATEWAY:-gothrottle-gateway:dev}
# These repeat the Dockerfile's defaults: the tests need the server image's name, and the stand-ins need all names.
GO_IMAGE=${GO_IMAGE:-golang:1.26-bookworm}
SERVER_IMAGE=${SERVER_IMAGE:-redis:8-trixie}
INIT_IMAGE=${INIT_IMAGE:-busybox:1.37}
# The distribution's client fits the distribution's engine. Another client on PATH may not fit.
DOCKER=${DOCKER:-$([ -x /usr/bin/docker ] && echo /usr/bin/docker || echo docker)}

die() {
  echo "gothrottle: $*" >&2
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

docker_required() { [ "${CI:-}" = true ] || [ "${REQUIRE_DOCKER:-}" = 1 ]; }
standins_wanted() { [ "${CI:-}" = true ] || [ "${STANDIN:-}" = 1 ]; }
have_image() { "$DOCKER" image inspect "$1" >/dev/null 2>&1; }

can_install() { [ "$(id -u)" = 0 ] && have apt-get; }

# The service of a package must not start: it would take the port, and it might listen on other addresses.
apt_install() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  echo "gothrottle: installing $*" >&2
  export DEBIAN_FRONTEND=noninteractive
  # If a third-party package source does not answer, the others may still have what is needed.
  apt-get update -qq >/dev/null 2>&1 || true
  apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 "$@" >/dev/null </dev/null
)

need_go() {
  local want found
  want=$(awk '$1 == "go" { print $2 }' go.mod)
  have go || die "Go $want or newer is needed and there is no 'go' on PATH: please install it."
  # Inside the repository go may switch to the toolchain that go.mod names. If go cannot switch, it fails here, and it
  # tells its own version only outside the repository.
  found=$(go version 2>/dev/null || (cd / && go version))
  found=${found#go version }
  found=${found%% *}
  case $found in
  go[0-9]*) [ "$(printf '%s\n' "$want" "${found#go}" | sort -V | head -n 1)" = "$want" ] ||
    die "Go $want or newer is needed and this is ${found#go}: please install a newer one." ;;
  esac
}

# Debian can have gcc without the C library's headers, so a file is compiled to see whether the compiler works.
cc_works() { echo '#include <stdlib.h>' | ${CC:-$(go env CC)} -E -x c - >/dev/null 2>&1; }

need_cc() {
  cc_works && return
  if [ -z "${CC:-}" ] && can_install; then
    apt_install gcc libc6-dev || true
  fi
  cc_works || die "a C compiler with the C library's headers is needed: please install gcc and libc6-dev."
}

# Debian's cross compiler for GOARCH becomes CC.
need_cross_cc() {
  local machine
  case $GOARCH in
  amd64) machine=x86-64-linux-gnu ;;
  arm64) machine=aarch64-linux-gnu ;;
  *) die "GOARCH must be amd64 or arm64, not '$GOARCH'." ;;
  esac
  export CC=${CC:-${machine/x86-64/x86_64}-gcc}
  have "$CC" || ! can_install || apt_install "gcc-$machine" "libc6-dev-$GOARCH-cross" || true
  have "$CC" || die "the cross compiler $CC is needed: please install gcc-$machine and libc6-dev-$GOARCH-cross."
}

# need_docker SCRIPT  runs the script with a Docker engine, which may be started and stopped for it.
need_docker() {
  [ -n "${WITH_ENGINE:-}" ] || WITH_ENGINE=1 exec build/docker-engine.sh "build/${1##*/}"
}

# The time of all files in packages, in Unix seconds: SOURCE_DATE_EPOCH, else the date of the last commit, else, for
# sources without git, the beginning of 2026.
source_date() {
  local git=(git -c safe.directory='*')
  if [ -z "${SOURCE_DATE_EPOCH:-}" ] && [ -e .git ]; then SOURCE_DATE_EPOCH=$("${git[@]}" log -1 --format=%ct 2>/dev/null || true); fi
  echo "${SOURCE_DATE_EPOCH:-1767225600}"
}

# Helm comes from the proxy of Go modules. HELM names another one.
HELM=${HELM:-$PWD/build/out/tools/helm-3.19.2/helm}
install_helm() {
  [ -x "$HELM" ] || GOBIN=${HELM%/*} GOFLAGS='' go install helm.sh/helm/v3/cmd/helm@v3.19.2
}

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/gothrottle

# A new folder for Debian trees. It is in the cache and not in /tmp: /tmp may be mounted nodev, and debootstrap makes
# devices.
work_folder() { mkdir -p "$CACHE" && mktemp -d -p "$CACHE"; }

# The mirror of Debian that this machine's apt uses; nothing if apt uses none.
debian_mirror() { apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1; }

# unpack_package ARCHITECTURE SUITE MORE PACKAGE TREE  unpacks a package and what it depends on into TREE. MORE is "-" or
# a suite whose packages are preferred. apt uses lists of its own, so the packages of this machine stay as they are.
unpack_package() (
  arch=$1 suites=$2 prefer=() package=$4 tree=$5 key=/usr/share/keyrings/debian-archive-keyring.gpg
  [ "$3" = - ] || suites="$2 $3" prefer=(-t "$3")
  { have apt-get && have dpkg-deb && [ -r "$key" ]; } || die "$package of $suites for $arch is needed, and only Debian can unpack it."
  [ -n "$(debian_mirror)" ] || ! can_install || apt-get update -qq >&2 || true
  uri=$(debian_mirror)
  [ -n "$uri" ] || die "$package of $suites for $arch is needed, and apt knows no mirror of Debian: try 'apt-get update'."
  work=$(work_folder)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/tree"
  : >"$work/status"
  for suite in $suites; do echo "deb [signed-by=$key] $uri $suite main"; done >"$work/sources.list"
  apt=(apt-get -qq -y -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User=root
    -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work"
    -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferencesparts=/dev/null -o Acquire::Languages=none -o Acquire::Retries=3)
  # apt takes old lists for an update that failed, unless it is told that any error is one.
  for try in 1 2 3; do
    [ "$try" = 1 ] || sleep 5
    "${apt[@]}" -o APT::Update::Error-Mode=any update &&
      "${apt[@]}" "${prefer[@]}" --no-install-recommends --download-only install "$package" >/dev/null && break
    [ "$try" != 3 ] || die "$package of $suites for $arch could not be fetched: what apt says is above."
  done >&2
  for deb in "$work"/archives/*.deb; do dpkg-deb -x "$deb" "$work/tree"; done
  rm -rf "$tree"
  mkdir -p "$(dirname "$tree")"
  # The cache may be on another file system than the tree.
  mv -T "$work/tree" "$tree"
)

# bootstrap SUITE PACKAGES TREE  makes a Debian tree with these packages, which are separated by commas. The .deb files
# are kept for the next time. They come from the mirror that this machine's apt uses, if it is Debian's.
bootstrap() {
  local suite=$1 packages=$2 tree=$3 debs=$CACHE/debs-$1 mirror
  have debootstrap || apt_install debootstrap
  mirror=$(debian_mirror)
  mkdir -p "$debs"
  debootstrap --variant=minbase --include="$packages" --cache-dir="$debs" "$suite" "$tree" \
    ${mirror:+"$mirror"} >"$tree.log" 2>&1 || {
    tail -n 20 "$tree.log" >&2
    die "debootstrap of $suite failed: its last lines are above."
  }
  rm -f "$tree"/var/cache/apt/archives/*.deb
}

# step NAME CMD ...  runs a part of the script that sources this file. If CMD fails, the script names the part and fails.
# took has how long each part took.
took=()
step() {
  local name=$1 began=$SECONDS
  shift
  echo "== $name"
  "$@" || die "FAILED in $name"
  echo "== $name: $((SECONDS - began)) s"
  took+=("$name $((SECONDS - began)) s,")
}

# lint_module FOLDER  checks the Go module in the folder. The script that tests the module does so, because vet compiles
# what the module imports.
lint_module() {
  go -C "$1" vet ./...
  go -C "$1" mod tidy -diff
}

# The rows of build/servers.txt, without comments.
server_rows() { grep -v '^#' build/servers.txt; }

# server_version PROGRAM  prints the version of a Redis or Valkey program, as in 8.1.2.
server_version() { "$1" --version | sed -n 's/^[A-Z][a-z]* server v=\([0-9.]*\).*/\1/p'; }

# is_version FOUND BEGINNING  says whether 8.1.2 begins with 8.1. 8.10.2 does not.
is_version() { [[ $1. == "$2".* ]]; }
