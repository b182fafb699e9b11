#!/bin/bash
# Compares the API of the Go client with that of the last release, by apidiff. A change that breaks callers ends the script,
# unless the version in module/main.go is more than a patch later. BASE names another commit to compare with.
. "$(dirname "$0")/lib.sh"
git=(git -c safe.directory='*')
base=${BASE:-$("${git[@]}" tag --list 'v[0-9]*' --sort=-version:refname 2>/dev/null | head -n 1)}
[ -n "$base" ] || { echo 'api: there is no release yet' && exit; }
need_go
old=$(mktemp -d) broken=
trap 'rm -rf "$old"' EXIT
"${git[@]}" archive "$base" | tar -x -C "$old"
apidiff=$(go_tool golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e)
for package in throttle throttle/redisrate throttle/throttlehttp throttle/throttletest; do
  [ -d "$old/$package" ] || continue
  (cd "$old" && "$apidiff" -w export "$(go list "./$package")")
  broken+=$("$apidiff" -incompatible "$old/export" "$(go list "./$package")")
done
[ -n "$broken" ] || { echo "api: nothing breaks callers since $base" && exit; }
broken="since $base the API changed for callers: $broken" version=$(build/version.sh)
is_version "${base#v}" "${version%.*}" && die "$broken"
echo "api: $broken"
