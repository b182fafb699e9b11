#!/bin/bash
# Compares the API of the Go client with the frozen one, build/api.tar.gz, by apidiff. A change that breaks callers ends the
# script. RENEW=1 build/api.sh freezes the API as it is now.
. "$(dirname "$0")/lib.sh"
need_go
frozen=build/api.tar.gz work=$(mktemp -d) broken=
trap 'rm -rf "$work"' EXIT
apidiff=$(go_tool golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e)
[ -n "${RENEW:-}" ] || tar -xzf "$frozen" -C "$work"
for package in throttle throttle/redisrate throttle/throttlehttp throttle/throttletest; do
  export=$work/${package//\//_} path=$(go list "./$package")
  if [ -n "${RENEW:-}" ]; then
    "$apidiff" -w "$export" "$path"
  else
    broken+=$("$apidiff" -incompatible "$export" "$path")
  fi
done
if [ -n "${RENEW:-}" ]; then
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -c . | gzip -n9 >"$frozen"
  echo "api: $frozen is renewed"
  exit
fi
[ -z "$broken" ] || die "callers of the Go client would break: $broken. If that is meant, RENEW=1 build/api.sh, and a line in CHANGELOG.md."
echo 'api: nothing breaks callers'
