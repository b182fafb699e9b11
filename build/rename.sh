#!/bin/bash
# MODULE=example.com/x build/rename.sh  gives the Go modules another path: example.com/x, example.com/x/bench and so on.
# The product keeps its name: commands, INFO fields, file names and images stay.
. "$(dirname "$0")/lib.sh"
need_go
old=$(go list -m) new=${MODULE:-}
# The go command takes a first part without a dot for the standard library. go.mod of bench asks for version v0.0.0 of the root
# module, so a path that ends in /v2 is refused, too.
[[ $new =~ ^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._~-]+)*$ && ! $new =~ /v[0-9]+$ && $new != "$old" ]] ||
  die "MODULE must be a new path that begins with a domain and is not $old, as in make rename MODULE=example.com/x"

files() { find . \( -path ./.git -o -path ./build/out \) -prune -o -type f -name "$1" -print; }
# The product's name in quotation marks must stay. So a path is renamed only if a folder with Go code follows it.
folders=$(files '*.go' | cut -d / -f 2 | sort -u | paste -s -d '|')
pattern=${old//./\\.}
files go.mod | xargs sed -E -i "s#(^|[[:space:]])$pattern(/|[[:space:]]|\$)#\1$new\2#"
{ files '*.go' && files '*.md'; } | xargs sed -E -i "s#([\"\`]|go get )$pattern/($folders)([\"\`/\\]|\$)#\1$new/\2\3#g"
# Requirements and imports are sorted by path.
files go.mod | xargs -n 1 go mod edit -fmt
files '*.go' | xargs gofmt -w
echo "renamed $old to $new: see git diff"
