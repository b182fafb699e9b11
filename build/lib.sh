# Sourced by the scripts beside it: what more than one of them needs. They all run in the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

IMAGE=${IMAGE:-gothrottle:dev}
# The Dockerfile's own defaults again: the tests need the server image by name, the stand-ins both.
GO_IMAGE=${GO_IMAGE:-golang:1.26-bookworm}
SERVER_IMAGE=${SERVER_IMAGE:-redis:8-trixie}
# The distribution's client fits the distribution's engine; another one first on PATH may not.
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

# A package's own service must not come up: it would take the port and listen beyond our control.
apt_install() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  echo "gothrottle: installing $*" >&2
  export DEBIAN_FRONTEND=noninteractive
  # A third-party source that does not answer is no reason to give up.
  apt-get update -qq >/dev/null 2>&1 || true
  apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=120 "$@" >/dev/null </dev/null
)

need_go() {
  local want found
  want=$(awk '$1 == "go" { print $2 }' go.mod)
  have go || die "Go $want or newer is needed and there is no 'go' on PATH: please install it."
  # In here go may switch to the toolchain that go.mod names; where it cannot, it says its own version outside.
  found=$(go version 2>/dev/null || (cd / && go version))
  found=${found#go version }
  found=${found%% *}
  case $found in
  go[0-9]*) [ "$(printf '%s\n' "$want" "${found#go}" | sort -V | head -n 1)" = "$want" ] ||
    die "Go $want or newer is needed and this is ${found#go}: please install a newer one." ;;
  esac
}

# Debian can have gcc without the C library's headers, so a test translation tells more than the name.
cc_works() { echo '#include <stdlib.h>' | ${CC:-$(go env CC)} -E -x c - >/dev/null 2>&1; }

need_cc() {
  cc_works && return
  if [ -z "${CC:-}" ] && can_install; then
    apt_install gcc libc6-dev || true
  fi
  cc_works || die "a C compiler with the C library's headers is needed: please install gcc and libc6-dev."
}
