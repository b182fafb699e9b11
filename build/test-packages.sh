#!/bin/bash
# Packs the module twice, looks into the packages, and installs them in trees of Debian 12 and 13 that run systemd.
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || die 'only root can install packages in a tree.'
have rpm || ! can_install || apt_install rpm
have rpm || die 'rpm is needed to look into the packages: please install it.'

work=$(work_folder)
trap 'rm -rf --one-file-system "$work"' EXIT

# tree NAME SUITE SERVERS  makes a tree in the background.
trees=()
tree() {
  bootstrap "$2" "systemd,$3" "$work/$1" &
  trees+=($!)
}
have debootstrap || apt_install debootstrap
tree debian12 bookworm redis-server
tree debian13 trixie redis-server,valkey-server

build/package.sh
out=$PWD/build/out/packages

# Again in another folder, with an empty build cache. Only the tools are not built anew.
mkdir "$work/again"
tar --exclude=./.git --exclude=./build/out -c . | tar -x -C "$work/again"
SOURCE_DATE_EPOCH=$(source_date) GOCACHE=$work/gocache TOOLS_GOCACHE=$(go env GOCACHE) "$work/again/build/package.sh" >/dev/null
diff -r "$out" "$work/again/build/out/packages" || die 'two builds differ.'
echo 'two builds in different folders are the same, byte by byte'

GOTHROTTLE_PACKAGES=$out go -C deploy test -count=1 -run Package .

# A package that differs from the first one in nothing but the version.
arch=$(dpkg --print-architecture)
mkdir "$work/trial"
cp build/package-trial.sh "$work/trial/"
sed -n '/^    apt-get install/p; /^    cat .*gothrottle.conf/p; /^    redis-cli GO.THROTTLE/p' README.md |
  sed "s/_amd64/_$arch/" >"$work/trial/readme"
mkdir -p "$work/trial/build/out/packages"
cp "$out"/gothrottle_*_"$arch".deb "$work/trial/build/out/packages/"
cp "$out"/gothrottle_*_"$arch".deb "$work/trial/old.deb"
dpkg-deb -R "$work/trial/old.deb" "$work/new"
sed -i 's/^Version: .*/&+new/' "$work/new/DEBIAN/control"
dpkg-deb --root-owner-group -b "$work/new" "$work/trial/new.deb" >/dev/null

# trial TREE SERVER ...
trial() {
  local tree=$work/$1
  shift
  cp -a "$work/trial" "$tree/root/trial"
  build/in-tree.sh "$tree" sh -c 'for server; do bash /root/trial/package-trial.sh "$server" /root/trial || exit; done' trial "$@"
}
for pid in "${trees[@]}"; do wait "$pid"; done
trial debian12 redis-server >"$work/debian12.out" 2>&1 &
pid=$!
trial debian13 redis-server valkey-server
wait "$pid" || die "$(cat "$work/debian12.out")"
cat "$work/debian12.out"
echo 'make test-packages: passed'
