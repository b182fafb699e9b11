#!/bin/bash
# VERSION=v1.2.3 build/gateway-module.sh  lets the gateway's go.mod require this release of the root module, without a replace,
# so that go install can build it. The root module does not contain the gateway, so its hash is known before the tag.
. "$(dirname "$0")/lib.sh"
need_go
root=$(go list -m)
go -C gateway mod edit -dropreplace="$root" -require="$root@${VERSION:?}"
go -C gateway mod tidy
