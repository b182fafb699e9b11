#!/bin/bash
# Other parts of the tests, while half of the servers and of the browser's processes, other ones each time, freeze for 0.3 to
# 0.9 s every few seconds: a busy machine does so, too. PARTS names the parts. It needs root and version 2 of cgroups,
# beside version 1 or alone.
. "$(dirname "$0")/lib.sh"
group=/sys/fs/cgroup
[ ! -d $group/unified ] || group+=/unified
group+=/gothrottle-stalls-$$
mkdir -p $group/{0,1} || die 'test-stalls: making a cgroup takes root and version 2 of cgroups.'

# thaw  lets all go on, and leaves the groups, which go with their last process.
thaw() {
  echo 0 | tee $group/{0,1}/cgroup.freeze >/dev/null
  cat $group/{,0/,1/}cgroup.procs | while read -r pid; do echo "$pid" >$group/../cgroup.procs; done
  rmdir $group/{0,1} $group
}
trap 'thaw 2>/dev/null' EXIT

failed=
for part in ${PARTS:-languages gateway playground}; do
  (echo $BASHPID >$group/cgroup.procs && exec "build/test-$part.sh") &
  while kill -0 $! 2>/dev/null; do
    sleep $((RANDOM % 2 + 1)).$((RANDOM % 10))
    for pid in $(pgrep -f '(redis|valkey)-server|chrom'); do
      ! grep -qs "${group##*/}" "/proc/$pid/cgroup" || echo "$pid" >$group/$((RANDOM % 2))/cgroup.procs
    done 2>/dev/null || true
    one=$group/$((RANDOM % 2))/cgroup.freeze
    echo 1 >"$one"
    sleep 0.$((RANDOM % 7 + 3))
    echo 0 >"$one"
  done
  wait $! || failed+=" $part"
done
[ -z "$failed" ] || die "test-stalls: FAILED:$failed"
