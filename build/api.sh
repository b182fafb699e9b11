#!/bin/bash
# Compares the API of the Go client with that of the last release, by apidiff. A change that breaks callers ends the script,
# unless the version in module/main.go is more than a patch later. BASE names another commit to compare with.
. "$(dirname "$0")/lib.sh"
git=(git -c safe.directory='*')
base=${BASE:-$("${git[@]}" tag --list 'v[0-9]*' --sort=-version:refname 2>/dev/null | head -n 1)}
[ -n "$base" ] || {
  echo 'api: there is no release yet'
  exit
}
need_go
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/old"
"${git[@]}" archive "$base" | tar -x -C "$work/old"
apidiff=$(go_tool golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e)
broken=
for package in throttle throttle/redisrate throttle/throttlehttp throttle/throttletest; do
  [ -d "$work/old/$package" ] || continue
  (cd "$work/old" && "$apidiff" -w "$work/old.export" "$(go list "./$package")")
  broken+=$("$apidiff" -incompatible "$work/old.export" "$(go list "./$package")")
done
[ -n "$broken" ] || {
  echo "api: nothing breaks callers since $base"
  exit
}
version=$(sed -n 's/^const version = "\(.*\)"/\1/p' module/main.go)
broken="since $base the API changed for callers: $broken"
is_version "${base#v}" "${version%.*}" && die "$broken"
echo "api: $broken"
