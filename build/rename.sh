#!/bin/bash
# MODULE=example.com/x build/rename.sh  gives the Go modules another path: example.com/x, example.com/x/bench and so on.
# The product keeps its name: commands, INFO fields, file names and images stay.
. "$(dirname "$0")/lib.sh"
need_go
new=${MODULE:-}
[ -n "$new" ] || die 'MODULE is missing: make rename MODULE=example.com/x'
old=$(awk '$1 == "module" { print $2 }' go.mod)
[ "$new" != "$old" ] || die "the module's path is $old already."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 'module x' >"$scratch/go.mod"
# go.mod of bench asks for version v0.0.0 of the root module, so a path that ends in /v2 is refused too.
{ go mod edit -module="$new" -require="$new@v0.0.0" "$scratch/go.mod" && go mod edit -json "$scratch/go.mod"; } >/dev/null ||
  die "MODULE=$new is no path of a Go module at version 0."
# The go command takes a first part without a dot for the standard library.
case ${new%%/*} in
*.*) ;;
*) die "MODULE=$new must begin with a domain, as example.com/x does." ;;
esac

files() { find . \( -path ./.git -o -path ./build/out \) -prune -o -type f -name "$1" -print; }
# The product's name in quotation marks must stay. So a path is renamed only if a folder with Go code follows it.
folders=$(files '*.go' | cut -d / -f 2 | sort -u | paste -s -d '|')
pattern=${old//./\\.}
pattern=${pattern//+/\\+}

files go.mod | while read -r file; do
  sed -E -i "s#(^|[[:space:]])$pattern(/|[[:space:]]|\$)#\1$new\2#" "$file"
  go mod edit -fmt "$file"
done
{ files '*.go' && files '*.md'; } | { xargs grep -lE "([\"\`]|go get )$pattern/($folders)([\"\`/\\]|\$)" || true; } >"$scratch/files"
xargs -r sed -E -i "s#([\"\`]|go get )$pattern/($folders)([\"\`/\\]|\$)#\1$new/\2\3#g" <"$scratch/files"
# gofmt sorts imports by path.
{ grep '\.go$' "$scratch/files" || true; } | xargs -r gofmt -w
echo "renamed $old to $new: see git diff"
