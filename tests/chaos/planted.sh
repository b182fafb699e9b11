#!/bin/bash
# Plants defects in copies of the module, one after the other. make test-chaos must find each of them. CHAOS_SECONDS
# bounds the time for one.
. "$(dirname "$0")/../../build/lib.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# planted NAME FILE SED  changes a file by sed and runs make test-chaos.
planted() {
  local copy=$folder/$1 start=$SECONDS
  mkdir "$copy"
  git archive HEAD | tar -x -C "$copy"
  sed -i "$3" "$copy/$2"
  ! cmp -s "$2" "$copy/$2" || die "$1: $2 is as it was."
  ! make -C "$copy" --no-print-directory test-chaos >"$copy.log" 2>&1 || die "$1 was not found."
  grep -q 'steps are left' "$copy.log" || die "$1: $(tail -n 5 "$copy.log")"
  echo "$1: found after $((SECONDS - start)) s, with the build and with making the schedule shorter"
  grep 'steps are left' "$copy.log" | cut -c1-200
}

planted lost-effect cgo/hash.c 's|api.Replicate(ctx, "HDEL".*||'
planted double-effect cgo/zset.c 's|^ *api.Replicate(ctx, "ZADD".*|&&|'
planted swapped-order cgo/zset.c \
  '/^void shim_apply_zset/,/^}/ { /add_member/d; s|^    if (dropped != stack) api.Free.*|    if (key->add_prefix) add_member(ctx, call, key);\n&| }'
planted missed-expiry cgo/key.c 's|if (at >= key->expire_from|if (at > 0|'
planted stale-field commands/gcra.go 's|cell.Unset = cell.Found &^ wanted|cell.Unset = 0|'
