#!/bin/bash
# in-tree.sh TREE COMMAND ...  boots systemd in a Debian tree, runs the command there, and ends what runs in the tree.
# The tree has its own processes, mounts and control groups, and a network in which only the loopback interface is up.
. "$(dirname "$0")/lib.sh"
tree=$(realpath "$1")
shift

# The two parts that become the tree's first process.
case $1 in
mount-tree)
  mount --make-rprivate /
  mount --bind "$tree" "$tree"
  mount -t proc proc "$tree/proc"
  mount -t sysfs -o ro sysfs "$tree/sys"
  mount -t tmpfs -o mode=755 tmpfs "$tree/run"
  mount -t tmpfs tmpfs "$tree/tmp"
  mount -t tmpfs -o mode=755 tmpfs "$tree/dev"
  mkdir "$tree/dev/shm" "$tree/dev/pts"
  ln -s pts/ptmx "$tree/dev/ptmx"
  for device in null zero full random urandom tty; do
    touch "$tree/dev/$device"
    mount --bind "/dev/$device" "$tree/dev/$device"
  done
  # A control group of its own, so that systemd touches none of this machine's.
  mount -t cgroup2 cgroup2 "$tree/mnt"
  mkdir -p "$tree/mnt/$2"
  echo 0 >"$tree/mnt/$2/cgroup.procs"
  umount "$tree/mnt"
  ip link set lo up
  exec unshare --cgroup build/in-tree.sh "$tree" boot-tree
  ;;
boot-tree)
  mount -t tmpfs tmpfs "$tree/sys/fs"
  mkdir "$tree/sys/fs/cgroup"
  mount -t cgroup2 cgroup2 "$tree/sys/fs/cgroup"
  cd "$tree"
  pivot_root . mnt
  umount -l /mnt
  exec env -i container=gothrottle PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target
  ;;
esac

[ "$(id -u)" = 0 ] || die 'only root can boot a tree.'
have ip || apt_install iproute2
group=gothrottle-$$

end() {
  # The end of a first process ends all others of its namespace.
  kill -9 "${init:-$pid}" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  unshare --mount sh -c 'mount -t cgroup2 cgroup2 "$1" && find "$1/$2" -depth -type d -exec rmdir {} +' end "$tree/mnt" "$group" || true
}
unshare --mount --pid --fork --net --uts --ipc --kill-child build/in-tree.sh "$tree" mount-tree "$group" </dev/null >"$tree.log" 2>&1 &
pid=$! init=''
trap end EXIT

# Until systemd has the tree for its root, a command would run on this machine. -ef compares the two folders.
enter() {
  nsenter --target "$init" --mount --pid --net --uts --ipc --cgroup --root --wd -- \
    timeout 1500 env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
up() {
  init=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
  init=${init%% *}
  [ -n "$init" ] && [ "/proc/$init/root" -ef "$tree" ] && [[ $(enter systemctl is-system-running 2>/dev/null) =~ running|degraded ]]
}
for _ in {1..900}; do
  if up; then
    enter "$@"
    exit
  fi
  kill -0 "$pid" 2>/dev/null || break
  sleep 0.2
done
tail -n 20 "$tree.log" >&2
die 'systemd does not start in the tree: its last lines are above.'
