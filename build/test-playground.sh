#!/bin/bash
# The playground's tests: with a local server, and with a headless Chromium that uses the page as a person would.
# Arguments are passed on to the tests: -run Pictures -pictures pictures draws the pictures of docs/playground.md.
. "$(dirname "$0")/lib.sh"
need_go

# A Node that is not Debian's may bring its npm along, and conflicts with the package npm.
missing=()
have chromium || missing+=(chromium fonts-dejavu-core)
have npm || missing+=(nodejs npm)
[ ${#missing[@]} = 0 ] || ! can_install || apt_install "${missing[@]}"
for program in chromium npm; do
  have "$program" || die "$program is needed: please install the packages chromium and npm."
done
build/module.sh
server=$(build/server.sh) || die 'no server to test against: please install redis-server (7.0 or newer) or valkey-server.'
axe=build/out/axe
mkdir -p "$axe"
cp playground/axe/package.json playground/axe/package-lock.json playground/axe/.npmrc "$axe/"
(cd "$axe" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so GOTHROTTLE_SERVER=$server
export GOTHROTTLE_CHROMIUM=chromium GOTHROTTLE_AXE=$PWD/$axe/node_modules/axe-core/axe.min.js
lint_module playground
go -C playground test -count=1 -timeout 30m ./... "$@"
