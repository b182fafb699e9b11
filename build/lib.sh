# shellcheck shell=bash
# What more than one script needs. The scripts beside this file source it, and they all run in the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/gothrottle
IMAGE=${IMAGE:-gothrottle:dev}
INIT=${INIT:-gothrottle-init:dev}
GATEWAY=${GATEWAY:-gothrottle-gateway:dev}
# The base images, as the Dockerfile names them, but without digests: stand-ins have none.
base_image() { sed -n "s/^FROM \([^@ ]*\).* AS $1\$/\1/p" Dockerfile; }
# The distribution's client fits the distribution's engine. Another client on PATH may not fit.
DOCKER=${DOCKER:-$([ -x /usr/bin/docker ] && echo /usr/bin/docker || echo docker)}

die() {
  echo "gothrottle: $*" >&2
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

have_image() { "$DOCKER" image inspect "$1" >/dev/null 2>&1; }

can_install() { [ "$(id -u)" = 0 ] && have apt-get; }

# retry COMMAND ...  tries a download three times.
retry() {
  local pause
  for pause in 5 15 0; do
    "$@" && return
    sleep "$pause"
  done
  return 1
}

# The service of a package must not start: it would take the port, and it might listen on other addresses. Two scripts install
# one after the other: each updates the lists.
apt_install() (
  mkdir -p "$CACHE"
  exec 8>"$CACHE/apt.lock"
  flock 8
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  echo "gothrottle: installing $*" >&2
  export DEBIAN_FRONTEND=noninteractive
  # If a third-party package source does not answer, the others may still have what is needed.
  apt-get update -qq -o Acquire::Retries=3 >/dev/null 2>&1 8>&- || true
  apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@" >/dev/null </dev/null 8>&-
)

# need PROGRAMS PACKAGE ...  installs the packages if a program is missing and that is allowed.
need() {
  local program missing=
  for program in $1; do have "$program" || missing=$program; done
  [ -n "$missing" ] || return 0
  ! can_install || apt_install "${@:2}" || true
  for program in $1; do have "$program" || die "$program is needed: please install ${*:2}."; done
}

# need_packages PACKAGE ...  installs packages of Debian, whose release pins their versions.
need_packages() {
  local package missing=()
  for package; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  can_install || die "these packages of Debian are needed: please install ${missing[*]}."
  apt_install "${missing[@]}"
}

need_go() {
  local want
  want=$(awk '$1 == "go" { print $2 }' go.mod)
  have go || die "Go $want or newer is needed and there is no 'go' on PATH: please install it."
  # go switches to the version of go.mod if it can. Outside the repository it reports its own version.
  go list -m >/dev/null 2>&1 || die "Go $want or newer is needed and this is $(cd / && go version): please install a newer one."
}

# go_tool PACKAGE@VERSION  installs a program by Go, once, and prints its path.
go_tool() {
  local program=${1%@*}
  program=$CACHE/tools/${1##*@}/${program##*/}
  [ -x "$program" ] || GOBIN=${program%/*} GOARCH='' GOFLAGS='' retry go install "$1" >&2
  echo "$program"
}

# upstream_gateway  installs the service that the gateway is compared with, and prints its path. The version is fixed, because
# the project has no releases.
upstream_gateway() { go_tool github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36; }

# find_server  prints the path of a redis-server or valkey-server, or of the one that GOTHROTTLE_SERVER names. If there is
# none, it installs the distribution's package where that is allowed.
find_server() {
  if [ -n "${GOTHROTTLE_SERVER:-}" ]; then
    command -v "$GOTHROTTLE_SERVER" || die "GOTHROTTLE_SERVER: there is no program '$GOTHROTTLE_SERVER'."
    return
  fi
  command -v redis-server || command -v valkey-server && return
  can_install && { apt_install redis-server || apt_install valkey-server; } || return
  # apt_install kept the package's service from starting now. This keeps the service from starting at the next boot.
  [ ! -d /run/systemd/system ] || systemctl disable --now --quiet redis-server valkey-server >&2 || true
  command -v redis-server || command -v valkey-server
}

# local_server  prints the path of a server to test against: tests run in other folders.
local_server() {
  realpath -s "$(find_server)" 2>/dev/null || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
}

# need_server  sets the two variables by which tests find a server and the module. If GOTHROTTLE_MODULE is set, the
# caller has already built the module.
need_server() {
  [ -n "${GOTHROTTLE_MODULE:-}" ] || build/module.sh
  GOTHROTTLE_SERVER=$(local_server)
  GOTHROTTLE_MODULE=$(realpath -s "${GOTHROTTLE_MODULE:-build/out/gothrottle.so}")
  export GOTHROTTLE_SERVER GOTHROTTLE_MODULE
  "$GOTHROTTLE_SERVER" --version
}

# Debian can have gcc without the C library's headers, so a file is compiled to see whether the compiler works.
cc_works() { echo '#include <stdlib.h>' | ${CC:-$(go env CC)} -E -x c - >/dev/null 2>&1; }

need_cc() {
  need_go
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
  need "$CC" "gcc-$machine" "libc6-dev-$GOARCH-cross"
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

# A new folder for Debian trees. It is in the cache and not in /tmp: /tmp may be mounted nodev, and debootstrap makes
# devices.
work_folder() { mkdir -p "$CACHE" && mktemp -d -p "$CACHE"; }

# The mirror of Debian that this machine's apt uses; nothing if apt uses none.
debian_mirror() { apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1; }

# own_apt FOLDER ARCHITECTURE TYPE SUITE ...  updates package lists in the folder, and sets apt to an apt-get that uses them
# only: the packages of this machine stay as they are. The type is deb or deb-src.
own_apt() {
  local work=$1 arch=$2 type=$3 suites=("${@:4}") suite uri key=/usr/share/keyrings/debian-archive-keyring.gpg
  { have apt-get && have dpkg-deb && [ -r "$key" ]; } || die "packages of ${suites[*]} for $arch are needed, and only Debian can unpack them."
  [ -n "$(debian_mirror)" ] || ! can_install || apt-get update -qq >&2 || true
  uri=$(debian_mirror)
  [ -n "$uri" ] || die "packages of ${suites[*]} for $arch are needed, and apt knows no mirror of Debian: try 'apt-get update'."
  mkdir -p "$work/lists/partial" "$work/archives/partial"
  : >"$work/status"
  for suite in "${suites[@]}"; do echo "$type [signed-by=$key] $uri $suite main"; done >"$work/sources.list"
  apt=(apt-get -qq -y -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User=root
    -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work"
    -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferencesparts=/dev/null -o Acquire::Languages=none -o Acquire::Retries=3)
  # apt takes old lists for an update that failed, unless it is told that any error is one.
  retry "${apt[@]}" -o APT::Update::Error-Mode=any update >&2 || die "the package lists of ${suites[*]} could not be fetched: what apt says is above."
}

# unpack_package ARCHITECTURE SUITE MORE PACKAGE TREE  unpacks a package and what it depends on into TREE. MORE is "-" or
# a suite whose packages are preferred.
unpack_package() (
  arch=$1 suites=("$2") package=$4 tree=$5
  [ "$3" = - ] || suites=("$3" "$2")
  work=$(work_folder)
  trap 'rm -rf "$work"' EXIT
  own_apt "$work" "$arch" deb "${suites[@]}"
  retry "${apt[@]}" -t "${suites[0]}" --no-install-recommends --download-only install "$package" >&2 ||
    die "$package of ${suites[*]} for $arch could not be fetched: what apt says is above."
  mkdir "$work/tree"
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
  need debootstrap debootstrap
  mirror=$(debian_mirror)
  mkdir -p "$debs"
  retry debootstrap --variant=minbase --include="$packages" --cache-dir="$debs" "$suite" "$tree" \
    ${mirror:+"$mirror"} >"$tree.log" 2>&1 || {
    tail -n 20 "$tree.log" >&2
    die "debootstrap of $suite failed: its last lines are above."
  }
  rm -f "$tree"/var/cache/apt/archives/*.deb
}

# step NAME CMD ...  runs a part of the script that sources this file, and says how long it took. It fails as CMD does.
# took has how long each part took.
took=()
step() {
  local name=$1 began=$SECONDS
  shift
  echo "== $name"
  "$@" || { echo "gothrottle: FAILED in $name" >&2 && return 1; }
  echo "== $name: $((SECONDS - began)) s"
  took+=("$name $((SECONDS - began)) s,")
}

# run_parts LIST ...  runs the scripts test-PART.sh, or those that ONLY names, and says which failed. Each list is PARTS that run
# one after another, beside those of the other lists, because a part waits for half of its time. What a part says comes at its
# end.
run_parts() {
  local list part chosen fallen
  read -ra chosen <<<"${ONLY:-$*}"
  unset ONLY # some parts have one of their own
  for part in "${chosen[@]}"; do
    [[ " $* " == *" $part "* ]] || die "ONLY: '$part' is not one of the parts: $*."
  done
  build/module.sh
  export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so
  rm -rf build/out/parts
  mkdir -p build/out/parts
  trap 'kill 0' INT # which a script keeps from what runs in the background
  for list; do
    for part in $list; do [[ " ${chosen[*]} " != *" $part "* ]] || run_part "$part"; done &
  done
  wait
  fallen=$(cd build/out/parts && echo *.failed)
  [ "$fallen" = '*.failed' ] || die "FAILED in ${fallen//.failed/}"
  echo "passed: ${chosen[*]} in $SECONDS s"
}

run_part() {
  local began=$SECONDS log=build/out/parts/$1 how=passed
  "build/test-$1.sh" >"$log" 2>&1 || { how=FAILED && mv "$log" "$log.failed" && log=$log.failed; }
  { flock 9 && echo "== $1" && cat "$log" && echo "== $1: $how after $((SECONDS - began)) s"; } 9>build/out/parts.lock
}

# node_modules  installs what package-lock.json of adapters/node/test names, Node itself too, in build/out/node: not in the tree
# of sources.
node_modules() {
  local to=build/out/node lock=adapters/node/test/package-lock.json
  mkdir -p $to
  {
    flock 7
    cp ${lock%/*}/package*.json ${lock%/*}/.npmrc $to/
    if ! cmp -s $lock $to/installed; then
      retry npm --prefix $to --no-audit --no-fund --loglevel=error ci
      cp $lock $to/installed
    fi
  } 7>$to.lock
}

# python_venv  installs the packed Python package in build/out/venv, which also has Debian's packages.
python_venv() {
  local venv=build/out/venv
  need_packages python3-redis python3-setuptools python3-venv python3-wheel
  rm -rf $venv
  /usr/bin/python3 -m venv --system-site-packages $venv
  $venv/bin/pip install --quiet --no-index --no-build-isolation --disable-pip-version-check "$(build/package-python.sh build/out)"
}

# lint_module FOLDER  checks the Go module in the folder, and in CI those that ship with staticcheck. The script that tests
# the module does so, because vet compiles what the module imports.
lint_module() {
  need_go
  retry go -C "$1" mod download
  go -C "$1" vet ./...
  # Errors of a protocol begin with capitals, and a helper of a test may return one first.
  [[ ${CI:-} != true || $1 != @(.|gateway) ]] || go -C "$1" run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -checks inherit,-ST1005,-ST1008 ./...
  go -C "$1" mod tidy -diff
}

# libraries  prints the licences of the gateway's libraries, which a copy of the program must come with.
libraries() {
  local path version dir
  go -C gateway list -deps -f '{{with .Module}}{{if not .Replace}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}{{end}}' . | sort -u |
    while read -r path version dir; do
      printf '%s %s\n\n' "$path" "$version"
      cat "$dir"/LICENSE* || die "$path has no licence."
      find "$dir" -maxdepth 1 -name 'NOTICE*' -exec cat {} +
      printf '\n\n'
    done
}

# The rows of build/servers.txt, without comments.
server_rows() { grep -v '^#' build/servers.txt; }

# server_path NAME  prints the path of a server: of a row of build/servers.txt, or of a program.
server_path() {
  if server_rows | grep -q "^$1 "; then build/fetch-server.sh "$1" | tail -n 1; else realpath -s "$(command -v "$1")" 2>/dev/null; fi
}

# server_version PROGRAM  prints the version of a Redis or Valkey program, as in 8.1.2.
server_version() { "$1" --version | sed -n 's/^[A-Z][a-z]* server v=\([0-9.]*\).*/\1/p'; }

# is_version FOUND BEGINNING  says whether 8.1.2 begins with 8.1. 8.10.2 does not.
is_version() { [[ $1. == "$2".* ]]; }
