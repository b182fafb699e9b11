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
# label TITLE DESCRIPTION  sets labels to the options of docker build by which registries and Artifact Hub describe an image.
label() {
  local o=org.opencontainers.image
  labels=(--label "$o.title=$1" --label "$o.description=$2" --label "$o.version=$(build/version.sh)" --label "$o.licenses=MIT"
    --label "$o.created=$(date -u -d "@$(source_date)" +%FT%TZ)" --label "$o.url=https://gothrottle.invalid"
    --label "$o.documentation=https://gothrottle.invalid/docs" --label "$o.source=https://gothrottle.invalid/source"
    --label io.artifacthub.package.readme-url=https://gothrottle.invalid/README.md
    --label io.artifacthub.package.license=MIT --label 'io.artifacthub.package.keywords=rate limiting,redis,valkey')
}
label gothrottle 'Redis with the rate limiter gothrottle'
build_image "${labels[@]}" --tag "$IMAGE"
label gothrottle-init "Copies the module gothrottle into a server's container"
build_image "${labels[@]}" --target init --tag "$INIT"
# The other images need no Go on this machine.
have go || { echo 'gothrottle: there is no go: the image of the gateway is NOT built' >&2 && exit 0; }
build/gateway.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/root/bin" "$folder/root/licenses"
cp build/out/gothrottle-gateway "$folder/root"
cp LICENSE "$folder/root/licenses/gothrottle"
cp "$(go env GOROOT)/LICENSE" "$folder/root/licenses/go"
libraries >"$folder/root/licenses/libraries"
ln -s ../gothrottle-gateway "$folder/root/bin/ratelimit"
cp deploy/gateway/Dockerfile "$folder"
label gothrottle-gateway 'Rate limit service for Envoy, nginx, Caddy and HAProxy'
"$DOCKER" build "${labels[@]}" --tag "$GATEWAY" "$folder"
