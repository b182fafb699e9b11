#!/bin/bash
. "$(dirname "$0")/lib.sh"
need_go
need_cc

unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || die "gofmt would change: $unformatted"
go vet ./...
go mod tidy -diff
for module in bench deploy examples/go playground; do
  go -C "$module" vet ./...
  go -C "$module" mod tidy -diff
done
for script in build/*.sh .ci/run; do bash -n "$script"; done
# A file that includes cgo's generated header compiles only inside go build; go vet above has compiled those files. The
# examples in C need libraries: make test-languages compiles them.
{ grep -rL --include='*.c' --exclude-dir=examples '_cgo_export\.h' . || true; } | xargs -r ${CC:-$(go env CC)} -fsyntax-only -Wall -Wextra -Werror
echo 'lint: nothing to complain about'
