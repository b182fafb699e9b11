#!/bin/bash
# Checks GitHub's workflows, and the compose file, the Helm chart and the files for Valkey, which it also tries in Docker.
. "$(dirname "$0")/lib.sh"
need_docker "$0"
lint_module deploy
"$(go_tool github.com/rhysd/actionlint/cmd/actionlint@v1.7.12)" .github/workflows/*.yml
build/image.sh
# The tests pull no image.
base=$(base_image server)
have_image "$base" || retry "$DOCKER" pull "$base"
compose=${COMPOSE:-docker-compose}
need "$compose" docker-compose
helm=$(go_tool helm.sh/helm/v3/cmd/helm@v3.19.2)
"$helm" lint --strict --quiet --set password=x deploy/chart
GOTHROTTLE_HELM=$helm GOTHROTTLE_COMPOSE=$compose GOTHROTTLE_DOCKER_CLI=$DOCKER GOTHROTTLE_IMAGE=$IMAGE GOTHROTTLE_INIT=$INIT \
  GOTHROTTLE_BASE_IMAGE=$base go -C deploy test -count=1 -timeout 30m .
