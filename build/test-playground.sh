#!/bin/bash
# The playground's tests, in a headless Chromium that uses the page as a person would. Arguments are passed on to the tests:
# DRAW=1 and -run Pictures draw the pictures of README.md and docs/choosing.md again.
. "$(dirname "$0")/lib.sh"

# A Node that is not Debian's may bring its npm along, and conflicts with the package npm.
need chromium chromium fonts-dejavu-core
need npm nodejs npm
REPOSITORY_URL=https://example.org/gothrottle PAGE_URL=https://example.org build/page.sh
size=$(gzip -9c build/out/playground/* | wc -c)
[ "$size" -lt 1100000 ] || die "the page has $size bytes when compressed: docs/playground.md says less than 1.1 MB."
axe=build/out/axe
mkdir -p "$axe"
cp playground/axe/package.json playground/axe/package-lock.json playground/axe/.npmrc "$axe/"
retry npm --prefix "$axe" --ignore-scripts --no-audit --no-fund --loglevel=error ci
export GOTHROTTLE_CHROMIUM=chromium GOTHROTTLE_AXE=$PWD/$axe/node_modules/axe-core/axe.min.js
lint_module playground
go -C playground test -count=1 -timeout 30m ./... "$@"
