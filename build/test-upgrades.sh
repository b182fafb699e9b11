#!/bin/bash
# Tries this version beside earlier ones: a rolling upgrade and the way back, the earlier client and gateway with this
# module, this client and script with the earlier module, and this client for callers of the earlier one. OLD names
# revisions; the default is all release tags or, while there is none, the last commit of the day before. TestGolden reads
# states of all versions.
. "$(dirname "$0")/lib.sh"
need_server
git=(git -c safe.directory='*')
if [ -z "${OLD:-}" ]; then OLD=$("${git[@]}" tag --list 'v*' | xargs); fi
[ -n "$OLD" ] || OLD=$("${git[@]}" log -1 --format=%h --before='1 day ago')
[ -n "$OLD" ] || die 'found no earlier version to upgrade from: set OLD to a tag or a commit.'
work=$(mktemp -d)
trap '"${git[@]}" worktree remove --force "$work/old" 2>/dev/null || true; rm -rf "$work"' EXIT

# tried WHAT COMMAND ...  says what is tried.
tried() {
  echo "== $old: $1"
  "${@:2}" || failed+=("$old: $1")
}

# callers_compile  fails if the Go client lost or changed a name of a release. Before the first release it only shows that.
callers_compile() {
  local apidiff package broken=
  apidiff=$(go_tool golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e)
  for package in $(cd "$work/old" && go list ./throttle/... | grep -v /internal/); do
    (cd "$work/old" && "$apidiff" -w "$work/api" "$package")
    broken+=$("$apidiff" -incompatible "$work/api" "$package" 2>&1)
  done
  echo "$broken"
  [[ -z $broken || $old != v* ]]
}

failed=()
for old in $OLD; do
  "${git[@]}" worktree add --quiet --force --detach "$work/old" "$old"
  (cd "$work/old" && unset GOTHROTTLE_MODULE && build/module.sh)
  export GOTHROTTLE_OLD_MODULE=$work/old/build/out/gothrottle.so
  tried 'a rolling upgrade, and the way back' go test -count=1 -run 'Replication_aReplicaAnswers' ./tests
  # everyVerb has words that the old module may not know.
  tried 'this client and script, with the old module' env GOTHROTTLE_MODULE="$GOTHROTTLE_OLD_MODULE" \
    go test -count=1 -run 'Server_' -skip 'everyVerb' ./throttle
  tried "the old client's callers, with this client" callers_compile
  if [ -d "$work/old/throttle" ]; then tried 'the old client, with this module' go -C "$work/old" test -count=1 -run 'Server_' ./throttle; fi
  # Routes needs proxies and frameworks.
  if [ -d "$work/old/gateway" ]; then tried 'the old gateway, with this module' go -C "$work/old/gateway" test -count=1 -skip Routes ./...; fi
  "${git[@]}" worktree remove --force "$work/old"
done
[ ${#failed[@]} = 0 ] || die "FAILED: $(printf '%s; ' "${failed[@]}")"
echo 'make test-upgrades: passed'
