#!/bin/bash
# Builds the Docker image.
. "$(dirname "$0")/lib.sh"
if standins_wanted; then build/standin-images.sh; fi
"$DOCKER" build --build-arg "GO_IMAGE=$GO_IMAGE" --build-arg "SERVER_IMAGE=$SERVER_IMAGE" --tag "$IMAGE" . ||
  die 'the image was not built. Where no image registry is reached, STANDIN=1 makes base images from Debian packages.'
