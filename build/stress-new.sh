#!/bin/bash
# Runs the tests that a change adds or changes 50 times while all processors are busy: what is flaky fails here, not on
# somebody else's machine. BASE is the commit before the change (where it left origin/main), COUNT how often.
. "$(dirname "$0")/lib.sh"
BASE=${BASE:-$(git merge-base origin/main HEAD)}
need_server

# changed  prints the folder and the name of each test with a changed line. The index is a copy, which knows new files.
changed() (
  index=$(mktemp)
  trap 'rm -f "$index"' EXIT
  cp "$(git rev-parse --git-path index)" "$index"
  export GIT_INDEX_FILE=$index
  git add --intent-to-add .
  git diff -U0 "$BASE" -- '*_test.go' | awk '
    sub(/^\+\+\+ b\//, "./") { sub(/[^\/]*$/, ""); folder = $0 }
    /^(@@ .* @@ |\+)func Test[^(]*\(t / { sub(/^(@@ .* @@ |\+)func /, ""); sub(/\(.*/, ""); print folder, $0 }' | sort -u
)

busy=()
trap 'kill "${busy[@]}" 2>/dev/null' EXIT
for ((i = 0; i < $(nproc); i++)); do
  timeout 2h bash -c 'while :; do :; done' &
  busy+=($!)
done
failed=
while read -r folder tests; do
  echo "== $folder: ${tests//|/, }"
  go -C "$folder" test -short -count="${COUNT:-50}" -timeout 1h -run "^($tests)\$" . </dev/null || failed+=" $folder"
done < <(changed | awk '{ all[$1] = all[$1] (all[$1] ? "|" : "") $2 } END { for (folder in all) print folder, all[folder] }')
[ -z "$failed" ] || die "FAILED in$failed"
