#!/bin/bash
# Makes a stand-in for the base images from Debian's packages, for a machine that reaches no image registry: one image with
# Redis, gcc and this machine's Go, under all of their names. An image that exists is left alone, and nothing is pulled or
# pushed. The stand-in carries the label gothrottle.standin, so that nobody takes it for an official image.
. "$(dirname "$0")/lib.sh"

names=()
for stage in go server shell; do
  have_image "$(base_image $stage)" || names+=("$(base_image $stage)")
done
[ ${#names[@]} -gt 0 ] || exit 0
work=$(work_folder)
trap 'rm -rf --one-file-system "$work"' EXIT
tree=$work/tree
bootstrap trixie gcc,libc6-dev,redis-server "$tree"
cp -a "$(go env GOROOT)" "$tree/usr/local/go"
# As in the official image of Redis: user 999, /data, and no protected mode. A container publishes no port unless its user names it.
chroot "$tree" sh -c 'groupmod -g 999 redis && usermod -u 999 redis && install -d -o redis -g redis /data'
cat >"$tree/usr/local/bin/docker-entrypoint.sh" <<'SH'
#!/bin/sh
set -e
case ${1-} in -* | *.conf) set -- redis-server "$@" ;; esac
if [ "$1" = redis-server ]; then
  case "$*" in *--protected-mode*) ;; *) set -- "$@" --protected-mode no ;; esac
  if [ "$(id -u)" = 0 ]; then exec setpriv --reuid redis --regid redis --clear-groups "$@"; fi
fi
exec "$@"
SH
chmod 0755 "$tree/usr/local/bin/docker-entrypoint.sh"
image=$(tar -C "$tree" --numeric-owner -c . | "$DOCKER" import --change 'LABEL gothrottle.standin="made from Debian packages, not an official image"' \
  --change 'ENV PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin GOTOOLCHAIN=local' \
  --change 'WORKDIR /data' --change 'EXPOSE 6379' --change 'ENTRYPOINT ["docker-entrypoint.sh"]' --change 'CMD ["redis-server"]' -)
for name in "${names[@]}"; do
  "$DOCKER" tag "$image" "$name"
  echo "made a stand-in for $name"
done
