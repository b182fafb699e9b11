#!/bin/bash
# package-node.sh [FOLDER]  packs the Node package with the script into a file for npm install, by default in
# build/out/packages, and prints its path. make package does this, too.
. "$(dirname "$0")/lib.sh"
out=${1:-$PWD/build/out/packages}
version=$(build/version.sh)
time=$(source_date)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/package"
cp adapters/node/*.js adapters/node/*.d.ts adapters/node/*.md LICENSE "$work/package"
sed "s/^  \"version\": .*/  \"version\": \"$version\",/" adapters/node/package.json >"$work/package/package.json"
# As a module, which bundlers follow. The script has neither backquotes nor ${.
{ printf 'module.exports = String.raw`' && cat script/gothrottle.lua && printf '`;\n'; } >"$work/package/script.js"
(cd "$work" && find package -type f | sort | tar --files-from=- --format=ustar --owner=0 --group=0 --numeric-owner --mode=a=r,u+w \
  --mtime="@$time" -c) | gzip -9n >"$out/gothrottle-$version.tgz"
chmod 0644 "$out/gothrottle-$version.tgz"
echo "$out/gothrottle-$version.tgz"
