#!/bin/bash
# The short black-box tests against the image: its server is one of those that test-servers.sh tests in full.
. "$(dirname "$0")/lib.sh"
need_docker "$0"
need_go
build/image.sh
# The tests pull no image. The replication tests need the server image without the module.
base=$(base_image server)
have_image "$base" || retry "$DOCKER" pull "$base"
GOTHROTTLE_DOCKER_CLI=$DOCKER GOTHROTTLE_IMAGE=$IMAGE GOTHROTTLE_BASE_IMAGE=$base \
  go test -count=1 -timeout 40m -short ./tests
