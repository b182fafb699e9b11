#!/bin/bash
# The proofs in proofs/: Coq checks them and uses no axioms, and its step of GCRA decides random calls as package funnel does.
# docs/proofs.md explains them.
. "$(dirname "$0")/lib.sh"
need_go
need coqc coq

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
