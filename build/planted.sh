#!/bin/bash
# Puts the defects of tests/planted/defects.txt into copies of the repository, one at a time, and shows which lane of tests
# finds each. It begins where an earlier run ended: build/out/planted/results.txt says what was found. Remove that file to
# plant all defects again. ONLY is a pattern of names.
. "$(dirname "$0")/lib.sh"
need_cc
GOTHROTTLE_SERVER=$(local_server)
export GOTHROTTLE_SERVER
unset GOTHROTTLE_MODULE # each copy has its own
go build -o build/out/planted/program ./tests/planted
exec build/out/planted/program "${ONLY:-}"
