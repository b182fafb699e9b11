#!/bin/bash
# The black-box tests against the image. Started through docker-engine.sh, which sees to an engine.
. "$(dirname "$0")/lib.sh"
need_go
build/image.sh
# The tests never pull; the server without the module is one side of the replication tests.
have_image "$SERVER_IMAGE" || "$DOCKER" pull "$SERVER_IMAGE"
GOTHROTTLE_DOCKER=1 GOTHROTTLE_DOCKER_CLI=$DOCKER GOTHROTTLE_IMAGE=$IMAGE GOTHROTTLE_BASE_IMAGE=$SERVER_IMAGE \
  go test -count=1 -timeout 15m ./tests/...
