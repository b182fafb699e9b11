#!/bin/bash
# Looks for known vulnerabilities in what ships: the module, the Go client and the gateway. It fails if the code can call
# one. The list comes from the network; DB=file:///path takes another.
. "$(dirname "$0")/lib.sh"
need_go
for module in . gateway; do
  go -C "$module" run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ${DB:+-db "$DB"} ./...
done
