#!/bin/bash
# What takes hours, or depends on few changes: every night, and before a change that touches it. ONLY="arm64 bench" runs these
# parts. MINUTES is for how long the soak runs.
. "$(dirname "$0")/lib.sh"
export NIGHTLY=1 CHECK=all
run_parts 'servers arm64 packages bench worlds upgrades edge soak'
