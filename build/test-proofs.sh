#!/bin/bash
# The proofs in proofs/: Coq checks them and uses no axioms, its step of GCRA decides random calls as package funnel does, and
# Spin visits all that can happen to holds. docs/proofs.md explains them.
. "$(dirname "$0")/lib.sh"
need_cc
need 'coqc spin' coq spin

out=$PWD/build/out/proofs
rm -rf "$out"
mkdir -p "$out"

# Each theorem is asked which axioms it uses.
for file in proofs/*.v; do
  copy=$out/${file##*/}
  mapfile -t theorems < <(sed -n 's/^Theorem \([a-z_]*\).*/\1/p' "$file")
  { cat "$file" && printf 'Print Assumptions %s.\n' "${theorems[@]}"; } >"$copy"
  (cd "$out" && coqc -R . Proofs "$copy") >"$copy.log" || die "Coq doesn't accept $file."
  [ "$(grep -cx 'Closed under the global context' "$copy.log")" = ${#theorems[@]} ] || die "$file uses axioms: $(cat "$copy.log")"
  echo "$file: ${theorems[*]}"
done

GOTHROTTLE_PROOFS=$out go test -count=1 -run proof ./funnel

cp proofs/holds.pml "$out"
cd "$out"
spin -a holds.pml
"${CC:-$(go env CC)}" -w -O1 -DSAFETY -DNOFAIR -o holds pan.c

# search RESULT NAME=VALUE ...  visits every state, and dies if the result is another. The variables are those of holds.pml.
search() {
  local result
  env "${@:2}" ./holds -E -n -m100000 >holds.log
  result=$(grep -oE '^(error|Warning)|assertion violated|errors: 0$' holds.log | head -n 1)
  echo "holds.pml ${*:2}: $result, $(grep -oE '[0-9]+ states' holds.log | head -n 1)"
  [ "$result" = "$1" ] || die "not $1: $(cat holds.log)"
}
holds() { search 'errors: 0' "$@"; }
fails() { search 'assertion violated' "$@"; }

holds ALONE=0
holds ALONE=1 FAILOVER=1
holds ALONE=1 FAILOVER=1 JUMP=1 MARGIN=1
# Without one of the rules, or one of the exceptions, there are counterexamples: the model can fail.
for rule in 1 2 3 4 5 6 9; do fails ALONE=1 FAILOVER=1 RULE=$rule; done
for rule in 7 8; do fails RULE=$rule; done
for exception in 1 2 3; do fails ALONE=1 FAILOVER=1 STRICT=$exception; done
fails ALONE=1 JUMP=1
fails ALONE=1 RESEND=1
