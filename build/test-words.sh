#!/bin/bash
# The words of pages and comments: build/vale has those that we don't use.
. "$(dirname "$0")/lib.sh"
need_go
# Newer versions do not compile with the Go of go.mod.
vale=$(go_tool github.com/vale-cli/vale/v3/cmd/vale@v3.22.0)
git ls-files '*.md' '*.go' '*.[ch]' | xargs "$vale" --config build/vale.ini --output line
