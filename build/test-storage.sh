#!/bin/bash
# Takes servers' disks away: full, read-only and slow ones, torn files, power loss. Mounts need root.
. "$(dirname "$0")/lib.sh"
need_server
go test -count=1 -v -timeout 10m ./tests/storage
