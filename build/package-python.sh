#!/bin/bash
# package-python.sh [FOLDER]  packs the Python package with the script into a file for pip install, by default in
# build/out/packages, and prints its path. make package does this, too.
. "$(dirname "$0")/lib.sh"
out=${1:-$PWD/build/out/packages}
version=$(build/version.sh)
time=$(source_date)
name=gothrottle-python-$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/$name/gothrottle"
cp adapters/python/{README.md,setup.py} LICENSE "$work/$name"
sed "s/^version = .*/version = \"$version\"/" adapters/python/pyproject.toml >"$work/$name/pyproject.toml"
cp adapters/python/gothrottle/{*.py,py.typed} script/gothrottle.lua "$work/$name/gothrottle"
(cd "$work" && find "$name" -type f | sort | tar --files-from=- --format=ustar --owner=0 --group=0 --numeric-owner --mode=a=r,u+w \
  --mtime="@$time" -c) | gzip -9n >"$out/$name.tar.gz"
chmod 0644 "$out/$name.tar.gz"
echo "$out/$name.tar.gz"
