#!/bin/bash
# Makes stand-ins for the base images from Debian's packages, under the official names, for a machine that reaches no
# image registry. An image that exists is left alone, and nothing is pulled or pushed. Each stand-in carries the label
# gothrottle.standin, so that nobody takes it for the official image.
. "$(dirname "$0")/lib.sh"

go=$(base_image go) server=$(base_image server) shell=$(base_image shell)
work=$(work_folder)
trap 'rm -rf --one-file-system "$work"' EXIT

# import SUITE IMAGE CHANGE ...  makes the image from the tree of the suite.
import() {
  local suite=$1 image=$2 changes=() change
  shift 2
  for change in "LABEL gothrottle.standin=\"made from Debian $suite packages, not the official image\"" "$@"; do
    changes+=(--change "$change")
  done
  tar -C "$work/$suite" --numeric-owner -c . | "$DOCKER" import "${changes[@]}" - "$image" >/dev/null
  rm -rf --one-file-system "${work:?}/$suite"
  echo "made a stand-in for $image"
}

if ! have_image "$go"; then
  bootstrap bookworm gcc,libc6-dev,make,ca-certificates "$work/bookworm"
  cp -a "$(go env GOROOT)" "$work/bookworm/usr/local/go"
  cp -L /etc/ssl/certs/ca-certificates.crt "$work/bookworm/etc/ssl/certs/ca-certificates.crt"
  import bookworm "$go" \
    'ENV PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    'ENV GOPATH=/go GOTOOLCHAIN=local' 'WORKDIR /go' 'CMD ["bash"]'
fi

if ! have_image "$server"; then
  bootstrap trixie redis-server "$work/trixie"
  # As in the official image: user 999, /data, and no protected mode. A container publishes only the ports it is told to.
  chroot "$work/trixie" sh -c 'groupmod -g 999 redis && usermod -u 999 redis && install -d -o redis -g redis /data'
  cat >"$work/trixie/usr/local/bin/docker-entrypoint.sh" <<'SH'
#!/bin/sh
set -e
case ${1-} in -* | *.conf) set -- redis-server "$@" ;; esac
if [ "$1" = redis-server ]; then
  case "$*" in *--protected-mode*) ;; *) set -- "$@" --protected-mode no ;; esac
  if [ "$(id -u)" = 0 ]; then exec setpriv --reuid redis --regid redis --clear-groups "$@"; fi
fi
exec "$@"
SH
  chmod 0755 "$work/trixie/usr/local/bin/docker-entrypoint.sh"
  import trixie "$server" \
    'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
    'WORKDIR /data' 'EXPOSE 6379' 'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["redis-server"]'
fi

# A busybox that needs no library, with a link for each of its commands.
if ! have_image "$shell"; then
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  have_busybox() { (cd "$work" && apt-get download -qq busybox-static >/dev/null 2>&1); }
  # A new machine has no package lists.
  have_busybox || { apt-get update -qq >/dev/null && have_busybox; } || die 'apt-get does not get busybox-static.'
  mkdir -p "$work/$suite/tmp" "$work/$suite/usr/bin" "$work/$suite/usr/sbin" "$work/$suite/sbin"
  chmod 1777 "$work/$suite/tmp"
  dpkg-deb -x "$work"/busybox-static_*.deb "$work/$suite"
  chroot "$work/$suite" /bin/busybox --install -s
  import "$suite" "$shell" 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' 'CMD ["sh"]'
fi
