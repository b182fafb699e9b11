#!/bin/bash
# All tests, part by part. ONLY="chaos sim" runs these parts. The workflow ci.yml runs the parts in several jobs.
. "$(dirname "$0")/lib.sh"

parts=(lint words unit checkers servers docker deploy chaos arm64 examples sim languages playground gateway monitoring
  failover packages bench)
read -ra only <<<"${ONLY:-${parts[*]}}"
unset ONLY # some parts have one of their own
for part in "${only[@]}"; do
  [[ " ${parts[*]} " == *" $part "* ]] || die "ONLY: '$part' is not one of the parts: ${parts[*]}."
done
build/module.sh
export GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so
failed=()
for part in "${only[@]}"; do step "$part" "build/test-$part.sh" || failed+=("$part"); done
[ ${#failed[@]} = 0 ] || die "FAILED in ${failed[*]}"
echo "make test-all: passed: ${took[*]} in all $SECONDS s"
