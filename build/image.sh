#!/bin/bash
# Builds the Docker images: the server with the module, the init container that copies the module, and the gateway.
. "$(dirname "$0")/lib.sh"
need_docker "$0"
# BuildKit does not pull an image that another one replaces.
export DOCKER_BUILDKIT=1
if [ "${STANDIN:-}" = 1 ]; then
  build/standin-images.sh
  GO_IMAGE=${GO_IMAGE:-$(base_image go)} SERVER_IMAGE=${SERVER_IMAGE:-$(base_image server)} INIT_IMAGE=${INIT_IMAGE:-$(base_image shell)}
fi
bases=()
for name in GO_IMAGE SERVER_IMAGE INIT_IMAGE; do [ -z "${!name:-}" ] || bases+=(--build-arg "$name=${!name}"); done

build_image() {
  "$DOCKER" build "${bases[@]}" "$@" . ||
    die 'the image was not built. Where no image registry is reached, STANDIN=1 makes base images from Debian packages.'
}
build_image --tag "$IMAGE"
build_image --target init --tag "$INIT"
# The other images need no Go on this machine.
have go || { echo 'gothrottle: there is no go: the image of the gateway is NOT built' >&2 && exit 0; }
build/gateway.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/root/bin"
cp build/out/gothrottle-gateway "$folder/root"
ln -s ../gothrottle-gateway "$folder/root/bin/ratelimit"
cp deploy/gateway/Dockerfile "$folder"
"$DOCKER" build --tag "$GATEWAY" "$folder"
