#!/bin/sh
# Runs the arm64 redis-server in the tree QEMU_LD_PREFIX under qemu. Tests start it as GOTHROTTLE_SERVER. exec: whatever
# kills this process kills the server. -0: the server takes this script for its own file and can restart itself by it.
exec qemu-aarch64-static -0 "$0" "$QEMU_LD_PREFIX/usr/bin/redis-server" "$@"
