#!/bin/bash
# The tests that need no server, with the race checker and those for C. The decisions in funnel are pure functions, which
# cannot race.
. "$(dirname "$0")/lib.sh"
need_cc

# The decisions, the commands and the client build without cgo.
CGO_ENABLED=0 go vet ./funnel/... ./commands/... ./throttle/...
GOARCH=386 CGO_ENABLED=0 go build ./throttle/... # an int has 32 bits
export CGO_ENABLED=1
go test -count=1 -race -short ./commands/... ./cgo/... ./throttle/...
# The address checker also reports leaks at the end. The undefined-behaviour checker looks at the C code only.
CGO_CFLAGS='-g -O2 -fsanitize=undefined -fno-sanitize-recover=all' CGO_LDFLAGS='-fsanitize=undefined' \
  go test -count=1 -asan ./cgo/...
