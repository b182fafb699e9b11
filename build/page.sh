#!/bin/bash
# Builds the playground, a folder of static files for any web server: build/out/playground. REPOSITORY_URL is where its links
# lead to, and PAGE_URL where it will be; on GitHub both are known. Without them the links are left out.
. "$(dirname "$0")/lib.sh"
need_go

out=build/out/playground
repository=${REPOSITORY_URL:-${GITHUB_REPOSITORY:+https://github.com/$GITHUB_REPOSITORY}}
page=${PAGE_URL:-${GITHUB_REPOSITORY:+https://${GITHUB_REPOSITORY%%/*}.github.io/${GITHUB_REPOSITORY#*/}}}
rm -rf "$out"
mkdir -p "$out"
GOOS=js GOARCH=wasm go -C playground build -buildvcs=false -trimpath -ldflags='-s -w' -o "../$out/gothrottle.wasm" .
cp playground/page/* "$(go env GOROOT)/lib/wasm/wasm_exec.js" "$out/"
[ -n "$repository" ] || sed -i '/REPOSITORY/d' "$out/index.html"
sed -i "s|REPOSITORY|$repository|g; s|PAGE|${page:+$page/}|g" "$out/index.html"
# Without a waterfall of imports the first picture is there sooner.
for file in "$out"/*.js; do sed -i "s|^<script|<link rel=\"modulepreload\" href=\"${file##*/}\">\n&|" "$out/index.html"; done
